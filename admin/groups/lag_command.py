"""``kohort groups lag``: how far behind groups are, and which are further than they may be."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...client import BrokerConnectionError
from ...lag import GroupLag, LagTracker, PartitionLag
from ...protocol import TopicPartition
from .. import notation
from ..screen import OK, REFUSED, Screen, plain
from ..tables import assignment, short, table
from ..visibility import ask_hidden_groups, hidden_field
from .group_admin import GroupAdmin
from .tables import STANDING_MS, age_text, lag_cells

if TYPE_CHECKING:
    from rich.table import Table


async def show_lag(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    """Look once or more often, and show each look. The exit code says whether a group is further behind than
    it may be, or could not be asked, at the last look.
    """
    tracker, began_ms = LagTracker(), 0
    looks = options.count if options.watch else 2 if options.during else 1
    look, code = 0, OK
    # of groups that are named it is said whether they may be seen
    hidden = () if options.groups else await ask_hidden_groups(admin.cluster)
    screen.remark(*hidden)
    while looks is None or look < looks:
        if look:
            await asyncio.sleep(options.interval if options.watch else options.during / 1_000)
        look += 1
        try:
            found = tracker.track(await admin.lag(options.groups or None))
        except BrokerConnectionError as error:
            if not options.watch or look == 1:
                raise
            screen.remark(str(error))
            continue
        look_ms = max((group.timestamp_ms for group in found), default=0)
        began_ms = began_ms or look_ms
        over = [group for group in found if is_over(group, options.over, options.older_than)]
        unseen = bool(hidden) and not found
        code = REFUSED if over or unseen or any(group.error for group in found) else OK
        if options.watch or look == looks:
            shown = over if options.over is not None or options.older_than is not None else found
            _show_look(screen, options, shown, found, look_ms - began_ms, hidden)
    return code


def is_over(group: GroupLag, records: int | None, age_ms: int | None) -> bool:
    """Return whether a group has more unread records, or older ones."""
    return (records is not None and (group.records or 0) > records) or (
        age_ms is not None and (group.age_ms or 0) > age_ms
    )


def _show_look(
    screen: Screen,
    options: argparse.Namespace,
    shown: Sequence[GroupLag],
    found: Sequence[GroupLag],
    elapsed_ms: int,
    hidden: Sequence[str],
) -> None:
    if screen.as_json:
        rows = [as_plain(group) for group in shown]
        document = {"timestamp_ms": round(time.time() * 1_000), "groups": rows, **hidden_field(hidden)}
        screen.document(document, one_line=options.watch)
        return
    failed = [group for group in found if group.error is not None]
    known = sorted((group for group in shown if group.error is None), key=lambda one: -(one.records or 0))
    if options.watch:
        screen.write(f"{notation.utc(round(time.time() * 1_000))}\n")
    if not known and not failed:
        seen = " that this user may see" if hidden else ""
        screen.remark(f"no group{seen} is further behind" if found else f"no groups{seen}")
    elif known:
        tables = [_partition_table(known)] if options.partitions else [_group_table(known)]
        standing = list(_standing_rows(known, elapsed_ms))
        if standing and not options.partitions:
            tables.append(table(["GROUP", "STANDS STILL", "FOR", "UNREAD", "MEMBER"], standing))
        screen.show(*tables)
    for group in failed:
        screen.remark(f"{group.group}: {group.error}")


def as_plain(group: GroupLag) -> dict[str, object]:
    """A group as JSON has it, with what follows from its partitions."""
    sums = ("records", "age_ms", "arrival_rate", "work_rate", "standing_ms")
    return {**plain(group), **{name: getattr(group, name) for name in sums}}


def _group_table(groups: Sequence[GroupLag]) -> Table:
    with_rates = any(group.work_rate is not None for group in groups)
    headings = ["GROUP", "STATE", "MEMBERS", "LAG", "OLDEST"]
    return table(
        [*headings, *(("ARRIVE/S", "READ/S", "CAUGHT UP IN") if with_rates else ())],
        (
            (
                group.group,
                group.state,
                *lag_cells(group),
                *((*_rates_of(group), _catch_up_text(group)) if with_rates else ()),
            )
            for group in groups
        ),
    )


def _partition_table(groups: Sequence[GroupLag]) -> Table:
    rows = [(group.group, row) for group in groups for row in group.partitions]
    with_rates = any(row.work_rate is not None for _, row in rows)
    headings = ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "OLDEST"]
    return table(
        [*headings, *(("ARRIVE/S", "READ/S", "STANDS FOR") if with_rates else ()), "MEMBER", "NOTE"],
        (
            (
                name,
                row.topic,
                row.partition,
                row.committed_offset,
                row.end_offset,
                row.records,
                age_text(row.age_ms),
                *((*_rates_of(row), age_text(row.standing_ms or None)) if with_rates else ()),
                ", ".join(map(short, row.members)) or None,
                _note_of(row),
            )
            for name, row in rows
        ),
    )


def _standing_rows(groups: Iterable[GroupLag], elapsed_ms: int) -> Iterator[tuple[object, ...]]:
    """What has stood still for some time, or in all looks, a row for each owner; nothing after one look."""
    for group in groups if elapsed_ms else ():
        by_owner: dict[tuple[str, ...], list[PartitionLag]] = {}
        for row in group.standing(min(STANDING_MS, elapsed_ms)):
            by_owner.setdefault(row.members, []).append(row)
        for members, rows in by_owner.items():
            yield (
                group.group,
                assignment(TopicPartition(row.topic, row.partition) for row in rows),
                age_text(rows[0].standing_ms),
                sum(row.records or 0 for row in rows),
                ", ".join(map(short, members)) or "nobody",
            )


def _rates_of(found: GroupLag | PartitionLag) -> tuple[str | None, str | None]:
    rates = (found.arrival_rate, found.work_rate)
    arrive, read = (
        None if rate is None else f"{rate:.3g}" if rate < 100 else f"{rate:.0f}" for rate in rates
    )
    return arrive, read


def _catch_up_text(group: GroupLag) -> str | None:
    if not group.records or group.work_rate is None:
        return None
    return "never at this rate" if group.catch_up_ms is None else notation.span(group.catch_up_ms)


def _note_of(row: PartitionLag) -> str | None:
    deleted = f"{row.deleted} records were deleted unread" if row.deleted else ""
    return "; ".join(filter(None, (row.note, deleted))) or None
