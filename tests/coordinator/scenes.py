"""A group in each state with every kind of member, and how each sender of the table of answers asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kohort.offsets_topic import OffsetCommitted
from kohort.protocol import ApiKey
from kohort.statemachine import GroupState
from tests.coordinator.answers import Generation
from tests.coordinator.bodies import RANGE_T, protocols, subscription
from tests.coordinator.driver import Call, World

INSTANCE = "i"


@dataclass
class Scene:
    """A leader, a follower, and a static member "i" that was restarted once: ``fenced`` is its first id.

    ``state`` None is a world in which the group does not exist and the ids are made up.
    """

    world: World
    state: GroupState | None
    leader: str
    follower: str
    static: str
    fenced: str
    generation: int
    type_: str

    def generation_of(self, asked: Generation | None) -> list[int]:
        """The numbers that a row's generation stands for."""
        if asked is Generation.OTHER:
            return [self.generation - 1, self.generation + 1]
        return [self.generation] if asked is not Generation.NONE else [-1]

    def hand_out(self) -> str:
        """An id that was handed out and is not used yet."""
        if self.state is None:
            return "c-99"
        reply = self.world.join("g", type_=self.type_).reply
        assert reply.error_code == 79
        return str(reply.member_id)

    def open_transaction(self) -> None:
        self.world.shard.apply((OffsetCommitted("g", "t", 0, 9, -1, "", 0),), 1_000, producer_id=7)

    def fill(self) -> None:
        """Lower group.max.size to what the group has now."""
        group = self.world.groups.get("g")
        if group is not None:
            parked = group.state is GroupState.PREPARING_REBALANCE
            self.world.settings.group_max_size = group.awaiting_join_count if parked else 3


def scene(state: GroupState | None, type_: str = "consumer") -> Scene:
    world = World()
    if state is None:
        return Scene(world, None, "c-1", "c-2", "i-4", "i-3", 2, type_)
    leader, follower = (world.new_member(type_=type_)[0] for _ in range(2))
    world.join(instance=INSTANCE, type_=type_)
    world.advance(0)
    live = world.groups["g"]
    fenced = live.static_members[INSTANCE]
    world.settle([leader, follower, fenced])
    world.join("g", leader, type_=type_)
    world.settle([leader, follower, fenced])
    world.join(instance=INSTANCE, type_=type_)
    static = live.static_members[INSTANCE]
    assert (live.state, live.generation) == (GroupState.STABLE, 2)
    if state is GroupState.EMPTY:
        world.leave("g", *((member, None) for member in (leader, follower, static)))
    elif state is not GroupState.STABLE:
        newcomer, _ = world.new_member(type_=type_)
        if state is GroupState.COMPLETING_REBALANCE:
            for member in (leader, follower):
                world.join("g", member, type_=type_)
            world.join("g", static, instance=INSTANCE, type_=type_)
            assert newcomer in live.pending_sync
    assert live.state is state
    assert live.leader_id == (None if state is GroupState.EMPTY else leader)
    return Scene(world, state, leader, follower, static, fenced, live.generation, type_)


#: The two names under which each sender asks.
NAMES: dict[str, Callable[[Scene], tuple[str, str | None]]] = {
    "leader": lambda s: (s.leader, None),
    "follower": lambda s: (s.follower, None),
    "static member": lambda s: (s.static, INSTANCE),
    "static member without its instance id": lambda s: (s.static, None),
    "static member, restarted since, with its instance id": lambda s: (s.fenced, INSTANCE),
    "static member, restarted since, without it": lambda s: (s.fenced, None),
    "member with the instance id of another": lambda s: (s.follower, INSTANCE),
    "member with an instance id that is not known": lambda s: (s.follower, "unknown"),
    "an instance id that is known, alone": lambda _: ("", INSTANCE),
    "an instance id that is not known, alone": lambda _: ("", "unknown"),
    "id that was handed out and not used yet": lambda s: (s.hand_out(), None),
    "the same, with an instance id": lambda s: (s.hand_out(), "new"),
    "unknown member id": lambda _: ("nobody", None),
    "no member id": lambda _: ("", None),
    "new": lambda _: ("", None),
}

#: Other words for them in the table.
NAMES["static member with both its ids"] = NAMES["static member"]
NAMES["static member by its instance id alone"] = NAMES["an instance id that is known, alone"]
NAMES["static member that restarts"] = NAMES["an instance id that is known, alone"]
NAMES["no member"] = NAMES["no id at all"] = NAMES["anyone"] = NAMES["no member id"]

#: "member" is each of these.
MEMBERS = ("leader", "follower", "static member")

#: What a sender does besides: the words behind its comma (or the whole), and the options of the request.
JOIN_WORDS: dict[str, dict[str, Any]] = {
    "v4+": {},
    "v0-3": {"version": 3},
    "nothing changed": {},
    "other metadata": {"offers": protocols(range=subscription("u"))},
    "other topics": {"offers": protocols(range=subscription("t", "u"))},
    "with an instance id": {"instance": "new"},
    "without protocols": {"offers": []},
    "without protocol type": {"type_": ""},
    "of another protocol type": {"type_": "connect"},
    "with no protocol that all have": {"offers": protocols(other=b"")},
    "the group is full": {},
    "session timeout out of bounds": {"session_ms": 1},
    "empty group id": {"group": ""},
}
SYNC_WORDS: dict[str, dict[str, Any]] = {
    "v5+ with another protocol": {"protocol": "other"},
    "v5+ without protocol": {"protocol": None},
    "empty group id": {"group": ""},
}
COMMIT_WORDS: dict[str, dict[str, Any]] = {
    "v2-8": {"version": 8},
    "metadata too long": {"metadata": "x" * 4_097},
    "topic or partition that does not exist": {"offsets": {("t", 8): 1}},
    "empty group id": {"group": ""},
}
GROUP_WORDS: dict[str, dict[str, Any]] = {"empty group id": {"group": ""}}


def senders(sender: str) -> list[str]:
    """The kinds of member that a sender of the table stands for."""
    head, comma, words = sender.partition(", ")
    return [who + comma + words for who in MEMBERS] if head == "member" else [sender]


def split(sender: str, words: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Who asks, and the options that the rest of the words mean."""
    if sender in NAMES:
        return sender, {}
    who, _, rest = sender.rpartition(", ")
    return who, words[rest]


def ask(s: Scene, request: str, sender: str, generation: int) -> Call | int:
    """Send what this row of the table is about."""
    return ASK[request](s, sender, generation)


def _join(s: Scene, sender: str, _generation: int) -> Call:
    who, options = split(sender, JOIN_WORDS)
    member, instance = NAMES[who](s)
    if sender == "new, the group is full":
        s.fill()
    return s.world.join(
        **{"group": "g", "member": member, "instance": instance, "offers": RANGE_T, **options}
    )


def _sync(s: Scene, sender: str, generation: int) -> Call:
    who, options = split(sender, SYNC_WORDS)
    member, instance = NAMES[who](s)
    return s.world.sync(
        **{"group": "g", "member": member, "generation": generation, "instance": instance, **options}
    )


def _heartbeat(s: Scene, sender: str, generation: int) -> int:
    who, options = split(sender, GROUP_WORDS)
    member, instance = NAMES[who](s)
    return s.world.heartbeat(options.get("group", "g"), member, generation, instance=instance)


def _leave(s: Scene, sender: str, _generation: int) -> Call:
    who, options = split(sender, GROUP_WORDS)
    return s.world.leave(options.get("group", "g"), NAMES[who](s))


def _commit(s: Scene, sender: str, generation: int) -> Call:
    who, options = split(sender, COMMIT_WORDS)
    member, instance = NAMES[who](s)
    return s.world.commit(
        **{"group": "g", "member": member, "generation": generation, "instance": instance, **options}
    )


def _fetch(s: Scene, sender: str, _generation: int) -> Call:
    if "transaction" in sender or "require_stable" in sender:
        s.open_transaction()
    topic = "nothing" if "does not exist" in sender else "t"
    return s.world.fetch_call("g", [(topic, 0)], stable="require_stable" in sender)


def _offset_delete(s: Scene, sender: str, _generation: int) -> Call:
    topics = {"topic that no member reads": "u", "topic that does not exist": "nothing"}
    return s.world.offset_delete("" if "empty" in sender else "g", (topics.get(sender, "t"), 0))


def _describe(s: Scene, sender: str, _generation: int) -> int:
    return int(s.world.describe("g", 6 if sender.endswith("v6") else 5).error_code)


def _list(s: Scene, _sender: str, _generation: int) -> int:
    listed = [group.group_id for group in s.world.list_groups()]
    return 0 if listed == ([] if s.state is None else ["g"]) else -1


ASK: dict[str, Callable[[Scene, str, int], Call | int]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _heartbeat,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "OffsetFetch": _fetch,
    "OffsetDelete": _offset_delete,
    "DescribeGroups": _describe,
    "ListGroups": _list,
    "DeleteGroups": lambda s, _sender, _generation: s.world.delete(),
}

#: The name of each request as the shard knows it.
API_KEYS: dict[int, str] = {
    ApiKey.JOIN_GROUP: "JoinGroup",
    ApiKey.SYNC_GROUP: "SyncGroup",
    ApiKey.HEARTBEAT: "Heartbeat",
    ApiKey.LEAVE_GROUP: "LeaveGroup",
    ApiKey.OFFSET_COMMIT: "OffsetCommit",
    ApiKey.OFFSET_FETCH: "OffsetFetch",
    ApiKey.OFFSET_DELETE: "OffsetDelete",
    ApiKey.DESCRIBE_GROUPS: "DescribeGroups",
    ApiKey.LIST_GROUPS: "ListGroups",
    ApiKey.DELETE_GROUPS: "DeleteGroups",
}
