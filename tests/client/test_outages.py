"""What a client tries in vain is a warning, soon and again, whatever waits for it.

Covers: client/outages.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kohort.client import AuthenticationError, BrokerConnectionError, Cluster, outages
from kohort.client.metadata import Address
from kohort.client.outages import Outages
from kohort.consumer import AsyncGroupConsumer, GroupConsumer, Record
from kohort.producer import BlockingProducer, Producer
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.service import ConsumerService
from tests.client.fake_broker import FakeBroker
from tests.messages import response_of
from tests.service.fakes import until

NOWHERE = "127.0.0.1:1"
REFUSED = f"has had no success for 0 s: {NOWHERE}: cannot connect: Connection refused"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "FIRST_S", 0.02)
    monkeypatch.setattr(outages, "AGAIN_S", 0.02)


def _service(bootstrap: str) -> Any:
    service = ConsumerService(bootstrap=bootstrap, group="billing", client_id="me", health_port=None)

    @service.handler("orders")
    async def bill(_: Record) -> None: ...

    return service.serve()


@pytest.mark.parametrize(
    "start",
    [
        lambda bootstrap: AsyncGroupConsumer(
            "orders", bootstrap=bootstrap, group="billing", client_id="me"
        ).start(),
        lambda bootstrap: Producer(bootstrap=bootstrap, client_id="me").start(),
        _service,
        lambda bootstrap: Cluster(bootstrap, "me").connect(),
    ],
    ids=["consumer", "producer", "service", "cluster"],
)
async def test_a_wrong_address_is_a_warning_soon_and_again(
    start: Callable[[str], Awaitable[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    starting = asyncio.ensure_future(start(NOWHERE))
    await until(lambda: caplog.text.count("client me has had no success") == 2)
    assert REFUSED in caplog.text
    starting.cancel()
    await asyncio.wait([starting])


@pytest.mark.parametrize(
    "start",
    [
        lambda: GroupConsumer(
            "orders", bootstrap=NOWHERE, group="billing", default_api_timeout_ms=300
        ).start(),
        lambda: BlockingProducer(bootstrap=NOWHERE, max_block_ms=300).__enter__(),
    ],
    ids=["consumer", "producer"],
)
def test_clients_for_threads_tell_it_too(start: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises((BrokerConnectionError, KafkaError)):
        start()
    assert REFUSED in caplog.text


async def test_a_name_that_cannot_be_resolved_is_told(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster("no.such.host.invalid:9092")
    connecting = asyncio.create_task(cluster.connect())
    await until(lambda: "no.such.host.invalid:9092: " in caplog.text)
    connecting.cancel()
    await asyncio.wait([connecting])
    await cluster.close()


async def test_an_address_that_takes_the_connection_and_is_silent_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held: list[asyncio.StreamWriter] = []  # one that nobody holds is closed, from Python 3.13 on

    def hold(_: object, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    async with asyncio.timeout(30), await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        cluster = Cluster(f"127.0.0.1:{port}")
        connecting = asyncio.create_task(cluster.connect())
        await until(lambda: f"127.0.0.1:{port}: no answer yet" in caplog.text)
        connecting.cancel()
        await asyncio.wait([connecting])
        await cluster.close()
        for writer in held:
            writer.close()


async def test_that_it_has_success_again_is_told_once_and_only_if_the_outage_was(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, nobody, somebody = Outages("me"), Address("127.0.0.1", 1), Address("127.0.0.1", 2)
    assert tried.lasts_s() == 0

    def fail(address: Address) -> None:
        with pytest.raises(BrokerConnectionError), tried.connecting(address):
            raise BrokerConnectionError(str(address), "cannot connect")

    fail(nobody)
    with tried.connecting(nobody):
        assert tried.lasts_s() >= 0
    fail(nobody)
    fail(somebody)
    assert "success" not in caplog.text
    await until(lambda: "has had no success" in caplog.text)
    assert tried.lasts_s() > 0
    with tried.connecting(somebody):
        pass
    assert "success again" not in caplog.text, "one of the two is out of reach still"
    with tried.connecting(nobody):
        pass
    assert caplog.text.count("client me has success again, after 0 s") == 1
    assert (tried.lasts_s(), repr(tried)) == (0, "Outages(me, 0 now)")
    fail(nobody)
    monkeypatch.setattr(outages, "_IDLE_S", 0.0)
    assert tried.lasts_s() == 0, "nobody tries any more"
    tried.close()


async def test_a_call_that_brokers_keep_refusing_is_told_and_ends_with_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeBroker() as broker, Cluster(broker.address, "me") as cluster:
        coordinator = response_of(ApiKey.FIND_COORDINATOR)
        broker.answers[ApiKey.FIND_COORDINATOR] = lambda _: coordinator(
            coordinators=[
                coordinator.Coordinator(
                    key="billing", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message=None
                )
            ]
        )
        asking = asyncio.create_task(cluster.coordinator("billing"))
        await until(lambda: "client me has had no success for 0 s: COORDINATOR_NOT_AVAILABLE" in caplog.text)
        asking.cancel()
        await asyncio.wait([asking])
        assert repr(cluster._outages) == "Outages(me, 0 now)"


async def test_what_nobody_tries_any_more_is_told_no_more(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outages, "_IDLE_S", 0.0)
    tried = Outages("me")
    with pytest.raises(BrokerConnectionError), tried.connecting(Address("127.0.0.1", 1)):
        raise BrokerConnectionError(NOWHERE, "cannot connect")
    await until(lambda: repr(tried) == "Outages(me, 0 now)")
    assert caplog.text == ""


async def test_a_refusal_for_good_is_the_callers_error_and_no_warning() -> None:
    tried = Outages("me")
    with pytest.raises(AuthenticationError), tried.connecting(Address("127.0.0.1", 1)):
        raise AuthenticationError(NOWHERE, "wrong password")
    assert repr(tried) == "Outages(me, 0 now)"
