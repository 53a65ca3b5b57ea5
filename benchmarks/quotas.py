"""Clients at many times their quota: what gets through, and whether others notice.

``python -m benchmarks.quotas --bootstrap HOST:PORT [--bootstrap HOST:PORT ...] [--seconds 30]``

For each broker in turn a producer, a consumer and a client that only sends heartbeats ask for as much as they
can get, each with a quota of its own, while another client's requests are timed. ``--metrics HOST:PORT`` is
the metrics port of the first broker: from it comes the time that the heartbeats took.
"""

from __future__ import annotations

import argparse
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from kohort.protocol import ApiKey, build_batch, decode_response, encode_request, messages_of, request_type

RATE = 1_000_000.0
PERCENT = 5.0
_BATCH_BYTES = 20_000
_AT_ONCE = 64


class Client:
    """One socket with a client id."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=120)
        self._client_id = client_id

    def send(self, key: ApiKey, version: int, fields: dict[str, Any], times: int = 1) -> None:
        body = request_type(key)(**fields)
        self._socket.sendall(encode_request(version, 1, self._client_id, body) * times)

    def receive(self, key: ApiKey, version: int) -> Any:
        size = struct.unpack(">i", self._exactly(4))[0]
        return decode_response(key, version, self._exactly(size))[1]

    def call(self, key: ApiKey, version: int, **fields: Any) -> Any:
        self.send(key, version, fields)
        return self.receive(key, version)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError("the broker closed the connection")
            data += more
        return data


def part(key: ApiKey, name: str, /, **fields: Any) -> Any:
    """A struct inside a request."""
    module = messages_of(key)
    return (getattr(module, f"Request{name}", None) or getattr(module, name))(**fields)


def set_quota(admin: Client, client_id: str, key: str, value: float | None) -> None:
    api = ApiKey.ALTER_CLIENT_QUOTAS
    entity = part(api, "EntityData", entity_type="client-id", entity_name=client_id)
    op = part(api, "OpData", key=key, value=value or 0.0, remove=value is None)
    entry = part(api, "EntryData", entity=[entity], ops=[op])
    admin.call(api, 1, entries=[entry], validate_only=False)


def create(admin: Client, topic: str) -> None:
    api = ApiKey.CREATE_TOPICS
    made = part(
        api,
        "CreatableTopic",
        name=topic,
        num_partitions=1,
        replication_factor=1,
        assignments=[],
        configs=[],
    )
    admin.call(api, 5, topics=[made], timeout_ms=10_000, validate_only=False)


def produced(topic: str) -> dict[str, Any]:
    records = bytes(build_batch([(None, b"x" * _BATCH_BYTES, ())], timestamp_ms=int(time.time() * 1000)))
    data = part(ApiKey.PRODUCE, "PartitionProduceData", index=0, records=records)
    of_topic = part(ApiKey.PRODUCE, "TopicProduceData", name=topic, partition_data=[data])
    return {"transactional_id": None, "acks": 1, "timeout_ms": 30_000, "topic_data": [of_topic]}


def fetched(topic: str) -> dict[str, Any]:
    wanted = part(
        ApiKey.FETCH,
        "FetchPartition",
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=0,
        log_start_offset=-1,
        partition_max_bytes=5 * _BATCH_BYTES,
    )
    return {
        "replica_id": -1,
        "max_wait_ms": 100,
        "min_bytes": 1,
        "max_bytes": 5 * _BATCH_BYTES,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [part(ApiKey.FETCH, "FetchTopic", topic=topic, partitions=[wanted])],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


BEAT: dict[str, Any] = {
    "group_id": "quota-bench",
    "generation_id": 3,
    "member_id": "nobody",
    "group_instance_id": None,
}


class Floods:
    """The three of them, and the one that must not notice."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._bootstrap = bootstrap
        self.name = name
        self.topic = f"quota-{name}"
        self.done = {"producer": 0, "consumer": 0, "heartbeats": 0}
        self.latencies: list[float] = []
        self.used: float | None = None
        self._until = 0.0

    def run(self, seconds: float, metrics: str | None) -> None:
        admin = Client(self._bootstrap, "admin")
        create(admin, self.topic)
        filling = Client(self._bootstrap, "filling")
        for _ in range(10):
            filling.call(ApiKey.PRODUCE, 9, **produced(self.topic))
        set_quota(admin, f"{self.name}-producer", "producer_byte_rate", RATE)
        set_quota(admin, f"{self.name}-consumer", "consumer_byte_rate", RATE)
        set_quota(admin, f"{self.name}-heartbeats", "request_percentage", PERCENT)
        time.sleep(1.0)
        self._until = time.monotonic() + seconds
        works = (self._produce, self._fetch, self._beat, self._watch)
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.used = time_used(metrics, f"{self.name}-heartbeats") if metrics else None
        for kind, key in (
            ("producer", "producer_byte_rate"),
            ("consumer", "consumer_byte_rate"),
            ("heartbeats", "request_percentage"),
        ):
            set_quota(admin, f"{self.name}-{kind}", key, None)

    def _while(self, step: Callable[[], int], kind: str) -> None:
        while time.monotonic() < self._until:
            done = step()
            if time.monotonic() < self._until:
                self.done[kind] += done

    def _produce(self) -> None:
        client, fields = Client(self._bootstrap, f"{self.name}-producer"), produced(self.topic)

        def step() -> int:
            client.call(ApiKey.PRODUCE, 9, **fields)
            return _BATCH_BYTES

        self._while(step, "producer")

    def _fetch(self) -> None:
        client, fields = Client(self._bootstrap, f"{self.name}-consumer"), fetched(self.topic)

        def step() -> int:
            answer = client.call(ApiKey.FETCH, 11, **fields)
            return sum(len(one.records or b"") for topic in answer.responses for one in topic.partitions)

        self._while(step, "consumer")

    def _beat(self) -> None:
        client = Client(self._bootstrap, f"{self.name}-heartbeats")

        def step() -> int:
            client.send(ApiKey.HEARTBEAT, 4, BEAT, _AT_ONCE)
            for _ in range(_AT_ONCE):
                client.receive(ApiKey.HEARTBEAT, 4)
            return _AT_ONCE

        self._while(step, "heartbeats")

    def _watch(self) -> None:
        client = Client(self._bootstrap, "calm")
        while time.monotonic() < self._until:
            begin = time.perf_counter()
            client.call(ApiKey.HEARTBEAT, 4, **BEAT)
            self.latencies.append(time.perf_counter() - begin)
            time.sleep(0.02)


def time_used(address: str, client_id: str) -> float:
    """Percent of the event loop's time that a client uses, as the broker says."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        for line in str(answer.read(), "utf-8").splitlines():
            if line.startswith("kafka_server_request_request_time{") and f'"{client_id}"' in line:
                return float(line.rsplit(" ", 1)[1])
    return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", action="append", required=True, metavar="HOST:PORT")
    parser.add_argument("--metrics", metavar="HOST:PORT", help="metrics of the first broker")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    for number, bootstrap in enumerate(options.bootstrap):
        floods = Floods(bootstrap, f"bench{number}-{int(time.time())}")
        floods.run(options.seconds, options.metrics if number == 0 else None)
        of_quota = RATE * options.seconds
        others = sorted(floods.latencies)
        line = (
            f"{bootstrap}: producer {floods.done['producer'] / of_quota:.1%} of its quota, "
            f"consumer {floods.done['consumer'] / of_quota:.1%}, "
            f"{floods.done['heartbeats'] / options.seconds:,.0f} heartbeats/s, "
            f"others p50 {others[len(others) // 2] * 1e3:.1f} ms "
            f"p99 {others[-len(others) // 100] * 1e3:.1f} ms"
        )
        if floods.used is not None:
            line += f", heartbeats used {floods.used:.2f} % of {PERCENT} %"
        print(line, flush=True)


if __name__ == "__main__":
    main()
