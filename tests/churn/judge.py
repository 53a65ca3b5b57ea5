"""What a run shows: lost, twice, out of order, silent. Pure: journals in, verdict out."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.churn.journal import Handled

#: A killed broker's clients need this long to settle what was on its way.
AFTERMATH_S = 5.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """A member (None: the broker) was killed, stopped, blocked or starved, with effects until ``end``."""

    what: str
    member: str | None
    begin: float
    end: float = math.inf


@dataclass(slots=True)
class Verdict:
    """``twice`` are (earlier, later) handlings of one record that no trouble explains."""

    records: int = 0
    handled: int = 0
    lost: list[int] = field(default_factory=list)
    out_of_order: list[Handled] = field(default_factory=list)
    twice: list[tuple[Handled, Handled]] = field(default_factory=list)
    explained: int = 0
    silence_s: float = 0.0
    partition_silence_s: float = 0.0
    #: The longest time in which the machine let the writer, too, do nothing, or a process of the run starve.
    stall_s: float = 0.0

    def summary(self) -> str:
        """One line for people."""
        return (
            f"{self.records} records handled {self.handled} times: {len(self.lost)} lost, "
            f"{len(self.out_of_order)} out of order, {self.explained} twice in a kill or an expired session, "
            f"{len(self.twice)} twice without one; longest silence {self.silence_s:.2f} s, "
            f"of one partition {self.partition_silence_s:.2f} s, the machine's {self.stall_s:.2f} s"
        )


def judge(records: int, handled: Iterable[Handled], troubles: Sequence[Trouble]) -> Verdict:
    """``records`` were acknowledged, numbered from 0."""
    by_time = sorted(handled)
    verdict = Verdict(records=records, handled=len(by_time))
    numbers = {each.number for each in by_time}
    verdict.lost = [number for number in range(records) if number not in numbers]
    done: dict[int, set[int]] = defaultdict(set)
    latest: dict[tuple[int, int], Handled] = {}
    for each in by_time:
        if each.offset and each.offset - 1 not in done[each.partition]:
            verdict.out_of_order.append(each)
        done[each.partition].add(each.offset)
        before = latest.get((each.partition, each.offset))
        if before is not None:
            if any(_explains(trouble, before, each) for trouble in troubles):
                verdict.explained += 1
            else:
                verdict.twice.append((before, each))
        latest[each.partition, each.offset] = each
    return verdict


def _explains(trouble: Trouble, before: Handled, again: Handled) -> bool:
    """The earlier handler's work could not be committed, or the later one did not know it was out."""
    if trouble.member is None or trouble.member == before.member:
        return trouble.begin <= again.at and before.at <= trouble.end
    return trouble.member == again.member and trouble.begin <= again.at <= trouble.end


def silence(
    verdict: Verdict,
    handled: Iterable[Handled],
    sent: Mapping[float, int],
    begin: float,
    end: float,
) -> None:
    """Fill in the longest times within ``begin``..``end`` in which a record was there and none was handled.

    ``sent`` has the number of records sent so far, by time; a record is waited for from when it was sent.
    """
    times = sorted(sent)
    counts = [sent[at] for at in times]
    gaps = [later - earlier for earlier, later in pairwise(times) if begin <= later <= end]
    verdict.stall_s = max(gaps, default=0.0)
    last_of: dict[int, float] = {}
    last = begin
    for each in sorted(handled):
        if begin <= each.at <= end:
            there_since = times[min(bisect_right(counts, each.number), len(times) - 1)]
            waited_from = max(there_since, begin)
            verdict.silence_s = max(verdict.silence_s, each.at - max(last, waited_from))
            mine = max(last_of.get(each.partition, begin), waited_from)
            verdict.partition_silence_s = max(verdict.partition_silence_s, each.at - mine)
            last = last_of[each.partition] = each.at
