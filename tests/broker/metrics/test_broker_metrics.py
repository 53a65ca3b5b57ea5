"""What a broker says of itself, as data and as Prometheus reads it.

Covers: broker/metrics/_exposer.py, broker/metrics/_families.py, broker/metrics/_requests.py.
Covers: broker/metrics/_snapshot.py, broker/metrics/_traffic.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kohort.broker import Broker
from kohort.broker.clients.client_state import Peer
from kohort.broker.metrics import ShareCounters, SharePartitionCounters, TallyFigures, _exposer
from kohort.broker.metrics._families import FAMILIES
from kohort.broker.metrics._shares import MAX_GROUPS, OTHER_GROUPS
from kohort.broker.metrics._traffic import MAX_CLIENTS, OTHERS, Clients
from kohort.protocol import ApiKey, encode_request
from tests.broker.apis.share_members import ShareMember, acquired, initialize
from tests.broker.apis.test_client_quotas import alter
from tests.broker.network.test_requests_without_task import COMMIT, HEARTBEAT, heartbeat
from tests.broker.test_throttling import WIRE, fetched, produced
from tests.broker.wire import Wire, batch, commit_fields, create_topic, fetch_fields, produce
from tests.messages import request_of


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(metrics_port=0) as running:
        yield running


async def asking(broker: Broker, work: Any) -> None:
    """Run ``work`` with a connection, beside the event loop."""

    def run() -> None:
        with Wire(broker.bootstrap) as wire:
            work(wire)

    await asyncio.to_thread(run)


async def scraped(broker: Broker) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Values by name and labels, as Prometheus reads them."""

    def read() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics", timeout=30) as answer:
            return str(answer.read(), "utf-8")

    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(await asyncio.to_thread(read)):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


async def test_what_clients_do_is_counted_by_api_client_and_topic(broker: Broker) -> None:
    def work(wire: Wire) -> None:
        create_topic(wire, "t")
        for _ in range(3):
            wire.call(ApiKey.PRODUCE, 9, **produced(1_000))
        wire.call(ApiKey.FETCH, 11, **fetched())
        wire.call(ApiKey.FETCH, 11, **fetched(offset=99))
        for number in range(40):
            wire.call(HEARTBEAT, 3, **heartbeat("g"), group_instance_id=None)
            wire.call(COMMIT, 8, **commit_fields("g", "t", number))

    await asking(broker, work)
    now = broker.metrics()
    assert now.apis["Produce"].requests == 3
    assert now.apis["Heartbeat"].requests == 40
    assert now.apis["Heartbeat"].errors == {"UNKNOWN_MEMBER_ID": 40}
    assert now.apis["Fetch"].errors == {"OFFSET_OUT_OF_RANGE": 1}
    assert now.apis["OffsetCommit"].errors == {}
    assert now.groups.offsets_committed == 40
    assert now.groups.by_state == {"Empty": 1}
    assert {each: count for each, count in now.groups.by_type.items() if count} == {("classic", "Empty"): 1}
    assert (now.groups.refusals, now.groups.assignor_failures) == (40, 0)
    topic = now.topics["t"]
    assert (topic.messages_in, topic.produce_requests, topic.fetch_requests) == (3, 3, 1)
    assert topic.bytes_in == topic.bytes_out > 3_000
    (client,) = (one for one in now.clients if one.client_id == "wire")
    assert client.user == "ANONYMOUS"
    assert client.requests >= 86
    assert client.produced_bytes > 3_000
    for api in ("Produce", "Fetch"):
        times = now.apis[api].times
        assert times["total"].count == now.apis[api].requests
        assert times["total"].max_ms >= times["local"].max_ms > 0
    # of heartbeats the first of 64 is timed
    assert now.apis["Heartbeat"].times["local"].count == 1
    assert now.apis["OffsetCommit"].times["total"].count == 1


async def test_prometheus_reads_the_same(broker: Broker) -> None:
    def work(wire: Wire) -> None:
        create_topic(wire, "t")
        alter(wire, (WIRE, {"producer_byte_rate": 1_000_000.0}))
        wire.call(ApiKey.PRODUCE, 9, **produced(500))

    await asking(broker, work)
    found = await scraped(broker)
    assert found["kafka_server_brokertopicmetrics_messagesin_total"][(("topic", "t"),)] == 1
    assert found["kafka_network_requestmetrics_requests_total"][(("request", "Produce"),)] == 1
    assert found["kafka_network_requestmetrics_totaltimems_count"][(("request", "Produce"),)] == 1
    assert found["kohort_groups"][(("state", "Assigning"), ("type", "consumer"))] == 0
    produce_p99 = (("quantile", "0.99"), ("request", "Produce"))
    assert found["kafka_network_requestmetrics_totaltimems"][produce_p99] > 0
    quota = (("client_id", "wire"), ("quota", "producer_byte_rate"), ("user", ""))
    assert found["kohort_quota_limit"][quota] == 1_000_000
    assert found["kafka_server_produce_byte_rate"][(("client_id", "wire"), ("user", ""))] > 0
    assert found["kafka_log_log_size"][(("partition", "0"), ("topic", "t"))] > 500
    assert 0 < found["kohort_log_open_files"][()] <= found["kohort_log_open_files_limit"][()]
    assert set(found) >= {
        "kafka_server_socket_server_metrics_connection_count",
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "process_cpu_seconds_total",
    }


async def test_names_of_a_clients_making_break_no_line(broker: Broker) -> None:
    odd = 'a"b\nc\\d'

    def work(wire: Wire) -> None:
        body = request_of(HEARTBEAT)(version=3, **heartbeat("g"), group_instance_id=None)
        wire.socket.sendall(encode_request(3, 1, odd, body))
        wire.receive(HEARTBEAT, 3, 1)

    await asking(broker, work)
    found = await scraped(broker)
    assert odd in {dict(labels)["client_id"] for labels in found["kohort_client_requests_total"]}


@pytest.mark.parametrize("path", ["/", "/metrics/x"])
async def test_other_paths_are_not_there(broker: Broker, path: str) -> None:
    def read() -> None:
        urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}{path}", timeout=30)

    with pytest.raises(urllib.error.HTTPError) as caught:
        await asyncio.to_thread(read)
    assert caught.value.code == 404


async def test_those_who_look_at_metrics_are_not_too_many(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_exposer, "MAX_CONNECTIONS", 3)
    assert broker.metrics_port is not None
    silent = [await asyncio.open_connection("127.0.0.1", broker.metrics_port) for _ in range(3)]
    async with asyncio.timeout(10):
        more, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_port)
        assert await more.read() == b""
        writer.close()
        for _, writer in silent:
            writer.close()
            await writer.wait_closed()
        while not await scraped_or_refused(broker):
            pass  # those that closed are counted until that is known


async def scraped_or_refused(broker: Broker) -> bool:
    try:
        return bool(await scraped(broker))
    except (OSError, http.client.HTTPException):
        return False


async def test_who_does_not_take_the_metrics_is_cut_off(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_exposer, "ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.setattr(_exposer, "exposition", lambda _snapshot: (bytes(64 << 20), "text/plain"))
    assert broker.metrics_port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_port, limit=1_000)
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    await asyncio.sleep(0.5)
    size = 0
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                size += len(data)
    assert size < 64 << 20
    writer.close()


async def test_without_a_port_nothing_is_served() -> None:
    async with Broker() as quiet:
        assert quiet.metrics_port is None
        assert quiet.metrics().node_id == 1


def test_clients_beyond_the_limit_are_one_line() -> None:
    clients = Clients()
    for number in range(MAX_CLIENTS + 50):
        peer = Peer("127.0.0.1", ("127.0.0.1", 1))
        peer.context(f"c{number}")
        peer.traffic.requests = 1
        clients.add_closed(peer)
    figures = clients.figures([])
    assert len(figures) == MAX_CLIENTS + 1
    assert [one.requests for one in figures if one.client_id == OTHERS] == [50]


def test_long_client_ids_are_cut() -> None:
    clients = Clients()
    peer = Peer("127.0.0.1", ("127.0.0.1", 1))
    peer.context("c" * 30_000)
    peer.traffic.requests = 1
    clients.add_closed(peer)
    assert [one.client_id for one in clients.figures([peer])] == ["c" * 249]


def test_every_family_has_a_name_of_its_own_and_says_what_it_is() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))
    assert all(family.help and (family.kafka or family.name.startswith("kohort_")) for family in FAMILIES)


async def test_the_share_coordinators_metrics_have_apache_kafkas_names(broker: Broker) -> None:
    found = await scraped(broker)
    assert found["kafka_server_share_coordinator_metrics_write_total"] == {(): 0}
    assert found["kafka_server_share_coordinator_metrics_write_latency_avg"] == {(): 0}
    assert found["kafka_server_share_coordinator_metrics_write_rate"] == {(): 0}
    assert found["kafka_server_share_coordinator_metrics_write_latency_max"] == {(): 0}
    assert found["kafka_server_delayedsharefetchmetrics_expires_total"] == {(): 0}
    assert found["kafka_server_group_coordinator_metrics_share_group_rebalance_count"] == {(): 0}


async def test_what_share_partitions_give_has_apache_kafkas_names(broker: Broker) -> None:
    def work(wire: Wire) -> None:
        topic_id = create_topic(wire, "queue", 2).topic_id
        initialize(wire, "g", topic_id, 0, 1, start=0)
        assert produce(wire, "queue", batch(3)).error_code == 0
        members.append(ShareMember(broker.bootstrap, "g", "m"))
        assert members[0].fetch_all(topic_id, 0, 1).error_code == 0
        assert acquired(members[0].fetch(max_wait_ms=20)) == []

    members: list[ShareMember] = []
    await asking(broker, work)
    # without a session a share partition is not kept in memory
    found = await scraped(broker)
    members[0].wire.close()
    in_group = (("group", "g"),)
    assert found["kafka_server_sharegroupmetrics_requesttopicpartitionsfetchratio_count"] == {in_group: 2}
    assert found["kafka_server_sharegroupmetrics_requesttopicpartitionsfetchratio_sum"] == {in_group: 50}
    assert found["kafka_server_delayedsharefetchmetrics_expires_total"] == {(): 1}
    place = (*in_group, ("partition", "0"), ("topic", "queue"))
    assert found["kafka_server_sharepartitionmetrics_inflightbatchmessagecount_sum"][place] == 3
    assert found["kafka_server_sharepartitionmetrics_inflightbatchmessagecount_count"][place] == 1
    assert found["kafka_server_sharepartitionmetrics_fetchlocktimems_count"][place] == 1
    assert 0 < found["kafka_server_sharepartitionmetrics_fetchlockratio_sum"][place] <= 100


def test_fetches_of_groups_beyond_a_thousand_are_counted_together() -> None:
    counters = ShareCounters()
    for number in range(MAX_GROUPS + 5):
        counters.count_fetch(f"group-{number}", 1, 4)
    found = counters.fetch_percents()
    assert len(found) == MAX_GROUPS + 1
    assert found["group-0"] == TallyFigures(1, 25.0)
    assert found[OTHER_GROUPS] == TallyFigures(5, 125.0)


def test_a_share_partitions_lock_is_counted_in_ms_and_in_percent_of_the_time() -> None:
    counters = SharePartitionCounters(10.0)
    counters.count_lock(11.0, 11.5)
    counters.count_lock(11.5, 12.0)
    found = counters.figures("g", "t", 0, ranges=1, records=2)
    assert found.lock_times_ms == TallyFigures(2, 1_000.0)
    assert found.lock_percents.count == 2
    assert found.lock_percents.total == pytest.approx(100 / 3 + 100)


async def test_fetch_sessions_and_producer_ids_are_counted(broker: Broker) -> None:
    def work(wire: Wire) -> None:
        create_topic(wire, "sessions", 3)
        for producer_id in (7, 8):
            records = batch(producer_id=producer_id, producer_epoch=0, base_sequence=0)
            assert produce(wire, "sessions", records).error_code == 0
        fields = {**fetch_fields("sessions", 0, 0, 0), "session_epoch": 0}
        assert wire.call(ApiKey.FETCH, 12, **fields).session_id > 0

    await asking(broker, work)
    found = await scraped(broker)
    assert found["kafka_server_fetchsessioncache_numincrementalfetchsessions"] == {(): 1}
    assert found["kafka_server_fetchsessioncache_numincrementalfetchpartitionscached"] == {(): 3}
    assert found["kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total"] == {(): 0}
    assert found["kafka_server_replicamanager_produceridcount"] == {(): 2}
