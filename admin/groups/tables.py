"""Groups, their history and resets as rich tables."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...lag import GroupLag
from ...protocol import SHARE_EVENTS, TopicPartition
from .. import notation
from ..errors import Outcome
from ..tables import assignment, pairs, short, table
from .results import (
    SHARE,
    Generation,
    GroupDescription,
    GroupHistory,
    HeldBack,
    HistoryEntry,
    ListedGroup,
    PartitionMove,
    ResetPlan,
    ShareOffsets,
)

if TYPE_CHECKING:
    from rich.table import Table

_NAMES_SHOWN: Final = 6

#: What has stood still for as long is named, in ms.
STANDING_MS: Final = 60_000


def groups_table(rows: Iterable[ListedGroup], lag: Mapping[str, GroupLag] | None = None) -> Table:
    """Return the table of ``kohort groups list``; with their lag, if that was asked for."""
    headings = ["GROUP", "STATE", "PROTOCOL TYPE", "TYPE", "COORDINATOR"]
    return table(
        headings if lag is None else [*headings, "MEMBERS", "LAG", "OLDEST"],
        (
            (
                row.group,
                row.state,
                row.protocol_type or None,
                row.group_type,
                f"node {row.coordinator}",
                *(() if lag is None else lag_cells(lag.get(row.group))),
            )
            for row in rows
        ),
    )


def lag_cells(found: GroupLag | None) -> tuple[int | None, int | None, str | None]:
    """Members of a group, its unread records, and the age of the oldest."""
    return (
        (None, None, None) if found is None else (found.member_count, found.records, age_text(found.age_ms))
    )


def age_text(age_ms: int | None) -> str | None:
    """An age; None where nothing is unread, or that is not known."""
    return notation.span(age_ms) if age_ms else None


def trend_text(found: GroupLag) -> str | None:
    """Where a group's lag is going; None if it has none, or after a single look."""
    if not found.records or found.arrival_rate is None or found.work_rate is None:
        return None
    if (found.standing_ms or 0) >= STANDING_MS:
        return f"stands still for {notation.span(found.standing_ms or 0)}"
    if found.catch_up_ms is not None:
        return f"caught up in {notation.span(found.catch_up_ms)}"
    growth = found.arrival_rate - found.work_rate
    return f"grows by {growth:,.0f} a second" if growth >= 1 else "does not shrink"


def group_report(found: GroupDescription) -> list[object]:
    """The group in a few lines, then its members and partitions, if any."""
    where = found.coordinator
    head: list[tuple[str, object]] = [
        ("group", found.group),
        ("state", found.state),
        ("protocol", " ".join(filter(None, (found.protocol_type, found.protocol))) or None),
        *_epoch_rows(found),
        ("coordinator", f"{where.host}:{where.port} (node {where.node_id})"),
        ("members", len(found.members) if found.members_known else None),
        ("total lag", found.total_lag),
    ]
    parts: list[object] = [pairs([*head, *(("note", note) for note in found.notes)])]
    if found.members:
        parts.append(_member_table(found))
    if found.hold_ups:
        names = {member.member_id: member.owner for member in found.members}
        parts.append(
            table(
                ["MEMBER", "WAITS FOR", "TO GIVE UP", "FOR"],
                (
                    (
                        names[each.member],
                        names[each.waits_for],
                        assignment(each.partitions),
                        "unknown" if each.since_ms is None else notation.span(each.since_ms),
                    )
                    for each in found.hold_ups
                ),
            )
        )
    if found.partitions:
        owners = {member.member_id: member.owner for member in found.members}
        rows = (
            (p.topic, p.partition, p.committed_offset, p.end_offset, p.lag, owners.get(p.member_id or ""))
            for p in found.partitions
        )
        parts.append(table(["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"], rows))
    if found.shared:
        parts.append(_share_table(found))
    return parts


def _share_table(found: GroupDescription) -> Table:
    """Share partitions; with what their leaders know, if one of them tells it."""
    headings = ["TOPIC", "PARTITION", "START", "END", "LAG"]
    if not any(row.in_flight for row in found.shared):
        rows = (
            (p.topic, p.partition, p.start_offset, p.end_offset, p.lag, members_text(p)) for p in found.shared
        )
        return table([*headings, "MEMBERS"], rows)
    now_ms = round(time.time() * 1_000)
    told = (
        (p.topic, p.partition, p.start_offset, p.end_offset, p.lag, *share_cells(p, now_ms), members_text(p))
        for p in found.shared
    )
    return table([*headings, *SHARE_HEADINGS, "MEMBERS"], told)


#: What a leader tells of a share partition, in ``share_cells``.
SHARE_HEADINGS: Final = ("HELD", "AVAILABLE", "DELIVERIES", "STALLED FOR")


class ShareCells(NamedTuple):
    """Records that members have, those to be given again, and both by number of deliveries; for how long the
    start offset has stood still. None where nothing is told.
    """

    held: int | None
    available: int | None
    deliveries: str | None
    stalled_for: str | None


def share_cells(row: ShareOffsets, now_ms: int) -> ShareCells:
    """What the leader tells of a share partition, in short."""
    found = row.in_flight
    if found is None:
        return ShareCells(None, None, None, None)
    since = found.stalled_since_ms
    return ShareCells(
        sum(each.records for each in found.held),
        found.available,
        ", ".join(f"{each.records} x {each.delivery_count}" for each in found.deliveries) or None,
        None if since is None else notation.span(max(0, now_ms - since)),
    )


def members_text(row: ShareOffsets) -> str | None:
    """Members that may read a partition, and those that have records of it, with their number."""
    held = {} if row.in_flight is None else dict(row.in_flight.held)
    names = dict.fromkeys([*row.members, *held])
    shown = [f"{short(name)} ({held[name]})" if name in held else short(name) for name in names]
    return ", ".join(shown) or None


def share_events(entries: Iterable[HistoryEntry], most: int) -> list[object]:
    """The newest events of share partitions, oldest first; nothing if there are none."""
    told = [entry for entry in entries if entry.kind in SHARE_EVENTS][-most:]
    if not told:
        return []
    rows = ((notation.utc(row.timestamp_ms), row.kind, short(row.cause)) for row in told)
    return [table(["WHEN (UTC)", "EVENT", "WHAT HAPPENED TO RECORDS"], rows)]


def members_now(found: GroupDescription) -> list[object]:
    """The present group in short, for the end of a timeline."""
    if not found.exists:
        return [pairs([("now", "the group does not exist")])]
    members = _count_of(len(found.members), "member") if found.members_known else "members unknown"
    lag = "unknown" if found.total_lag is None else found.total_lag
    line = pairs([("now", f"{found.state}, {members}, lag {lag}")])
    return [line, _member_table(found)] if found.members else [line]


def held_back(rows: Sequence[HeldBack]) -> list[object]:
    """Partitions that open transactions hold back; an empty list if there are none."""
    if not rows:
        return []
    cells = (
        (
            *(row.topic, row.partition),
            "the committed offset" if row.stable_offset is None else f"records from {row.stable_offset} on",
            row.records,
            " or ".join(row.transactional_ids) or "no coordinator: see `kohort transactions abort`",
            "unknown" if row.open_ms is None else notation.span(row.open_ms),
        )
        for row in rows
    )
    return [table(["TOPIC", "PARTITION", "WAITING", "HELD BACK", "FOR TRANSACTION", "OPEN FOR"], cells)]


def _epoch_rows(found: GroupDescription) -> Iterator[tuple[str, object]]:
    if found.epoch is None:
        return
    behind = "" if found.target_epoch == found.epoch else f" (assigned up to {found.target_epoch})"
    yield "epoch", f"{found.epoch}{behind}"


def _member_table(found: GroupDescription) -> Table:
    if found.group_type == SHARE:
        return table(
            ["MEMBER", "CLIENT", "HOST", "EPOCH", "PARTITIONS"],
            (
                (m.member_id, m.client_id, m.client_host, m.epoch, assignment(m.assignment))
                for m in found.members
            ),
        )
    if found.epoch is not None:
        return table(
            ["MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH", "PARTITIONS", "TARGET"],
            (
                (
                    *(m.member_id, m.instance_id, m.client_id, m.client_host, m.epoch),
                    assignment(m.assignment),
                    "reached" if m.assignment == m.target else assignment(m.target),
                )
                for m in found.members
            ),
        )
    return table(
        ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"],
        (
            (m.member_id, m.instance_id, m.client_id, m.client_host, assignment(m.assignment))
            for m in found.members
        ),
    )


def timeline(history: GroupHistory) -> list[object]:
    """A row for each generation, oldest first."""
    rows = []
    for row in history.generations:
        took = "unknown" if row.duration_ms is None else notation.span(row.duration_ms)
        if row.slowest is not None and row.slowest_ms:
            took += f", {short(row.slowest)} gave up after {notation.span(row.slowest_ms)}"
        when = notation.utc(row.timestamp_ms)
        rows.append(
            (
                when,
                row.generation,
                row.state,
                _before_and_after(row),
                _cause_text(row),
                took,
                _count_moved(row),
            )
        )
    return [table(["ENDED (UTC)", "GEN", "STATE", "MEMBERS", "CAUSE", "TOOK", "MOVED"], rows)]


def _before_and_after(row: Generation) -> str:
    if row.members_before in (None, row.members):
        return str(row.members)
    return f"{row.members_before} to {row.members}"


def _cause_text(row: Generation) -> str:
    if row.cause is not None:
        return short(row.cause)
    seen = [
        f"{words} {_join_names(names)}"
        for words, names in (("joined", row.joined), ("left", row.left))
        if names
    ]
    return f"unknown ({'; '.join(seen)})" if seen else "unknown"


def _join_names(names: Sequence[str]) -> str:
    rest = len(names) - _NAMES_SHOWN
    return ", ".join(map(short, names[:_NAMES_SHOWN])) + (f" and {rest} more" if rest > 0 else "")


def _count_moved(row: Generation) -> str | None:
    if row.moves is None:
        return None if row.partitions_moved is None else str(row.partitions_moved)
    if not row.moves:
        return "none"
    hidden = (row.partitions_moved or 0) - sum(move.to_owner is not None for move in row.moves)
    return moves(row.moves, shared=row.shared) + (f"; {hidden} more" if hidden > 0 else "")


def moves(rows: Iterable[PartitionMove], *, shared: bool = False) -> str:
    """``orders 0-2 from a to b; orders 5 from nobody to b``; where partitions have many owners (``shared``)
    ``orders 5 to b; orders 6 from a``.
    """
    by_owners: dict[tuple[str | None, str | None], list[TopicPartition]] = defaultdict(list)
    for move in rows:
        by_owners[move.from_owner, move.to_owner].append(TopicPartition(move.topic, move.partition))
    nobody = None if shared else "nobody"
    return "; ".join(
        " ".join(
            [str(assignment(partitions))]
            + [
                f"{where} {short(who)}"
                for where, who in (("from", old or nobody), ("to", new or nobody))
                if who
            ]
        )
        for (old, new), partitions in by_owners.items()
    )


def events(entries: Iterable[HistoryEntry]) -> list[object]:
    """A row for each event, oldest first."""
    rows = []
    for row in entries:
        who = (row.member or None, row.client_id or None, row.client_host or None)
        when = notation.utc(row.timestamp_ms)
        generation = None if row.generation < 0 else row.generation
        rows.append((when, row.sequence, generation, row.kind, short(row.cause), *who))
    return [table(["WHEN (UTC)", "SEQ", "GEN", "EVENT", "CAUSE", "MEMBER", "CLIENT", "HOST"], rows)]


def changes(plan: ResetPlan) -> Table:
    """Return the table of a reset: each partition's offset before and after."""
    return table(
        ["TOPIC", "PARTITION", "CURRENT", "NEW", "NOTE"],
        ((c.topic, c.partition, c.current_offset, c.new_offset, c.note) for c in plan.changes),
    )


def outcomes(headings: Sequence[str], rows: Mapping[Any, Outcome]) -> Table:
    """Return the table of a deletion: names, and "deleted" or the error."""
    return table([*headings, "RESULT"], ((*names, done.error or "deleted") for names, done in rows.items()))


def _count_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
