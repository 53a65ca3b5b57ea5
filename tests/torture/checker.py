"""Judges a history in the manner of Jepsen's Kafka workload. Pure: history in, anomalies out.

The producers are idempotent, so a value may be in the log once; the final read is of everything there is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.torture.history import NOWHERE, Commit, GroupHistory, History, Place, Seen, WireCommit, value_of

#: What is looked for, and what it means.
ANOMALIES = {
    "lost write": "an acknowledged record is not in the log though what was written later is",
    "unseen": "an acknowledged record at the end of the log is not there",
    "duplicate": "a value of an idempotent producer is in the log twice",
    "phantom": "a record that nobody sent",
    "inconsistent offset": "two values for one offset, told or read",
    "skipped poll": "a reader was not given a record that lies between two that it was given",
    "non-monotonic poll": "a reader was given an offset again, or out of order",
    "non-monotonic send": "a producer was told a lower offset for a later record of a partition",
    "lost commit": "a group's offset is older than one that was acknowledged, and nobody sent it again",
    "phantom commit": "a group's offset that nobody committed",
    "false acknowledgement": "a client was told that a commit is stored, which the broker had not said",
    "commit above work": "a group's last offset lies above a record that no member was given",
    "two owners": "two members committed offsets of one partition in one generation",
    "generation went back": "a group took a commit of a generation after one of a later generation",
    "member forgotten": "a group forgot its only member or its generation, though the session went on",
}


class Anomaly(NamedTuple):
    """``kind`` is one of ANOMALIES; ``places`` are those in the log that it is about, where there are any."""

    kind: str
    text: str
    places: tuple[Place, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def check(history: History) -> list[Anomaly]:
    """Everything that is wrong with it."""
    return [
        *_writes(history),
        *_offsets(history),
        *_polls(history),
        *(found for name, group in history.groups.items() for found in _commits(name, group, history)),
        *(found for name, group in history.groups.items() for found in _generations(name, group)),
    ]


def _writes(history: History) -> Iterator[Anomaly]:
    ends: dict[int, int] = defaultdict(int)
    places: dict[bytes, list[Place]] = defaultdict(list)
    for place, value in sorted(history.final.items()):
        ends[place[0]] = place[1] + 1
        places[value].append(place)
    for producer, sent in history.sent.items():
        last: dict[int, int] = {}
        for number, partition, offset in sent:
            value = value_of(producer, number)
            if value not in places:
                kind = "lost write" if offset < ends[partition] else "unseen"
                yield Anomaly(kind, f"{value!r}, acknowledged at {partition}/{offset}")
        for number, partition, offset in sorted(sent):
            if offset == NOWHERE:
                continue
            if offset <= last.get(partition, -1):
                yield Anomaly("non-monotonic send", f"{producer}:{number} at {partition}/{offset}")
            last[partition] = offset
    for value, found in places.items():
        if len(found) > 1:
            yield Anomaly("duplicate", f"{value!r} at {found}", tuple(found))
        producer, _, count = value.decode(errors="replace").rpartition(":")
        if not count.isdigit() or int(count) >= history.tried.get(producer, 0):
            yield Anomaly("phantom", f"{value!r} at {found}")


def _offsets(history: History) -> Iterator[Anomaly]:
    told = dict(history.final)
    for producer, sent in history.sent.items():
        for number, partition, offset in sent:
            value = value_of(producer, number)
            if offset != NOWHERE and told.setdefault((partition, offset), value) != value:
                other = told[partition, offset]
                yield Anomaly("inconsistent offset", f"{partition}/{offset}: {other!r}, {producer} {value!r}")
    for session in history.sessions:
        for partition, got in session.got.items():
            for offset, value in got:
                if told.setdefault((partition, offset), value) != value:
                    other = told[partition, offset]
                    text = f"{partition}/{offset}: {other!r}, {session.reader} {value!r}"
                    yield Anomaly("inconsistent offset", text)


def _polls(history: History) -> Iterator[Anomaly]:
    there: dict[int, list[int]] = defaultdict(list)
    for partition, offset in sorted(history.final):
        there[partition].append(offset)
    for session in history.sessions:
        for partition, got in session.got.items():
            known = there[partition]
            for (before, _), (offset, _) in pairwise(got):
                where = f"{session.reader} got {partition}/{offset} after {before}"
                if offset <= before:
                    yield Anomaly("non-monotonic poll", where)
                elif bisect_left(known, offset) > bisect_right(known, before):
                    yield Anomaly("skipped poll", where)


def _commits(name: str, group: GroupHistory, history: History) -> Iterator[Anomaly]:
    register = _Register(group, history.deaths)
    for seen in group.seen:
        if not register.allows(seen):
            sent = any((w.partition, w.offset) == (seen.partition, seen.offset) for w in group.wire)
            kind = "lost commit" if sent or seen.offset < 0 else "phantom commit"
            yield Anomaly(kind, f"{name} {seen.partition}: {seen.offset}; {register.around(seen)}")
    for commit in group.acknowledged:
        if not register.acknowledged(commit):
            yield Anomaly("false acknowledgement", f"{name} {commit.partition}: {commit.offset}")
    if group.follows_records:
        ends: dict[int, int] = {}
        for commit in group.acknowledged:
            ends[commit.partition] = max(commit.offset, ends.get(commit.partition, 0))
        for partition, end in sorted(ends.items()):
            missing = set(range(end)) - group.handled[partition]
            if missing:
                text = f"{name} {partition}: {end} is committed, {len(missing)} records were given to nobody"
                yield Anomaly("commit above work", f"{text}, the first is {min(missing)}")


def _generations(name: str, group: GroupHistory) -> Iterator[Anomaly]:
    taken = [commit for commit in group.wire if _taken(commit) and commit.member]
    owners: dict[tuple[int, int], WireCommit] = {}
    for commit in taken:
        owner = owners.setdefault((commit.generation, commit.partition), commit)
        if owner.member != commit.member:
            yield Anomaly("two owners", f"{name} {commit.partition}: {_told(owner)} and {_told(commit)}")
    # the first that is answered after a question is no reason to refuse what was asked before
    answered = sorted(taken, key=lambda commit: commit.answered or 0)
    highest, at = None, 0
    for commit in () if group.has_epochs else sorted(taken, key=lambda commit: commit.asked):
        while at < len(answered) and (answered[at].answered or 0) < commit.asked:
            if highest is None or answered[at].generation > highest.generation:
                highest = answered[at]
            at += 1
        if highest is not None and commit.generation < highest.generation:
            yield Anomaly("generation went back", f"{name}: {_told(commit)} after {_told(highest)}")
    if group.steady and taken:
        first = taken[0]
        for commit in taken:
            if (commit.member, commit.generation) != (first.member, first.generation):
                yield Anomaly("member forgotten", f"{name}: {_told(commit)} after {_told(first)}")
                return


def set_back(history: History) -> list[str]:
    """Commits that the broker acknowledged though one above them had been acknowledged before it was asked.

    The protocol has nothing that would let a broker refuse them: a client that sends a request, gives it up
    and goes on may have it carried out later. Each in words, with the generations and members.
    """
    found = []
    for name, group in history.groups.items():
        highest: dict[int, WireCommit] = {}
        for commit in sorted(filter(_taken, group.wire), key=lambda commit: commit.answered or 0):
            before = highest.setdefault(commit.partition, commit)
            if commit.offset >= before.offset:
                highest[commit.partition] = commit
            else:
                found.append(f"{name} {commit.partition}: {_told(commit)} behind {_told(before)}")
    return found


_NEVER = 1 << 62
#: Errors of a coordinator behind which a commit may be stored all the same: it was written, and nobody knew
#: in time whether other replicas have it.
_UNDECIDED = (7, 15, 16)


class _Register:
    """A group's offsets as a register, by what went over the wire.

    What was asked for and answered with an error was not stored. What was not answered may be stored at any
    time from then on until the broker's process dies. What was acknowledged was stored between question and
    answer, and is there until something else is stored that was asked for since.

    Where brokers take turns to coordinate the group, one that does not know yet that its turn is over may
    tell what was stored when it was; and a commit that was refused because replicas or the turn were lost may
    be stored all the same.
    """

    def __init__(self, group: GroupHistory, deaths: dict[int, list[int]]) -> None:
        self._deaths = {broker: sorted(ticks) for broker, ticks in deaths.items()}
        self._tenures = group.tenures
        self._of: dict[int, list[WireCommit]] = defaultdict(list)
        self._at: dict[Place, list[WireCommit]] = defaultdict(list)
        # what each broker took, by partition: when it answered, and the last question by then
        self._taken: dict[int, dict[int, tuple[list[int], list[int]]]] = defaultdict(dict)
        for commit in group.wire:
            self._of[commit.partition].append(commit)
            self._at[commit.partition, commit.offset].append(commit)
        for commit in sorted(filter(_taken, group.wire), key=lambda commit: commit.answered or 0):
            answers, asked = self._taken[commit.partition].setdefault(commit.broker, ([], []))
            answers.append(commit.answered or 0)
            asked.append(max(commit.asked, asked[-1] if asked else -1))

    def allows(self, seen: Seen) -> bool:
        """Whether somebody who asked may have found this."""
        since, last_asked = self._since(seen), -1
        for broker, (answers, asked) in self._taken[seen.partition].items():
            until = seen.asked if broker == seen.broker else min(seen.asked, since)
            count = bisect_left(answers, until)
            last_asked = max(last_asked, asked[count - 1] if count else -1)
        if seen.offset < 0:
            return last_asked < 0
        return any(
            commit.asked < seen.answered
            and (not commit.error or (bool(self._tenures) and commit.error in _UNDECIDED))
            and last_asked <= self._end(commit)
            for commit in self._at[seen.partition, seen.offset]
        )

    def _since(self, seen: Seen) -> int:
        """When the turn of the broker began that told this."""
        if not self._tenures:
            return _NEVER
        begun = [at for at, broker in self._tenures if broker == seen.broker and at < seen.answered]
        return max(begun, default=0)

    def acknowledged(self, told: Commit) -> bool:
        """Whether the broker has acknowledged what a client was told is stored."""
        return any(
            _taken(commit) and (commit.answered or 0) < told.tick
            for commit in self._at[told.partition, told.offset]
        )

    def around(self, seen: Seen) -> str:
        """The last that went over the wire before, and what carried the same offset."""
        commits = self._of[seen.partition]
        last = [_told(commit) for commit in commits if commit.asked < seen.answered][-5:]
        same = [_told(commit) for commit in commits if commit.offset == seen.offset]
        return f"asked {seen.asked}, answered {seen.answered}; before: {last}, the same: {same}"

    def _end(self, commit: WireCommit) -> int:
        """When it was stored, if it was, at the latest."""
        if commit.answered is not None:
            return commit.answered
        return next((at for at in self._deaths.get(commit.broker, ()) if at > commit.asked), _NEVER)


def _taken(commit: WireCommit) -> bool:
    return commit.error == 0


def _told(commit: WireCommit) -> str:
    who = f"{commit.member or 'nobody'} in generation {commit.generation}"
    answer = "not answered" if commit.answered is None else f"{commit.error} at {commit.answered}"
    return f"{commit.offset} by {who}, asked at {commit.asked}, {answer}"
