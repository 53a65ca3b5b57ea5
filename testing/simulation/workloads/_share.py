"""A share group: its members get records of topics, accept, release or reject them, renew their locks, or
keep them too long. Some are killed or leave, and others follow (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from ....broker.partitions.partition import Partition
from ....client.cluster import Cluster
from ....coordinator.share_groups.group import ShareGroup
from ....offsets_topic import Partitions
from ....protocol import ApiKey, ErrorCode, KohortError, TopicPartition
from ....protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from ....share_partitions import TopicPlace
from ....share_state.shards import ShareStates
from ..brokers._process import BrokerProcess
from ..brokers._world import AnyWorld
from ..engine._network import SimulatedCall
from ..engine._phases import Left
from ..engine._plan import Incident
from ._record_ledger import RecordLedger
from ._share_admin import (
    Job,
    PassingWriter,
    ShareAdmin,
    alter_offset,
    configure_group,
    delete_group,
    delete_offsets,
    delete_records,
    describe_group,
)
from ._share_ledger import READS, ShareLedger, ShareView
from ._share_member import ShareMember, SharingProcess
from ._transaction_ledger import EndOutcome, TransactionLedger
from ._workload import Workload

QUEUE: Final = "queue"

_LEVEL: Final = "share.isolation.level"
#: Configs that are changed, and their values.
_CONFIGS: Final = (
    (_LEVEL, ("read_committed", "read_uncommitted")),
    ("share.record.lock.duration.ms", ("1000", "2000")),
    ("share.delivery.count.limit", ("2", "3", "5")),
    ("share.partition.max.record.locks", ("100", "2000")),
    ("share.renew.acknowledge.enable", ("false", "true")),
)
_PAUSE_S: Final = 0.1
#: What is done so often is done soon when the faults are over, in ms.
_OFTEN_MS: Final = 500
#: So often it is looked whether members have ended that were told to leave; they are killed then.
_LEFT_LOOKS: Final = 20


class ShareGroupView(ShareView, Protocol):
    """Where a share group, its topics and their state are."""

    def share_group(self, group: str, /) -> ShareGroup | None:
        """Return a group as the newest coordinator has it in memory."""

    def places_of(self, topics: Iterable[str], /) -> Mapping[TopicPlace, TopicPartition]:
        """Return the partitions of those topics that exist."""

    def share_states(self, /) -> Iterable[tuple[Partition, ShareStates]]:
        """Return the logs of states with what is in them, at their newest leaders."""

    def values_of(self, partition: Partition, /) -> Mapping[int, bytes]:
        """Return what is in a partition, by offset."""


class Sharing(Workload):
    """Members of the share group read ``topics``. The first is that of ``records``; if there is another
    before the last one, it is that of ``transactions``. The last one comes and goes.
    """

    group = QUEUE

    def __init__(
        self,
        world: AnyWorld,
        view: ShareGroupView,
        topics: Sequence[str],
        records: RecordLedger,
        transactions: TransactionLedger,
    ) -> None:
        self._world = world
        self._view = view
        self._plan = world.plan
        self.topics = tuple(topics)
        self._records = records
        self._transactions = transactions
        self._members: list[SharingProcess] = []
        self._admin: ShareAdmin | None = None
        # the group has to be empty for a while
        self._is_emptied = False
        # by member: when the coordinator heard from it last, and its epoch
        self._heard: dict[str, tuple[int, int]] = {}
        self.ledger = ShareLedger(world, view, QUEUE)
        level = "read_committed" if self._plan.committed else "read_uncommitted"
        self._configs = {"share.auto.offset.reset": self._plan.reset, _LEVEL: level}
        # those that may have been in force
        self._levels = {level}

    def start(self) -> None:
        world, passing = self._world, self.topics[-1]
        self._admin = ShareAdmin(world, "admin")
        world.clients += [
            self._admin,
            PassingWriter(world, passing, lambda: len(self._view.places_of([passing])), "passing"),
        ]
        self._join_all()

    def _join_all(self) -> None:
        """Start members until there are as many as planned."""
        while len(self._members) < self._plan.share_members and not self._is_emptied:
            member = self._make_member(f"q{len(self._world.clients)}")
            self._members.append(member)
            self._world.clients.append(member)

    def _make_member(self, name: str) -> SharingProcess:
        return ShareMember(self._world, self, name)

    # --- what members ask of it ---------------------------------------------------------------------------

    async def configure(self, cluster: Cluster) -> None:
        await configure_group(cluster, QUEUE, self._configs)

    def on_records(self, place: TopicPlace, topic: str, records: Mapping[int, bytes]) -> None:
        for offset, value in records.items():
            if topic == self.topics[0]:
                where = TopicPartition(topic, place.number)
                self._records.was_read(QUEUE, where, offset, value)
            elif topic == self._transactions.topic and not self._may_be_given(value):
                self._world.found("Q8", f"{offset} of {topic}-{place.number} is given: {value!r}")

    def _may_be_given(self, value: bytes) -> bool:
        """Return whether the transaction of a record may have been committed, if that matters."""
        if "read_uncommitted" in self._levels:
            return True
        transaction = self._transactions.transactions[int(value.split()[0])]
        return transaction.outcome in (EndOutcome.COMMITTED, EndOutcome.COMMITTING)

    # --- what happens -------------------------------------------------------------------------------------

    def meet(self, incident: Incident) -> bool:
        meet: Callable[[Incident], None] | None = {
            "client-kill": self._kill_member,
            "member-leave": self._leave,
            "member-stall": self._stall,
            "offsets-altered": self._alter_offsets,
            "group-deleted": self._delete_group,
            "records-deleted": self._delete_records,
            "offsets-deleted": self._delete_offsets,
            "group-configured": self._configure,
            "group-described": self._describe,
        }.get(incident.kind)
        if meet is not None:
            meet(incident)
        return meet is not None

    def _kill_member(self, incident: Incident) -> None:
        if self._members:
            self._members.pop(incident.who % len(self._members)).kill()
            self._world.heap.at(self._world.heap.now + incident.length_ms, self._join_all)

    def _leave(self, incident: Incident) -> None:
        if self._members:
            self._members.pop(incident.who % len(self._members)).leave()
            self._world.heap.at(self._world.heap.now + incident.length_ms, self._join_all)

    def _stall(self, incident: Incident) -> None:
        if self._members:
            member = self._members[incident.who % len(self._members)]
            member.stall(self._world.heap.now + 2 * incident.length_ms)

    def _begin(self, job: Job) -> None:
        if self._admin is not None:
            self._admin.is_busy = True
            self._admin.jobs.append(job)

    def _alter_offsets(self, incident: Incident) -> None:
        self._begin(partial(self._alter_alone, incident))

    async def _alter_alone(self, incident: Incident, cluster: Cluster) -> None:
        await self._empty_group()
        places = sorted(self._view.places_of(self.topics[:1]).items())
        if places:
            place, where = places[incident.who % len(places)]
            start = int(incident.draw * (self._records.ends.get(where, 0) + 1))
            self.ledger.is_altered = True
            await alter_offset(cluster, QUEUE, where, start)
            self.ledger.begin_anew(place, start)
            self.ledger.is_altered = False
        self._join_again()

    def _delete_group(self, _incident: Incident) -> None:
        self._begin(self._delete_alone)

    async def _delete_alone(self, cluster: Cluster) -> None:
        await self._empty_group()
        self.ledger.is_altered = True
        await delete_group(cluster, QUEUE)
        # a broker that starts knows some topics sooner than others
        for place in dict.fromkeys([*self.ledger.known_starts(), *self._view.places_of(self.topics)]):
            self.ledger.begin_anew(place, 0)
        self._heard.clear()
        self.ledger.is_altered = False
        self._join_again()

    def _delete_offsets(self, incident: Incident) -> None:
        self._begin(partial(self._delete_offsets_alone, self.topics[incident.who % len(self.topics)]))

    async def _delete_offsets_alone(self, topic: str, cluster: Cluster) -> None:
        await self._empty_group()
        self.ledger.is_altered = True
        await delete_offsets(cluster, QUEUE, topic)
        for place in self._view.places_of([topic]):
            self.ledger.begin_anew(place, 0)
        self.ledger.is_altered = False
        self._join_again()

    def _configure(self, incident: Incident) -> None:
        name, values = _CONFIGS[incident.who % len(_CONFIGS)]
        value = values[int(incident.draw * len(values))]
        self._configs[name] = value
        self.ledger.on_config(name, value)
        if name == _LEVEL:
            self._levels.add(value)
        self._begin(self._configure_once)

    async def _configure_once(self, cluster: Cluster) -> None:
        try:
            await configure_group(cluster, QUEUE, self._configs)
        except KohortError as error:
            self._world.say(f"the group is not configured: {error!r}")

    def _describe(self, _incident: Incident) -> None:
        self._begin(self._describe_once)

    async def _describe_once(self, cluster: Cluster) -> None:
        """Compare the offsets that are told with those that are known."""
        names = {where: place for place, where in self._view.places_of(self.topics).items()}
        known = self.ledger.known_starts()
        try:
            told = await describe_group(cluster, QUEUE, self._world.brokers)
        except KohortError as error:
            self._world.say(f"the group is not described: {error!r}")
            return
        for topic in told.topics:
            for row in topic.partitions:
                place = names.get(TopicPartition(topic.topic_name, row.partition_index))
                if place is not None and not row.error_code and row.start_offset >= 0:
                    self.ledger.check_told(place, row.start_offset, known)

    async def _empty_group(self) -> None:
        self._is_emptied = True
        leaving, self._members = self._members, []
        for member in leaving:
            member.leave()
        for _ in range(_LEFT_LOOKS):
            if not any(member.alive for member in leaving):
                break
            await asyncio.sleep(_PAUSE_S)
        for member in leaving:
            member.kill()

    def _join_again(self) -> None:
        self._is_emptied = False
        self._join_all()

    def _delete_records(self, incident: Incident) -> None:
        places = sorted(self._view.places_of(self.topics[:1]).values())
        if places:
            where = places[incident.who % len(places)]
            before = int(incident.draw * self._records.ends.get(where, 0))
            self._records.may_be_deleted(where, before)
            self._begin(partial(self._delete_below, where, before))

    async def _delete_below(self, where: TopicPartition, before: int, cluster: Cluster) -> None:
        await delete_records(cluster, where, before)

    def heal(self) -> None:
        for member in self._members:
            member.stall(0)

    # --- what is looked at --------------------------------------------------------------------------------

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:
        if call.api_key in READS:
            self.ledger.on_request(broker, call)
        elif call.api_key == ApiKey.SHARE_GROUP_HEARTBEAT:
            call.note = self._world.heap.now
            if call.body.member_epoch < 0:
                self._heard.pop(call.body.member_id, None)

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: Any) -> None:
        if call.api_key in READS:
            self.ledger.on_answer(broker, call, body)
        elif call.api_key == ApiKey.SHARE_GROUP_HEARTBEAT and self._world.coordinates(broker, QUEUE):
            self._on_heartbeat(call, body)

    def _on_heartbeat(self, call: SimulatedCall, body: ShareGroupHeartbeatResponse) -> None:
        member, now = call.body.member_id, self._world.heap.now
        since_ms, epoch = self._heard.get(member, (0, 0))
        if not body.error_code:
            if call.body.member_epoch < 0:
                return
            if body.member_epoch < epoch:
                self._world.found("Q10", f"the epoch of {member} goes from {epoch} to {body.member_epoch}")
            self._heard[member] = max(since_ms, call.note), body.member_epoch
        elif body.error_code == ErrorCode.UNKNOWN_MEMBER_ID and member in self._heard:
            if now - since_ms < self._plan.member_session_ms:
                self._world.found("Q10", f"{member} is put out {now - since_ms} ms after it was heard")
            del self._heard[member]

    def on_led(self, broker: BrokerProcess, partition: Partition) -> None:
        self.ledger.on_led(broker, partition)

    # --- the end ------------------------------------------------------------------------------------------

    def unsettled(self) -> Left:
        if self._admin is not None and self._admin.is_busy:
            return "B8", "the share group is still being altered"
        places = self._view.places_of(self.topics)
        return (
            self._find_open(places)
            or self._find_unassigned(places)
            or self._find_left_state(places)
            or self._find_left_sessions()
        )

    def _find_open(self, places: Mapping[TopicPlace, TopicPartition]) -> Left:
        for place, where in places.items() if self._members else ():
            partition = self._world.partition_at(where)
            start = self._leader_start(place, partition)
            if start is None or start < partition.log_end_offset:
                return "B8", f"of {where} {start} of {partition.log_end_offset} is not done"
        return None

    def _leader_start(self, place: TopicPlace, partition: Partition) -> int | None:
        """Below which offset all is done, as the leader of a partition has it; None if it has not."""
        for broker in self._world.brokers.values():
            led = self._view.led_share_partition(broker, QUEUE, place)
            if led is not None and led.partition is partition and led.records is not None:
                return led.records.start_offset
        return None

    def _find_unassigned(self, places: Mapping[TopicPlace, TopicPartition]) -> Left:
        """Each living member has its target, and each partition as many members as all others."""
        group = self._view.share_group(QUEUE)
        if group is None:
            return "Q10", "no coordinator has the group"
        living = {member.member_id: member for member in self._members}
        if set(living) != set(group.members):
            return "Q10", f"the group has {sorted(group.members)}, and there are {sorted(living)}"
        holders = dict.fromkeys(places, 0)
        for member_id, known in group.members.items():
            target = _places_in(known.current.partitions)
            if known.current.epoch != group.epoch or target != living[member_id].assigned:
                return "Q10", f"{member_id} has {sorted(living[member_id].assigned)}, not {sorted(target)}"
            for place in target:
                if place not in places:
                    return "Q10", f"{member_id} has {place}, which does not exist"
                holders[place] += 1
        each = -(-len(living) // len(places))
        if any(count != each for count in holders.values()):
            return "Q10", f"of {len(living)} members partitions have {sorted(holders.values())}"
        initialized = {
            TopicPlace(topic_id, number)
            for topic_id, topic in group.kept.initialized.items()
            for number in topic.partitions
        }
        if initialized != set(places) or group.kept.initializing or group.kept.deleting:
            return "Q10", f"the group keeps {group.kept} of {sorted(places)}"
        return None

    def _find_left_state(self, places: Mapping[TopicPlace, TopicPartition]) -> Left:
        states = list(self._view.share_states())
        for log, held in states:
            if uncut := self._find_uncut(log, held):
                return uncut
        for key, now in ((key, kept.now) for _, held in states for key, kept in held.by_key.items()):
            where = places.get(TopicPlace(key.topic_id, key.partition))
            if where is None:
                return "Q9", f"of what does not exist there is a state: {now}"
            partition = self._world.partition_at(where)
            left = partition.log_end_offset - now.start_offset - now.delivery_complete_count
            if left and now.start_offset >= partition.log_start_offset:
                return "Q9", f"of {where} {left} records are not done by what is stored: {now}"
        return None

    def _find_uncut(self, log: Partition, states: ShareStates) -> Left:
        """Whether a log of states is longer than it has to be, if that is looked for often."""
        settings = self._plan.settings
        needed, end = states.needed_from, states.end_offset
        cold = settings["share_coordinator_cold_partition_snapshot_interval_ms"] <= _OFTEN_MS
        if cold and end - needed > 2 * len(states.by_key):
            return "Q18", f"of {log} the records from {needed} to {end} are needed"
        often = settings["share_coordinator_state_topic_prune_interval_ms"] <= _OFTEN_MS
        if often and log.log_start_offset < needed:
            return "Q18", f"{log} begins at {log.log_start_offset}, and is needed from {needed} on"
        return None

    def _find_left_sessions(self) -> Left:
        living = {member.member_id for member in self._members}
        for broker, member_id in self._view.share_sessions():
            if member_id not in living:
                return "Q9", f"{broker} has a session of {member_id}, which is gone"
        return None

    def check(self) -> None:
        if not self._world.checked:
            # a log is known to be damaged
            return
        for place, where in self._view.places_of(self.topics).items():
            partition = self._world.partition_at(where)
            values = self._view.values_of(partition)
            if where.topic == self._transactions.topic and "read_committed" in self._levels:
                values = {offset: value for offset, value in values.items() if self._is_wanted(value)}
            # a leader may have deleted them, and be killed before others did: they are there again, as on
            # Apache Kafka, and share partitions are past them
            start = max(partition.log_start_offset, self._records.deleted.get(where, 0))
            self._check_records(place, values, start, partition.log_end_offset)

    def _check_records(self, place: TopicPlace, values: Mapping[int, bytes], start: int, end: int) -> None:
        """Check what became of the records of a partition, once all is settled."""
        self.ledger.check(place, values, start, end)

    def _is_wanted(self, value: bytes) -> bool:
        transaction = self._transactions.transactions[int(value.split()[0])]
        return transaction.outcome is EndOutcome.COMMITTED


def _places_in(partitions: Partitions) -> frozenset[TopicPlace]:
    return frozenset(TopicPlace(topic_id, number) for topic_id, some in partitions.items() for number in some)
