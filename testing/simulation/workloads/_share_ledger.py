"""What members of a share group were given and told, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import SHARE_STATE_TOPIC
from ....protocol import TopicPartition
from ....protocol.messages.share_fetch import AcknowledgementBatch, AcquiredRecords, ShareFetchResponse
from ....share_partitions import AcknowledgeType
from ..brokers._process import BrokerProcess
from ..brokers._world import AnyWorld
from ..engine._network import SimulatedCall

_T = AcknowledgeType
_Batches: TypeAlias = "Sequence[AcknowledgementBatch]"
_FINAL: Final = frozenset({_T.GAP, _T.ACCEPT, _T.REJECT})


class ShareView(Protocol):
    """Where share partitions and their state are, in a world of brokers."""

    def leads_newest(self, broker: BrokerProcess, partition: Partition, /) -> bool:
        """Return whether nobody has led a partition after this broker."""

    def led_share_partition(self, broker: BrokerProcess, group: str, partition: Partition, /) -> object:
        """Return what a broker has of a share partition in memory, from one load to the next."""

    def share_start_offset(self, group: str, place: TopicPartition, /) -> int | None:
        """Return below which offset all is done, as the leader of a partition has it; None if it has not."""

    def stored_start_offsets(
        self, broker: BrokerProcess, partition: Partition, /
    ) -> Iterable[tuple[str, int]]:
        """Share partitions with their start offsets, as the newest leader of their state has them."""


class ShareLedger:
    """Looks at each answer of a broker before it is sent: at a leader that nobody has followed, that is the
    order in which things happened.
    """

    def __init__(self, world: AnyWorld, view: ShareView, group: str, topic: str) -> None:
        self._world = world
        self._view = view
        self._group = group
        self._topic = topic
        # offsets of which an acknowledgement that ends them was answered, and those that were ever given
        self._done: dict[int, set[int]] = {}
        self._given: dict[int, set[int]] = {}
        # by what a leader has in memory: who has an offset, since when, by which connection
        self._owners: dict[object, dict[int, tuple[str, int, Any, int]]] = {}
        # the highest stored start offset of each share partition
        self._stored: dict[str, int] = {}

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:
        """Note what a member releases: others may have it before the answer, which waits for records."""
        for index, batches in _said_in(call).items():
            partition = self._world.replica(broker, self._topic, index)
            if partition is None:
                continue
            owners = self._owners.get(self._view.led_share_partition(broker, self._group, partition), {})
            for offset, kind in _said_of(batches):
                if kind == _T.RELEASE and owners.get(offset, ("",))[0] == call.body.member_id:
                    del owners[offset]

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: ShareFetchResponse) -> None:
        if body.error_code:
            return
        said = _said_in(call)
        for row in (row for topic in body.responses for row in topic.partitions):
            index = row.partition_index
            partition = self._world.replica(broker, self._topic, index)
            if partition is None:
                continue
            led = self._view.led_share_partition(broker, self._group, partition)
            if index in said and not row.acknowledge_error_code:
                self._acknowledged(led, index, said[index])
            # one that does not know its successor yet may give what that one has stored as done
            newest = self._view.leads_newest(broker, partition)
            for acquired in row.acquired_records:
                self._given.setdefault(index, set()).update(
                    range(acquired.first_offset, acquired.last_offset + 1)
                )
                if newest:
                    self._gave(broker, call, led, index, acquired)

    def _acknowledged(self, led: object, index: int, batches: _Batches) -> None:
        owners = self._owners.get(led, {})
        for offset, kind in _said_of(batches):
            if kind in _FINAL:
                owners.pop(offset, None)
                self._done.setdefault(index, set()).add(offset)
                self._world.stats.commits += 1

    def _gave(
        self, broker: BrokerProcess, call: SimulatedCall, led: object, index: int, acquired: AcquiredRecords
    ) -> None:
        now, member = self._world.heap.now, call.body.member_id
        owners, done = self._owners.setdefault(led, {}), self._done.setdefault(index, set())
        settings = self._world.plan.settings
        lock_ms = settings["group_share_record_lock_duration_ms"]
        for offset in range(acquired.first_offset, acquired.last_offset + 1):
            text = f"{broker} gives {offset} of {self._topic}-{index} to {member}"
            if offset in done:
                self._world.found("Q1", f"{text}, though its acknowledgement was answered")
            owner, since_ms, link, life = owners.get(offset, ("", 0, None, 0))
            # a connection that broke has ended the session, and with it the locks
            if owner not in ("", member) and now - since_ms < lock_ms and link.epoch == life:
                self._world.found("Q2", f"{text}, and {owner} has it since {now - since_ms} ms")
            if (
                not 1
                <= acquired.delivery_count
                <= self._world.plan.settings["group_share_delivery_count_limit"]
            ):
                self._world.found("Q4", f"{text} for the {acquired.delivery_count}. time")
            owners[offset] = member, now, call.connection, call.epoch

    def on_led(self, broker: BrokerProcess, partition: Partition) -> None:
        """Check that no stored start offset goes back."""
        parts = broker.parts
        if partition.topic.name != SHARE_STATE_TOPIC or parts is None:
            return
        for key, kept in self._view.stored_start_offsets(broker, partition):
            before = self._stored.get(key, -1)
            if kept < before:
                self._world.found("Q3", f"the start offset of {key} goes back from {before} to {kept}")
            self._stored[key] = max(before, kept)

    def first_open(self, index: int, end: int) -> int | None:
        """The first offset of a partition that is not done at its leader; None if all are.

        Checks that all records were given once all are done.
        """
        place = TopicPartition(self._topic, index)
        start = self._view.share_start_offset(self._group, place)
        return None if start is not None and start >= end else start or 0

    def check(self, index: int, end: int) -> None:
        """Check that every record of a partition was given to somebody."""
        missing = set(range(end)) - self._given.get(index, set())
        if missing:
            self._world.found("Q5", f"{sorted(missing)[:5]} of {self._topic}-{index} were given to nobody")


def _said_in(call: SimulatedCall) -> dict[int, _Batches]:
    """What a request says of records, by partition."""
    return {
        row.partition_index: row.acknowledgement_batches
        for topic in call.body.topics
        for row in topic.partitions
        if row.acknowledgement_batches
    }


def _said_of(batches: _Batches) -> Iterator[tuple[int, int]]:
    """Offsets with what is said of them."""
    for batch in batches:
        types = batch.acknowledge_types
        for at, offset in enumerate(range(batch.first_offset, batch.last_offset + 1)):
            yield offset, types[0] if len(types) == 1 else types[at]
