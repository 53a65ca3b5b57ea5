"""A group's picture as HTML: lanes that the script draws, and the same in tables and lists.

``kohort groups timeline --html`` writes it as one file, ``kohort ui`` serves it and keeps it up to date.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from ...lag import GroupLag
from ...protocol import SHARE_EVENTS, TopicPartition
from .. import notation
from ..groups.results import SHARE, Generation, MemberDescription
from ..groups.tables import age_text, members_text, share_cells, trend_text
from ..tables import assignment, clean
from .lanes import NOBODY, UNKNOWN, Lanes, cause, headline, held_up_by, phases
from .markup import Html, data, number, self_contained, table, tag

#: Most rows of a table, and most moves and names of one rebalance: more is too much for a browser.
_MOST_ROWS: Final = 1_000
_MOST_MOVES: Final = 50


def page(lanes: Lanes) -> Html:
    """One file that needs nothing else."""
    title = f"Group {lanes.now.group}"
    heading = tag("h1", title), tag("p", f"as it was at {notation.utc(lanes.now_ms)} UTC", class_="quiet")
    return self_contained(title, heading, parts(lanes))


def parts(lanes: Lanes, lag: GroupLag | None = None) -> Html:
    """Facts, picture, rebalances, members and partitions. Those that change have ids, and ``data-live``.

    A partition of a share group has many owners at once: it has a row of a table in place of a lane.
    """
    is_shared = lanes.now.group_type == SHARE
    return tag(
        "div",
        tag("div", facts(lanes, lag), id="facts", data_live=True),
        tag("div", share_partitions(lanes), id="shared", data_live=True) if is_shared else picture(lanes),
        tag("div", rebalances(lanes), id="rebalances", data_live=True),
        tag("div", members(lanes), id="members", data_live=True),
        None if is_shared else tag("div", partitions(lanes), id="partitions", data_live=True),
    )


def share_partitions(lanes: Lanes) -> Html:
    """Share partitions now, and what happened to their records, the newest first."""
    rows = []
    for row in lanes.now.shared[:_MOST_ROWS]:
        held, available, deliveries, stalled = share_cells(row, lanes.now_ms)
        rows.append(
            (
                f"{row.topic}-{row.partition}",
                *map(number, (row.start_offset, row.end_offset, row.lag, held, available)),
                deliveries,
                None if stalled is None else badge(f"for {stalled}"),
                members_text(row),
            )
        )
    headings = ["Partition", "Start", "End", "Lag", "Held", "Available", "Deliveries", "Stalled", "Members"]
    told = [entry for entry in lanes.entries if entry.kind in SHARE_EVENTS][-_MOST_ROWS:]
    events = [(notation.utc(entry.timestamp_ms), entry.kind, clean(entry.cause)) for entry in reversed(told)]
    return tag(
        "div",
        _table_section("Share partitions", len(lanes.now.shared), headings, rows),
        _table_section("Records", len(events), ["Time (UTC)", "Event", "What happened"], events),
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


def picture(lanes: Lanes) -> Html:
    """The element in which the script draws the lanes, with its data."""
    words = f"Lanes of group {lanes.now.group}: time across, partitions down, coloured by owner"
    hidden = f"{lanes.hidden:,} more partitions are not drawn." if lanes.hidden else None
    return tag(
        "section",
        tag("h2", "Lanes"),
        tag("a", "Skip the picture: the same as tables", href="#rebalances", class_="skip"),
        tag("p", hidden, class_="quiet") if hidden else None,
        tag("noscript", tag("p", "The picture needs a script. The tables below say the same.")),
        tag("div", id="lanes", role="group", aria_label=words),
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


def members(lanes: Lanes) -> Html:
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
    rows = (tuple(cells(member)) for member in lanes.now.members[:_MOST_ROWS])
    return _table_section("Members", len(lanes.now.members), headings, rows)


def partitions(lanes: Lanes) -> Html:
    """Partitions now: owner, since when, offsets and lag."""
    offsets = {TopicPartition(row.topic, row.partition): row for row in lanes.now.partitions}
    rows = []
    for lane in lanes.lanes[:_MOST_ROWS]:
        place = TopicPartition(lane.topic, lane.partition)
        last = lane.spans[-1]
        known = offsets.get(place)
        name = {NOBODY: "nobody", UNKNOWN: "unknown"}.get(last.owner)
        since = notation.utc(last.start_ms) if last.start_ms > lanes.since_ms else "before"
        rows.append(
            (
                f"{lane.topic}-{lane.partition}",
                name or lanes.owners[last.owner].name,
                since,
                number(None if known is None else known.committed_offset),
                number(None if known is None else known.end_offset),
                number(lane.lag, data_lag=True),
            )
        )
    headings = ["Partition", "Owner", "Since (UTC)", "Committed", "End", "Lag"]
    return _table_section("Partitions", len(lanes.lanes), headings, rows)


def _table_section(title: str, count: int, headings: list[str], rows: Iterable[tuple[object, ...]]) -> Html:
    shown = f"{title}, the first {_MOST_ROWS:,} of {count:,}" if count > _MOST_ROWS else title
    body = table(shown, headings, rows) if count else tag("p", "None.", class_="quiet")
    return tag("section", tag("h2", f"{title} ({count:,})"), body, aria_label=title)
