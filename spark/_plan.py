"""Plan of the next batch: pure functions of the state of the group and of the logs.

A plan starts at the group's committed offsets and has at most ``max_offsets`` offsets. A batch that was
announced and has not ended is planned again exactly as it was (``_intent.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..protocol import KohortError, TopicPartition
from ._commit_size import fit_commit
from ._intent import Announced, new_token, next_number, pending_batch
from ._offsets import EARLIEST, LATEST, Bounds, Commits, Logs, OffsetRange, Offsets, Plan

Fallback = Literal["earliest", "latest", "fail"]

#: Where the first batch starts: at committed offsets, at the start or end of each log, or at given offsets.
Start = Literal["committed", "earliest", "latest"] | Offsets

#: Records that justify one more task, as Spark takes about 26 ms to start one.
RECORDS_PER_TASK = 100_000


class NoStartError(KohortError):
    """A partition has no committed offset, and the options do not allow another start."""


class DataLossError(KohortError):
    """Records that should have been read are no longer in the log. ``lost``: their ranges."""

    def __init__(self, lost: Sequence[OffsetRange], message: str) -> None:
        super().__init__(message)
        self.lost = tuple(lost)


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest batch, in offsets; None is no limit."""

    max_offsets: int | None = None
    max_offsets_per_partition: int | None = None


@dataclass(frozen=True, slots=True)
class StartRules:
    """Where to start, without a commit too, and whether commits outside of the log are errors."""

    start: Start = "committed"
    fallback: Fallback = "earliest"
    fail_on_data_loss: bool = True


def plan_batch(
    committed: Commits,
    bounds: Logs,
    *,
    rules: StartRules,
    limits: Limits,
    reached: Offsets | None = None,
    least_number: int = 0,
    group: str = "",
) -> Plan:
    """Plan the next batch. It has no ranges if there is nothing to read.

    ``committed``: all commits of the group. ``bounds``: the partitions to read. ``reached`` and
    ``least_number``: where this driver's own batches ended and the next batch number, which are used if
    commits have expired or were deleted. ``group``: its name takes room in commits.
    Raises NoStartError and DataLossError.
    """
    starts = choose_starts(bounds, committed, rules, reached or {})
    announced = pending_batch(committed) if rules.start == "committed" else None
    if announced is not None:
        spans = tuple(span for span in announced.ranges if span.topic_partition in bounds)
        if any(_still_there(span, bounds[span.topic_partition]) for span in spans):
            # a part of the batch needs a new token: else a sink would skip the other part later
            token = announced.token if len(spans) == len(announced.ranges) else new_token()
            return _replay_plan(Announced(announced.number, token, spans), starts, bounds, rules)
    number = max(next_number(committed), least_number)
    return _advance_plan(number, starts, committed, bounds, rules, limits, group)


def choose_starts(bounds: Logs, committed: Commits, rules: StartRules, reached: Offsets) -> Offsets:
    """Return the next offset of each partition. Raises NoStartError, which names partitions without one, and
    those that the options name although they are not read.
    """
    if isinstance(rules.start, Mapping):
        refuse_unread("starting", rules.start, bounds)
    # what was added since the group began is read from its first record
    began = bool(reached) or any(partition in committed for partition in bounds)
    if began and rules.fallback == "latest":
        rules = replace(rules, fallback="earliest")
    starts = {
        partition: offset
        for partition, log in bounds.items()
        if (offset := _start_of(partition, log, committed, rules, reached)) is not None
    }
    missing = sorted(bounds.keys() - starts.keys())
    if missing:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in missing)
        raise NoStartError(
            f"no committed offset for {names}: commit one, or set starting_offsets_fallback to "
            "'earliest' or 'latest'"
        )
    return starts


def refuse_unread(which: str, named: Offsets, bounds: Logs) -> None:
    """Raise NoStartError if offsets name a partition that is not read: a name that is wrong, and so no
    position of the one that was meant. ``which``: starting or ending.
    """
    if unread := sorted(named.keys() - bounds.keys()):
        names = ", ".join(f"{topic}-{partition}" for topic, partition in unread)
        raise NoStartError(
            f"the {which} offsets name {names}, which is not among what is read: check the names of topics "
            "and the numbers of partitions"
        )


def _start_of(
    partition: TopicPartition, log: Bounds, committed: Commits, rules: StartRules, reached: Offsets
) -> int | None:
    if isinstance(rules.start, Mapping):
        if partition in rules.start:
            return _named_offset(rules.start[partition], log)
    elif rules.start != "committed":
        return _named_offset(EARLIEST if rules.start == "earliest" else LATEST, log)
    if partition in committed:
        return committed[partition].offset
    if partition in reached:
        return reached[partition]
    return None if rules.fallback == "fail" else _fallback_offset(log, rules)


def _named_offset(offset: int, log: Bounds) -> int:
    return {EARLIEST: log.earliest, LATEST: log.latest}.get(offset, offset)


def _fallback_offset(log: Bounds, rules: StartRules) -> int:
    return log.latest if rules.fallback == "latest" else log.earliest


def _still_there(span: OffsetRange, log: Bounds) -> bool:
    return max(span.start, log.earliest) < min(span.end, log.latest)


def _replay_plan(batch: Announced, starts: Offsets, bounds: Logs, rules: StartRules) -> Plan:
    """Plan the announced batch again, without the offsets that the logs no longer have."""
    lost = losses_of({span.topic_partition: (span.start, span.end) for span in batch.ranges}, bounds)
    refuse_losses(lost, rules)
    ranges, moves = [], {}
    ends = dict(starts)
    for span in batch.ranges:
        partition, log = span.topic_partition, bounds[span.topic_partition]
        ends[partition] = usable_offset(span.end, log, rules)
        if _still_there(span, log):
            start, end = max(span.start, log.earliest), min(span.end, log.latest)
            ranges.append(OffsetRange(*partition, start, end))
        else:
            moves[partition] = ends[partition]
    ends = {partition: usable_offset(ends[partition], log, rules) for partition, log in bounds.items()}
    lag = sum(max(0, log.latest - ends[partition]) for partition, log in bounds.items())
    return Plan(batch.number, tuple(ranges), batch.token, replayed=True, lag=lag, lost=lost, moves=moves)


def _advance_plan(
    number: int,
    wanted: Offsets,
    committed: Commits,
    bounds: Logs,
    rules: StartRules,
    limits: Limits,
    group: str,
) -> Plan:
    """Plan the next records of each partition, within the limits."""
    lost = losses_of({partition: (start, start) for partition, start in wanted.items()}, bounds)
    refuse_losses(lost, rules)
    starts = {
        partition: usable_offset(wanted[partition], bounds[partition], rules) for partition in sorted(bounds)
    }
    available = [
        OffsetRange(*partition, start, max(start, bounds[partition].latest))
        for partition, start in starts.items()
    ]
    waiting = [span for span in available if span.offsets > 0]
    ranges = allocate_ranges(fit_commit(group, number, waiting, committed), limits)
    lag = sum(span.offsets for span in available) - sum(span.offsets for span in ranges)
    reading = {span.topic_partition for span in ranges}
    moves = {
        partition: start
        for partition, start in starts.items()
        if partition not in reading and (partition not in committed or committed[partition].offset != start)
    }
    return Plan(number, ranges, new_token(), lag=lag, lost=lost, moves=moves)


def up_to(start: Offsets, bounds: Logs, target: Offsets) -> Logs:
    """Return ``bounds`` with ends no higher than ``target``, and no lower than ``start``."""
    ends = {p: max(target[p], start.get(p, 0), log.earliest) for p, log in bounds.items() if p in target}
    return {p: replace(bounds[p], latest=min(bounds[p].latest, end)) for p, end in ends.items()}


def usable_offset(offset: int, log: Bounds, rules: StartRules) -> int:
    """Return where reading can continue: ``offset``, or a bound of the log if it is outside."""
    return max(offset, log.earliest) if log.has(offset) else _fallback_offset(log, rules)


def losses_of(wanted: Mapping[TopicPartition, tuple[int, int]], bounds: Logs) -> tuple[OffsetRange, ...]:
    """Return the wanted ranges before the log's start and after its end (the log may have been recreated)."""
    lost = []
    for partition, (start, end) in wanted.items():
        log = bounds[partition]
        if start < log.earliest:
            lost.append(OffsetRange(*partition, start, log.earliest))
        # what is to be read must be readable; an offset alone may lie among open transactions
        if end > max(start, log.latest) or not log.has(start):
            lost.append(OffsetRange(*partition, log.latest, max(start, end)))
    return tuple(sorted(lost))


def refuse_losses(lost: Sequence[OffsetRange], rules: StartRules) -> None:
    """Raise DataLossError if there are losses and the rules make them an error."""
    if lost and rules.fail_on_data_loss:
        names = ", ".join(str(span) for span in lost)
        raise DataLossError(
            lost,
            f"offsets that were to be read are not in the log: {names}; retention or a new topic of the same "
            "name took them. Reset the group's offsets, or set fail_on_data_loss=False to go on without them",
        )


def refuse_gone(gone: Sequence[OffsetRange], rules: StartRules) -> tuple[OffsetRange, ...]:
    """Return what was not read of partitions that are no longer there.

    ``gone``: from the next offset to the last end that was seen, which may be empty. Raises DataLossError if
    there are any and the rules make losses an error, as more records may have come since.
    """
    if gone and rules.fail_on_data_loss:
        names = ", ".join(str(span) for span in gone)
        raise DataLossError(
            gone,
            f"partitions are gone, and what was not read of them: {names}. Their topic was deleted, "
            "or this user may not see it any more. Set fail_on_data_loss=False to go on without them",
        )
    return tuple(span for span in gone if span.offsets)


def allocate_ranges(available: Sequence[OffsetRange], limits: Limits) -> tuple[OffsetRange, ...]:
    """Return the part of each range that fits the limits: in proportion to lag, but at least one offset each.

    Together they have ``max_offsets`` offsets, or one each if there are more partitions than that.
    """
    waiting = [span for span in available if span.offsets > 0]
    cap = limits.max_offsets_per_partition
    sizes = [span.offsets if cap is None else min(span.offsets, cap) for span in waiting]
    if limits.max_offsets is not None:
        sizes = split_shares(sizes, limits.max_offsets)
    return tuple(
        OffsetRange(span.topic, span.partition, span.start, span.start + size)
        for span, size in zip(waiting, sizes, strict=True)
    )


def split_shares(sizes: Sequence[int], limit: int) -> list[int]:
    """Split ``limit`` over ``sizes``: 1 each, and the rest in proportion to size.

    The remainder of rounding goes to the largest fractions.
    """
    total = sum(sizes)
    if total <= limit:
        return list(sizes)
    rest = max(0, limit - len(sizes))
    above = total - len(sizes)
    if not above:
        return list(sizes)
    given = [1 + (size - 1) * rest // above for size in sizes]
    left = max(0, limit - sum(given))
    by_remainder = sorted(range(len(sizes)), key=lambda n: (-((sizes[n] - 1) * rest % above), n))
    for nth in by_remainder[:left]:
        given[nth] += 1
    return given


def split_tasks(
    ranges: Iterable[OffsetRange], *, cores: int, min_tasks: int = 1, records_per_task: int | None = None
) -> list[tuple[OffsetRange, ...]]:
    """Split the ranges into tasks of about equal size; a task may have several ranges.

    No task has more than ``records_per_task`` offsets. By default there is a task for each RECORDS_PER_TASK
    offsets, up to the number of cores. There are at least ``min_tasks`` tasks, if there are as many offsets.
    """
    spans = sorted(span for span in ranges if span.offsets > 0)
    total = sum(span.offsets for span in spans)
    if not total:
        return []
    wanted = -(-total // (records_per_task or RECORDS_PER_TASK))
    if records_per_task is None:
        wanted = min(cores, wanted)
    count = min(total, max(1, wanted, min_tasks))
    return _cut_ranges(spans, [total * nth // count for nth in range(1, count + 1)])


def _cut_ranges(spans: Sequence[OffsetRange], cuts: Sequence[int]) -> list[tuple[OffsetRange, ...]]:
    """Cut the concatenated ranges at these positions, the last of which is their end."""
    tasks, pieces, position = [], list[OffsetRange](), 0
    ahead = iter(spans)
    span = next(ahead)
    for cut in cuts:
        while position < cut:
            end = min(span.end, span.start + cut - position)
            pieces.append(OffsetRange(span.topic, span.partition, span.start, end))
            position += end - span.start
            if end < span.end:
                span = OffsetRange(span.topic, span.partition, end, span.end)
            else:
                span = next(ahead, span)
        tasks.append(tuple(pieces))
        pieces = []
    return tasks
