"""The plan of a schedule, drawn from its seed: members, faults, and incidents with their times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Self

from ....assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from ....protocol import ApiKey
from ..engine._plan import NETWORK, Incident, SchedulePlan, show_faults

MakeAssignors = Callable[[], Sequence[Assignor]]

#: Incidents, at moments that are drawn: (what happens, how often at most in one schedule).
INCIDENTS: Final[dict[str, tuple[str, int]]] = {
    "kill": ("the coordinator's process is killed and reads its log back", 1),
    "power-loss": ("its machine loses power: unsynced pages are lost, torn or kept (only with fsync)", 2),
    "stop": ("the coordinator stops in good order and starts again", 1),
    "move": ("the partition of the offsets topic is given up and taken on again", 1),
    "clock-jump": ("the coordinator starts with a wall clock that is off by up to an hour", 1),
    "torn-write": ("everything stops in a write, at any byte of it, or in the sync behind it", 2),
    "fsync-error": ("a sync fails: what was to be synced is lost to the disk", 1),
    "disk-full": ("there is no room for the next bytes, for a while", 2),
    "short-write": ("a write leaves half of its bytes and fails; of an index, what it is about is there", 2),
    "compaction": ("the log is compacted, step by step beside everything else", 1),
    "checkpoint": ("how far the log is on the disk is noted, for the next start", 1),
    "member-crash": ("a member's process is killed; it may start again (static: under its instance id)", 2),
    "pause": ("a member's process stands still, shorter or longer than its session", 2),
    "leave": ("a member gives up what it has, leaves and may come back", 1),
    "arrive": ("another member joins", 2),
    "poll-stop": ("a member's application does not poll any more; it leaves, and comes back later", 1),
    "resubscribe": ("a member subscribes to other topics", 1),
    "rejoin": ("a member asks for a rebalance", 1),
    "simple-commit": ("somebody who is no member commits for a group without members", 1),
    "read": ("a tool reads all offsets of a group", 1),
    "delete-group": ("a tool deletes a group", 1),
    "delete-offsets": ("a tool deletes offsets of a topic", 1),
    "delete-topic": ("a topic is deleted, and with it its offsets", 1),
}

#: The same, of schedules with members of both protocols.
MIXED: Final[dict[str, tuple[str, int]]] = {
    "switch": ("a member stops, or its process is killed, and it comes back with the other protocol", 3),
    "grow-topic": ("a topic that is read gets one more partition", 1),
    "remake-topic": ("a topic that is read is deleted, and recreated later", 1),
}

#: The same, in some schedules of either kind, drawn apart from all else.
HELD_UP: Final[dict[str, tuple[str, int]]] = {
    "hold-up": (
        "the coordinator's process stands still, for up to two sessions; timers may then precede requests",
        1,
    ),
}
_HELD_UP_PART: Final = 0.1

#: The same, of schedules in which targets are computed concurrently, by a plug-in.
PLUG_IN: Final[dict[str, tuple[str, int]]] = {
    "assignor-fails": (
        "for a while, the plug-in that assigns partitions hangs, is slow, raises, or answers nonsense",
        2,
    ),
}
_PLUG_IN_PART: Final = 0.6

#: Time between crashes where more are asked for.
_CRASH_EVERY_MS: Final = 60

#: On in every schedule.
_ALWAYS: Final = frozenset({"kill", "simple-commit", "read", "checkpoint"})

#: A group that nobody joins, and a topic that only it has offsets of.
SIMPLE_GROUP: Final = "simple"
ASIDE: Final = "aside"

_APIS: Final = (
    "JOIN_GROUP",
    "SYNC_GROUP",
    "HEARTBEAT",
    "LEAVE_GROUP",
    "OFFSET_COMMIT",
    "OFFSET_FETCH",
    "DESCRIBE_GROUPS",
)
#: Versions of these that clients of several makes speak.
_VERSIONS: Final[tuple[dict[int, int], ...]] = tuple(
    {ApiKey[name]: version for name, version in zip(_APIS, versions, strict=True)}
    for versions in (
        *[(9, 5, 4, 5, 9, 9, 6)] * 2,
        (7, 5, 4, 5, 8, 8, 5),
        (5, 3, 3, 1, 7, 7, 4),
        (3, 1, 1, 1, 3, 3, 1),
    )
)
#: The first versions with instance ids.
_STATIC_VERSIONS: Final = 4

_CONSUMER_VERSIONS: Final = _VERSIONS[0] | {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
}

_STRATEGIES: Final[tuple[tuple[type[Assignor], ...], ...]] = (
    *[(CooperativeStickyAssignor,)] * 2,
    (StickyAssignor,),
    (RangeAssignor,),
    (RoundRobinAssignor, RangeAssignor),
    (CooperativeStickyAssignor, RangeAssignor),
)


@dataclass(slots=True)
class MemberPlan:
    """One member; ``instance_id`` is None for a dynamic one. It starts by itself unless it arrives later.

    A step of a handover takes it ``work_ms``; a ``hasty`` one does not wait until all know that it leaves.
    """

    name: str
    group: str
    instance_id: str | None
    versions: dict[int, int]
    starts_ms: int
    poll_ms: int
    work_ms: int
    commit_ms: int
    hasty: bool
    #: Whether it speaks the protocol of consumer groups; then the expression that it subscribes to, if any.
    consumer: bool = False
    regex: str = ""

    @property
    def speaks(self) -> dict[int, int]:
        """Versions of its requests."""
        return _CONSUMER_VERSIONS if self.consumer else self.versions


@dataclass(slots=True)
class GroupPlan:
    """One group: its topics, and the assignors of its members."""

    name: str
    topics: tuple[str, ...]
    make_assignors: MakeAssignors
    eager: bool


@dataclass(slots=True)
class GroupsPlan(SchedulePlan):
    """The plan of a schedule with a coordinator, whose groups these are."""

    heartbeat_ms: int = 0
    rebalance_ms: int = 0
    initial_delay_ms: int = 0
    groups: dict[str, GroupPlan] = field(default_factory=dict)
    members: list[MemberPlan] = field(default_factory=list)
    segment_bytes: int = 1 << 20
    retention_ms: int = 1_000_000
    quiet_ms: int = 0
    max_size: int = 100
    crashes: int = 0
    #: Whether there are members of both protocols, and topics have ids and change; and whether targets are
    #: computed concurrently with everything else.
    mixed: bool = False
    beside: bool = False
    #: Whether a consumer group whose last consumer has gone turns back.
    turns_back: bool = True

    def _who(self) -> list[str]:
        return [member.name for member in self.members]

    def leave_out(self, names: Collection[str]) -> Self:
        """The same without these faults, incidents and members."""
        SchedulePlan.leave_out(self, names)
        self.members = [member for member in self.members if member.name not in names]
        return self


def faults_table() -> str:
    """Faults of groups and what happens, as a Markdown table."""
    return show_faults(NETWORK | INCIDENTS | MIXED | HELD_UP | PLUG_IN)


def draw_plan(
    seed: int, make_assignors: MakeAssignors | None = None, crashes: int = 0, *, mixed: bool = False
) -> GroupsPlan:
    """The plan of a seed, with ``make_assignors`` for those drawn, and this many more crashes. ``mixed``:
    with members of both protocols.
    """
    rng = Random(seed)
    session_ms = rng.choice((900, 1_200, 1_800))
    faults_ms = rng.choice((3, 4, 4, 6, 10)) * session_ms // 4 + crashes * _CRASH_EVERY_MS
    topics = {f"t{number}": rng.randint(1, 4) for number in range(rng.randint(1, 2))}
    groups = _groups(rng, topics, make_assignors)
    fsync = rng.random() < 0.5
    on = {name for name in (*NETWORK, *INCIDENTS) if rng.random() < 0.35} | _ALWAYS
    members = _members(rng, groups, faults_ms)
    plan = GroupsPlan(
        seed=seed,
        run_seed=rng.getrandbits(64),
        faults_ms=faults_ms,
        session_ms=session_ms,
        heartbeat_ms=session_ms // 3,
        # members learn of a rebalance by a heartbeat, so the rebalance timeout must be longer
        rebalance_ms=max(rng.choice((600, 900, 1_500)), session_ms // 3 * 2),
        initial_delay_ms=rng.choice((0, 0, 300)),
        retention_ms=rng.choice((session_ms // 2, session_ms, 3 * session_ms, 100_000)),
        # a settled group is looked at for this long; not at all in most schedules
        quiet_ms=int(session_ms * (10.0 if (drawn := rng.random()) < 0.03 else 0.5 if drawn < 0.3 else 0.0)),
        max_size=2 if rng.random() < 0.1 else 100,
        fsync=fsync,
        flips=rng.randint(2, 12) if fsync and rng.random() < 0.9 else 0,
        segment_bytes=rng.choice((1_024, 4_096, 1 << 20)),
        topics=topics,
        groups=groups,
        members=members,
        network={name: NETWORK[name][1] for name in NETWORK if name in on},
        incidents=_incidents(rng, on, faults_ms, fsync=fsync)
        + _crashes(rng, crashes, faults_ms, fsync=fsync),
        crashes=crashes,
    )
    if mixed:
        _mix(rng, plan)
    apart = Random(f"held {seed}")
    if apart.random() < _HELD_UP_PART:
        at_ms, length_ms = apart.randint(100, faults_ms), apart.randint(session_ms // 2, 2 * session_ms)
        plan.incidents.append(Incident(f"i{len(plan.incidents)}", at_ms, "hold-up", 0, 0.0, length_ms))
        plan.faults_ms = max(faults_ms, at_ms + length_ms)
    apart = Random(f"plug-in {seed}")
    if plan.beside and apart.random() < _PLUG_IN_PART:
        for kind, (_, most) in PLUG_IN.items():
            for _ in range(apart.randint(1, most)):
                plan.incidents.append(_incident(apart, plan.incidents, kind, plan.faults_ms))
    return plan


def _mix(rng: Random, plan: GroupsPlan) -> None:
    """Let members speak either protocol, some change it, and topics change."""
    plan.mixed, plan.beside = True, rng.random() < 0.3
    # all of a group that turns back is one batch
    plan.segment_bytes = max(plan.segment_bytes, 16_384)
    part = rng.choice((0.0, 0.5, 0.5, 0.8, 1.0, 1.0))
    patterns = rng.random() < 0.15
    for group in plan.groups.values():
        # what nobody has is looked for at the end: topics change
        group.eager = False
    for member in plan.members:
        member.consumer = rng.random() < part
        if patterns and rng.random() < 0.7:
            member.regex = rng.choice(("t.*", "t[01]"))
    for kind, (_, most) in MIXED.items():
        if rng.random() < (0.7 if kind == "switch" else 0.25):
            for _ in range(rng.randint(1, most)):
                plan.incidents.append(_incident(rng, plan.incidents, kind, plan.faults_ms))
    if rng.random() < 0.3:
        # a rolling change of all
        step_ms = plan.faults_ms // (len(plan.members) + 1)
        for number in range(len(plan.members)):
            name, at_ms = f"i{len(plan.incidents)}", step_ms * (number + 1)
            plan.incidents.append(Incident(name, at_ms, "switch", number, rng.random(), step_ms // 2))
    plan.turns_back = rng.random() < 0.9


def _crashes(rng: Random, count: int, faults_ms: int, *, fsync: bool) -> list[Incident]:
    kinds = ("kill", "power-loss", "torn-write") if fsync else ("kill", "torn-write")
    crashes = [
        Incident(f"c{number}", rng.randint(1, faults_ms - 1), rng.choice(kinds), 0, rng.random(), 0)
        for number in range(count)
    ]
    # commits that can be lost in each; and a log that only grew would be read back ever more slowly
    return crashes + [
        Incident(f"{letter}{number}", rng.randint(1, faults_ms - 1), kind, 0, 0.0, 0)
        for letter, kind, times in (("s", "simple-commit", 2 * count), ("k", "compaction", count // 6))
        for number in range(times)
    ]


def _groups(
    rng: Random, topics: dict[str, int], make_assignors: MakeAssignors | None
) -> dict[str, GroupPlan]:
    groups = {}
    for number in range(2 if rng.random() < 0.06 else 1):
        name = f"g{number}"
        strategy = rng.choice(_STRATEGIES)

        def make(strategy: tuple[type[Assignor], ...] = strategy) -> list[Assignor]:
            return [kind() for kind in strategy]

        made = make if make_assignors is None else make_assignors
        eager = not all(1 in assignor.rebalance_protocols for assignor in made())
        groups[name] = GroupPlan(name, tuple(topics), made, eager)
    return groups


def _members(rng: Random, groups: dict[str, GroupPlan], faults_ms: int) -> list[MemberPlan]:
    members = []
    statics = rng.random() < 0.4
    for group in groups:
        for number in range(rng.choice((1, 2, 2, 2, 3, 4))):
            static = statics and rng.random() < 0.6
            name = f"{group}m{number}"
            members.append(
                MemberPlan(
                    name,
                    group,
                    f"i{name}" if static else None,
                    rng.choice(_VERSIONS[:_STATIC_VERSIONS] if static else _VERSIONS),
                    0 if number < 2 else rng.randint(0, faults_ms // 2),
                    rng.randint(200, 500),
                    rng.choice((1, 50, 300)),
                    rng.randint(300, 700),
                    rng.random() < 0.7,
                )
            )
    return members


def _incidents(rng: Random, on: set[str], faults_ms: int, *, fsync: bool) -> list[Incident]:
    incidents: list[Incident] = []
    for kind, (_, most) in INCIDENTS.items():
        if kind not in on or (kind == "power-loss" and not fsync):
            continue
        for _ in range(rng.randint(1, most)):
            incidents.append(_incident(rng, incidents, kind, faults_ms))
    return incidents


def _incident(rng: Random, before: Sequence[Incident], kind: str, faults_ms: int) -> Incident:
    at_ms = rng.randint(100, faults_ms - 100)
    length_ms = rng.randint(1, faults_ms - at_ms)
    who, draw = rng.getrandbits(16), rng.random()
    return Incident(f"i{len(before)}", at_ms, kind, who, draw, length_ms)
