"""Scenario files: commands, and below each of them everything that happened.

A line that begins with ``> `` is a command, an indented line is part of the trace of the command above it,
any other line is text; ``# rows:`` names the rows of the specification that the file is about.
:func:`played` gives the file as it would be if its traces were written now. A line of a trace begins with the
time in ms since the start; what follows is an answer (whose, what), records that were written, or a group's
new state, in the order in which it happened.

Clients are named by one word. A client remembers the member id and the generation it was told, and sends its
requests with them; ``id=``, ``generation=``, ``instance=`` and ``group=`` say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kohort.offsets_topic import GroupDeleted, GroupStored, OffsetCommitted, OffsetDeleted, Record
from kohort.protocol import ErrorCode
from kohort.protocol.messages.delete_groups import DeletableGroupResult
from kohort.protocol.messages.describe_groups import DescribedGroup
from kohort.protocol.messages.heartbeat import HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupResponse
from kohort.protocol.messages.leave_group import LeaveGroupResponse
from kohort.protocol.messages.offset_commit import OffsetCommitResponse
from kohort.protocol.messages.offset_delete import OffsetDeleteResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchResponseGroup
from kohort.protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.bodies import START_MS, protocols, subscription
from tests.coordinator.driver import Call, World

#: Words of ``world`` and ``join`` that are numbers of the driver.
_NUMBERS = {"session": "session_ms", "rebalance": "rebalance_ms", "v": "version", "retention": "retention_ms"}


@dataclass
class Client:
    """What a client remembers."""

    member_id: str = ""
    generation: int = -1
    instance: str | None = None


class Play:
    """One scenario under way."""

    def __init__(self) -> None:
        self.world = World(initial_delay_ms=0)
        self.clients: dict[str, Client] = {}
        self.owners: dict[int, str] = {}
        self.seen = 0

    def run(self, command: str) -> list[str]:
        """Carry a command out; the lines of its trace."""
        verb, *words = command.split()
        before = len(self.world.calls)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        getattr(self, "do_" + verb.replace("-", "_"))(names, options)
        for call in self.world.calls[before:]:
            self.owners[id(call)] = names[0] if names and names[0] in self.clients else ""
        lines = []
        new, self.seen = self.world.trace[self.seen :], len(self.world.trace)
        for time_ms, what, told in new:
            if isinstance(what, Call):
                self._learn(self.owners[id(what)], told)
            lines += [f"    {time_ms - START_MS:>6}  {line}" for line in self._lines(what, told)]
        return lines

    # --- commands -----------------------------------------------------------------------------------------

    def do_world(self, _names: list[str], options: dict[str, str]) -> None:
        """Begin with these settings; ``delay`` is the initial rebalance delay."""
        settings = {name.replace(".", "_"): int(value) for name, value in options.items()}
        self.world = World(initial_delay_ms=settings.pop("delay", 0), **settings)
        self.seen = len(self.world.trace)

    def do_join(self, names: list[str], options: dict[str, str]) -> None:
        client = self._client(names, options)
        topics = options.pop("topics", "t").split(",")
        offered = options.pop("protocols", "range").split(",")
        more: dict[str, Any] = {
            key: int(options.pop(word)) for word, key in _NUMBERS.items() if word in options
        }
        more |= {"type_": options.pop("type", "consumer"), **options}
        self.world.join(
            member=client.member_id,
            instance=client.instance,
            client=names[0],
            offers=protocols(**dict.fromkeys(offered, subscription(*topics))),
            **more,
        )

    def do_sync(self, names: list[str], options: dict[str, str]) -> None:
        """The leader's assignments are given as CLIENT=TEXT."""
        client = self._client(names, options)
        group, protocol = options.pop("group", "g"), options.pop("protocol", "range")
        shares = {self.clients[name].member_id: text.encode() for name, text in options.items()}
        self.world.sync(
            group, client.member_id, client.generation, shares, instance=client.instance, protocol=protocol
        )

    def do_heartbeat(self, names: list[str], options: dict[str, str]) -> None:
        client = self._client(names, options)
        group = options.get("group", "g")
        self.world.heartbeat(group, client.member_id, client.generation, instance=client.instance)

    def do_leave(self, names: list[str], options: dict[str, str]) -> None:
        """Clients leave together; an administrator names ``instance=`` alone."""
        leavers = [(self.clients[name].member_id, self.clients[name].instance) for name in names]
        if not leavers:
            leavers = [("", options["instance"])]
        self.world.leave(options.get("group", "g"), *leavers)

    def do_commit(self, names: list[str], options: dict[str, str]) -> None:
        """TOPIC-PARTITION=OFFSET; without a client nobody's commit."""
        client = self._client(names, options) if names else Client()
        group, retention = options.pop("group", "g"), int(options.pop("retention", "-1"))
        offsets = {_partition(key): int(value) for key, value in options.items()}
        self.world.commit(
            group,
            offsets,
            client.member_id,
            client.generation,
            instance=client.instance,
            retention_ms=retention,
            version=4 if retention >= 0 else 9,
        )

    def do_fetch(self, _names: list[str], options: dict[str, str]) -> None:
        self.world.fetch_call(options.get("group", "g"))

    def do_offset_delete(self, names: list[str], options: dict[str, str]) -> None:
        self.world.offset_delete(options.get("group", "g"), *(_partition(name) for name in names))

    def do_describe(self, _names: list[str], options: dict[str, str]) -> None:
        self.world.describe(options.get("group", "g"))

    def do_delete(self, _names: list[str], options: dict[str, str]) -> None:
        self.world.delete(options.get("group", "g"))

    def do_wait(self, names: list[str], _options: dict[str, str]) -> None:
        self.world.advance(int(names[0]))

    def do_hold(self, _names: list[str], _options: dict[str, str]) -> None:
        """Writes take time from here on: each ``write`` lets one of them be done."""
        self.world.hold_writes = True

    def do_write(self, _names: list[str], _options: dict[str, str]) -> None:
        self.world.write()

    def do_fail(self, names: list[str], _options: dict[str, str]) -> None:
        """The next write is refused with this error."""
        self.world.fail_next_write = ErrorCode[names[0]]

    def do_crash(self, _names: list[str], _options: dict[str, str]) -> None:
        """The process dies and starts again on what was written."""
        self.world.hold_writes = False
        self.world.crash()

    def do_load(self, _names: list[str], _options: dict[str, str]) -> None:
        """The shard comes back, or another broker's writes replace what was known here."""
        self.world.crash()

    def do_unload(self, _names: list[str], _options: dict[str, str]) -> None:
        self.world.unload()

    def do_set(self, _names: list[str], options: dict[str, str]) -> None:
        for name, value in options.items():
            setattr(self.world.settings, name.replace(".", "_"), int(value))

    def do_topic_deleted(self, names: list[str], _options: dict[str, str]) -> None:
        self.world.topics_deleted(*names)

    # --- inside -------------------------------------------------------------------------------------------

    def _client(self, names: list[str], options: dict[str, str]) -> Client:
        client = self.clients.setdefault(names[0], Client())
        if "instance" in options:
            client.instance = options.pop("instance") or None
        if "id" in options:
            client.member_id = options.pop("id")
        if "generation" in options:
            return Client(client.member_id, int(options.pop("generation")), client.instance)
        return client

    def _learn(self, owner: str, told: Any) -> None:
        if isinstance(told, JoinGroupResponse) and told.error_code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            client = self.clients[owner]
            client.member_id = told.member_id
            client.generation = told.generation_id

    def _lines(self, what: Any, told: Any) -> list[str]:
        if what is None:
            return ["log: " + _record(record) for record in told]
        if isinstance(what, str):
            return [f"{what} is {'gone' if told is None else told.value}"]
        owner = self.owners[id(what)]
        return [f"{owner} {_words(what, told)}".lstrip()]


def played(text: str) -> str:
    """The scenario with its traces as they are now."""
    play = Play()
    lines = []
    for line in text.splitlines():
        if line.startswith("    "):
            continue
        lines.append(line.rstrip())
        if line.startswith("> "):
            lines += play.run(line[2:])
    return "\n".join(lines) + "\n"


def _partition(text: str) -> tuple[str, int]:
    topic, _, number = text.rpartition("-")
    return topic, int(number)


def _error(code: int) -> str:
    return ErrorCode(code).name if code else "ok"


def _words(call: Call, told: Any) -> str:
    name = call.what.partition(" ")[0].lower().replace("_", "")
    for kind, words in _WORDS.items():
        if isinstance(told, kind):
            return f"{name}: {words(told)}"
    return f"{name}: lost" if told is None else f"{name}: {told}"


def _join(reply: JoinGroupResponse) -> str:
    if reply.error_code:
        member = f", id {reply.member_id}" if reply.member_id else ""
        return _error(reply.error_code) + member
    words = f"generation {reply.generation_id}, {reply.protocol_name}"
    words += f", id {reply.member_id}, leader {reply.leader}"
    if reply.members:
        words += ", members " + " ".join(member.member_id for member in reply.members)
    return words + (", skip the assignment" if reply.skip_assignment else "")


def _sync(reply: SyncGroupResponse) -> str:
    return _error(reply.error_code) if reply.error_code else _share(reply.assignment)


def _share(assignment: bytes) -> str:
    return (
        repr(assignment.decode())
        if assignment.isascii() and assignment.isalnum()
        else assignment.hex() or "''"
    )


def _leave(reply: LeaveGroupResponse) -> str:
    if reply.error_code:
        return _error(reply.error_code)
    return ", ".join(f"{m.member_id or m.group_instance_id} {_error(m.error_code)}" for m in reply.members)


def _partitions(reply: OffsetCommitResponse | OffsetDeleteResponse) -> str:
    if getattr(reply, "error_code", 0):
        return _error(reply.error_code)  # type: ignore[union-attr]
    return ", ".join(
        f"{t.name}-{p.partition_index} {_error(p.error_code)}" for t in reply.topics for p in t.partitions
    )


def _fetched(group: OffsetFetchResponseGroup) -> str:
    if group.error_code:
        return _error(group.error_code)
    found = (f"{t.name}-{p.partition_index}={p.committed_offset}" for t in group.topics for p in t.partitions)
    return ", ".join(found) or "nothing"


def _described(group: DescribedGroup) -> str:
    if group.error_code:
        return _error(group.error_code)
    members = (f"{m.member_id} {_share(m.member_assignment)}" for m in group.members)
    return "; ".join([f"{group.group_state} {group.protocol_type} {group.protocol_data}".rstrip(), *members])


def _record(record: Record) -> str:
    if isinstance(record, OffsetCommitted):
        return f"offset {record.group} {record.topic}-{record.partition} = {record.offset}"
    if isinstance(record, OffsetDeleted):
        return f"offset {record.group} {record.topic}-{record.partition} deleted"
    if isinstance(record, GroupDeleted):
        return f"group {record.group} deleted"
    assert isinstance(record, GroupStored)
    words = f"group {record.group}, generation {record.generation}"
    if not record.members:
        return f"{words}, no members"
    words += f", {record.protocol}, leader {record.leader}"
    members = (f"{member.member_id} {_share(member.assignment)}" for member in record.members)
    return "; ".join([words, *members])


_WORDS: dict[type, Callable[[Any], str]] = {
    JoinGroupResponse: _join,
    SyncGroupResponse: _sync,
    HeartbeatResponse: lambda reply: _error(reply.error_code),
    LeaveGroupResponse: _leave,
    OffsetCommitResponse: _partitions,
    OffsetDeleteResponse: _partitions,
    OffsetFetchResponseGroup: _fetched,
    DescribedGroup: _described,
    DeletableGroupResult: lambda reply: _error(reply.error_code),
}

#: Commands a file may use, for the error of one that does not exist.
COMMANDS = sorted(name[3:].replace("_", "-") for name in vars(Play) if name.startswith("do_"))
