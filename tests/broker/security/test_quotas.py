"""Connection limits: of all, of a listener, of an address, and how fast connections may come."""

from __future__ import annotations

import math
import socket
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker import SettingsError
from kohort.broker.security._listeners import listeners_of
from kohort.broker.security._quotas import ConnectionQuotas, ConnectionSlot
from kohort.broker.settings import broker_settings
from kohort.protocol import ApiKey
from kohort.testing import running_broker
from tests.broker.security.logins import asks
from tests.broker.wire import Wire, part
from tests.waiting import wait_until

TWO = {"listeners": "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2", "control.plane.listener.name": "SSL"}


class Scene:
    """Quotas on a clock of the test's own; ``data`` and ``control`` are listeners."""

    def __init__(self, **given: Any) -> None:
        self.now = 0.0
        settings = broker_settings({**TWO, **given})
        self.data, self.control = listeners_of(settings)
        self.quotas = ConnectionQuotas(settings, (self.data, self.control), lambda: self.now)


def test_one_address_may_have_half_of_10000_connections() -> None:
    scene = Scene()
    assert all(scene.quotas.admit(scene.data, "10.0.0.1") for _ in range(5_000))
    assert scene.quotas.admit(scene.data, "10.0.0.1") is None
    assert all(scene.quotas.admit(scene.data, "10.0.0.2") for _ in range(5_000))
    assert scene.quotas.total == 10_000
    assert scene.quotas.wait_s(scene.data) == math.inf
    assert scene.quotas.refused == {"max.connections.per.ip": 1}


def test_at_the_limit_one_waits_until_a_place_is_free() -> None:
    scene = Scene(max_connections=2)
    told: list[bool] = []
    scene.quotas.on_free.append(lambda: told.append(True))
    first, _ = (scene.quotas.admit(scene.data, "a") for _ in range(2))
    assert first is not None
    assert scene.quotas.wait_s(scene.data) == math.inf
    first.leave()
    first.leave()
    assert told == [True]
    assert scene.quotas.wait_s(scene.data) == 0


def test_limits_may_be_raised_while_somebody_waits() -> None:
    scene = Scene(max_connections=1)
    told: list[bool] = []
    scene.quotas.on_free.append(lambda: told.append(True))
    assert scene.quotas.admit(scene.data, "a")
    assert scene.quotas.wait_s(scene.data) == math.inf
    scene.quotas.reconfigure(broker_settings({**TWO, "max.connections": 2}))
    assert told == [True]
    assert scene.quotas.wait_s(scene.data) == 0


def test_the_control_listener_waits_for_nobody_but_itself() -> None:
    scene = Scene(max_connections=1, **{"listener.name.ssl.max.connections": "2"})
    assert scene.quotas.admit(scene.data, "a")
    assert scene.quotas.wait_s(scene.data) == math.inf
    for _ in range(2):
        assert scene.quotas.wait_s(scene.control) == 0
        assert scene.quotas.admit(scene.control, "a")
    assert scene.quotas.wait_s(scene.control) == math.inf


def test_the_listener_of_brokers_is_never_held_up_but_counts() -> None:
    scene = Scene(max_connections=2, control_plane_listener_name="", inter_broker_listener_name="SSL")
    told: list[int] = []
    scene.quotas.on_excess.append(lambda: told.append(scene.quotas.excess))
    brokers = [scene.quotas.admit(scene.control, "b")]
    one = scene.quotas.admit(scene.data, "a")
    assert one is not None
    assert scene.quotas.wait_s(scene.data) == math.inf, "brokers' connections count"
    for _ in range(2):
        assert scene.quotas.wait_s(scene.control) == 0
        brokers.append(scene.quotas.admit(scene.control, "b"))
    assert None not in brokers
    assert told == [1, 2]
    one.leave()
    assert scene.quotas.excess == 1


def test_a_single_listener_is_not_that_of_brokers_alone() -> None:
    settings = broker_settings(
        {
            "listeners": "IN://127.0.0.1:1",
            "inter.broker.listener.name": "IN",
            "listener.security.protocol.map": "IN:PLAINTEXT",
            "max.connections": "1",
        }
    )
    (listener,) = listeners_of(settings)
    quotas = ConnectionQuotas(settings, [listener], lambda: 0.0)
    assert quotas.admit(listener, "a")
    assert quotas.wait_s(listener) == math.inf


def test_or_is_closed_if_that_is_wished() -> None:
    scene = Scene(max_connections=1, kohort_connections_over_limit="close")
    assert scene.quotas.admit(scene.data, "a")
    assert scene.quotas.wait_s(scene.data) == 0
    assert scene.quotas.admit(scene.data, "b") is None
    assert scene.quotas.refused == {"max.connections": 1}


def test_an_address_may_have_a_number_of_its_own() -> None:
    scene = Scene(max_connections_per_ip=1, max_connections_per_ip_overrides="127.0.0.1:2, [::1]:0")
    assert [bool(scene.quotas.admit(scene.data, "127.0.0.1")) for _ in range(3)] == [True, True, False]
    assert [bool(scene.quotas.admit(scene.data, "10.0.0.1")) for _ in range(2)] == [True, False]
    assert scene.quotas.admit(scene.data, "::1") is None


@pytest.mark.parametrize("text", ["127.0.0.1", ":3", "127.0.0.1:x", "no-such-host.invalid:3"])
def test_addresses_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"max\.connections\.per\.ip\.overrides"):
        Scene(max_connections_per_ip_overrides=text)


def test_connections_come_no_faster_than_the_rate() -> None:
    scene = Scene(max_connection_creation_rate=10)
    come = 0
    for tick in range(3_000):
        scene.now = tick / 1_000
        while scene.quotas.wait_s(scene.data) == 0:
            assert scene.quotas.admit(scene.data, f"10.0.{come // 250}.{come % 250}")
            come += 1
    assert come == pytest.approx(10 + 30, abs=1)  # a second's worth at once, then the rate
    assert 0 < scene.quotas.wait_s(scene.data) <= 0.1
    assert scene.quotas.wait_s(scene.control) == 0


def test_who_comes_too_fast_waits_until_the_next_one_is_due() -> None:
    scene = Scene(max_connection_creation_rate=2)

    def comes() -> float:
        assert scene.quotas.wait_s(scene.data) == 0
        assert scene.quotas.admit(scene.data, "a")
        return scene.quotas.wait_s(scene.data)

    assert [comes(), comes()] == [0.0, 0.5]
    scene.now = 0.25
    assert scene.quotas.wait_s(scene.data) == 0.25
    scene.now = 0.5
    assert comes() == 0.5
    scene.now = 100.5
    assert [comes(), comes()] == [0.0, 0.5], "a long rest is worth no more than a second"
    scene.now = 101.25
    assert scene.quotas.wait_s(scene.data) == 0, "one and a half may come"


def test_a_listener_may_have_a_rate_of_its_own() -> None:
    scene = Scene(**{"listener.name.ssl.max.connection.creation.rate": "1"})
    assert scene.quotas.admit(scene.control, "a")
    assert scene.quotas.wait_s(scene.control) == pytest.approx(1)
    assert scene.quotas.wait_s(scene.data) == 0


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 20)), max_size=60))
def test_counts_are_those_of_the_seats_that_are_taken(steps: list[tuple[bool, str, int]]) -> None:
    scene = Scene(max_connections=5, max_connections_per_ip=3, kohort_connections_over_limit="close")
    seats: list[ConnectionSlot] = []
    for comes, address, which in steps:
        if comes:
            seat = scene.quotas.admit(scene.data, address)
            full = len(seats) >= 5 or sum(each.address == address for each in seats) >= 3
            assert (seat is None) == full
            if seat is not None:
                seats.append(seat)
        elif seats:
            seats.pop(which % len(seats)).leave()
        assert scene.quotas.total == scene.quotas.by_listener()["PLAINTEXT"] == len(seats)


# on sockets


def test_a_broker_that_is_full_serves_who_waits_once_somebody_leaves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running_broker(max_connections=2) as broker:

        def is_full() -> bool:
            return broker._on_loop(broker._broker.metrics).is_full

        one, two = Wire(broker.bootstrap), Wire(broker.bootstrap)
        assert asks(one)
        assert asks(two)
        assert not is_full()
        with Wire(broker.bootstrap, timeout_s=0.3) as three:
            with pytest.raises(TimeoutError):
                asks(three)
            wait_until(is_full)
            one.close()
            three.socket.settimeout(10)
            assert three.frame()
        assert not is_full()
        two.close()
    lines = [each.getMessage() for each in caplog.records if "PLAINTEXT://" in each.getMessage()]
    assert len(lines) == 2
    assert "new connections wait until others end: max.connections=2 is reached" in lines[0]
    assert "connections are accepted again, after 0 s" in lines[1]


def test_a_full_listener_names_the_limit_that_is_reached() -> None:
    scene = Scene(max_connections=2, **{"listener.name.plaintext.max.connections": "1"})
    scene.quotas.admit(scene.data, "a")
    assert scene.quotas.reached_limit(scene.data) == "listener.name.plaintext.max.connections=1"
    scene = Scene(max_connections=1)
    scene.quotas.admit(scene.data, "a")
    assert scene.quotas.reached_limit(scene.data) == "max.connections=1"


def test_a_greedy_address_is_closed_and_another_served() -> None:
    with running_broker(max_connections_per_ip=3) as broker:
        greedy = [Wire(broker.bootstrap) for _ in range(50)]
        served = [wire for wire in greedy if not _closed(wire)]
        assert len(served) == 3
        with socket.create_connection(
            ("127.0.0.1", broker.port), 10, source_address=("127.0.0.2", 0)
        ) as link:
            other = Wire.__new__(Wire)
            other.socket, other._next = link, 0
            assert asks(other)
        for wire in greedy:
            wire.close()


def _closed(wire: Wire) -> bool:
    try:
        return not asks(wire)
    except (ConnectionError, EOFError):
        return True


def test_a_broker_that_is_full_closes_who_is_idle_the_longest_for_one_of_the_brokers() -> None:
    given: dict[str, Any] = {
        "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "max.connections": "3",
    }
    with running_broker(**given) as broker:
        clients = [Wire(broker.endpoints["PLAINTEXT"]) for _ in range(3)]
        for wire in (*clients, clients[0], clients[2]):
            # the loop's clock goes in milliseconds
            time.sleep(0.005)
            assert asks(wire)
        with Wire(broker.endpoints["BROKERS"]) as first, Wire(broker.endpoints["BROKERS"]) as second:
            assert asks(first)
            assert clients[1].closed_by_broker()
            assert asks(second)
            assert clients[0].closed_by_broker()
            assert asks(clients[2])
            with Wire(broker.endpoints["PLAINTEXT"], timeout_s=0.3) as late, pytest.raises(TimeoutError):
                asks(late)
        for wire in clients:
            wire.close()


def test_room_is_looked_for_again_where_nobody_could_be_closed_at_first() -> None:
    """All others may have been in the middle of their handshakes."""
    given: dict[str, Any] = {
        "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "max.connections": "1",
        "kohort.request.complete.timeout.ms": "200",
    }
    with running_broker(**given) as broker:
        running: Any = broker._broker._require_running()
        running.server.quotas.on_excess.clear()
        with Wire(broker.endpoints["PLAINTEXT"]) as client, Wire(broker.endpoints["BROKERS"]) as other:
            assert asks(other)
            assert client.closed_by_broker()


def test_fewer_connections_may_be_wanted_while_there_are_more() -> None:
    """As in Apache Kafka those that are idle longest are closed."""
    with running_broker(max_connections=4) as broker:
        clients = [Wire(broker.bootstrap) for _ in range(4)]
        assert all(asks(wire) for wire in clients)
        time.sleep(0.005)
        row = part(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            "AlterConfigsResource",
            "AlterableConfig",
            name="max.connections",
            config_operation=0,
            value="1",
        )
        resource = part(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            "AlterConfigsResource",
            resource_type=4,
            resource_name="1",
            configs=[row],
        )
        key = ApiKey.INCREMENTAL_ALTER_CONFIGS
        answer = clients[2].call(key, 1, resources=[resource], validate_only=False)
        assert not answer.responses[0].error_code
        assert [wire.closed_by_broker() for wire in (clients[0], clients[1], clients[3])] == [True] * 3
        assert asks(clients[2])
        for wire in clients:
            wire.close()


def test_the_control_listener_serves_while_the_others_are_saturated() -> None:
    """Connections at their limit, bytes at theirs, and every connection with requests under way."""
    given: dict[str, Any] = {
        "listeners": "PLAINTEXT://127.0.0.1:0,ADMIN://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ADMIN:PLAINTEXT",
        "control.plane.listener.name": "ADMIN",
        "max.connections": "10",
        "queued.max.request.bytes": "1000",
    }
    with running_broker(**given) as broker:
        crowd = [Wire(broker.endpoints["PLAINTEXT"]) for _ in range(10)]
        assert all(asks(wire) for wire in crowd)
        for wire in crowd:
            wire.socket.sendall((90_000).to_bytes(4, "big") + bytes(50_000))
        with Wire(broker.endpoints["PLAINTEXT"], timeout_s=0.3) as late, pytest.raises(TimeoutError):
            asks(late)
        with Wire(broker.endpoints["ADMIN"]) as admin:
            told = admin.call(ApiKey.METADATA, 1, topics=[]).brokers[0]
            assert f"{told.host}:{told.port}" == broker.endpoints["ADMIN"]
            # more bytes than may wait, at once
            number = admin.send_together(ApiKey.METADATA, 1, [{"topics": []}] * 200)
            for each in range(number - 199, number + 1):
                assert admin.receive(ApiKey.METADATA, 1, each).brokers
        for wire in crowd:
            wire.close()
