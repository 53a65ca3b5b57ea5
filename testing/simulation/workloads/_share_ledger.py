"""What members of a share group were given and told, and what follows from it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import SHARE_STATE_TOPIC
from ....broker.share.led_partition import LedPartition
from ....broker.share.persister import ShareKey
from ....protocol import AcknowledgeType, ApiKey, ErrorCode, SharePartitionKey
from ....protocol.messages.share_fetch import AcknowledgementBatch, AcquiredRecords
from ....share_partitions import CLOSING_EPOCH, TopicPlace
from ..brokers._process import BrokerProcess
from ..brokers._world import AnyWorld
from ..engine._network import SimulatedCall

#: Requests about records.
READS: Final = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)

_T = AcknowledgeType
_Batches: TypeAlias = "Sequence[AcknowledgementBatch]"
_FINAL: Final = frozenset({_T.GAP, _T.ACCEPT, _T.REJECT})
#: A request may be carried out so much later than it was begun with, in ms.
_MARGIN_MS: Final = 100
_RECORD_LIMIT: Final = 1
#: The version of ShareFetch that has it (KIP-1206).
_LIMITED: Final = 2


class ShareView(Protocol):
    """Where share partitions and their state are, in a world of brokers."""

    def leads_newest(self, broker: BrokerProcess, partition: Partition, /) -> bool:
        """Return whether nobody has led a partition after this broker."""

    def led_share_partition(
        self, broker: BrokerProcess, group: str, place: TopicPlace, /
    ) -> LedPartition | None:
        """Return what a broker has of a share partition in memory, from one load to the next."""

    def share_sessions(self, /) -> Iterable[tuple[BrokerProcess, str]]:
        """Return the members that have sessions, with the broker where these are."""

    def has_failed(self, key: ShareKey, /) -> bool:
        """Return whether a write of a leader has failed."""

    def stored_starts(
        self, broker: BrokerProcess, partition: Partition, /
    ) -> Iterable[tuple[SharePartitionKey, int]]:
        """Share partitions with their start offsets, as the newest leader of their state has them, if that
        has changed.
        """


@dataclass(slots=True, eq=False)
class _Delivery:
    """The last time that a leader gave an offset. ``is_held``: the member was not to lose it since, but for
    the end of the lock that began at ``since_ms``. ``is_sent``: the answer has left the broker.
    """

    member: str
    count: int
    since_ms: int
    call: SimulatedCall
    is_sent: bool
    is_held: bool = True


class _Statement(NamedTuple):
    """What a request says of the records of a partition, and how things were when it came. ``owns``: the
    member has all of them; ``mine``: what it was given last; ``foreign``: offsets that another one has.
    """

    batches: _Batches
    led: LedPartition | None
    came_ms: int
    life: int
    owns: bool
    mine: Mapping[int, _Delivery]
    foreign: Collection[int]


@dataclass(slots=True)
class _Known:
    """What is known of a share partition since its offsets were last altered.

    ``done``: an acknowledgement that ends them was answered; ``ended``: somebody has asked for one.
    ``counted``: the delivery count that was stored when a release was answered. ``deliveries``: the highest
    count with which each was given. ``sent`` counts deliveries,
    ``unsent`` has the times of those whose answer did not leave the broker. ``first``: below it nothing has
    to be given.
    """

    life: int = 0
    first: int = 0
    done: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    given: set[int] = field(default_factory=set)
    deliveries: dict[int, int] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)
    sent: Counter[int] = field(default_factory=Counter)
    unsent: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    start: int = -1


class ShareLedger:
    """Looks at each answer of a broker before it is sent: at a leader that nobody has followed, that is the
    order in which things happened.
    """

    def __init__(self, world: AnyWorld, view: ShareView, group: str) -> None:
        self._world = world
        self._view = view
        self._group = group
        self._known: dict[TopicPlace, _Known] = {}
        # by what a leader has in memory
        self._given: dict[LedPartition, dict[int, _Delivery]] = {}
        # the partitions of a session that its member closes, by the broker that has it
        self._closing: dict[tuple[BrokerProcess, str], frozenset[TopicPlace]] = {}
        # what leaders had in memory when offsets were altered
        self._replaced: set[LedPartition] = set()
        # those of them that a session held in memory: of a member that is gone, which its broker did not know
        self._held: set[LedPartition] = set()
        #: While offsets are being altered their starts may be what they want.
        self.is_altered = False
        settings = world.plan.settings
        self._lock_ms: int = settings["group_share_record_lock_duration_ms"]
        self._most: int = settings["group_share_delivery_count_limit"]
        self._most_locks: int = settings["group_share_partition_max_record_locks"]
        # where the limit was lower for a while, a record may be done so soon
        self._least_most = self._most
        self._may_renew = True

    def __repr__(self) -> str:
        return f"ShareLedger({len(self._known)} share partitions)"

    def of(self, place: TopicPlace) -> _Known:
        """Return what is known of a share partition."""
        return self._known.setdefault(place, _Known())

    def on_config(self, name: str, value: str) -> None:
        """A config of the group may be in force from now on. Locks are as long as in the plan, or longer."""
        if name == "share.delivery.count.limit":
            self._most = max(self._most, int(value))
            self._least_most = min(self._least_most, int(value))
        elif name == "share.partition.max.record.locks":
            self._most_locks = max(self._most_locks, int(value))
        elif name == "share.renew.acknowledge.enable":
            self._may_renew = self._may_renew and value == "true"

    def exhausted(self, place: TopicPlace) -> set[int]:
        """Return what was given as often as the limit is, or was for a while."""
        deliveries = self.of(place).deliveries
        return {offset for offset, count in deliveries.items() if count >= self._least_most}

    def begin_anew(self, place: TopicPlace, first: int) -> None:
        """A share partition begins at an offset, whatever was before. A leader that has it in memory goes on
        until a write of it is fenced.
        """
        self._known[place] = _Known(self.of(place).life + 1, first)
        brokers = self._world.brokers.values()
        found = [(broker, self._view.led_share_partition(broker, self._group, place)) for broker in brokers]
        self._replaced |= {led for _, led in found if led is not None}
        holding = {broker for broker, _ in self._view.share_sessions()}
        self._held |= {led for broker, led in found if led is not None and broker in holding}

    # --- requests -----------------------------------------------------------------------------------------

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:
        """Note what a member says, and lets go: others may have that before the answer."""
        asked: dict[TopicPlace, _Statement] = {}
        for place, batches in said_in(call):
            asked[place] = self._ask(broker, call, place, batches)
        call.note = asked
        if call.body.share_session_epoch == CLOSING_EPOCH:
            self._let_go(broker, call.body.member_id)
            assert broker.parts is not None, "it has begun with the request"
            session = broker.parts.node.shares.sessions.find(self._group, call.body.member_id)
            # what it has of partitions that it has forgotten before stays locked, as in Apache Kafka
            places = () if session is None else session.places
            self._closing[broker, call.body.member_id] = frozenset(places)

    def _ask(
        self, broker: BrokerProcess, call: SimulatedCall, place: TopicPlace, batches: _Batches
    ) -> _Statement:
        known, now, member = self.of(place), self._world.heap.now, call.body.member_id
        led = self._view.led_share_partition(broker, self._group, place)
        given = {} if led is None else self._given.get(led, {})
        start = 0 if led is None or led.records is None else led.records.start_offset
        owns, mine, foreign = True, {}, set()
        for offset, kind in said_of(batches):
            last = given.get(offset)
            if kind in _FINAL:
                known.ended.add(offset)
            if last is None or offset < start:
                owns = False
                continue
            is_locked = last.is_held and now - last.since_ms < self._lock_ms - _MARGIN_MS
            if last.member != member:
                owns = False
                if is_locked and last.is_sent and _is_alive(last.call):
                    foreign.add(offset)
                continue
            mine[offset] = last
            owns = owns and is_locked and last.is_sent and last.call.connection is call.connection
            owns = owns and last.call.epoch == call.epoch and (kind != _T.RENEW or self._may_renew)
            if kind == _T.RELEASE:
                last.is_held = False
        return _Statement(batches, led, now, known.life, owns, mine, foreign)

    def _let_go(self, broker: BrokerProcess, member: str) -> None:
        for led, given in self._given.items():
            if broker.parts is not None and led in broker.parts.node.shares.all_led():
                for last in given.values():
                    last.is_held = last.is_held and last.member != member

    # --- answers ------------------------------------------------------------------------------------------

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: Any) -> None:
        """Look at the answer to a ShareFetch or ShareAcknowledge."""
        if body.error_code or not isinstance(call.note, dict):
            return
        fetches = call.api_key == ApiKey.SHARE_FETCH
        count = 0
        for topic in body.responses:
            for row in topic.partitions:
                place = TopicPlace(topic.topic_id, row.partition_index)
                if place in call.note:
                    error = row.acknowledge_error_code if fetches else row.error_code
                    self._on_acknowledged(call, place, call.note[place], error)
                for acquired in row.acquired_records if fetches else ():
                    count += acquired.last_offset - acquired.first_offset + 1
                    self._gave(broker, call, place, acquired)
        is_limited = fetches and call.version >= _LIMITED and call.body.share_acquire_mode == _RECORD_LIMIT
        if is_limited and count > call.body.max_records:
            self._world.found("Q7", f"{call} is given {count} records, of {call.body.max_records}")
        if call.body.share_session_epoch == CLOSING_EPOCH:
            self._check_let_go(broker, call.body.member_id)

    def _on_acknowledged(self, call: SimulatedCall, place: TopicPlace, asked: _Statement, error: int) -> None:
        known, member, led = self.of(place), call.body.member_id, asked.led
        if asked.life != known.life:
            return
        is_led = led is not None and led.error is None and not led.partition.gone
        if error == ErrorCode.INVALID_RECORD_STATE and asked.owns and is_led:
            offsets = [offset for offset, _ in said_of(asked.batches)]
            self._world.found("Q2", f"{member} is refused for {offsets} of {place}, which it has")
        if error:
            return
        if asked.foreign:
            self._world.found("Q2", f"{member} acknowledges {sorted(asked.foreign)} of {place} of another's")
        for offset, kind in said_of(asked.batches):
            mine = asked.mine.get(offset)
            if kind in _FINAL:
                known.done.add(offset)
                self._world.stats.commits += 1
                if mine is not None:
                    mine.is_held = False
            elif mine is not None and kind == _T.RELEASE:
                known.counted[offset] = max(mine.count, known.counted.get(offset, 0))
            elif mine is not None and kind == _T.RENEW:
                mine.since_ms = max(mine.since_ms, asked.came_ms)

    def _check_let_go(self, broker: BrokerProcess, member: str) -> None:
        if broker.parts is None:
            return
        for each in broker.parts.node.shares.all_led():
            kept = 0 if each.records is None else each.records.acquired_by(member)
            place = TopicPlace(each.key.topic_id, each.key.number)
            # a release whose write failed is undone
            if kept and place in self._closing[broker, member] and not self._view.has_failed(each.key):
                self._world.found("Q9", f"{member} has closed its session and keeps {kept} of {each}")

    def _gave(
        self, broker: BrokerProcess, call: SimulatedCall, place: TopicPlace, acquired: AcquiredRecords
    ) -> None:
        known = self.of(place)
        offsets = range(acquired.first_offset, acquired.last_offset + 1)
        # what comes back undelivered is in flight as long as it is
        is_new = known.given.isdisjoint(offsets)
        known.given.update(offsets)
        for offset in offsets:
            known.deliveries[offset] = max(acquired.delivery_count, known.deliveries.get(offset, 0))
        led = self._view.led_share_partition(broker, self._group, place)
        sent = _is_alive(call) and not call.cut
        for offset in offsets:
            # whoever gives them: what one of before has given may be stored in a group that was made anew
            if sent:
                known.sent[offset] += 1
            else:
                known.unsent[offset].append(self._world.heap.now)
        # one that does not know its successor yet may give what that one has stored as done
        if led is not None and led in self._replaced:
            return
        if led is not None and led.records is not None and self._view.leads_newest(broker, led.partition):
            ahead = acquired.first_offset - led.records.start_offset
            if is_new and ahead >= self._most_locks:
                self._world.found("Q7", f"{broker} gives {acquired}, {ahead} behind the start offset")
            for offset in offsets:
                self._check_given(broker, call, led, known, offset, acquired.delivery_count, is_sent=sent)
            given = self._given.setdefault(led, {})
            for offset in offsets:
                given[offset] = _Delivery(
                    call.body.member_id, acquired.delivery_count, self._world.heap.now, call, sent
                )

    def _check_given(
        self,
        broker: BrokerProcess,
        call: SimulatedCall,
        led: LedPartition,
        known: _Known,
        offset: int,
        count: int,
        *,
        is_sent: bool,
    ) -> None:
        now, member = self._world.heap.now, call.body.member_id
        text = f"{broker} gives {offset} of {led.key} to {member} for the {count}. time"
        if offset in known.done:
            self._world.found("Q1", f"{text}, though its acknowledgement was answered")
        last = self._given.get(led, {}).get(offset)
        # a connection that broke has ended the session, and with it the locks
        is_owned = last is not None and last.is_held and _is_alive(last.call)
        if last is not None and is_owned and last.member != member and now - last.since_ms < self._lock_ms:
            self._world.found("Q2", f"{text}, and {last.member} has it since {now - last.since_ms} ms")
        if not 1 <= count <= self._most:
            self._world.found("Q4", text)
        # a delivery that did not leave the broker counts only if its lock ended before that was noticed
        late = [at for at in known.unsent.get(offset, ()) if now - at >= self._lock_ms]
        # this one is among those that were sent, or are not
        if count > known.sent[offset] + len(late) + (not is_sent):
            self._world.found("Q4", f"{text}, and it was given {known.sent[offset]} times with this one")
        least = known.counted.get(offset, 0) + 1 if last is None else last.count + last.is_sent
        if count < least:
            self._world.found("Q4", f"{text}, and its last delivery was at least the {least - 1}.")

    # --- what is stored -----------------------------------------------------------------------------------

    def on_led(self, broker: BrokerProcess, partition: Partition) -> None:
        """Check that no stored start offset goes back."""
        if partition.topic.name != SHARE_STATE_TOPIC or broker.parts is None or self.is_altered:
            return
        for key, start in self._view.stored_starts(broker, partition):
            known = self.of(TopicPlace(key.topic_id, key.partition))
            if start < known.start:
                self._world.found("Q3", f"the start offset of {key} goes back from {known.start} to {start}")
            known.start = max(known.start, start)

    def known_starts(self) -> Mapping[TopicPlace, tuple[int, int]]:
        """What is known of stored start offsets now, with how often they were altered."""
        return {place: (known.life, known.start) for place, known in self._known.items()}

    def check_told(self, place: TopicPlace, start: int, known: Mapping[TopicPlace, tuple[int, int]]) -> None:
        """Check a start offset that was asked for when so much was ``known``."""
        life, least = known.get(place, (0, -1))
        if start < least and self.of(place).life == life:
            self._world.found("Q3", f"{place} is said to begin at {start}, and was at {least}")

    # --- the end ------------------------------------------------------------------------------------------

    def check(self, place: TopicPlace, records: Iterable[int], start: int, end: int) -> None:
        """Check what became of the records of a partition, from the start of its log on: those of aborted
        transactions are not among them.
        """
        brokers = self._world.brokers.values()
        if any(
            self._view.led_share_partition(broker, self._group, place) in self._held for broker in brokers
        ):
            # it learns that offsets were altered from a write that is refused, and had none since
            return
        known = self.of(place)
        wanted = {offset for offset in records if max(start, known.first) <= offset < end}
        if missing := sorted(wanted - known.given):
            self._world.fail("Q5", f"{missing[:5]} of {place} were given to nobody")
        if lost := sorted(wanted - known.ended - self.exhausted(place)):
            self._world.fail("Q6", f"{lost[:5]} of {place} are done, and nobody said so")


def _is_alive(call: SimulatedCall) -> bool:
    """Return whether the connection of a request has not broken since."""
    return call.connection.epoch == call.epoch


def said_in(call: SimulatedCall) -> Iterator[tuple[TopicPlace, _Batches]]:
    """What a request says of records, by partition."""
    for topic in call.body.topics:
        for row in topic.partitions:
            if row.acknowledgement_batches:
                yield TopicPlace(topic.topic_id, row.partition_index), row.acknowledgement_batches


def said_of(batches: _Batches) -> Iterator[tuple[int, int]]:
    """Offsets with what is said of them."""
    for batch in batches:
        types = batch.acknowledge_types
        for at, offset in enumerate(range(batch.first_offset, batch.last_offset + 1)):
            yield offset, types[0] if len(types) == 1 else types[at]
