"""What a connection, a member, a group, a partition and a record in flight cost a broker, and how that grows.

``python -m benchmarks.sizing [--quick | --large] [--only ROW,...] [--json FILE] [--update-docs]``

Measured are the broker's resident memory and processor time, not the clock: a busy machine hurts little. Each
curve has a broker of its own, which is given more and more; a cost is what the last step added, for each one.
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from kohort.protocol import ApiKey, Subscription, decode_response, encode_request, encode_subscription
from kohort.protocol.messages import (
    consumer_group_heartbeat,
    create_topics,
    join_group,
    share_group_heartbeat,
)

from . import _share_memory, _sized_cluster, _sized_connections, _table
from . import _wire as wire
from ._command import Begun, say
from ._connection import Connection, must, until_ready
from ._sized import Reading, SizedBroker, raise_descriptor_limit, sized_broker

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "sizing.md"
TOPIC: Final = b"sizing"
GROUP: Final = "sizing"
#: Requests that are sent before their answers are read.
TOGETHER: Final = 200
#: What other programs may take of the processors before figures are marked.
QUIET_SHARE: Final = 0.1
#: Longer than a million groups take to be read, on a busy machine too.
LOAD_S: Final = 1_800.0
#: Topics of a request.
TOPICS_AT_ONCE: Final = 1_000
#: Longer than a whole run: no session ends by itself.
LONG_MS: Final = 1_800_000
SETTLES_S: Final = 1.5
#: A target is computed once in a while.
TARGET_S: Final = 0.6
#: Longer than until topics are matched again.
REGEX_S: Final = 10.5
#: A connection that has no answer by then waits to be accepted.
WAITS_S: Final = 8.0
#: Members that come before what is measured, so that nothing is loaded or compiled for the first time.
FIRST: Final = 2


class Step(NamedTuple):
    """A point of a curve: how many there are, MiB of the whole broker, and of each that the step added:
    KiB of memory, microseconds of processors. ``note`` is what else is told if it is the last.
    """

    number: int
    mib: float
    kib_each: float
    us_each: float
    note: str = ""


class Curve(NamedTuple):
    """``run`` yields a point for each of the counts, of which the quick run has the first two. With
    ``--large`` it yields those for ``large`` alone, each of which takes minutes.
    """

    name: str
    title: str
    counts: Sequence[int]
    run: Callable[[Sequence[int]], Iterable[Step]]
    large: Sequence[int] = ()

    def counts_of(self, options: argparse.Namespace) -> Sequence[int]:
        """The counts that a command line asks for."""
        if options.large:
            return self.large
        return self.counts[:2] if options.quick else self.counts


class Meter:
    """Makes the points of a curve from what a broker uses before and after each step."""

    def __init__(self, broker: SizedBroker, count: int = 0) -> None:
        self._broker = broker
        self._count, self._before = count, broker.read()

    def step(self, count: int) -> Step:
        now, before, added = self._broker.read(), self._before, count - self._count
        self._count, self._before = count, now
        kib, us = (now.kib - before.kib) / added, (now.cpu_s - before.cpu_s) * 1e6 / added
        return Step(count, now.kib / 1024, kib, us)


def _ask_all(connection: Connection, frames: Iterable[bytes]) -> list[bytes]:
    answers, waiting = [], 0
    for frame in frames:
        connection.socket.sendall(frame)
        waiting += 1
        if waiting == TOGETHER:
            answers += [connection.next_answer() for _ in range(waiting)]
            waiting = 0
    return answers + [connection.next_answer() for _ in range(waiting)]


def _create(broker: SizedBroker, topic: bytes, partitions: int) -> None:
    with Connection(broker.bootstrap) as connection:
        until_ready(
            "CreateTopics",
            lambda: wire.created_error(connection.ask(wire.create_topic(topic, partitions))),
        )
        until_ready(
            "FindCoordinator",
            lambda: wire.coordinator_error(connection.ask(wire.find_coordinator(b"sizing"))),
        )
        until_ready("OffsetCommit", lambda: max(wire.committed(connection.ask(_commit("warm"))).values()))


def _commit(group: str, partitions: int = 1) -> bytes:
    return wire.offset_commit(group.encode(), -1, b"", TOPIC, partitions, offset=0)


# --- curves -------------------------------------------------------------------------------------------------


def connections(counts: Sequence[int]) -> Iterable[Step]:
    """Each has asked for a coordinator; then all are silent. There are as many as descriptors allow."""
    most = _most_connections()
    if counts[-1] > most:
        say(f"connections end at {most:,}: raise ulimit -n for more")
    with sized_broker() as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        meter, held = Meter(broker), list[socket.socket]()
        try:
            for count in (each for each in counts if each <= most):
                while len(held) < count:
                    # an address has only so many ports
                    source = (f"127.0.0.{2 + len(held) // 20_000}", 0)
                    held.append(socket.create_connection(("127.0.0.1", port), 60, source))
                    held[-1].sendall(wire.find_coordinator(b"sizing"))
                    held[-1].recv(1 << 16)
                time.sleep(SETTLES_S)
                yield meter.step(count)
        except OSError as error:
            say(f"connections end at {len(held):,}: {error}")
        for each in held:
            each.close()


def _most_connections() -> int:
    # a quarter is left for files, and the broker has some open
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4 - 64


def unconnected(counts: Sequence[int]) -> Iterable[Step]:
    """The same without sockets: what a process with few descriptors cannot have."""
    found = iter(_sized_connections.measure(counts))
    before = next(found)
    for now in found:
        added = now.number - before.number
        kib, us = (now.kib - before.kib) / added, (now.cpu_s - before.cpu_s) * 1e6 / added
        note = f"a look at all {now.number:,}, which a broker takes every 5 s: {now.look_s * 1000:,.0f} ms"
        yield Step(now.number, now.kib / 1024, kib, us, note)
        before = now


def groups(counts: Sequence[int]) -> Iterable[Step]:
    """Each has committed one offset and has no members."""
    with sized_broker() as broker:
        _create(broker, TOPIC, 1)
        meter, done = Meter(broker), 0
        with Connection(broker.bootstrap) as connection:
            for count in counts:
                _ask_all(connection, (_commit(f"group-{number:07d}") for number in range(done, count)))
                done = count
                yield meter.step(count)


def loaded_groups(counts: Sequence[int]) -> Iterable[Step]:
    """The same groups, of a broker that was killed and reads them from its log."""
    for count in counts:
        with sized_broker() as broker:
            _create(broker, TOPIC, 1)
            empty = broker.read()
            with Connection(broker.bootstrap) as connection:
                _ask_all(connection, (_commit(f"group-{number:07d}") for number in range(count)))
            broker.end()
            broker.start()
            until_ready("OffsetCommit", partial(_committed, broker), patience_s=LOAD_S)
            now = broker.read()
            yield Step(count, now.kib / 1024, (now.kib - empty.kib) / count, now.cpu_s * 1e6 / count)


def offsets(counts: Sequence[int]) -> Iterable[Step]:
    """Groups with an offset of each of 100 partitions."""
    with sized_broker() as broker:
        _create(broker, TOPIC, 100)
        meter, done = Meter(broker), 0
        with Connection(broker.bootstrap) as connection:
            for count in counts:
                _ask_all(
                    connection, (_commit(f"group-{number}", 100) for number in range(done, count // 100))
                )
                done = count // 100
                yield meter.step(count)


def commits(counts: Sequence[int]) -> Iterable[Step]:
    """Of groups that have committed before, in turn: nothing new has to be kept."""
    with sized_broker() as broker:
        _create(broker, TOPIC, 1)
        frames = [_commit(f"group-{number}") for number in range(TOGETHER)]
        with Connection(broker.bootstrap) as connection:
            _ask_all(connection, frames)
            meter, done = Meter(broker), 0
            for count in counts:
                _ask_all(connection, (frames[number % TOGETHER] for number in range(done, count)))
                done = count
                yield meter.step(count)


class Classic(NamedTuple):
    """A member that has its assignment."""

    connection: Connection
    member_id: str
    generation: int


def _join_frame(group: str, member: str) -> bytes:
    metadata = encode_subscription(Subscription((TOPIC.decode(),)), version=1)
    protocols = [join_group.JoinGroupRequestProtocol("range", metadata)]
    request = join_group.JoinGroupRequest(group, LONG_MS, LONG_MS, member, None, "consumer", protocols)
    return bytes(encode_request(9, 0, "sizing", request))


def _join_classic(broker: SizedBroker, count: int, group: str = GROUP) -> list[Classic]:
    """Members of one group, with a connection each, that all join and get what the leader assigns."""
    members = [Connection(broker.bootstrap) for _ in range(count)]
    for each in members:
        each.socket.sendall(_join_frame(group, ""))
    named = [decode_response(ApiKey.JOIN_GROUP, 9, each.next_answer()[4:])[1].member_id for each in members]
    for each, name in zip(members, named, strict=True):
        each.socket.sendall(_join_frame(group, name))
    joined = [decode_response(ApiKey.JOIN_GROUP, 9, each.next_answer()[4:])[1] for each in members]
    for each, told in zip(members, joined, strict=True):
        shares = [(one.member_id.encode(), wire.assignment(TOPIC, 0)) for one in told.members]
        each.socket.sendall(
            wire.sync_group(group.encode(), told.generation_id, told.member_id.encode(), shares)
        )
    for each in members:
        each.next_answer()
    return [
        Classic(each, told.member_id, told.generation_id) for each, told in zip(members, joined, strict=True)
    ]


def classic_members(counts: Sequence[int]) -> Iterable[Step]:
    """All of a group join at once, are assigned, and are silent; their connections are counted with them."""
    for count in counts:
        with sized_broker() as broker:
            _create(broker, TOPIC, 1)
            # what is made or compiled at the first use
            _join_classic(broker, FIRST, "first")
            meter = Meter(broker)
            try:
                members = _join_classic(broker, count)
            except OSError as error:
                say(f"classic members end below {count:,}: {error}")
                return
            yield meter.step(count)
            for each in members:
                each.connection.socket.close()


class Assigned:
    """Members of a group that the coordinator assigns, on one connection; ``key`` is their API."""

    def __init__(self, broker: SizedBroker, key: ApiKey, **joins: Any) -> None:
        self.connection = Connection(broker.bootstrap)
        self._key, self._joins = key, joins
        self._known: dict[str, tuple[int, Any]] = {}

    def beat(self, names: Iterable[str]) -> bool:
        """A heartbeat of each of these, which does what it was told. Returns whether anything was new."""
        names, news = list(names), False
        frames = [bytes(encode_request(1, 0, "sizing", self._request(name))) for name in names]
        for name, answer in zip(names, _ask_all(self.connection, frames), strict=True):
            told = decode_response(self._key, 1, answer[4:])[1]
            if told.error_code:
                raise RuntimeError(f"{name}: {told}")
            epoch, owned = self._known.get(name, (0, ()))
            if told.assignment is not None:
                owned = told.assignment.topic_partitions
            news = news or epoch != told.member_epoch or told.assignment is not None
            self._known[name] = told.member_epoch, owned
        return news

    def grow(self, count: int) -> None:
        """Have so many members, each at its target."""
        self.beat(f"member-{number}" for number in range(len(self._known), count))
        self.settle()

    def settle(self) -> None:
        quiet = 0
        while quiet < 2:
            time.sleep(TARGET_S)
            news = self.beat(list(self._known))
            quiet = 0 if news or len({epoch for epoch, _ in self._known.values()}) > 1 else quiet + 1

    def _request(self, name: str) -> Any:
        known = self._known.get(name)
        joins = self._joins if known is None else {}
        epoch = 0 if known is None else known[0]
        if self._key is ApiKey.SHARE_GROUP_HEARTBEAT:
            return share_group_heartbeat.ShareGroupHeartbeatRequest(GROUP, name, epoch, **joins)
        owned = () if known is None else known[1]
        if known is None:
            joins = {"rebalance_timeout_ms": LONG_MS, **joins}
        rows = [consumer_group_heartbeat.TopicPartitions(each.topic_id, each.partitions) for each in owned]
        return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            GROUP, name, epoch, topic_partitions=rows, **joins
        )


def _assigned_members(key: ApiKey, counts: Sequence[int]) -> Iterable[Step]:
    for count in counts:
        with sized_broker(
            group_consumer_max_session_timeout_ms=str(LONG_MS),
            group_consumer_session_timeout_ms=str(LONG_MS // 2),
            group_share_max_session_timeout_ms=str(LONG_MS),
            group_share_session_timeout_ms=str(LONG_MS // 2),
        ) as broker:
            _create(broker, TOPIC, 100 if key is ApiKey.SHARE_GROUP_HEARTBEAT else count)
            members = Assigned(broker, key, subscribed_topic_names=[TOPIC.decode()])
            members.grow(FIRST)
            meter = Meter(broker, FIRST)
            members.grow(count)
            yield meter.step(count)


def consumers(counts: Sequence[int]) -> Iterable[Step]:
    """All of a group join at once and come to their targets, with a partition each."""
    return _assigned_members(ApiKey.CONSUMER_GROUP_HEARTBEAT, counts)


def share_members(counts: Sequence[int]) -> Iterable[Step]:
    """All of a group join at once and share 100 partitions."""
    return _assigned_members(ApiKey.SHARE_GROUP_HEARTBEAT, counts)


def topics(counts: Sequence[int]) -> Iterable[Step]:
    """Of one partition each, none of them written to; a request creates many."""
    with sized_broker() as broker:
        meter, done = Meter(broker), 0
        with Connection(broker.bootstrap) as connection:
            for count in counts:
                while done < count:
                    names = [f"topic-{number}" for number in range(done, min(done + TOPICS_AT_ONCE, count))]
                    wanted = [create_topics.CreatableTopic(name, 1, 1) for name in names]
                    request = create_topics.CreateTopicsRequest(wanted, timeout_ms=60_000)
                    must("CreateTopics", wire.created_error(connection.ask(_encode_topics(request))))
                    done += len(names)
                yield meter.step(count)


def _encode_topics(request: create_topics.CreateTopicsRequest) -> bytes:
    return bytes(encode_request(7, 0, "sizing", request))


def partitions(counts: Sequence[int]) -> Iterable[Step]:
    """Of topics of 100, none of them written to."""
    with sized_broker() as broker:
        meter, done = Meter(broker), 0
        with Connection(broker.bootstrap) as connection:
            for count in counts:
                for number in range(done, count // 100):
                    connection.ask(wire.create_topic(b"topic-%d" % number, 100))
                done = count // 100
                yield meter.step(count)


def started_partitions(counts: Sequence[int]) -> Iterable[Step]:
    """Start of a broker that was killed, with so many partitions; memory and processor time of the start."""
    for count in counts:
        with sized_broker() as broker:
            empty = broker.read()
            with Connection(broker.bootstrap) as connection:
                for number in range(count // 100):
                    connection.ask(wire.create_topic(b"topic-%d" % number, 100))
            broker.end()
            now = broker.start()
            more = now.cpu_s - empty.cpu_s
            yield Step(count, now.kib / 1024, (now.kib - empty.kib) / count, max(more, 0) * 1e6 / count)


CURVES: Final = (
    Curve("connections", "connections, silent", (100, 1_000, 10_000, 20_000, 50_000), connections),
    Curve("unconnected", "the same, without sockets", (100, 1_000, 10_000, 20_000, 50_000), unconnected),
    Curve("groups", "groups with an offset, by commits", (1_000, 10_000, 100_000), groups, (1_000_000,)),
    Curve("loaded", "the same groups, read after `kill -9`", (10_000, 100_000), loaded_groups, (1_000_000,)),
    Curve("commits", "commits of 200 groups, one after another", (1_000, 10_000, 100_000), commits),
    Curve("offsets", "committed offsets, 100 a group", (1_000, 10_000, 100_000), offsets),
    Curve("classic", "members of a classic group", (10, 100, 1_000, 10_000), classic_members),
    Curve("consumer", "members of a consumer group", (10, 100, 1_000, 10_000), consumers),
    Curve("share", "members of a share group", (10, 100, 1_000), share_members),
    Curve("topics", "topics of a partition", (100, 1_000, 10_000), topics),
    Curve("partitions", "partitions, in topics of 100", (100, 1_000, 10_000, 100_000), partitions),
    Curve("started", "the same, start after `kill -9`", (10_000, 100_000), started_partitions),
)


#: All that can be asked for.
ROWS: Final = (*(curve.name for curve in CURVES), "in_flight", "brokers", "storms")
#: Numbers of brokers, and of partitions of three replicas.
CLUSTERS: Final = (((1, 2, 3, 5, 7, 9), 100), ((3, 5, 9), 1_000))


# --- storms -------------------------------------------------------------------------------------------------


class Storm(NamedTuple):
    """What happened, the seconds of processors that it took, and MiB of the broker after it."""

    title: str
    cpu_s: float
    mib: float
    lines: list[str]


def _storm(title: str, broker: SizedBroker, before: Reading, seen: int) -> Storm:
    now = broker.read()
    return Storm(title, now.cpu_s - before.cpu_s, now.kib / 1024, broker.lines()[seen:])


def lose_connections(count: int) -> Storm:
    with sized_broker() as broker:
        _create(broker, TOPIC, 1)
        members = _join_classic(broker, count)
        before, seen = broker.read(), len(broker.lines())
        for each in members:
            each.connection.socket.close()
        time.sleep(2 * SETTLES_S)
        return _storm(f"{count:,} members lose their connections at once", broker, before, seen)


def kill_broker(count: int) -> Storm:
    with sized_broker() as broker:
        _create(broker, TOPIC, 1)
        members = _join_classic(broker, count)
        broker.end()
        seen = len(broker.lines())
        broker.start()
        until_ready("OffsetCommit", lambda: _committed(broker))
        for each in members:
            each.connection.socket.close()
            with Connection(broker.bootstrap) as connection:
                group, member_id = GROUP.encode(), each.member_id.encode()
                answer = connection.ask(wire.heartbeat(group, each.generation, member_id))
                must("Heartbeat", wire.error_after_throttle(answer))
        title = f"the broker is killed under {count:,} members: its start, and their heartbeats"
        return _storm(title, broker, Reading(0, 0.0), seen)


def _committed(broker: SizedBroker) -> int:
    with Connection(broker.bootstrap) as connection:
        return max(wire.committed(connection.ask(_commit("warm"))).values())


def deploy(count: int, *, at_once: bool) -> Storm:
    """Services of a group each: what they committed is read, and they commit again."""
    with sized_broker() as broker:
        _create(broker, TOPIC, 1)
        names = [f"service-{number}" for number in range(count)]
        before, seen = broker.read(), len(broker.lines())
        held = []
        for name in names:
            connection = Connection(broker.bootstrap)
            frames = [_commit(name), wire.offset_fetch([name.encode()]), _commit(name)]
            if at_once:
                connection.socket.sendall(b"".join(frames))
                held.append(connection)
            else:
                _ask_all(connection, frames)
                connection.socket.close()
        for connection in held:
            for _ in range(3):
                connection.next_answer()
            connection.socket.close()
        how = "all at once" if at_once else "one by one"
        return _storm(f"{count:,} services connect, commit, read and commit, {how}", broker, before, seen)


def match_topic(members_count: int, partition_count: int) -> Storm:
    with sized_broker(
        group_consumer_max_session_timeout_ms=str(LONG_MS),
        group_consumer_session_timeout_ms=str(LONG_MS // 2),
    ) as broker:
        _create(broker, TOPIC, members_count)
        members = Assigned(broker, ApiKey.CONSUMER_GROUP_HEARTBEAT, subscribed_topic_regex="siz.*")
        members.grow(members_count)
        before, seen = broker.read(), len(broker.lines())
        with Connection(broker.bootstrap) as connection:
            connection.ask(wire.create_topic(b"sizing-2", partition_count))
        time.sleep(REGEX_S)
        members.settle()
        title = f"a topic of {partition_count:,} partitions under a regex of {members_count:,} members"
        return _storm(title, broker, before, seen)


def exhaust_descriptors(descriptors: int) -> Storm:
    """As many connections as descriptors: those that leave less for files than a quarter wait."""
    with sized_broker(descriptors) as broker:
        before, seen, served = broker.read(), len(broker.lines()), 0
        held = [Connection(broker.bootstrap) for _ in range(descriptors)]
        for each in held:
            each.socket.settimeout(WAITS_S)
            try:
                each.ask(wire.find_coordinator(b"sizing"))
            except TimeoutError:
                break
            served += 1
        for each in held:
            each.socket.close()
        title = f"{descriptors:,} connections to a broker of as many descriptors: {served:,} are served"
        return _storm(title, broker, before, seen)


def storms(*, quick: bool) -> Iterator[Storm]:
    some = 100 if quick else 1_000
    yield lose_connections(some)
    yield kill_broker(some)
    yield deploy(some, at_once=False)
    yield deploy(some, at_once=True)
    yield match_topic(some // 2, some * 2)
    yield exhaust_descriptors(some)


# --- what is told -------------------------------------------------------------------------------------------


def _table_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def curve_table(steps: Sequence[Step]) -> str:
    """The points of one curve."""
    rows = [
        (f"{step.number:,}", f"{step.mib:,.0f} MiB", _kib(step), f"{step.us_each:,.0f} µs") for step in steps
    ]
    table = _table_of(("how many", "broker", "memory of each", "processor time of each"), rows)
    return f"{table}\n\n- {steps[-1].note}" if steps[-1].note else table


def _kib(step: Step) -> str:
    return f"{step.kib_each:,.1f} KiB" if step.kib_each >= 0.1 else f"{step.kib_each * 1024:,.0f} B"


def clusters_table(clusters: Sequence[_sized_cluster.ClusterStep]) -> str:
    """What a broker of each of the clusters costs."""
    head = ("brokers", "partitions", "each", "each, idle", "one is killed: all led again", "processor time")
    rows = [
        (
            str(each.brokers),
            f"{each.partitions:,}",
            f"{each.mib:,.0f} MiB",
            f"{100 * each.idle:.1f} % of a core",
            *((f"{each.led_s:.1f} s", f"{each.led_cpu_s:.2f} s") if each.brokers > 1 else ("", "")),
        )
        for each in clusters
    ]
    return _table_of(head, rows)


def storms_table(found: Sequence[Storm]) -> str:
    rows = [
        (each.title, f"{each.cpu_s:.2f} s", f"{each.mib:,.0f} MiB", str(len(each.lines))) for each in found
    ]
    return _table_of(("storm", "processor time", "broker after it", "log lines"), rows)


class Findings:
    """What was measured: raw figures by row, and tables by block of the page, each with how busy the machine
    was.
    """

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self.tables: dict[str, str] = {}

    def add(self, name: str, figures: Any, table: str, begun: Begun, block: str = "") -> None:
        """Take in a row that began then; ``block`` where that is not its name."""
        self.figures[name] = figures
        apart = "\n" if table.splitlines()[-1].startswith("- ") else "\n\n"
        self.tables[f"sizing-{block or name}"] = f"{table}{apart}{_told_load(begun)}"


def _told_load(begun: Begun) -> str:
    share = begun.others_share()
    mark = ". **Busy**: times are up to three times too long" if share > QUIET_SHARE else ""
    return f"- other programs took {share:.0%} of the processors{mark}"


def _measure_curves(options: argparse.Namespace, wanted: Sequence[str], found: Findings) -> None:
    for curve in CURVES:
        begun, steps = Begun(), list[Step]()
        for step in curve.run(curve.counts_of(options)) if curve.name in wanted else ():
            steps.append(step)
            say(f"{curve.name:12} {step.number:>9,} {step.mib:9,.1f} MiB {_kib(step)} {step.us_each:,.1f} us")
        if steps:
            block = f"{curve.name}-large" if options.large else curve.name
            found.add(curve.name, steps, curve_table(steps), begun, block)


def _measure_flight(partition_count: int, found: Findings) -> None:
    begun = Begun()
    flight = _share_memory.measure(partition_count, 100)
    head = ("", "acquired as produced", "every other record acknowledged")
    memory = ("memory of a record", f"{flight['acquired']:.1f} B", f"{flight['split']:,.0f} B")
    work = ("processor time of a record", *(f"{flight[key]:.1f} µs" for key in ("acquired_us", "split_us")))
    found.add("in_flight", flight, _table_of(head, (memory, work)), begun, "in-flight")


def _measure_clusters(sizes: Iterable[tuple[Sequence[int], int]], found: Findings) -> None:
    begun, clusters = Begun(), []
    for counts, size in sizes:
        for cluster in _sized_cluster.grow_cluster(counts, size):
            clusters.append(cluster)
            say(str(cluster))
    found.add("brokers", clusters, clusters_table(clusters), begun)


def _measure_storms(options: argparse.Namespace, found: Findings) -> None:
    begun, passed = Begun(), list[Storm]()
    for storm in storms(quick=options.quick):
        passed.append(storm)
        say(f"{storm.title}: {storm.cpu_s:.2f} s, {storm.lines[-3:]}")
    found.add("storms", passed, storms_table(passed), begun)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sizing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    large = [curve.name for curve in CURVES if curve.large]
    names = large if "--large" in (sys.argv[1:] if argv is None else argv) else ROWS
    parser.add_argument("--only", metavar="ROW,...", help=f"of {', '.join(ROWS)}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="the first two points of each curve, small storms")
    told = f"only the points that take minutes, of {', '.join(large)}"
    size.add_argument("--large", action="store_true", help=told)
    parser.add_argument("--json", metavar="FILE", help="raw figures")
    parser.add_argument("--update-docs", action="store_true", help=f"write the tables into docs/{PAGE.name}")
    options = parser.parse_args(argv)
    options.wanted = options.only.split(",") if options.only else names
    if unknown := sorted(set(options.wanted) - set(names)):
        parser.error(f"no row here is named {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def main(argv: list[str] | None = None) -> int:
    options = _parse(argv)
    descriptors, found, wanted = raise_descriptor_limit(), Findings(), options.wanted
    _measure_curves(options, wanted, found)
    if "in_flight" in wanted:
        _measure_flight(100 if options.quick else 1_000, found)
    if "brokers" in wanted:
        _measure_clusters((((1, 3), 100),) if options.quick else CLUSTERS, found)
    if "storms" in wanted:
        _measure_storms(options, found)
    facts = _table.environment(()) | {"descriptors": f"{descriptors:,} a process"}
    for name in ("brokers", "settings of both"):
        facts.pop(name, None)
    found.tables["sizing-machine"] = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    if options.json:
        raw = {"figures": found.figures, "environment": facts, "tables": found.tables}
        Path(options.json).write_text(json.dumps(raw, indent=1) + "\n")
    print("\n\n".join(found.tables.values()))
    if options.update_docs:
        for block, text in found.tables.items():
            _table.update_page(text, block, PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
