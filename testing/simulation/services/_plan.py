"""The plan of a schedule of services, drawn from its seed: handlers, settings, incidents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Self

from ....assignors import CooperativeStickyAssignor, RangeAssignor
from ....protocol import ApiKey
from ..engine._plan import NETWORK, Incident, show_faults
from ..groups._plan import INCIDENTS as COORDINATOR_INCIDENTS
from ..groups._plan import GroupPlan, GroupsPlan

GROUP: Final = "g0"
DEAD_LETTERS: Final = "set-aside"
NODES: Final = 2
_MOST_PARTITIONS: Final = 4

#: What happens at moments that are drawn: (what it is, how often at most in one schedule).
INCIDENTS: Final[dict[str, tuple[str, int]]] = {
    "process-kill": ("a process is killed, and started again later", 2),
    "process-pause": ("a process stands still, shorter or longer than its session", 1),
    "process-stop": ("a process is asked to stop, ends in good order, and is started again later", 3),
    "arrive": ("another process starts", 2),
    **{name: (COORDINATOR_INCIDENTS[name][0], 1) for name in ("kill", "power-loss", "stop", "move")},
    "refuse-commits": ("OffsetCommits are refused for a while, by an error that passes", 2),
    "node-down": ("a broker that is not the coordinator cannot be reached for a while", 1),
    "leaderless": ("a partition has no leader, for a while or until the faults are over", 2),
    "new-leader": ("a partition gets another leader, which has all records", 1),
    "cut": ("a partition gets a leader whose log is shorter, and other records follow", 2),
    "delete-topic": ("a topic that is read is deleted; it may be recreated later", 1),
    "remake-topic": ("a topic that is read is deleted and soon recreated", 1),
    "grow-topic": ("a topic gets one more partition", 1),
    "lose-rights": ("a topic may not be read for a while", 1),
    "lose-group-rights": ("the group may not be used for a while", 1),
    "hang": ("the next record of a partition hangs its handler until the faults are over", 1),
    "hang-big": ("one hangs, and behind it come batches that are small only while they are compressed", 1),
    "flood": ("many records come into one partition at once", 1),
}

#: The same, for groups without a coordinator, drawn apart from all else.
REGISTRY: Final[dict[str, tuple[str, int]]] = {
    "zookeeper-cut": ("a process and ZooKeeper cannot reach each other, shorter or longer than a session", 2),
    "zookeeper-away": ("no ZooKeeper answers for a while", 1),
    "zookeeper-expires": ("ZooKeeper ends a session", 1),
    "zookeeper-removed": ("somebody removes a member or the owner of a partition", 2),
}
#: What such a group cannot know, as its offsets are numbers of topics' names and nothing else; or has not.
_NOT_OF_REGISTRIES: Final = frozenset(
    {"cut", "delete-topic", "remake-topic", "refuse-commits", "lose-group-rights"}
)

#: After which no record need be handled twice, and no commit be lost.
_HARMLESS: Final = ("process-stop", "arrive", "leaderless", "new-leader", "grow-topic", "flood")
#: Of a cluster that works, while somebody deletes, cuts and grows topics.
_OF_TOPICS: Final = (
    *(*_HARMLESS, "cut", "delete-topic", "remake-topic"),
    *("refuse-commits", "lose-rights", "hang"),
)

#: With these a member may lose its session, its partitions, or its commits.
_UNSOUND: Final = frozenset(
    {"process-pause", "process-kill", "kill", "power-loss", "stop", "move", *REGISTRY}
    | {"refuse-commits", "lose-group-rights", "node-down"}
)

#: What a schedule is about: processes that come and go, topics, everything; a gap in what is done before a
#: log is cut; a topic that is gone before what is done of it is committed; much data and little memory.
_FLAVOURS: Final = (*["calm"] * 3, *["topics"] * 3, "faults", "gap", "gone", "crowd")
#: Where much data is: t0 has small records.
_CROWD: Final = {"t0": 2, "t1": 4}

#: Faults of the network; a duplicate is the coordinator's matter, and TCP has none.
_NETWORK: Final = ("drop", "delay", "reset", "lost-answer")

#: The versions that are spoken: the newest, and older ones.
VERSIONS: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 16,
    ApiKey.LIST_OFFSETS: 9,
    ApiKey.METADATA: 12,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.FIND_COORDINATOR: 6,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
    ApiKey.DESCRIBE_GROUPS: 6,
}
_BY_NAME: Final[dict[int, int]] = {**VERSIONS, ApiKey.FETCH: 12, ApiKey.OFFSET_COMMIT: 8}


@dataclass(slots=True)
class PlannedWork:
    """Handling of records: shares of those that are slow or fail, and times in ms."""

    slow: float = 0.0
    slow_ms: int = 0
    fails: float = 0.0
    poison: float = 0.0
    cancels: float = 0.0


@dataclass(slots=True)
class ProcessPlan:
    """One process, which starts by itself unless it arrives later."""

    name: str
    instance_id: str | None
    starts_ms: int


@dataclass(slots=True)
class ServicePlan(GroupsPlan):
    """``kind`` is what the processes run: "async", "plain", "batch", "once" (a ConsumerService with such a
    handler), or "app", a program with a consumer. In a ``calm`` schedule no record need be handled twice.
    """

    kind: str = "async"
    protocol: str = "classic"
    calm: bool = False
    lanes: Any = "partition"
    concurrency: int = 4
    attempts: int = 3
    dead_letters: bool = True
    drain_ms: int = 1_000
    config: dict[str, Any] = field(default_factory=dict)
    #: How likely a partition gets records at each tick, and how long their values are, by topic.
    busy: float = 0.4
    padding: dict[str, int] = field(default_factory=dict)
    #: Of a service; None: the default, which is far more than schedules have records.
    backlog_max_bytes: int | None = None
    versions: dict[int, int] = field(default_factory=dict)
    work: PlannedWork = field(default_factory=PlannedWork)
    processes: list[ProcessPlan] = field(default_factory=list)
    dead_letter_topics: list[str] = field(default_factory=lambda: [DEAD_LETTERS])
    #: No member may lose its session, its partitions or its commits.
    sound: bool = False
    #: Members leave ``auto_offset_reset`` at its default: the group begins at the ends of its topics.
    latest: bool = False
    #: Topics that do not exist yet, and when they are made.
    made_at_ms: dict[str, int] = field(default_factory=dict)
    #: A service has a handler for each topic.
    several: bool = False
    #: Records that fail go to retry topics, which their first letters make.
    retry_after_ms: list[int] = field(default_factory=list)

    @property
    def group(self) -> str:
        """The name of the only group."""
        return next(iter(self.groups))

    def speak(self, protocol: str) -> None:
        """The members speak this protocol."""
        self.protocol = protocol
        if protocol == "consumer":
            self.config = {**self.config, "protocol": protocol}
            del self.config["assignor"]
            # by name still, but with a member's epoch
            commits = max(self.versions[ApiKey.OFFSET_COMMIT], 9)
            self.versions = {**self.versions, ApiKey.OFFSET_COMMIT: commits}
        elif protocol == "registry":
            self.config = {**self.config, "coordination": "zookeeper://simulated:2181"}
            del self.config["assignor"]
            self.incidents = [i for i in self.incidents if i.kind not in _NOT_OF_REGISTRIES]
            if not self.calm:
                self._disturb_zookeeper(Random(self.seed))
            for process in self.processes:
                process.instance_id = None

    def _disturb_zookeeper(self, rng: Random) -> None:
        for kind, (_, most) in REGISTRY.items():
            for _ in range(rng.randint(1, most) if rng.random() < 0.4 else 0):
                name, at_ms = f"z{len(self.incidents)}", rng.randint(200, self.faults_ms - 100)
                length_ms = rng.randint(1, 2 * self.session_ms)
                who, draw = rng.getrandbits(16), rng.random()
                self.incidents.append(Incident(name, at_ms, kind, who, draw, length_ms))

    def _who(self) -> list[str]:
        return [process.name for process in self.processes[1:]]

    def leave_out(self, names: Collection[str]) -> Self:
        """The same without these faults, incidents and processes."""
        GroupsPlan.leave_out(self, names)
        self.processes = [process for process in self.processes if process.name not in names]
        self.sound = not self.network and not any(i.kind in _UNSOUND for i in self.incidents)
        return self


def draw_service_plan(seed: int) -> ServicePlan:
    rng = Random(~seed)
    flavour = rng.choice(_FLAVOURS)
    session_ms = rng.choice((900, 1_200, 1_800))
    rebalance_ms = rng.choice((1_200, 1_800, 2_400))
    faults_ms = rng.randint(3_000, 9_000)
    topics = {f"t{number}": rng.randint(1, _MOST_PARTITIONS) for number in range(rng.randint(1, 2))}
    if flavour == "crowd":
        topics = dict(_CROWD)
    elif flavour == "gone":
        topics = {"t0": _MOST_PARTITIONS}
    kind = rng.choice(("async", "async", "plain", "batch", "once", "once", "app", "app"))
    calm = flavour == "calm"
    fsync = rng.random() < 0.3
    drain_ms = rng.choice((500, 800, int(rebalance_ms * 0.85)))
    slow_ms = rng.randint(30, drain_ms * 6 // 10) if calm else rng.randint(30, 2 * drain_ms)
    dead_letters = rng.random() < 0.7
    if flavour == "gap":
        kind = rng.choice(("async", "plain", "app"))
    on = _on(rng, flavour)
    cooperative = rng.random() < 0.7
    strategy = CooperativeStickyAssignor if cooperative else RangeAssignor
    plan = ServicePlan(
        seed=seed,
        run_seed=rng.getrandbits(64),
        faults_ms=faults_ms,
        session_ms=session_ms,
        heartbeat_ms=session_ms // 3,
        rebalance_ms=rebalance_ms,
        initial_delay_ms=rng.choice((0, 0, 300)),
        fsync=fsync,
        topics=topics,
        # what a grown topic's new partition has no owner of yet is no fault of the group's
        groups={GROUP: GroupPlan(GROUP, tuple(topics), lambda: [strategy()], eager=False)},
        network={name: NETWORK[name][1] for name in on if name in NETWORK},
        incidents=_gap(rng, faults_ms) if flavour == "gap" else _incidents(rng, on, faults_ms, fsync=fsync),
        kind=kind,
        calm=calm,
        lanes=_lanes(rng, kind, flavour),
        concurrency=rng.choice((2, 4, 16)),
        dead_letters=dead_letters,
        drain_ms=drain_ms,
        config=_config(rng, session_ms, rebalance_ms, strategy),
        versions=VERSIONS if rng.random() < 0.8 else _BY_NAME,
        work=PlannedWork(
            slow=rng.choice((0.0, 0.05, 0.2)),
            slow_ms=slow_ms,
            fails=rng.choice((0.0, 0.05)),
            poison=rng.choice((0.0, 0.02)) if dead_letters else 0.0,
            cancels=rng.choice((0.0, 0.0, 0.02)),
        ),
        processes=_processes(rng, faults_ms, static=rng.random() < 0.25),
    )
    if flavour == "gone":
        _lose_a_topic(plan, rng)
    elif flavour == "crowd":
        _crowd(plan, rng)
    # by chances of its own: schedules without these stay as they are
    _leave_defaults(plan, Random(f"defaults {seed}"))
    return plan


def _leave_defaults(plan: ServicePlan, rng: Random) -> None:
    """In some schedules, users leave settings alone and topics to whoever writes first."""
    if rng.random() < 0.7:
        return
    plan.several = rng.random() < 0.5
    if rng.random() < 0.6:
        plan.latest = True
        del plan.config["auto_offset_reset"]
        # of a log that is cut somewhere, what is read is a matter of the policy
        plan.incidents = [each for each in plan.incidents if each.kind != "cut"]
    if rng.random() < 0.5:
        late = [topic for topic in plan.topics if rng.random() < 0.6]
        plan.made_at_ms = {topic: rng.randint(300, plan.faults_ms // 2) for topic in late}
    if plan.kind in ("async", "plain", "batch") and rng.random() < 0.5:
        plan.retry_after_ms = [rng.choice((20, 200)), rng.choice((20, 400))]
        plan.work.fails, plan.work.cancels = max(plan.work.fails, 0.1), 0.0
    if not plan.calm and rng.random() < 0.4:
        plan.incidents.append(
            Incident("early", rng.randint(300, 1_500), "process-kill", rng.getrandbits(16), 0.0, 500)
        )


def _lanes(rng: Random, kind: str, flavour: str) -> str:
    if kind not in ("async", "plain"):
        return "partition"
    return rng.choice(("key", "none") if flavour == "gap" else ("partition", "key", "none"))


def _on(rng: Random, flavour: str) -> list[str]:
    if flavour in ("gap", "gone", "crowd"):
        return []
    if flavour == "calm":
        return [name for name in _HARMLESS if rng.random() < 0.5]
    if flavour == "topics":
        return [name for name in _OF_TOPICS if rng.random() < 0.35]
    names = (*_NETWORK, *(name for name in INCIDENTS if name not in ("delete-topic", "remake-topic")))
    return [name for name in names if rng.random() < 0.3]


def _config(rng: Random, session_ms: int, rebalance_ms: int, strategy: type) -> dict[str, Any]:
    return {
        "assignor": strategy,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": session_ms,
        "heartbeat_interval_ms": session_ms // 3,
        "rebalance_timeout_ms": rebalance_ms,
        "auto_commit_interval_ms": rng.choice((150, 400, 1_000)),
        "max_undone_records": rng.choice((10, 100, 2_000)),
        "max_poll_records": rng.choice((3, 50, 500)),
        "prefetch_max_bytes": rng.choice((2_000, 100_000)),
        "max_partition_fetch_bytes": rng.choice((300, 20_000)),
        "fetch_max_wait_ms": rng.choice((50, 300)),
        "request_timeout_ms": 1_000,
        "default_api_timeout_ms": 4_000,
        "retry_backoff_ms": 50,
        "retry_backoff_max_ms": 300,
        "reconnect_backoff_ms": 20,
        "reconnect_backoff_max_ms": 200,
        "metadata_max_age_ms": rng.choice((500, 2_000)),
    }


def _processes(rng: Random, faults_ms: int, *, static: bool) -> list[ProcessPlan]:
    processes = []
    for number in range(rng.choice((1, 2, 2, 3))):
        starts_ms = 0 if number < 2 else rng.randint(0, faults_ms // 2)
        processes.append(ProcessPlan(f"p{number}", f"i{number}" if static else None, starts_ms))
    return processes


def _gap(rng: Random, faults_ms: int) -> list[Incident]:
    """A record hangs, others after it are done, their log is cut, and somebody else goes on."""
    who, part = rng.getrandbits(16), faults_ms // 6
    kinds = ("hang", "cut", rng.choice(("process-kill", "process-stop")), "arrive")
    incidents = []
    for number, kind in enumerate(kinds):
        at_ms, draw = rng.randint(number * part + 100, (number + 1) * part), 0.4 * rng.random()
        incidents.append(Incident(f"i{number}", at_ms, kind, who, draw, rng.randint(1, part)))
    return incidents


def _lose_a_topic(plan: ServicePlan, rng: Random) -> None:
    """A topic is deleted while what was done of it is not committed, and soon a process is to stop.

    A rebalance may take long, so that nothing but its own settings tells a release when to give up.
    """
    plan.drain_ms, plan.rebalance_ms = 500, 6_000
    plan.config |= {
        "rebalance_timeout_ms": plan.rebalance_ms,
        "default_api_timeout_ms": 8_000,
        "auto_commit_interval_ms": 5_000,
    }
    at_ms, who = rng.randint(1_000, min(4_000, plan.faults_ms - 1_000)), rng.getrandbits(16)
    plan.incidents = [
        Incident("i0", at_ms, "delete-topic", who, 0.0, plan.faults_ms),
        Incident("i1", at_ms + rng.randint(1, 500), "process-stop", who, 0.0, 1_000),
    ]


def _crowd(plan: ServicePlan, rng: Random) -> None:
    """A partition stands still alongside others that are busy, and little memory is allowed."""
    plan.kind, plan.lanes = rng.choice(("async", "plain", "batch")), "partition"
    plan.concurrency = max(plan.concurrency, 4)
    plan.busy, plan.padding, plan.backlog_max_bytes = 1.0, {"t1": 2_000}, 60_000
    plan.work = PlannedWork()
    plan.processes = plan.processes[:1]
    kind, who = rng.choice(("hang", "hang-big")), rng.randrange(_CROWD["t0"])
    plan.config |= {
        "max_undone_records": rng.choice((10, 2_000)),
        "max_poll_records": 500,
        "prefetch_max_bytes": 4_000,
        # big batches have to come in one answer
        "max_partition_fetch_bytes": 2_000 if kind == "hang" else 12_000,
    }
    plan.incidents = [Incident("i0", rng.randint(500, 1_500), kind, who, 0.0, plan.faults_ms)]


def _incidents(rng: Random, on: list[str], faults_ms: int, *, fsync: bool) -> list[Incident]:
    incidents: list[Incident] = []
    for kind, (_, most) in INCIDENTS.items():
        if kind not in on or (kind == "power-loss" and not fsync):
            continue
        for _ in range(rng.randint(1, most)):
            # some things are as they are from the start
            at_ms = rng.randint(0, 200) if rng.random() < 0.2 else rng.randint(200, faults_ms - 100)
            length_ms = rng.randint(1, faults_ms - at_ms) if rng.random() < 0.6 else faults_ms
            who, draw = rng.getrandbits(16), rng.random()
            incidents.append(Incident(f"i{len(incidents)}", at_ms, kind, who, draw, length_ms))
    return incidents


def faults_table() -> str:
    """Faults of services and what happens, as a Markdown table."""
    return show_faults(INCIDENTS)
