"""What applications got from share consumers, said of it and were told, and what follows from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple

from ....consumer.share.events import LockLost
from ....consumer.share.records import LockLostError, ShareRecord
from ....protocol import AcknowledgeType, KohortError
from ....protocol.messages.share_fetch import ShareFetchResponse
from ....share_partitions import TopicPlace
from ..brokers._world import AnyWorld
from ..engine._network import SimulatedCall
from ._share_ledger import said_in, said_of

_FINAL: Final = frozenset({AcknowledgeType.ACCEPT, AcknowledgeType.REJECT})
#: A broker's lock begins so much earlier than its consumer's, in ms.
_MARGIN_MS: Final = 50


class RecordKey(NamedTuple):
    """A record of a share group."""

    place: TopicPlace
    offset: int


class DeliveryEnd(Enum):
    """How a delivery ended, as its consumer told it."""

    #: What was said of it counts.
    COUNTS = "counts"
    #: Its lock was lost.
    LOST = "lost"
    #: The answer to what was said was lost.
    UNKNOWN = "unknown"
    #: The process was killed, or its consumer closed.
    GONE = "gone"


@dataclass(slots=True, eq=False)
class AppDelivery:
    """One record that an application got once; ``said`` is what it has said of it. ``told``: it waits for
    every answer. ``until_ms``: its consumer keeps the lock until then if it can. ``is_passed``: by the time
    that it was said all was done up to the record; a leader answers then as if it counted (as Apache Kafka).
    ``is_left``: nothing was said of it when its consumer closed its session, which gave it back.
    """

    member: str
    key: RecordKey
    record: ShareRecord
    count: int
    until_ms: float
    told: bool
    said: AcknowledgeType | None = None
    outcome: DeliveryEnd | None = None
    is_passed: bool = False
    is_left: bool = False

    def __str__(self) -> str:
        said = "nothing" if self.said is None else self.said.name
        ended = "open" if self.outcome is None else self.outcome.value
        return f"{self.member} (the {self.count}. time, said {said}, {ended})"

    def says(self, verdict: int | None) -> bool:
        """Whether that is what the application says of it."""
        return verdict == self.said

    @property
    def is_over(self) -> bool:
        """Whether its lock has ended, or may have: others may have the record by then."""
        return self.is_passed or self.outcome in (DeliveryEnd.LOST, DeliveryEnd.UNKNOWN, DeliveryEnd.GONE)

    @property
    def is_answered(self) -> bool:
        """Whether nothing that is said to a broker is about this delivery any more."""
        return self.outcome is not None or self.record.lock is None


class HandledDelivery(AppDelivery):
    """One of a service: its handlers say only what they have done."""

    def says(self, verdict: int | None) -> bool:
        return verdict is None or (verdict == AcknowledgeType.ACCEPT) == (self.said is AcknowledgeType.ACCEPT)


class PostponedDelivery(HandledDelivery):
    """One of a service that may put it into a retry topic, and accept it then."""

    def says(self, verdict: int | None) -> bool:
        return verdict == AcknowledgeType.ACCEPT or super().says(verdict)


class ApplicationLedger:
    """``calm``: there are no faults, but for members that come and go. ``letters``: what cannot be handled is
    written to another topic, and rejected then; ``postpones``: or first to a retry topic, and accepted.
    """

    def __init__(
        self, world: AnyWorld, *, calm: bool, letters: bool = False, postpones: bool = False
    ) -> None:
        self._world = world
        self._calm = calm
        self._letters = letters
        self._postpones = postpones
        # what was rejected, for which there has to be a letter
        self._set_aside: set[RecordKey] = set()
        # what was accepted though no handler has done it, for which there has to be one in a retry topic
        self._postponed: set[RecordKey] = set()
        #: Values of the records that were handled from retry topics.
        self.retried: set[bytes] = set()
        self._closing: set[str] = set()
        # in the order in which applications got them
        self._of: dict[RecordKey, list[AppDelivery]] = defaultdict(list)
        self._by_record: dict[ShareRecord, AppDelivery] = {}
        # by member id: the last delivery of each record, and counts of what was given and is not delivered
        self._last: dict[str, dict[RecordKey, AppDelivery]] = defaultdict(dict)
        self._given: dict[tuple[str, RecordKey], list[int]] = defaultdict(list)
        # what consumers called offsets without a record
        self._gaps: set[RecordKey] = set()

    def __repr__(self) -> str:
        return f"ApplicationLedger({len(self._by_record)} deliveries of {len(self._of)} records)"

    # --- what the application does ------------------------------------------------------------------------

    def on_delivered(
        self, member: str, member_id: str, record: ShareRecord, *, holds_ms: float, told: bool
    ) -> AppDelivery:
        """A consumer has given a record to its application; it keeps locks for ``holds_ms`` if it can."""
        key, lock, now = (
            RecordKey(TopicPlace(record.place.topic_id, record.partition), record.offset),
            record.lock,
            self._world.heap.now,
        )
        acquired_ms = now if lock is None else lock.acquired_ms
        make = HandledDelivery if self._letters else AppDelivery
        if self._postpones:
            make = PostponedDelivery
        entry = make(member, key, record, record.delivery_count, acquired_ms + holds_ms, told)
        if lock is None or lock.deadline_ms <= now or record.verdict is not None:
            self._world.found("Q12", f"{member} delivers {record}, whose lock has ended")
        counts = self._given[member_id, key]
        if record.delivery_count in counts:
            counts.remove(record.delivery_count)
        else:
            text = f"{member} delivers {record}, which brokers have given it as the {sorted(counts)}."
            self._world.found("Q12", text)
        if self._calm:
            self._check_calm(entry)
        self._of[key].append(entry)
        self._by_record[record] = self._last[member_id][key] = entry
        return entry

    def _check_calm(self, entry: AppDelivery) -> None:
        now = self._world.heap.now
        for before in self._of[entry.key]:
            given_back = before.said is AcknowledgeType.RELEASE
            # who closes gives back what it has said nothing of by then
            is_left = before.is_left or before.said is None or before.record.lock is None
            given_back = given_back or (is_left and before.member in self._closing)
            if not (given_back or before.is_over) and now < before.until_ms - _MARGIN_MS:
                self._world.found("Q15", f"{entry} has {entry.key}, as had {before}")

    def on_event(self, event: LockLost) -> None:
        """A consumer has told that the lock of a record is lost."""
        entry = self._by_record.get(event.record)
        if entry is not None and entry.outcome is not DeliveryEnd.GONE:
            if entry.outcome is DeliveryEnd.COUNTS:
                self._world.found("Q13", f"of what counts the lock is lost: {entry}, {event.reason}")
            if not entry.says(event.verdict):
                self._world.found("Q13", f"{entry}, and the event has {event.verdict}")
            closes = entry.member in self._closing
            if self._calm and not closes and self._world.heap.now < entry.until_ms - _MARGIN_MS:
                self._world.found("Q15", f"{entry} of {entry.key} is lost: {event.reason}")
            entry.outcome = DeliveryEnd.LOST

    def on_answers(self, answers: Mapping[ShareRecord, KohortError | None]) -> None:
        """A flush has told what became of what was said."""
        for record, error in answers.items():
            entry = self._by_record.get(record)
            if entry is None:
                # it was never delivered, and given back
                continue
            if entry.said is None:
                self._world.found("Q13", f"{entry} is answered: {error!r}")
            if isinstance(error, LockLostError) is not (entry.outcome is DeliveryEnd.LOST):
                self._world.found("Q13", f"a flush tells {error!r} of {entry}")
            if entry.outcome is None:
                entry.outcome = DeliveryEnd.COUNTS if error is None else DeliveryEnd.UNKNOWN

    def on_closing(self, member: str) -> None:
        """A member begins to close its consumer."""
        self._closing.add(member)

    def on_session_closing(self, member: str) -> None:
        """A member that closes its consumer sends the last request of a session."""
        for entry in self._by_record.values() if member in self._closing else ():
            entry.is_left = entry.is_left or (entry.member == member and entry.said is None)

    def on_closed(self, member: str) -> None:
        """The consumer of a member has closed: what nothing was said of is given back, though a handler may
        still be at it.
        """
        for entry in self._by_record.values():
            if entry.member == member and entry.outcome is None and entry.said is None:
                entry.outcome = DeliveryEnd.GONE

    def on_gone(self, member: str) -> None:
        """A member has closed its consumer, or was killed: what was open is so for good."""
        self._closing.discard(member)
        for entry in self._by_record.values():
            if entry.member == member and entry.outcome is None:
                entry.outcome = DeliveryEnd.GONE

    def on_retried(self, values: Iterable[bytes]) -> None:
        """A service has handled records of a retry topic."""
        self.retried.update(values)

    def delivery_of(self, record: ShareRecord) -> AppDelivery | None:
        """Return the delivery of a record, if the application has it already."""
        return self._by_record.get(record)

    # --- what is said to brokers --------------------------------------------------------------------------

    def on_request(self, call: SimulatedCall, start_of: Callable[[TopicPlace], int]) -> None:
        """A consumer says something of records to a broker, which knows below which offset all is done."""
        last = self._last.get(call.body.member_id, {})
        for place, batches in said_in(call):
            start = start_of(place)
            for offset, kind in said_of(batches):
                key = RecordKey(place, offset)
                entry = last.get(key)
                if kind == AcknowledgeType.GAP:
                    self._gaps.add(key)
                elif kind != AcknowledgeType.RENEW:
                    given = self._given[call.body.member_id, key]
                    # another leader may have given it again, which does not know of the former delivery
                    is_former = entry is not None and max(given, default=0) >= entry.count
                    self._check_said(key, kind, entry, is_former=is_former)
                if entry is not None and offset < start:
                    entry.is_passed = True

    def _check_said(self, key: RecordKey, kind: int, entry: AppDelivery | None, *, is_former: bool) -> None:
        """What is not delivered is released, and so may be what is lost. ``is_former``: the consumer was
        given the record once more since that delivery.
        """
        if kind == AcknowledgeType.REJECT and self._letters:
            self._set_aside.add(key)
            is_true = entry is None or is_former or entry.is_answered or entry.says(kind)
        elif kind == AcknowledgeType.ACCEPT and self._postpones and entry is not None and entry.said is None:
            self._postponed.add(key)
            is_true = True
        elif entry is None or is_former or entry.is_answered:
            is_true = kind == AcknowledgeType.RELEASE or (entry is not None and entry.says(kind))
        else:
            is_true = entry.says(kind)
        if not is_true:
            self._world.found(
                "Q11", f"{AcknowledgeType(kind).name} is said of {key}; the application: {entry}"
            )

    def on_fetched(self, call: SimulatedCall, body: ShareFetchResponse) -> None:
        """A broker has given records to a consumer."""
        for topic in () if body.error_code else body.responses:
            for row in topic.partitions:
                assert topic.topic_id is not None, "it is that of the request"
                place = TopicPlace(topic.topic_id, row.partition_index)
                for part in row.acquired_records:
                    for offset in range(part.first_offset, part.last_offset + 1):
                        self._given[call.body.member_id, RecordKey(place, offset)].append(part.delivery_count)

    # --- the end ------------------------------------------------------------------------------------------

    def check(
        self,
        place: TopicPlace,
        records: Mapping[int, bytes],
        exhausted: Collection[int],
        done: Collection[int],
        letters: Collection[bytes],
        postponed: Collection[bytes],
    ) -> None:
        """Check what became of the records of a partition. ``exhausted`` were given as often as they may be,
        and ``done`` are those of which a broker has answered that they are accepted, or rejected. ``letters``
        are the values of those that were set aside, ``postponed`` of those in retry topics.
        """
        wanted = set(records)
        if gaps := sorted(wanted & {key.offset for key in self._gaps if key.place == place}):
            self._world.fail("Q11", f"consumers call {gaps[:5]} of {place} offsets without a record")
        for offset in sorted(wanted):
            entries = self._of.get(RecordKey(place, offset), [])
            final = [entry for entry in entries if entry.said in _FINAL]
            in_letter = records[offset] in letters
            if RecordKey(place, offset) in self._set_aside and not in_letter:
                self._world.fail("Q14", f"{offset} of {place} is set aside, and no letter has it")
            if RecordKey(place, offset) in self._postponed and records[offset] not in postponed:
                self._world.fail("Q14", f"{offset} of {place} is postponed, and in no retry topic")
            if (
                not final
                and offset not in exhausted
                and not in_letter
                and records[offset] not in self.retried
            ):
                text = ", ".join(map(str, entries))
                self._world.fail(
                    "Q14", f"{offset} of {place} is done, and no application has said so: {text}"
                )
            self._check_story(place, offset, entries, is_done=offset in done)

    def _check_story(
        self, place: TopicPlace, offset: int, entries: list[AppDelivery], *, is_done: bool
    ) -> None:
        text = f"{offset} of {place}: {', '.join(map(str, entries))}"
        final = [entry for entry in entries if entry.said in _FINAL]
        counts = [entry for entry in final if entry.outcome is DeliveryEnd.COUNTS and not entry.is_passed]
        if len(counts) > 1:
            self._world.fail("Q13", f"more than one counts of {text}")
        if counts and not is_done:
            self._world.fail("Q13", f"no broker has answered that it is done, of {text}")
        all_lost = all(entry.outcome is DeliveryEnd.LOST for entry in final)
        if (
            is_done
            and final
            and all_lost
            and RecordKey(place, offset) not in self._set_aside | self._postponed
        ):
            self._world.fail("Q13", f"all are told to be lost, and one counts, of {text}")
        for before, after in pairwise(entries):
            is_told = before.told and after.told
            released = before.said is AcknowledgeType.RELEASE
            if is_told and not (released or before.is_over or after.is_over):
                self._world.fail("Q13", f"no lock has ended of {text}")
