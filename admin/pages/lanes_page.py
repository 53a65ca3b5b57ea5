"""A group's picture as HTML: lanes that the script draws, and the same in tables and lists.

``kohort groups timeline --html`` writes it as one file, ``kohort ui`` serves it and keeps it up to date.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ...lag import GroupLag
from ...protocol import SHARE_EVENTS, TopicPartition
from .. import notation
from ..groups.results import SHARE, Generation, MemberDescription, ShareOffsets
from ..groups.tables import age_text, members_text, share_cells, trend_text
from ..tables import assignment, clean
from .lanes import NOBODY, UNKNOWN, Lane, Lanes, cause, headline, held_up_by, phases
from .lists import ListQuery, RowT, as_cells, column_name, list_table
from .markup import Html, data, number, self_contained, table, tag

#: Most moves and names of one rebalance: more is too much for a browser.
_MOST_MOVES: Final = 50


def page(lanes: Lanes) -> Html:
    """One file that needs nothing else."""
    title = f"Group {lanes.now.group}"
    heading = (
        tag("h1", title),
        tag("p", "as it was at ", tag("time", f"{notation.utc(lanes.now_ms)} UTC"), class_="quiet"),
    )
    return self_contained(title, heading, parts(lanes))


def parts(
    lanes: Lanes,
    lag: GroupLag | None = None,
    query: ListQuery | None = None,
    delivery_limit: int | None = None,
) -> Html:
    """Facts, picture, rebalances, members and partitions. Those that change have ids, and ``data-live``.

    A partition of a share group has many owners at once: it has a row of a table in place of a lane.
    ``delivery_limit`` is how often the group delivers a record, if that is known.
    """
    is_shared = lanes.now.group_type == SHARE
    return tag(
        "div",
        tag("div", facts(lanes, lag), id="facts", data_live=True),
        tag("div", share_partitions(lanes, query, delivery_limit), id="shared", data_live=True)
        if is_shared
        else picture(lanes),
        tag("div", rebalances(lanes), id="rebalances", data_live=True),
        tag("div", members(lanes, query), id="members", data_live=True),
        None if is_shared else tag("div", partitions(lanes, query), id="partitions", data_live=True),
    )


def past_parts(lanes: Lanes, query: ListQuery) -> Html:
    """A stretch of time: what is not known of it, picture, rebalances, and events of records."""
    of_records = any(entry.kind in SHARE_EVENTS for entry in lanes.entries)
    return tag(
        "div",
        tag("ul", (tag("li", note) for note in lanes.unknown), class_="notes") if lanes.unknown else None,
        picture(lanes, is_past=True),
        rebalances(lanes),
        _record_events(lanes, query) if of_records else None,
    )


def share_partitions(lanes: Lanes, query: ListQuery | None, delivery_limit: int | None) -> Html:
    """Share partitions now with their records in flight, who has these, and what happened to records, the
    newest first. Without ``delivery_limit`` it is not known which are at their last delivery.
    """
    shared = lanes.now.shared
    is_told = any(row.in_flight for row in shared)
    headings = ["Partition", "Start", "End", "Lag"]
    headings += ["In flight", "Available", "Deliveries", "Last delivery", "Archived"] if is_told else []
    headings += ["Stalled", "Members"] if is_told else ["Members"]
    names = {member.member_id: lanes.name(member.owner) for member in lanes.now.members}
    held = [
        (names.get(each.member, each.member), f"{row.topic}-{row.partition}", number(each.records))
        for row in shared
        if row.in_flight is not None
        for each in row.in_flight.held
    ]
    silent = "No leader tells of records in flight: nobody reads, or the brokers are no kohort brokers."
    return tag(
        "div",
        _table_section(
            query,
            "Share partitions",
            headings,
            shared,
            lambda row: _share_row(row, lanes.now_ms, delivery_limit, is_told=is_told),
        ),
        _table_section(query, "In flight by member", ["Member", "Partition", "Records"], held)
        if is_told
        else tag("p", silent, class_="quiet"),
        _record_events(lanes, query),
    )


def _record_events(lanes: Lanes, query: ListQuery | None) -> Html:
    """What happened to records of a share group, the newest first."""
    told = [entry for entry in lanes.entries if entry.kind in SHARE_EVENTS]
    events = [
        (tag("time", notation.utc(entry.timestamp_ms)), entry.kind, clean(entry.cause))
        for entry in reversed(told)
    ]
    return _table_section(query, "Records", ["Time (UTC)", "Event", "What happened"], events)


def _share_row(
    row: ShareOffsets, now_ms: int, delivery_limit: int | None, *, is_told: bool
) -> tuple[object, ...]:
    place = f"{row.topic}-{row.partition}", *map(number, (row.start_offset, row.end_offset, row.lag))
    if not is_told:
        return *place, members_text(row)
    held, available, deliveries, stalled = share_cells(row, now_ms)
    found, last, archived = row.in_flight, None, None
    if found is not None:
        lost = f", {found.lost_locks:,} locks lost" if found.lost_locks else ""
        archived = f"{found.rejected:,} rejected, {found.exhausted:,} delivered too often{lost}"
        if delivery_limit is not None:
            last = sum(each.records for each in found.deliveries if each.delivery_count >= delivery_limit)
    return (
        *place,
        *map(number, (held, available)),
        deliveries,
        number(last),
        archived,
        None if stalled is None else badge(f"for {stalled}"),
        members_text(row),
    )


def facts(lanes: Lanes, lag: GroupLag | None = None) -> Html:
    """The group in short; with its lag in time, if that is known."""
    now = lanes.now
    where = now.coordinator
    rows: list[tuple[str, object]] = [
        ("State", badge(now.state if now.exists else "does not exist")),
        ("Members", number(len(now.members)) if now.members_known else "unknown"),
        ("Lag", number(now.total_lag, data_field="lag")),
        ("Protocol", " ".join(filter(None, (now.protocol_type, now.protocol))) or "-"),
        ("Coordinator", f"{where.host}:{where.port} (node {where.node_id})" if where.port else "unknown"),
    ]
    if lag is not None and lag.error is None:
        oldest, trend = lag_texts(lag)
        rows.insert(3, ("Oldest unread", tag("span", oldest, data_field="oldest")))
        rows.insert(4, ("Trend", tag("span", trend, data_field="trend")))
    if now.epoch is not None:
        rows.insert(1, ("Epoch", number(now.epoch)))
    waits = [
        f"{lanes.name(names.get(each.member, each.member))} waits for "
        f"{lanes.name(names.get(each.waits_for, each.waits_for))} to give up {assignment(each.partitions)}"
        + ("" if each.since_ms is None else f", for {notation.span(each.since_ms)}")
        for names in [{member.member_id: member.owner for member in now.members}]
        for each in now.hold_ups
    ]
    notes = [*waits, *now.notes, *lanes.unknown]
    return tag(
        "div",
        tag("dl", (tag("div", tag("dt", label), tag("dd", value)) for label, value in rows), class_="facts"),
        tag("ul", (tag("li", note) for note in notes), class_="notes") if notes else None,
    )


def lag_texts(lag: GroupLag) -> tuple[str, str]:
    """The age of the oldest unread record, and where the lag is going."""
    return age_text(lag.age_ms) or "-", trend_text(lag) or "-"


def badge(state: str | None) -> Html:
    """A state, with a colour and its name."""
    return tag("span", state or "unknown", class_="state", data_state=(state or "").lower())


def picture(lanes: Lanes, *, is_past: bool = False) -> Html:
    """The element in which the script draws the lanes, with its data; of the past it shows all at first."""
    words = f"Lanes of group {lanes.now.group}: time across, partitions down, coloured by owner"
    hidden = f"{lanes.hidden:,} more partitions are not drawn." if lanes.hidden else None
    return tag(
        "section",
        tag("h2", "Lanes"),
        tag("a", "Skip the picture: the same as tables", href="#rebalances", class_="skip"),
        tag("p", hidden, class_="quiet") if hidden else None,
        tag("noscript", tag("p", "The picture needs a script. The tables below say the same.")),
        tag("div", id="lanes", role="group", aria_label=words, data_past=is_past),
        data(lanes.document(), id="model"),
        aria_label="Lanes",
    )


def rebalances(lanes: Lanes) -> Html:
    """Each generation, the newest first; it unfolds to show its cause and phases."""
    rows = [_rebalance_details(lanes, row) for row in reversed(lanes.generations)]
    none = tag("p", "No rebalance is known.", class_="quiet")
    return tag("section", tag("h2", "Rebalances"), rows or none, aria_label="Rebalances")


def _rebalance_details(lanes: Lanes, row: Generation) -> Html:
    summary = tag(
        "summary",
        tag("b", str(row.generation) if row.generation >= 0 else "?", title="generation"),
        tag("time", notation.utc(row.timestamp_ms)),
        badge(row.state),
        tag("span", headline(row)),
    )
    name = lanes.name(row.member) if row.member else row.client_id
    client = f"({row.client_id})" if row.client_id not in (None, name) else None
    who = " ".join(filter(None, (name, client, row.client_host and f"at {row.client_host}")))
    known: list[tuple[str, object]] = [
        ("Cause", cause(row)),
        ("Who", who),
        (
            "Members",
            f"{row.members}" if row.members_before is None else f"{row.members_before} to {row.members}",
        ),
        ("Joined", _to_names(lanes, row.joined)),
        ("Left", _to_names(lanes, row.left)),
        ("Leader", lanes.name(row.leader) if row.leader else None),
        ("Assignor", row.protocol),
        ("Held up by", "; ".join(held_up_by(lanes, row)) or None),
    ]
    return tag(
        "details",
        summary,
        tag("dl", (tag("div", tag("dt", a), tag("dd", b)) for a, b in known if b), class_="facts"),
        _phase_bars(lanes, row),
        _move_list(lanes, row),
        id=f"g-{row.generation}-{row.timestamp_ms}",
        class_="rebalance",
    )


def _to_names(lanes: Lanes, names: tuple[str, ...] | None) -> str | None:
    if not names:
        return None
    more = len(names) - _MOST_MOVES
    return ", ".join(map(lanes.name, names[:_MOST_MOVES])) + (f" and {more:,} more" if more > 0 else "")


def _phase_bars(lanes: Lanes, row: Generation) -> Html | None:
    """A bar for each phase, as long as the phase; the script gives it its width."""
    found = phases(row, lanes.now.group_type)
    whole = row.duration_ms or 0
    if not found or not whole:
        return None
    return tag(
        "ol",
        (
            tag(
                "li",
                tag("progress", max=whole, value=phase.duration_ms, aria_hidden="true"),
                f"{phase.name}: {notation.span(phase.duration_ms)}",
            )
            for phase in found
        ),
        class_="phases",
    )


def _move_list(lanes: Lanes, row: Generation) -> Html:
    if row.moves is None:
        return tag("p", "What moved is not known.", class_="quiet")
    if not row.moves:
        return tag("p", "Nothing moved.", class_="quiet")
    pairs: defaultdict[tuple[str | None, str | None], list[TopicPartition]] = defaultdict(list)
    for move in row.moves:
        pairs[move.from_owner, move.to_owner].append(TopicPartition(move.topic, move.partition))
    most = sorted(pairs.items(), key=lambda pair: -len(pair[1]))
    rows = (
        (
            *(None if row.shared and who is None else lanes.name(who) for who in pair),
            number(len(moved)),
            assignment(moved),
        )
        for pair, moved in most[:_MOST_MOVES]
    )
    made = table("Moves", ["From", "To", "Count", "Partitions"], rows)
    notes = []
    if len(most) > _MOST_MOVES:
        notes.append(f"The largest {_MOST_MOVES} of {len(most):,} pairs of owners are shown.")
    if not row.every_move:
        notes.append("More moved than the broker tells.")
    return tag("div", made, (tag("p", note, class_="quiet") for note in notes))


def members(lanes: Lanes, query: ListQuery | None) -> Html:
    """Members now, with the colours that they have in the picture."""
    if not lanes.now.members_known:
        unknown = tag("p", "Not known.", class_="quiet")
        return tag("section", tag("h2", "Members"), unknown, aria_label="Members")
    has_targets = lanes.now.epoch is not None and lanes.now.group_type != SHARE

    def cells(member: MemberDescription) -> Iterable[object]:
        swatch = tag("i", class_="swatch", data_owner=member.owner, aria_hidden="true")
        yield swatch, lanes.name(member.owner)
        yield member.client_id
        yield member.client_host
        yield number(None if member.assignment is None else len(member.assignment))
        yield assignment(member.assignment)
        if lanes.now.epoch is not None:
            yield number(member.epoch)
        if has_targets:
            yield "reached" if member.assignment == member.target else assignment(member.target)

    headings = ["Member", "Client", "Host", "Count", "Partitions"]
    headings += ["Epoch"] if lanes.now.epoch is not None else []
    headings += ["Target"] if has_targets else []
    return _table_section(query, "Members", headings, lanes.now.members, lambda member: tuple(cells(member)))


def partitions(lanes: Lanes, query: ListQuery | None) -> Html:
    """Partitions now: owner, since when, offsets and lag."""
    offsets = {TopicPartition(row.topic, row.partition): row for row in lanes.now.partitions}

    def cells(row: tuple[int, Lane]) -> tuple[object, ...]:
        at, lane = row
        place = TopicPartition(lane.topic, lane.partition)
        last = lane.spans[-1]
        known = offsets.get(place)
        name = {NOBODY: "nobody", UNKNOWN: "unknown"}.get(last.owner)
        since = tag("time", notation.utc(last.start_ms)) if last.start_ms > lanes.since_ms else "before"
        return (
            f"{lane.topic}-{lane.partition}",
            name or lanes.owners[last.owner].name,
            since,
            number(None if known is None else known.committed_offset),
            number(None if known is None else known.end_offset),
            # news of lags have the order of the lanes
            number(lane.lag, data_lag=at),
        )

    headings = ["Partition", "Owner", "Since (UTC)", "Committed", "End", "Lag"]
    return _table_section(query, "Partitions", headings, [*enumerate(lanes.lanes)], cells)


def _table_section(
    query: ListQuery | None,
    title: str,
    headings: list[str],
    rows: Sequence[RowT],
    cells: Callable[[RowT], Sequence[object]] = as_cells,
) -> Html:
    shown = list_table(query, column_name(title), title, headings, rows, cells)
    body = shown if rows else tag("p", "None.", class_="quiet")
    return tag("section", tag("h2", f"{title} ({len(rows):,})"), body, aria_label=title)
