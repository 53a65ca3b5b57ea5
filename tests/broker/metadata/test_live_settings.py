"""Settings of the broker that change while it runs: in force at once, told with their sources, kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from kohort.broker.metadata.live_settings import LiveSettings, Values
from kohort.broker.settings import BrokerSettings
from kohort.cluster import Document
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import RunningBroker, running_broker
from tests.broker.apis.test_alter_configs import APPEND, BROKER, DELETE, SET, TOPIC, change, replace
from tests.broker.apis.test_describe_configs import ask
from tests.broker.wire import Wire, batch, create_topic, produce

OWN, ALL, STATIC, DEFAULT = 2, 3, 4, 5
GROUP = 32


@pytest.fixture
def own() -> Iterator[RunningBroker]:
    with running_broker(log_retention_ms=1_000_000) as broker:
        yield broker


@pytest.fixture
def wire(own: RunningBroker) -> Iterator[Wire]:
    with Wire(own.bootstrap) as connection:
        yield connection


def row(wire: Wire, name: str, resource: str = "1", kind: int = BROKER) -> tuple[str, int, bool]:
    """Value, source and whether it cannot be changed."""
    found = {one.name: one for one in ask(wire, kind, resource).configs}[name]
    return found.value, found.config_source, found.read_only


def synonyms(wire: Wire, name: str, resource: str = "1", kind: int = BROKER) -> list[tuple[str, int]]:
    told = ask(wire, kind, resource, include_synonyms=True).configs
    found = {one.name: one for one in told}[name]
    return [(one.value, one.source) for one in found.synonyms]


def test_a_change_is_in_force_at_once_and_goes_before_the_others(wire: Wire) -> None:
    name = "log.retention.ms"
    assert row(wire, name) == ("1000000", STATIC, False)
    assert change(wire, "", (name, SET, "2000000"), kind=BROKER) == ErrorCode.NONE
    assert row(wire, name) == ("2000000", ALL, False)
    assert change(wire, "1", (name, SET, "3000000"), kind=BROKER) == ErrorCode.NONE
    assert synonyms(wire, name) == [("3000000", OWN), ("2000000", ALL), ("1000000", STATIC)]
    assert [(one.name, one.value) for one in ask(wire, BROKER, "").configs] == [(name, "2000000")]
    assert change(wire, "1", (name, DELETE, None), kind=BROKER) == ErrorCode.NONE
    assert change(wire, "", (name, DELETE, None), kind=BROKER) == ErrorCode.NONE
    assert row(wire, name) == ("1000000", STATIC, False)


def test_topics_that_set_nothing_go_by_it(wire: Wire) -> None:
    create_topic(wire, "plain")
    create_topic(wire, "own", max_message_bytes="900000")
    assert change(wire, "1", ("message.max.bytes", SET, "100"), kind=BROKER) == ErrorCode.NONE
    assert produce(wire, "plain", batch(50)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(wire, "own", batch(50)).error_code == ErrorCode.NONE
    assert row(wire, "max.message.bytes", "plain", TOPIC) == ("100", OWN, False)
    assert synonyms(wire, "max.message.bytes", "own", TOPIC)[:2] == [("900000", 1), ("100", OWN)]
    assert replace(wire, "1", kind=BROKER) == ErrorCode.NONE
    assert produce(wire, "plain", batch(50)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_groups_that_set_nothing_go_by_its_assignment_interval(wire: Wire, kind: str) -> None:
    name = f"{kind}.assignment.interval.ms"
    assert change(wire, "1", (f"group.{name}", SET, "0"), kind=BROKER) == ErrorCode.NONE
    assert row(wire, name, "g", GROUP)[0] == "0"


def test_a_limit_on_connections_counts_from_then_on(wire: Wire, own: RunningBroker) -> None:
    assert change(wire, "1", ("max.connections.per.ip", SET, "1"), kind=BROKER) == ErrorCode.NONE
    with Wire(own.bootstrap) as second:
        assert second.closed_by_broker()
    assert change(wire, "1", ("max.connections.per.ip", DELETE, None), kind=BROKER) == ErrorCode.NONE
    with Wire(own.bootstrap) as third:
        assert ask(third, BROKER, "").error_code == 0


def test_a_limit_of_one_listener_changes_too(wire: Wire, own: RunningBroker) -> None:
    name = "listener.name.plaintext.max.connections"
    assert change(wire, "1", (name, SET, "1"), kind=BROKER) == ErrorCode.NONE
    assert row(wire, name) == ("1", OWN, False)
    assert synonyms(wire, name) == [("1", OWN), ("10000", DEFAULT)]
    with Wire(own.bootstrap, timeout_s=60) as second:
        number = second.send(ApiKey.METADATA, 1, topics=[])
        second.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            second.socket.recv(1)
        assert change(wire, "1", (name, SET, "2"), kind=BROKER) == ErrorCode.NONE
        second.socket.settimeout(60)
        assert second.receive(ApiKey.METADATA, 1, number).brokers
    assert change(wire, "1", (name, DELETE, None), kind=BROKER) == ErrorCode.NONE
    assert name not in {one.name for one in ask(wire, BROKER, "1").configs}


def test_a_limit_of_one_listener_is_there_again_after_a_start(tmp_path: Path) -> None:
    name, about = "listener.name.plaintext.max.connection.creation.rate", ("77", OWN, False)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert change(wire, "1", (name, SET, "77"), kind=BROKER) == ErrorCode.NONE
        assert row(wire, name) == about
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert row(wire, name) == about


@pytest.mark.parametrize(
    ("resource", "name", "operation", "value", "code"),
    [
        ("", "listener.name.plaintext.max.connections", SET, "3", ErrorCode.INVALID_REQUEST),
        ("1", "listener.name.plaintext.ssl.client.auth", SET, "none", ErrorCode.INVALID_REQUEST),
        ("1", "listener.name.nowhere.max.connections", SET, "3", ErrorCode.INVALID_REQUEST),
        ("1", "listener.name.plaintext.max.connections", SET, "-3", ErrorCode.INVALID_REQUEST),
        ("1", "num.partitions", SET, "3", ErrorCode.INVALID_REQUEST),
        ("2", "log.retention.ms", SET, "3", ErrorCode.INVALID_REQUEST),
        ("1", "log.retention.ms", SET, "often", ErrorCode.INVALID_REQUEST),
        ("1", "no.such.setting", SET, "3", ErrorCode.INVALID_REQUEST),
        ("1", "log.dirs", SET, "/elsewhere", ErrorCode.INVALID_REQUEST),
        ("", "sasl.kerberos.min.time.before.relogin", SET, "58000", ErrorCode.INVALID_REQUEST),
        ("1", "log.retention.ms", APPEND, "3", ErrorCode.INVALID_CONFIG),
        ("1", "max.connections.per.ip.overrides", SET, "nonsense", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(
    wire: Wire, resource: str, name: str, operation: int, value: str, code: ErrorCode
) -> None:
    assert change(wire, resource, (name, operation, value), kind=BROKER) == code
    assert row(wire, "log.retention.ms") == ("1000000", STATIC, False)
    assert ask(wire, BROKER, "").configs == []


def test_what_means_nothing_here_is_kept_and_shown_as_if_it_did(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    threads, relogin = "num.io.threads", "sasl.kerberos.min.time.before.relogin"
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        own = (threads, SET, "9"), (relogin, SET, "58000")
        assert change(wire, "1", *own, kind=BROKER) == ErrorCode.NONE
        assert change(wire, "", (threads, SET, "10"), kind=BROKER) == ErrorCode.NONE
    assert f"settings of Apache Kafka that mean nothing here: {threads}, {relogin}" in caplog.messages
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert synonyms(wire, threads) == [("9", OWN), ("10", ALL)]
        assert row(wire, relogin) == ("58000", OWN, False)
        assert [(one.name, one.value) for one in ask(wire, BROKER, "").configs] == [(threads, "10")]
        assert replace(wire, "1", kind=BROKER) == ErrorCode.NONE
        assert row(wire, threads) == ("10", ALL, False)
        assert relogin not in {one.name for one in ask(wire, BROKER, "1").configs}


def test_validate_only_changes_nothing(wire: Wire) -> None:
    wanted = ("log.retention.ms", SET, "5")
    assert change(wire, "1", wanted, kind=BROKER, validate_only=True) == ErrorCode.NONE
    assert row(wire, "log.retention.ms")[0] == "1000000"


def test_what_was_set_is_in_force_after_a_restart(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        change(wire, "", ("log.cleanup.policy", SET, "compact"), kind=BROKER)
        change(wire, "1", ("log.segment.bytes", SET, "1048576"), kind=BROKER)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "t")
        assert row(wire, "cleanup.policy", "t", TOPIC) == ("compact", ALL, False)
        assert row(wire, "segment.bytes", "t", TOPIC) == ("1048576", OWN, False)


class SlowFile:
    """A document whose saves take until ``end`` is called, and fail if that says so."""

    def __init__(self) -> None:
        self.saved: list[Any] = []
        self.pending: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def save(self, content: Any) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pending.put_nowait(done)
        await done
        self.saved.append({part: dict(values) for part, values in content.items()})

    async def end(self, error: OSError | None = None) -> None:
        done = await self.pending.get()
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


def live_settings(file: SlowFile) -> LiveSettings:
    return LiveSettings(BrokerSettings(), cast("Document", file))


async def test_changes_at_once_build_on_each_other() -> None:
    file = SlowFile()
    live = live_settings(file)

    def sets(name: str) -> asyncio.Task[None]:
        def changed(before: Values) -> dict[str, str]:
            return {key.replace("_", "."): str(value) for key, value in before.items()} | {name: "7"}

        return asyncio.create_task(live.change(changed, for_all=True, validate_only=False))

    tasks = [sets("log.cleaner.backoff.ms"), sets("log.retention.ms")]
    for _ in tasks:
        await file.end()
    await asyncio.gather(*tasks)
    assert live.of_all.keys() == {"log_cleaner_backoff_ms", "log_retention_ms"}
    assert file.saved[-1]["all"] == live.of_all


async def test_a_change_that_is_not_saved_takes_back_itself_and_nothing_else() -> None:
    file = SlowFile()
    live = live_settings(file)
    first = asyncio.create_task(live.set(for_all=True, values={"log_retention_ms": 7}))
    await asyncio.sleep(0)
    live.of_broker = {"log_cleaner_backoff_ms": 8}
    await file.end(OSError("full"))
    with pytest.raises(OSError, match="full"):
        await first
    assert (live.of_all, live.of_broker) == ({}, {"log_cleaner_backoff_ms": 8})
    second = asyncio.create_task(live.set(for_all=True, values={"log_retention_ms": 7}))
    await asyncio.sleep(0)
    live.of_all = {"log_retention_ms": 9}
    await file.end(OSError("full"))
    with pytest.raises(OSError, match="full"):
        await second
    assert live.of_all == {"log_retention_ms": 9}
