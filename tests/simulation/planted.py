"""Bugs planted in the code under simulation, each a small patch in memory: does the simulator find them?

``python -m tests.simulation.planted`` looks for the first seed that finds each, and writes the table of
docs/simulation.md.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from unittest.mock import patch

from kohort.testing import simulate
from kohort.testing.simulation import SimulationReport

#: Seeds within which each bug has to be found.
MOST_SEEDS = 500

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"
_ROW = re.compile(r"^\| (?P<what>.+?) \| `.+?` \| (?P<name>\w+) \| (?P<seeds>\d+) \|$", re.M)


@dataclass(frozen=True, slots=True)
class Bug:
    """``old`` is replaced by ``new`` in the function ``where``: "coordinator.classic_groups.join:_add"."""

    what: str
    where: str
    old: str
    new: str
    #: Runs the schedules that go through it.
    simulate: Callable[..., SimulationReport] = simulate

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The bug is there in the block."""
        function = self._function()
        sound = function.__code__
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.old) == 1, f"{self.where} has {source.count(self.old)} times {self.old!r}"
        namespace = dict(function.__globals__)
        code = compile(
            f"from __future__ import annotations\n{source.replace(self.old, self.new)}", self.where, "exec"
        )
        exec(code, namespace)
        function.__code__ = _plain(namespace[function.__name__]).__code__
        # what is planted in Python is not to be passed by in C
        python = {"NATIVE": False} if "NATIVE" in function.__globals__ else {}
        try:
            with patch.dict(function.__globals__, python):
                yield
        finally:
            function.__code__ = sound

    def _function(self) -> FunctionType:
        return _plain(pkgutil.resolve_name(f"kohort.{self.where}"))


def _plain(found: object) -> FunctionType:
    if isinstance(found, property):
        found = found.fget
    assert isinstance(found, FunctionType)
    return found


def found_by(bug: Bug, seeds: range = range(MOST_SEEDS), *, checked: bool = True) -> tuple[int, str] | None:
    """The first seed that finds a bug, and the invariant that it breaks."""
    with bug.planted():
        for seed in seeds:
            failed = bug.simulate([seed], checked=checked, go_on=True).failed
            if failed:
                return seed, failed[seed]
    return None


BUGS = (
    Bug(
        "a commit is acknowledged before it is written",
        "coordinator.offsets.commit:handle_commit",
        "shard.append(commit.group_id, tuple(records), None, answers)",
        "shard.append(commit.group_id, tuple(records)); shard.reply(*answers[0])",
    ),
    Bug(
        "a commit is acknowledged though the log refused it",
        "coordinator.engine.shard:Shard.append_failed",
        "self.refuse(request, self.topic.append_error(error))",
        "self.reply(request, _)",
    ),
    Bug(
        "a commit that the log refused is never answered",
        "coordinator.engine.shard:Shard.append_failed",
        "self.refuse(request, self.topic.append_error(error))",
        "pass",
    ),
    Bug(
        "answers go out before the sync they wait for",
        "coordinator.engine.runner:ShardRunner._write_batch",
        "if self.fsync:",
        "if False:",
    ),
    Bug(
        "no checksum is looked at",
        "protocol:verify_batch",
        "if crc != header.crc:",
        "if False:",
        partial(simulate, crashes=30),
    ),
    Bug(
        "a torn tail stays in the log",
        "log._recovery:Opening._cut_segment",
        "segment.truncate(damage.position)",
        "pass",
    ),
    Bug(
        "what a failed append has written stays in the log",
        "log._segment:Segment._undo_append",
        "self.truncate(size)",
        "self.size = size",
    ),
    Bug(
        "compaction keeps the oldest record of a key",
        "log.cleaner._keys:KeyMap._take_records",
        "newest[records[key_at : key_at + key_size]] = base_offset + delta",
        "newest.setdefault(records[key_at : key_at + key_size], base_offset + delta)",
    ),
    Bug(
        "a load keeps the first commit of a partition",
        "offsets_topic._encoded:_take_plain_commits",
        "offsets[key] = value",
        "offsets.setdefault(key, value)",
    ),
    Bug(
        "a load brings deleted offsets back",
        "coordinator.engine.loader:Loader._load_record",
        "self._shard.apply((record,), offset, producer_id)",
        "type(record).__name__ == 'OffsetDeleted' or self._shard.apply((record,), offset, producer_id)",
    ),
    Bug(
        "the generation is not in the record",
        "coordinator.classic_groups.group:ClassicGroup.to_record",
        "self.generation,",
        "0,",
    ),
    Bug(
        "the shares are not in the record",
        "coordinator.classic_groups.sync:_store_assignment",
        "group.to_record(chosen)",
        "group.to_record(dict.fromkeys(chosen, empty))",
    ),
    Bug(
        "shares are handed out before they are written",
        "coordinator.classic_groups.sync:_store_assignment",
        "shard.append(group_id,",
        "set_assignment(shard, group, chosen, group.state_timestamp_ms)\n    shard.append(group_id,",
    ),
    Bug(
        "a commit of an older generation is taken",
        "coordinator.classic_groups.group:ClassicGroup.check_commit",
        "if generation != self.generation:",
        "if False:",
    ),
    Bug(
        "a commit is taken between join and sync",
        "coordinator.classic_groups.group:ClassicGroup.check_commit",
        "if self.state is _COMPLETING else",
        "if False else",
    ),
    Bug(
        "a round ends with the generation it began with",
        "coordinator.classic_groups.rebalance:complete_join",
        "group.generation += 1",
        "group.generation = max(group.generation, 1)",
    ),
    Bug(
        "sessions do not run again after a load",
        "coordinator.classic_groups.rebalance:resume",
        "restart_session(shard, group, member, now_ms)",
        "pass",
    ),
    Bug(
        "a session is half as long as it was asked for",
        "coordinator.classic_groups.members:restart_session",
        "timeout_ms = member.session_timeout_ms",
        "timeout_ms = member.session_timeout_ms // 2",
    ),
    Bug(
        "a heartbeat does not restart the session",
        "coordinator.classic_groups.heartbeat:handle_heartbeat",
        "shard.timers.start((SESSION, group_id, member_id), now_ms + timeout_ms)",
        "pass",
    ),
    Bug(
        "a sync that is answered does not restart the session",
        "coordinator.classic_groups.sync:handle_sync",
        "restart_session(shard, group, member, now_ms)",
        "pass",
    ),
    Bug(
        "timers are ahead of the requests in the sockets",
        "coordinator.engine.runner:ShardRunner._wake_up",
        "when_read(partial(self._fire_timers, self.clock_ms()))",
        "self._fire_timers(self.clock_ms())",
        partial(simulate, protocol="mixed"),
    ),
    Bug(
        "a member whose session is over stays",
        "coordinator.classic_groups.heartbeat:on_session_timer",
        "if member.waits:",
        "if True:",
    ),
    Bug(
        "the session of a removed member runs on",
        "coordinator.classic_groups.members:remove_member",
        "shard.timers.cancel((SESSION, group.group_id, member.member_id))",
        "pass",
    ),
    Bug(
        "a parked sync is forgotten when its member goes",
        "coordinator.classic_groups.members:remove_member",
        "answer_sync(shard, member, SyncGroupResponse(0, ErrorCode.UNKNOWN_MEMBER_ID))",
        "pass",
    ),
    Bug(
        "a parked sync is forgotten when a rebalance begins",
        "coordinator.classic_groups.rebalance:_answer_syncs",
        "if answer_sync(shard, member, SyncGroupResponse(0, error)):",
        "if member.parked_sync is not None:\n            member.parked_sync = None",
    ),
    Bug(
        "a second join overwrites the one that is parked",
        "coordinator.classic_groups.members:park_join",
        "answer_join_error(shard, group, member, ErrorCode.NOT_COORDINATOR, member.member_id)",
        "group.awaiting_join_count -= member.parked_join is not None",
    ),
    Bug(
        "a static member that comes back does not fence who was there",
        "coordinator.classic_groups.static:replace_static_member",
        "answer_join_error(shard, group, member, ErrorCode.FENCED_INSTANCE_ID, member.member_id)",
        "group.awaiting_join_count -= member.parked_join is not None",
    ),
    Bug(
        "those who wait are forgotten when the shard goes",
        "coordinator.classic_groups.rebalance:unload_groups",
        "answer_join_error(shard, group, member, error, member.member_id)",
        "pass",
    ),
    Bug(
        "offsets of a group with members expire",
        "coordinator.classic_groups.group:ClassicGroup.offset_age_counts_from",
        "self.state is GroupState.STABLE and unread",
        "True",
    ),
    Bug(
        "no time to expire at is read as the past",
        "coordinator.offsets.expiry:_is_expired",
        "if entry.expire_timestamp_ms != NONE:",
        "if True:",
    ),
    Bug(
        "an offset's age counts from its commit, not from the end of its group",
        "coordinator.classic_groups.group:ClassicGroup.offset_age_counts_from",
        "max(commit_ms, self.state_timestamp_ms)",
        "commit_ms",
    ),
    Bug(
        "a group takes one member too many",
        "coordinator.classic_groups.join:_has_room",
        "group.awaiting_join_count < limit or",
        "True or",
    ),
    Bug(
        "a cooperative leader gives away what another still reads",
        "assignors._ownership:ListOwnership.withhold",
        "if claimant not in (UNCLAIMED, m):",
        "if False:",
    ),
    Bug(
        "an eager member keeps what it has while it joins",
        "consumer.group.classic:Membership._given_up_before_joining",
        "return tuple(sorted(self.owned))",
        "return ()",
    ),
    Bug(
        "a member goes on with what was taken from it",
        "consumer.group.classic:Membership._given_up_before_joining",
        "p in self._moving or ",
        "",
    ),
    Bug(
        "a leader gives away what a member still reads that is about to leave",
        "consumer.group.assignment:_without_moving",
        "p not in still_read or",
        "True or",
    ),
    Bug(
        "a member that the group does not know goes on",
        "consumer.group.classic:Membership._lose_membership",
        "self._revoke_partitions(lost, lost=True, reason=reason)",
        "pass",
    ),
)


def table(found: dict[Bug, tuple[int, str]]) -> str:
    """The rows of the page."""
    lines = ["", "| planted | in | broken | seeds |", "| --- | --- | --- | --- |"]
    lines += [f"| {bug.what} | `{bug.where}` | {name} | {seed + 1} |" for bug, (seed, name) in found.items()]
    return "\n".join([*lines, "", ""])


def rows(name: str = "") -> dict[str, tuple[str, int]]:
    """What the page says: what is planted to (the invariant that it breaks, how many seeds it takes).

    ``name`` is "" for the coordinator's bugs, else " in services" or " in transactions".
    """
    (text,) = _table_of(name).findall(PAGE.read_text())
    return {row["what"]: (row["name"], int(row["seeds"])) for row in _ROW.finditer(text)}


def _table_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- planted bugs{name} -->\n).*?(?=<!-- end of planted bugs{name} -->)", re.S)


def look_for(bugs: Iterable[Bug], name: str = "") -> int:
    """Look for the first seed that finds each, and write the table; 0 if all were found."""
    bugs, found = tuple(bugs), {}
    for bug in bugs:
        first = found_by(bug)
        told = "not found" if first is None else f"{first[1]}, {first[0] + 1} seeds"
        print(f"{bug.what}: {told}", flush=True)
        if first is not None:
            found[bug] = first
    if len(found) == len(bugs):
        PAGE.write_text(_table_of(name).sub(lambda _: table(found), PAGE.read_text()))
    return 0 if len(found) == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(look_for(BUGS))
