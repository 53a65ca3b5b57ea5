"""Commands of ``kohort groups``: each queries the cluster, shows the result and returns its exit code."""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...client import ConfigError
from ...lag import GroupLag
from ...protocol import ErrorCode, KafkaError, TopicPartition, UnsupportedVersionError
from .. import notation
from ..connection import open_cluster
from ..errors import Outcome, advise_error, explain_error
from ..screen import OK, REFUSED, Screen, plain
from ..visibility import ask_hidden_groups, hidden_field
from . import tables
from .group_admin import GroupAdmin
from .lag_command import show_lag
from .reset import ResetTo
from .results import (
    SHARE,
    Coordinator,
    GroupDescription,
    GroupHistory,
    HeldBack,
    ResetPlan,
    TimeStretch,
)
from .watch import watch_group

#: Generations that a timeline shows, and most of a stretch of time.
_GENERATIONS: Final = 20
_MOST_GENERATIONS: Final = 10_000
#: Most events that are read of a recording.
_MOST_EVENTS: Final = 100_000

Action = Callable[[GroupAdmin, argparse.Namespace, Screen], Awaitable[int]]


async def run_action(options: argparse.Namespace) -> int:
    """Connect and run the command."""
    if options.action == "timeline" and options.record is not None:
        return _show_recorded(options)
    if options.action == "reset-offsets":
        _check_reset(options)
    screen = Screen(as_json=options.json)
    async with open_cluster(options, "kohort-admin") as cluster:
        return await ACTIONS[options.action](GroupAdmin.on_cluster(cluster), options, screen)


async def _list_groups(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    rows = await admin.list_groups(states=options.states, types=options.types)
    hidden = await ask_hidden_groups(admin.cluster)
    lag = {each.group: each for each in await admin.lag([row.group for row in rows])} if options.lag else {}
    if screen.as_json:
        found = [{**plain(row), **_lag_in_short(lag.get(row.group))} for row in rows]
        screen.document({"groups": found, **hidden_field(hidden)})
    elif rows:
        screen.show(tables.groups_table(rows, lag if options.lag else None))
    else:
        screen.remark("no groups that this user may see" if hidden else "no groups")
    screen.remark(*(f"{each.group}: {each.error}" for each in lag.values() if each.error is not None))
    screen.remark(*hidden)
    # a filter may leave out what this user may see
    return REFUSED if hidden and not (rows or await admin.list_groups()) else OK


def _lag_in_short(found: GroupLag | None) -> dict[str, object]:
    if found is None:
        return {}
    return {"member_count": found.member_count, "records": found.records, "age_ms": found.age_ms}


async def _describe_groups(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    wanted = options.groups or [row.group for row in await admin.list_groups()]
    hidden = await ask_hidden_groups(admin.cluster) if options.all_groups else ()
    described, refused = await _describe_each(admin, wanted)
    missing = [group for group, found in described.items() if not found.exists]
    if len(wanted) == len(missing) == 1:
        raise advise_error(ErrorCode.GROUP_ID_NOT_FOUND, f"group {wanted[0]!r} does not exist")
    there = [found for found in described.values() if found.exists]
    if screen.as_json:
        rows = [_with_lag(found) for found in there]
        screen.document(rows[0] if len(options.groups) == 1 else {"groups": rows, **hidden_field(hidden)})
    elif there or not (hidden or refused):
        screen.show(*(part for found in there for part in tables.group_report(found)))
    if not screen.as_json:
        for group in missing:
            screen.remark(f"group {group!r} does not exist")
    screen.remark(*refused, *hidden)
    return REFUSED if refused or (missing and options.groups) or (hidden and not there) else OK


async def _describe_each(
    admin: GroupAdmin, groups: Sequence[str]
) -> tuple[dict[str, GroupDescription], list[str]]:
    """The groups, and why some of several are not known. Raises KafkaError for one alone."""
    try:
        return await admin.describe(groups), []
    except KafkaError:
        if len(groups) == 1:
            raise
    described: dict[str, GroupDescription] = {}
    refused = []
    for group in groups:
        try:
            described |= await admin.describe([group])
        except KafkaError as error:
            refused.append(f"{group}: {explain_error(error)}")
    return described, refused


def _with_lag(found: GroupDescription) -> dict[str, object]:
    return {**plain(found), "total_lag": found.total_lag}


async def _show_timeline(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    now = (await admin.describe([options.group]))[options.group]
    stretch = _stretch_of(options)
    history = await admin.history(
        options.group,
        _limit_of(options),
        max_offsets=options.max_offsets,
        progress=screen.progress,
        every_move=options.html is not None,
        stretch=stretch,
        every_event=options.events or options.html is not None or now.group_type == SHARE,
    )
    if now.group_type == SHARE:
        from .history.recorded import cut_entries, merge_entries

        told = await admin.share_events(options.group)
        entries = cut_entries(merge_entries(history.entries, told), stretch or TimeStretch())
        history = replace(history, entries=entries)
    if not (now.exists or history.generations or history.entries):
        raise advise_error(ErrorCode.GROUP_ID_NOT_FOUND, f"group {options.group!r} does not exist")
    _write_page(options, screen, now, history)
    waits, unknown = await _held_back(admin, now)
    if screen.as_json:
        screen.document({**plain(history), "now": {**_with_lag(now), "held_back": waits}})
        return OK
    _show_history(options, screen, history)
    screen.show(*tables.members_now(now), *tables.held_back(waits or ()))
    for words in (*history.unknown, *now.notes, *unknown):
        screen.remark(words)
    return OK


def _show_recorded(options: argparse.Namespace) -> int:
    """Show the timeline of a group from a recording in a folder; no broker is asked. Raises ConfigError."""
    from .history.generations import FROM_RECORDING, from_events
    from .history.recorded import read_folder, with_what_is_missing

    screen, limit = Screen(as_json=options.json), _limit_of(options)
    stretch = _stretch_of(options)
    only_lasting = not (options.events or options.html)
    past = read_folder(
        options.record,
        options.group,
        stretch or TimeStretch(),
        limit if only_lasting else _MOST_EVENTS,
        only_lasting=only_lasting,
    )
    told = from_events(options.group, past.entries, limit, FROM_RECORDING)
    history = with_what_is_missing(told, past, stretch, round(time.time() * 1_000))
    # what it is now no recording tells
    now = GroupDescription(options.group, "Unknown", "", "", FROM_RECORDING, Coordinator(-1, "", 0), ())
    _write_page(options, screen, now, history)
    if screen.as_json:
        screen.document(plain(history))
        return OK
    _show_history(options, screen, history)
    for words in history.unknown:
        screen.remark(words)
    return OK


def _limit_of(options: argparse.Namespace) -> int:
    if options.limit is not None:
        return int(options.limit)
    return _GENERATIONS if _stretch_of(options) is None else _MOST_GENERATIONS


def _stretch_of(options: argparse.Namespace) -> TimeStretch | None:
    if options.since is None and options.until is None:
        return None
    return TimeStretch(options.since or 0, -1 if options.until is None else options.until)


def _show_history(options: argparse.Namespace, screen: Screen, history: GroupHistory) -> None:
    if options.events:
        screen.show(*tables.events(history.entries))
    else:
        screen.show(*tables.timeline(history))
        screen.show(*tables.share_events(history.entries, _limit_of(options)))


def _write_page(
    options: argparse.Namespace, screen: Screen, now: GroupDescription, history: GroupHistory
) -> None:
    """Write the picture, if it is wanted."""
    if options.html is None:
        return
    from ..pages.lanes import lanes_of
    from ..pages.lanes_page import page

    text = page(lanes_of(now, history, round(time.time() * 1_000)))
    try:
        Path(options.html).write_text(text, "utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror, options.html) from None  # a full disk names no file
    screen.remark(f"the picture is in {options.html}")


async def _held_back(
    admin: GroupAdmin, now: GroupDescription
) -> tuple[tuple[HeldBack, ...] | None, tuple[str, ...]]:
    """Records that open transactions hold back; None, and the reason, if that is unknown."""
    try:
        return await admin.held_back(now), ()
    except (KafkaError, UnsupportedVersionError) as error:
        return None, (f"what open transactions hold back is not known: {error}",)


def _check_reset(options: argparse.Namespace) -> None:
    """Raise ConfigError unless it is said which partitions are meant, once."""
    named = bool(options.all_topics or options.topics)
    if options.from_file is None and not named:
        raise ConfigError("one of the arguments --topic --all-topics is required")
    if options.from_file is not None and named:
        raise ConfigError("the file names the partitions: leave out --topic and --all-topics")


async def _reset_offsets(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    if options.from_file is not None:
        offsets = {TopicPartition(*place): offset for place, offset in options.from_file.items()}
        plan = await admin.plan_offsets(options.group, offsets, share=options.share)
    else:
        topics = None if options.all_topics else notation.topic_partitions(options.topics)
        plan = await admin.plan_reset(options.group, _reset_target(options), topics, share=options.share)
    if not plan.changes:
        raise advise_error(ErrorCode.GROUP_ID_NOT_FOUND, f"group {options.group!r} has no offsets to reset")
    return await _carried_out(admin, options, screen, plan)


async def _carried_out(
    admin: GroupAdmin, options: argparse.Namespace, screen: Screen, plan: ResetPlan
) -> int:
    """Show a plan, and with ``--execute`` commit it."""
    if options.execute and plan.refusal is None:
        plan = await admin.execute(plan)
    if screen.as_json:
        screen.document(plan)
    else:
        screen.show(tables.changes(plan))
        if plan.executed:
            known = sum(change.new_offset is not None for change in plan.changes)
            done = "committed" if plan.group_type is None else "set"
            screen.remark(f"{done} {known} of {len(plan.changes)} offsets of group {options.group!r}")
        elif plan.refusal is None:
            screen.remark("nothing has been changed: add --execute to commit these offsets")
    if plan.refusal is not None:
        raise advise_error(ErrorCode.NON_EMPTY_GROUP, plan.refusal)
    return OK if all(change.new_offset is not None for change in plan.changes) else REFUSED


async def _import_offsets(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    # its errors are reported here, once
    logging.getLogger("kohort.consumer.zookeeper").setLevel(logging.CRITICAL)
    plan = await admin.plan_import(options.group, options.zookeeper)
    if not plan.changes:
        where = f"below /consumers/{options.group}/offsets in ZooKeeper"
        raise advise_error(
            ErrorCode.GROUP_ID_NOT_FOUND, f"there are no offsets {where}: is --zookeeper right?"
        )
    return await _carried_out(admin, options, screen, plan)


def _reset_target(options: argparse.Namespace) -> ResetTo:
    if options.to_earliest:
        return ResetTo.earliest()
    if options.to_latest:
        return ResetTo.latest()
    if options.to_current:
        return ResetTo.current()
    if options.to_offset is not None:
        return ResetTo.offset(options.to_offset)
    if options.shift_by is not None:
        return ResetTo.shift(options.shift_by)
    if options.by_duration is not None:
        return ResetTo.timestamp(max(0, round(time.time() * 1_000) - options.by_duration))
    return ResetTo.timestamp(
        options.to_timestamp if options.to_timestamp is not None else options.to_datetime
    )


async def _delete_groups(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    outcomes = await admin.delete_groups(options.groups)
    if screen.as_json:
        screen.document({"groups": [{"group": group, **plain(done)} for group, done in outcomes.items()]})
    else:
        screen.show(tables.outcomes(["GROUP"], {(group,): done for group, done in outcomes.items()}))
    return _exit_code_of(outcomes.values())


async def _delete_offsets(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    outcomes = await admin.delete_offsets(options.group, notation.topic_partitions(options.topics))
    if screen.as_json:
        rows = [{**plain(partition), **plain(done)} for partition, done in outcomes.items()]
        screen.document({"group": options.group, "partitions": rows})
    else:
        screen.show(tables.outcomes(["TOPIC", "PARTITION"], outcomes))
    return _exit_code_of(outcomes.values())


def _exit_code_of(outcomes: Collection[Outcome]) -> int:
    return OK if all(outcome.ok for outcome in outcomes) else REFUSED


ACTIONS: Final[dict[str, Action]] = {
    "list": _list_groups,
    "describe": _describe_groups,
    "lag": show_lag,
    "timeline": _show_timeline,
    "watch": watch_group,
    "reset-offsets": _reset_offsets,
    "import": _import_offsets,
    "delete": _delete_groups,
    "delete-offsets": _delete_offsets,
}
