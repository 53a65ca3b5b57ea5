"""What a broker takes of memory for requests of strangers, and what is left of them when they are gone.

Requests of every API and version have their arrays full of names that nobody has used before. An API that is
new is in here by itself. What is kept is found by following references, not by names of caches: one that is
new is in here, too. Memory is counted by the allocator; no clock is read but one that the test moves.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from kohort.broker.apis import AnyApi
from kohort.broker.assembly import BrokerAssembly
from kohort.broker.event_loop.stopwatch import clock as quota_clock
from kohort.broker.metrics import _traffic
from kohort.broker.partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kohort.broker.quotas import QuotaTable
from kohort.broker.reporting import refusal_rate
from kohort.coordinator.engine import runtime
from kohort.protocol import ApiKey
from kohort.share_state.order import StateOrder
from tests.broker.wire import batch
from tests.limits.cases import APIS, KINDS, LARGE_TEXT, Case, chosen_cases
from tests.limits.full_requests import KNOWN, Naming, request_frame
from tests.limits.kept import kept, kohort_modules
from tests.limits.prepared_broker import PATIENCE_S, PreparedBroker, prepared_broker

#: Elements of a full array, where memory is looked at and where the rest is looked for.
FEW, FEW_LARGE = 40, 4
FEW_LEFT: Final = 12

#: How often all requests are sent at most. What is bounded is full by then, with these settings; logs that
#: were written to for the first time are open.
ROUNDS: Final = 6
SMALL: Final = {
    "max.incremental.fetch.session.cache.slots": 4,
    "kohort.group.history.size": 2,
    "connections.max.idle.ms": 60_000,
}

#: Bytes by which a place in the broker may have grown after a round, as the files of one more segment take
#: up to 540 in the marks of what is flushed; what a task or timer counts as.
NOISE: Final = 800
WORK_BYTES: Final = 300

#: Most days after which all expires, and how often the broker is looked at if it is not done by then.
DAYS: Final = 12
LOOKS: Final = 5

#: Topics that are the broker's own.
OWN_TOPICS: Final = (KNOWN, OFFSETS_TOPIC, TRANSACTIONS_TOPIC)

#: Bytes that asyncio takes for each read, and that reading a version for the first time keeps; what other
#: tasks take at the time is not taken in each of the tries.
READ_BUFFER: Final = 256 << 10
FIRST_USE: Final = 32_000
TRIES: Final = 3

#: A request may take so many times its bytes and those of its answer, and so much for each element: 100
#: bytes, but more where one becomes an error in words, or a topic.
TIMES: Final = 4
OF_ELEMENT: Final = {
    ApiKey.ALTER_CONFIGS: 2_000,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 2_000,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 2_000,
    ApiKey.CREATE_PARTITIONS: 2_000,
    ApiKey.CREATE_TOPICS: 20_000,
}

#: How requests get as far as they can, and wait there.
WAITING: Final[dict[str, Any]] = {"max_wait_ms": 3_600_000, "min_bytes": 1 << 20}
OF_NEW_MEMBERS: Final = {ApiKey.JOIN_GROUP: {"member_id": "", "group_instance_id": None}}

#: The first producer id of a round is so many times the round's number.
PRODUCER_IDS: Final = 10_000

#: Of what there is, without a session of Fetch.
OLD: Final = Naming("old", lambda _number: KNOWN, distinct=False)

HOUR_S: Final = 3_600.0
DAY_S: Final = 24 * HOUR_S


class MovedClock:
    """All clocks of the process, ahead by as much as they were moved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ahead_s = 0.0
        for name in ("time", "monotonic", "perf_counter"):
            patch.setattr(time, name, self._moved(getattr(time, name), 1))
            patch.setattr(time, f"{name}_ns", self._moved(getattr(time, f"{name}_ns"), 1_000_000_000))

    def _moved(self, real: Callable[[], Any], unit: int) -> Callable[[], Any]:
        return lambda: real() + type(real())(self.ahead_s * unit)


@pytest.fixture
def clock() -> Iterator[MovedClock]:
    with pytest.MonkeyPatch.context() as patch:
        yield MovedClock(patch)


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_traffic, "MAX_CLIENTS", 4)
    monkeypatch.setattr(runtime, "_MAX_REMEMBERED", 4)
    monkeypatch.setattr(refusal_rate, "_MAX_REMEMBERED", 4)
    monkeypatch.setattr(StateOrder.__init__, "__defaults__", (4,))
    monkeypatch.setattr(logging.getLogger("kohort"), "disabled", True)


def strange(serial: str) -> list[Naming]:
    """Namings of things that were not named before."""
    new, foreign = f"{KNOWN}-{serial}", f"unknown-{serial}"
    return [
        Naming("new", lambda number: f"{new}-{number}", distinct=True, outside=new),
        Naming("new in what is known", lambda number: f"{new}-{number}", distinct=True),
        Naming("not allowed", lambda number: f"{foreign}-{number}", distinct=True, outside=foreign),
        Naming("largest", lambda number: f"{serial}{number:06}{LARGE_TEXT}", distinct=False, largest=True),
    ]


def requests(api: AnyApi, broker: PreparedBroker, turn: int, soaks: bool) -> Iterator[bytes]:
    """All requests of an API, with other names in each turn."""
    first, last = api.versions
    small = [
        Case(api.key, version, (), {"session_epoch": -1}, naming)
        for version in range(first, last + 1)
        for naming in (OLD, strange("")[0])
    ]
    for number, case in enumerate([*small, *chosen_cases(api, *strange(""), soaks=soaks)]):
        serial = f"{turn}-{api.key:03}-{number:04}"
        (naming,) = (each for each in (OLD, *strange(serial)) if each.kind == case.naming.kind)
        naming = replace(naming, topic_id=broker.topic_id)
        count = FEW_LARGE if naming.largest else FEW_LEFT
        records = batch(producer_id=PRODUCER_IDS * (turn + 1) + number, producer_epoch=0, base_sequence=0)
        chosen = {**case.chosen, **WAITING, **OF_NEW_MEMBERS.get(api.key, {}), "records": records}
        client_id = f"client-{serial}"
        yield request_frame(api.key, case.version, case.path, count, naming, client_id, **chosen)


async def send_and_leave(broker: PreparedBroker, key: ApiKey, frame: bytes) -> None:
    """Send a request, and close the connection when the broker is at it, or has answered."""
    meter = broker.node.metrics.requests.of(key)
    before = meter.count
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    writer.write(frame)
    answer = asyncio.ensure_future(reader.read(1))
    while meter.count == before and not answer.done():  # noqa: ASYNC110 - no event tells that a broker is at it
        await asyncio.sleep(0)
    answer.cancel()
    writer.close()
    with suppress(ConnectionError, asyncio.CancelledError):
        await answer
    with suppress(ConnectionError):
        await writer.wait_closed()


async def remove_what_was_made(broker: PreparedBroker, rules: frozenset[Any]) -> None:
    """What administrators make stays until they remove it."""
    node = broker.node
    await node.topics.delete([each for each in node.topics.all() if each.name not in OWN_TOPICS])
    assert node.authorizer is not None
    await node.authorizer.delete(each for each in list(node.authorizer._rules) if each not in rules)
    node.quotas.replace(QuotaTable(), quota_clock())
    await node.scram_users.change({})
    await node.group_configs.replace({name: {} for name in node.group_configs.of_group})
    for for_all in (False, True):
        await node.live.set(for_all=for_all, values={})
    listed = await broker.call(ApiKey.LIST_GROUPS, 5, states_filter=["Empty"], types_filter=["share"])
    groups = [each.group_id for each in listed.groups]
    await broker.call(ApiKey.DELETE_GROUPS, 2, groups_names=groups)


async def rest(parts: BrokerAssembly) -> None:
    """Return when no connection is open, and no request of one is waiting."""
    async with asyncio.timeout(PATIENCE_S):
        while parts.server.peers() or parts.server._tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    for _ in range(100):
        await asyncio.sleep(0)


def work_to_do() -> int:
    """Number of tasks and timers of the event loop."""
    loop: Any = asyncio.get_running_loop()
    return len(asyncio.all_tasks()) + sum(not each.cancelled() for each in loop._scheduled)


async def kept_after_days(
    broker: PreparedBroker, clock: MovedClock, before: Counter[str] | None
) -> tuple[Counter[str], dict[str, int]]:
    """What is kept when all that expires has expired, and by how many bytes each place has grown."""
    for _ in range(DAYS):
        clock.ahead_s += DAY_S
        await asyncio.sleep(0.02)  # for what runs in threads
        await rest(broker.parts)
    for _ in range(LOOKS):
        clock.ahead_s += HOUR_S
        await asyncio.sleep(0.02)
        await rest(broker.parts)
        gc.collect()
        now = kept([("broker", broker.parts), *kohort_modules()])
        now["work to do"] = work_to_do() * WORK_BYTES
        grown = {path: more for path in now if (more := now[path] - (before or now)[path]) > NOISE}
        if not grown:
            break
    return now, grown


@pytest.mark.slow(6)
@pytest.mark.parametrize("in_cluster", [False, True], ids=["alone", "in a cluster"])
async def test_nothing_that_strangers_send_stays(
    tmp_path: Path, clock: MovedClock, soaks: bool, in_cluster: bool
) -> None:
    """Topics, rules, users, quotas, configs and share groups stay until they are removed, all else until it
    expires. Requests that wait are given up with their connections.
    """
    apis = [each for each in APIS if each.cluster_only == in_cluster]
    async with prepared_broker(tmp_path, in_cluster=in_cluster, settings=SMALL) as broker:
        assert broker.node.authorizer is not None
        rules = frozenset(broker.node.authorizer._rules)
        before: Counter[str] | None = None
        for turn in range(ROUNDS):
            await broker.fill()
            for api in apis:
                for frame in requests(api, broker, turn, soaks):
                    await send_and_leave(broker, api.key, frame)
            await rest(broker.parts)
            await remove_what_was_made(broker, rules)
            first = before is None
            before, grown = await kept_after_days(broker, clock, before)
            if not (first or grown):
                return
        assert grown == {}


async def excess_of(broker: PreparedBroker, case: Case, frame: bytes, count: int) -> str:
    """Which memory a request takes that it may not take, in words."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    answer = await broker.ask(frame)
    took = tracemalloc.get_traced_memory()[1] - before - READ_BUFFER
    most = TIMES * (len(frame) + len(answer)) + OF_ELEMENT.get(case.key, 100) * count
    return f"{took} bytes, {len(frame)} in, {len(answer)} out" if took > FIRST_USE + most else ""


@pytest.mark.slow(8)
async def test_memory_for_a_request_grows_with_it_and_its_answer_alone(tmp_path: Path, soaks: bool) -> None:
    wrong: list[str] = []
    async with prepared_broker(tmp_path) as broker:
        recording = broker.parts._recording
        assert recording is not None
        tracemalloc.start()
        try:
            for api in APIS:
                for case in chosen_cases(api, *KINDS, soaks=soaks):
                    if "Delete" in api.name:
                        await broker.fill()  # the last one has taken effect
                    count = FEW_LARGE if case.naming.largest else FEW
                    frame = case.frame(count, broker.topic_id)
                    # the first time may also load code
                    for _ in range(TRIES):
                        excess = await excess_of(broker, case, frame, count)
                        if not excess:
                            break
                        # another thread has taken memory for the events of requests before
                        await asyncio.to_thread(recording.recorder.flush)
                    wrong += [f"{api.name} {case}: {excess}"] if excess else []
        finally:
            tracemalloc.stop()
    assert wrong == []
