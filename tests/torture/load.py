"""Load for a broker that will be killed, and what is left to see afterwards."""

from __future__ import annotations

import threading
import time

import kafka

from tests.waiting import wait_until

#: Seconds between two commits.
_PAUSE_S = 0.005


class Committer:
    """Commits 1, 2, 3 ... from a thread of its own and remembers the last that was acknowledged."""

    def __init__(self, bootstrap: str, group: str, topic: str, start: int) -> None:
        self.acknowledged = start
        self._partition = kafka.TopicPartition(topic, 0)
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            wanted = {self._partition: kafka.OffsetAndMetadata(self.acknowledged + 1, "", -1)}
            try:
                self._consumer.commit(wanted, timeout_ms=200)
            except kafka.errors.KafkaError:
                continue
            self.acknowledged += 1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close(autocommit=False, timeout_ms=1000)


def create_topic(bootstrap: str, topic: str, partitions: int, replicas: int = 1) -> None:
    with kafka.KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        # a broker that has just been started may not be a member of the cluster yet
        wait_until(lambda: len(admin.describe_cluster()["brokers"]) >= replicas)
        admin.create_topics(
            {topic: {"num_partitions": partitions, "replication_factor": replicas}}, wait_for_metadata=True
        )


def read_topic(bootstrap: str, topic: str, partitions: int) -> dict[tuple[int, int], bytes]:
    """Every record of the topic by its partition and offset."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    wanted = [kafka.TopicPartition(topic, number) for number in range(partitions)]
    consumer.assign(wanted)
    consumer.seek_to_beginning(*wanted)
    ends = consumer.end_offsets(wanted)
    found: dict[tuple[int, int], bytes] = {}
    deadline = time.monotonic() + 30
    while any(consumer.position(partition) < ends[partition] for partition in wanted):
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end {ends}"
        for batch in consumer.poll(timeout_ms=500).values():
            found.update({(record.partition, record.offset): record.value for record in batch})
    consumer.close()
    return found


def committed(bootstrap: str, group: str, topic: str) -> int:
    """The offset of the topic's first partition; 0 if there is none yet."""
    with kafka.KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        found = admin.list_group_offsets(group)[group].get(kafka.TopicPartition(topic, 0))
    return 0 if found is None else int(found.offset)
