"""A data folder with open, prepared and completed transactions: from Apache Kafka to kohort and back."""

from __future__ import annotations

import subprocess
import time
import uuid
from pathlib import Path

import pytest

from kohort.log import DataFolder, LogConfig
from kohort.offsets_topic import OffsetsStore
from kohort.protocol import ApiKey, ErrorCode
from kohort.statemachine import TransactionState
from kohort.transactions import TransactionMetadata
from kohort.transactions.records import decode, encode
from tests.broker.coordinators.test_transactions import Producer, values
from tests.broker.wire import Wire, create_topic
from tests.broker_process import BrokerProcess
from tests.clients.java import java_command
from tests.ports import free_port

pytestmark = [pytest.mark.clients, pytest.mark.slow(40)]

NONE = ErrorCode.NONE
START_TIMEOUT_S = 60.0
STATE_TOPIC = "__transaction_state"
#: What an open, a prepared, a committed and an aborted transaction have written to.
KINDS = ("open", "dropped", "prepared", "done", "gone")


class Kafka:
    """Apache Kafka on a data folder; what it knows of the cluster is in a folder beside it."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        port, controller = free_port(), free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        self._properties = folder / "server.properties"
        self._properties.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
metadata.log.dir={folder / "metadata"}
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
        )
        cluster_id = uuid.uuid4().hex[:22]
        self._run("kafka.tools.StorageTool", "format", "--cluster-id", cluster_id, "--config")

    def _run(self, *words: str) -> None:
        subprocess.run(
            [*java_command(), *words, str(self._properties)], check=True, capture_output=True, timeout=60
        )

    def start(self) -> None:
        with (self._folder / "kafka.log").open("ab") as log:
            command = [*java_command(), "-Xmx512m", "kafka.Kafka", str(self._properties)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                with Wire(self.bootstrap) as wire:
                    fields = {"transactional_id": None, "transaction_timeout_ms": 60_000}
                    if wire.call(ApiKey.INIT_PRODUCER_ID, 0, **fields).error_code == NONE:
                        return
            except OSError:
                assert self._process.poll() is None, (self._folder / "kafka.log").read_text()
            assert time.monotonic() < deadline, (self._folder / "kafka.log").read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_TIMEOUT_S)


class Moved:
    """Transactions of one broker, to be looked at on the next."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.producers: dict[str, Producer] = {}

    def topic(self, kind: str) -> str:
        return f"{self.name}-{kind}"

    def group(self, kind: str) -> str:
        return f"group-{self.name}-{kind}"

    def begin(self, bootstrap: str) -> None:
        """Have one of each kind: a record, and an offset in the same transaction."""
        with Wire(bootstrap) as wire:
            for kind in KINDS:
                producer = self.producers[kind] = patient(wire)
                produced = retried(lambda kind=kind, it=producer: it.produce(self.topic(kind)).error_code)
                assert produced == NONE
                topic, group = self.topic(kind), self.group(kind)
                wire.call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0)
                assert retried(lambda it=producer, g=group, t=topic: it.commit_offset(g, t, 7)) == NONE
            for kind, committed in (("done", True), ("gone", False)):
                assert self.producers[kind].end(committed=committed).error_code == NONE
                self.producers[kind].settle("CompleteCommit" if committed else "CompleteAbort")

    def prepare(self, data: Path) -> None:
        """While no broker runs: the commit of a transaction is decided, and no marker is written."""
        name = self.producers["prepared"].name
        folder = DataFolder.open(data)
        for topic, index in folder.partitions():
            if topic != STATE_TOPIC:
                continue
            config = LogConfig(cleanup_policy="compact")
            now_ms = time.time_ns() // 1_000_000
            log = folder.open_log(topic, index, config, now_ms=now_ms, topic_id=folder.topic_id(topic, index))
            store = OffsetsStore({index: log})
            found = [decode(key, value) for one in store.load(index) for _, _, key, value in one.records]
            last = next((each for each in reversed(found) if each and each.transactional_id == name), None)
            if last is not None:
                assert isinstance(last, TransactionMetadata)
                assert last.state is TransactionState.ONGOING
                # under KIP-890 the epoch rises with the decision
                decided = last._replace(
                    state=TransactionState.PREPARE_COMMIT,
                    producer_epoch=last.producer_epoch + 1,
                    update_ms=now_ms,
                )
                store.append(index, [encode(decided)], now_ms)
            log.close()
        folder.close()

    def check(self, bootstrap: str) -> None:
        """Look at each, and end what is open: one by its own producer, one by the next of its id."""
        with Wire(bootstrap) as wire:
            for producer in self.producers.values():
                producer.wire = wire
                wire.call(ApiKey.FIND_COORDINATOR, 3, key=producer.name, key_type=1)
            self.producers["prepared"].settle("CompleteCommit")
            for kind in ("open", "dropped"):
                assert self.producers[kind].describe().transaction_state == "Ongoing"
                assert values(wire, self.topic(kind), committed=True) == []
                assert self.offset(wire, kind)[1] == ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert self.producers["open"].produce(self.topic("open")).error_code == NONE
            assert self.producers["open"].end(committed=True).error_code == NONE
            self.producers["open"].settle("CompleteCommit")
            retried(lambda: self.producers["dropped"].initialize().error_code)
            for kind, count in (("open", 2), ("prepared", 1), ("done", 1), ("dropped", 0), ("gone", 0)):
                assert len(values(wire, self.topic(kind), committed=True)) == count, kind
                assert self.offset(wire, kind) == (7 if count else -1, NONE), kind

    def offset(self, wire: Wire, kind: str) -> tuple[int, int]:
        topics = [(self.topic(kind), [0])]
        group = self.group(kind)

        def ask() -> tuple[int, int]:
            answer = wire.call(ApiKey.OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=True)
            if answer.error_code:
                return -1, answer.error_code
            (partition,) = answer.topics[0].partitions
            return partition.committed_offset, partition.error_code

        retried(lambda: ask()[1] if ask()[1] != ErrorCode.UNSTABLE_OFFSET_COMMIT else NONE)
        return ask()


def retried(ask: object) -> int:
    """The error that is answered once a broker that has just started, or still writes markers, is ready."""
    assert callable(ask)
    deadline = time.monotonic() + 30
    while (error := ask()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return int(error)


def patient(wire: Wire) -> Producer:
    """A producer of a coordinator that is perhaps being made."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return Producer(wire)
        except AssertionError:
            assert time.monotonic() < deadline, "there is no transaction coordinator"
            time.sleep(0.1)


@pytest.mark.timeout(240)
def test_transactions_move_from_apache_kafka_to_kohort_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kafka = Kafka(tmp_path, data)
    ours = BrokerProcess(tmp_path, data=data)
    moves = [Moved(name) for name in ("first", "second", "third")]
    first, second, third = moves
    try:
        kafka.start()
        with Wire(kafka.bootstrap) as wire:
            for moved in moves:
                for kind in KINDS:
                    assert create_topic(wire, moved.topic(kind), 1).error_code == NONE
        first.begin(kafka.bootstrap)
        kafka.stop()
        first.prepare(data)
        ours.start()
        first.check(ours.bootstrap)
        second.begin(ours.bootstrap)
        ours.stop()
        second.prepare(data)
        kafka.start()
        second.check(kafka.bootstrap)
        third.begin(kafka.bootstrap)
        kafka.stop()
        third.prepare(data)
        ours.start()
        third.check(ours.bootstrap)
    finally:
        ours.stop()
        kafka.stop()
