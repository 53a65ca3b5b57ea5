"""A share group whose members are applications with the share consumer as it ships."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from ....protocol.messages.share_fetch import ShareFetchResponse
from ....share_partitions import TopicPlace
from ..brokers._process import BrokerProcess
from ..brokers._world import AnyWorld
from ..engine._network import SimulatedCall
from ..engine._phases import Left
from ..engine._plan import Incident
from ._application_ledger import ApplicationLedger
from ._consuming_process import ConsumingProcess
from ._record_ledger import RecordLedger
from ._share import ShareGroupView, Sharing
from ._share_application import ConsumerMember
from ._share_ledger import READS
from ._share_member import SharingProcess
from ._share_service import LETTERS, ServiceMember
from ._transaction_ledger import TransactionLedger

#: Incidents of the way between a member and a broker.
SLOW: Final = "slow-member"
CUT: Final = "cut-member"
_SLOWEST_MS: Final = 1_200
#: Most requests about records of which nothing comes that a member may send, and in how many ms.
_IN_VAIN: Final = 90
_WITHIN_MS: Final = 1_000


class ConsumerSharing(Sharing):
    """As ``Sharing``, with members that are applications, or services."""

    def __init__(
        self,
        world: AnyWorld,
        view: ShareGroupView,
        topics: Sequence[str],
        records: RecordLedger,
        transactions: TransactionLedger,
    ) -> None:
        super().__init__(world, view, topics, records, transactions)
        plan = world.plan
        self.applications = ApplicationLedger(
            world, calm=plan.calm, letters=plan.services, postpones=bool(plan.retries)
        )
        # by member: when it asked for nothing
        self._in_vain: dict[str, deque[int]] = {}

    def _make_member(self, name: str) -> SharingProcess:
        kind = ServiceMember if self._plan.services else ConsumerMember
        return kind(self._world, self, name)

    def meet(self, incident: Incident) -> bool:
        if incident.kind not in (SLOW, CUT):
            return super().meet(incident)
        members = [member for member in self._members if isinstance(member, ConsumingProcess)]
        until_ms, broker = self._world.heap.now + incident.length_ms, self._world.met.number
        if members:
            member = members[incident.who % len(members)]
            if incident.kind == SLOW:
                member.slow(broker, int(incident.draw * _SLOWEST_MS), until_ms)
            else:
                member.cut(broker, until_ms)
        return True

    # --- what is looked at --------------------------------------------------------------------------------

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:
        super().on_request(broker, call)
        if call.api_key in READS:
            self.applications.on_request(call, partial(self._start_at, broker))

    def _start_at(self, broker: BrokerProcess, place: TopicPlace) -> int:
        """Below which offset all is done, as a broker has it."""
        led = self._view.led_share_partition(broker, self.group, place)
        return 0 if led is None or led.records is None else led.records.start_offset

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: object) -> None:
        super().on_answer(broker, call, body)
        is_given = False
        if isinstance(body, ShareFetchResponse):
            self.applications.on_fetched(call, body)
            is_given = any(row.acquired_records for topic in body.responses for row in topic.partitions)
        if call.api_key in READS and not is_given:
            self._look_for_circles(call)

    def _look_for_circles(self, call: SimulatedCall) -> None:
        """Look whether a member that is given nothing asks again and again."""
        if any(row.acknowledgement_batches for topic in call.body.topics for row in topic.partitions):
            return
        now, times = self._world.heap.now, self._in_vain.setdefault(call.client.name, deque(maxlen=_IN_VAIN))
        if len(times) == _IN_VAIN and now - times[0] < _WITHIN_MS:
            text = f"{call.client.name} asks {_IN_VAIN} times within {now - times[0]} ms"
            self._world.found("S17", f"{text}, and nothing comes of it")
        times.append(now)

    def on_closed(self, member: ConsumingProcess) -> None:
        for broker, known in self._view.share_sessions():
            if known == member.member_id:
                self._world.found("Q15", f"{member} has closed, and {broker} has its session")
        for broker in self._world.brokers.values():
            led = [] if broker.parts is None else broker.parts.node.shares.all_led()
            kept = [each for each in led if each.records and each.records.acquired_by(member.member_id)]
            if kept:
                self._world.found("Q15", f"{member} has closed, and has records of {kept} locked at {broker}")
        group = self._view.share_group(self.group)
        if group is not None and member.member_id in group.members:
            self._world.found("Q15", f"{member} has closed, and is in the group")

    # --- the end ------------------------------------------------------------------------------------------

    def unsettled(self) -> Left:
        held = (left for each in self._members if (left := _find_held(each)))
        return super().unsettled() or next(held, None) or self._find_postponed()

    def _find_postponed(self) -> Left:
        """A record in a retry topic that is not handled, nor set aside."""
        if not self._plan.retries or not self._members:
            return None
        open_ = self._values_in(self._retry_topics()) - self.applications.retried - self._letters()
        return ("B8", f"{sorted(open_)[:3]} wait in retry topics") if open_ else None

    def _retry_topics(self) -> list[str]:
        return [f"{topic}.retry.{n + 1}" for topic in self.topics for n in range(len(self._plan.retries))]

    def _check_records(self, place: TopicPlace, values: Mapping[int, bytes], start: int, end: int) -> None:
        super()._check_records(place, values, start, end)
        known = self.ledger.of(place)
        due = {offset: value for offset, value in values.items() if start <= offset < end}
        exhausted = self.ledger.exhausted(place)
        postponed = self._values_in(self._retry_topics())
        self.applications.check(place, due, exhausted, known.done, self._letters(), postponed)

    def _letters(self) -> frozenset[bytes]:
        """Values of the records that were set aside."""
        return self._values_in([LETTERS])

    def _values_in(self, topics: Sequence[str]) -> frozenset[bytes]:
        where = self._view.places_of(topics).values()
        found = (self._view.values_of(self._world.partition_at(place)) for place in where)
        return frozenset(value for values in found for value in values.values())


def _find_held(member: SharingProcess) -> Left:
    """What a consumer has in hand though all is done."""
    consumer = member.consumer if isinstance(member, ConsumingProcess) else None
    if consumer is None:
        return "B8", f"{member} has no consumer"
    now = consumer.state
    if now.locked or now.buffered or now.unanswered:
        return "B8", f"{member} has {now}, and no record is left"
    return None
