"""Talks to the brokers: fetches and acknowledgements of each broker's share session, one request at a time.

Acknowledgements ride on the next fetch. While records are in hand a fetch waits for a short time only, since
what is said meanwhile waits for its answer; if no fetch is due, they go in a request of their own. A session
that ends takes its locks with it.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeVar
from uuid import UUID

from ...client.cluster import Cluster
from ...client.errors import ConsumerClosedError
from ...client.metadata import ClusterMetadata
from ...client.pool import Channel
from ...client.waiting import Backoff, Signal, now_ms
from ...protocol import (
    AcknowledgeType,
    ApiKey,
    ErrorCode,
    KafkaError,
    KohortError,
    MalformedMessageError,
    RequestBody,
    TopicPartition,
)
from ...protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from ...protocol.messages.share_fetch import PartitionData, ShareFetchRequest, ShareFetchResponse
from ..events import BrokerUnavailable, Event, PartitionFailed
from .config import ShareConsumerConfig
from .events import RenewalUnavailable
from .fetched import ShareReader
from .locks import NOT_LOCKED, Locks
from .member import refusal_of
from .partition_places import PartitionPlaces
from .peers import BUSY_WAIT_MS, SharePeer, SharePeers
from .records import PartitionId, RecordLock, ShareRecord
from .session import CLOSING, Range, acknowledged_topics, ranges_of
from .verdicts import Gap, Said

T = TypeVar("T")

#: A fetch acquires no more than it may (KIP-1206); brokers before 4.2 give whole record batches.
_RECORD_LIMIT = 1
#: The version of ShareAcknowledge that renews locks (KIP-1222).
_RENEWING = 2
#: A broker answers so when share.renew.acknowledge.enable is off.
_OFF_FOR_THE_GROUP = "not enabled"
#: So few verdicts do not ride on fetches more often than that: a broker answers such a fetch when it has
#: stored them, and one without them at once.
_FEW_VERDICTS, _LINGER_MS = 100, 10
#: So few are handled before the next request is made; with more, the broker works on it meanwhile.
_FEW_RECORDS = 16
_CLOSE_MS = 2_000.0

_E = ErrorCode
_NO_SESSION = frozenset({_E.SHARE_SESSION_NOT_FOUND, _E.INVALID_SHARE_SESSION_EPOCH})
#: With these the broker has no locks of the partition any more.
_GONE = frozenset(
    {
        _E.NOT_LEADER_OR_FOLLOWER,
        _E.FENCED_LEADER_EPOCH,
        _E.UNKNOWN_TOPIC_OR_PARTITION,
        _E.UNKNOWN_TOPIC_ID,
        _E.INCONSISTENT_TOPIC_ID,
        _E.FENCED_STATE_EPOCH,
        _E.GROUP_ID_NOT_FOUND,
    }
)
_FOR_GOOD = frozenset({_E.GROUP_AUTHORIZATION_FAILED, _E.UNSUPPORTED_VERSION, _E.INVALID_REQUEST})


@dataclass(slots=True, eq=False)
class _Failing:
    """A partition that a broker refuses to fetch, with ``code``: it is left out until ``until`` (ms)."""

    code: int = 0
    count: int = 0
    until: float = 0.0


@dataclass(slots=True, eq=False)
class ShareExchange:
    """Run ``run`` as a task; call ``wake`` when records were taken or acknowledged.

    ``deliver`` takes acquired records and about how many bytes they have, ``buffered`` tells how many of them
    wait for the user, and their bytes, ``assignment`` the partitions to fetch. Answers that no request can
    change are raised in ``run``.
    """

    config: ShareConsumerConfig
    cluster: Cluster
    locks: Locks
    reader: ShareReader
    member_id: str
    _: KW_ONLY
    backoff: Backoff
    topics: Callable[[], frozenset[str]]
    assignment: Callable[[], frozenset[PartitionId]]
    deliver: Callable[[list[ShareRecord], int], None]
    buffered: Callable[[], tuple[int, int]]
    report: Callable[[Event], None]
    #: Called when the names of topics may have become known.
    named: Callable[[], None]
    #: Whether to fetch: not any more while the consumer closes.
    reads: bool = True
    #: Partitions and topics that are not fetched for now.
    paused: set[TopicPartition | str] = field(default_factory=set)
    _failing: dict[PartitionId, _Failing] = field(default_factory=lambda: defaultdict(_Failing))
    #: How often brokers have refused in a row, for the time being, what was said of a partition.
    _put_off: dict[PartitionId, int] = field(default_factory=dict)
    #: Fires when there may be something to send, and when other brokers may lead something.
    _due: Signal = field(default_factory=Signal)
    _changed: Signal = field(default_factory=Signal)
    #: The metadata in which ``run`` has looked for brokers.
    _looked_at: ClusterMetadata | None = None
    _renewal_told: bool = False
    _error: Exception | None = None
    _over: bool = False
    _where: PartitionPlaces = field(init=False)
    _peers: SharePeers = field(init=False)

    def __post_init__(self) -> None:
        self._where = PartitionPlaces(
            self.cluster,
            self.backoff,
            self.config.metadata_max_age_ms,
            topics=self.topics,
            assignment=self.assignment,
            report=self.report,
            on_look=self._on_topics,
        )
        self._peers = SharePeers(self.config, self.locks, buffered=self.buffered, wake=self.wake)

    def __repr__(self) -> str:
        return f"ShareExchange({len(self._peers.by_node)} brokers, {self.locks!r})"

    @property
    def runs(self) -> bool:
        """Whether what is said will be sent."""
        return not self._over

    def wake(self) -> None:
        """Look what is to be sent."""
        self._due.fire()

    def assigned(self) -> None:
        """The assignment has changed."""
        self._where.look_again.fire()
        self._look_around()

    async def watch_topics(self) -> None:
        """Keep the metadata of the topics fresh; until cancelled."""
        await self._where.watch_topics()

    def name_of(self, place: PartitionId) -> TopicPartition | None:
        """Return the partition by its topic's name; None while that is not known."""
        return self._where.names.get(place)

    def _on_topics(self) -> None:
        self.named()
        self._look_around()

    def _look_around(self) -> None:
        """Look which brokers there are to talk to, and what is to be sent."""
        self._changed.fire()
        self._due.fire()

    async def run(self) -> None:
        """Until cancelled. Raises what ends the membership, KafkaError for example."""
        try:
            while True:
                if self._error is not None:
                    raise self._error
                self._looked_at = self.cluster.known_metadata
                self._look_at_leaders()
                nodes = {self._where.node_of(place) for place in self._where.all()}
                for node in nodes:
                    if node is not None:
                        self._start(node)
                for node, peer in self._peers.by_node.items():
                    if node not in nodes:
                        # of a former leader, which may never answer, nothing is taken
                        peer.asked_for = 0
                        self._peers.pass_room(node)
                await self._changed.wait()
        finally:
            await self._end_tasks()

    async def _end_tasks(self) -> None:
        self._over = True
        self._look_around()
        tasks = [peer.task for peer in self._peers.by_node.values() if peer.task is not None]
        try:
            if carrying := [p.task for p in self._peers.by_node.values() if p.task is not None and p.carries]:
                await asyncio.wait(carrying, timeout=_CLOSE_MS / 1000)
        finally:  # where the time for a close is over, too
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, node: int) -> None:
        peer = self._peers.by_node.setdefault(node, SharePeer())
        if peer.task is None or peer.task.done():
            peer.task = asyncio.create_task(self._serve(node, peer), name=f"kohort share session {node}")

    # locks that end with their leader

    def _look_at_leaders(self) -> None:
        """Locks are in the memory of the leader that gave them: they end when another one leads."""
        for place, node in list(self._where.acquired_at.items()):
            leader = self._where.leader_of(place)
            if leader not in (None, node):
                self._lose(place, "its partition has another leader")

    def _lose_if_gone(self, node: int, place: PartitionId, error: KafkaError) -> None:
        """A broker refuses something of a partition. Its locks may be there all the same."""
        if error.code in _GONE and self._where.acquired_at.get(place) == node:
            self._lose(place, str(error))
        self._where.look_again.fire()

    def _lose(self, place: PartitionId, reason: str) -> None:
        self._forget_where(place)
        self.locks.lose(place, now_ms(), reason)

    def _forget_where(self, place: PartitionId) -> None:
        """Nothing of a partition is held: its leader, perhaps another broker, is to give more."""
        if self._where.acquired_at.pop(place, None) is not None:
            self._changed.fire()

    @property
    def refill_at(self) -> int:
        """With so many records left to be delivered a quick reader lets the next ones be asked for."""
        return self._peers.refill_at

    # one broker

    async def _serve(self, node: int, peer: SharePeer) -> None:
        """Talk to a broker for as long as it leads something that is assigned, or has given something."""
        try:
            await self._take_steps(node, peer)
        finally:
            self._peers.pass_room(node)

    async def _take_steps(self, node: int, peer: SharePeer) -> None:
        while not self._over and ((places := self._where.at(node)) or peer.session.is_open):
            try:
                if await self._take_step(node, peer, places):
                    peer.failures = 0
                else:
                    await self._due.wait(self._pause_ms(peer, places))
            except ConsumerClosedError:
                return
            except KohortError as error:
                if not self.runs:
                    return
                self._end_session(node, peer, error)
                if isinstance(error, KafkaError) and error.code in _FOR_GOOD:
                    self._fail(refusal_of(self.config.group, error.code) or error)
                    return
                if not isinstance(error, KafkaError) or error.code not in _NO_SESSION:
                    self.report(BrokerUnavailable(f"sharing records of node {node}", error))
                self._where.look_again.fire()
                peer.failures += 1
                await asyncio.sleep(self.backoff.delay_ms(peer.failures - 1) / 1000)
            except Exception as error:  # which nobody would hear of: the task has no other end
                self._fail(error)
                return
            if self.cluster.known_metadata is not self._looked_at:
                self._look_at_leaders()
                self._look_around()
            if 0 < peer.given <= _FEW_RECORDS:
                # they are handled before the next request is made, which then carries what is said of them
                peer.given = 0
                await asyncio.sleep(0)

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._look_around()

    def _end_session(self, node: int, peer: SharePeer, error: KohortError) -> None:
        """Open another session next. Locks end with a connection and with a session that the broker has not;
        a session that is opened anew leaves them.
        """
        peer.session.on_lost()
        peer.renews = None
        peer.unread.clear()
        self._peers.pass_room(node)
        if isinstance(error, KafkaError) and error.code is not _E.SHARE_SESSION_NOT_FOUND:
            return
        for place in [place for place, at in self._where.acquired_at.items() if at == node]:
            self.locks.give_back(place, now_ms(), str(error))

    async def _take_step(self, node: int, peer: SharePeer, places: list[PartitionId]) -> bool:
        """Send what is most urgent; return whether there was anything."""
        now, session = now_ms(), peer.session
        if self.locks.over_at(places) <= now:
            self.locks.lose_over(places, now)
        assigned = self.assignment()
        wanted = [
            place
            for place in places
            if place in assigned
            and self._where.leader_of(place) == node
            and now >= self._failing_until(place)
            and not self._is_paused(place)
        ]
        if session.is_open and self.locks.renew_at(places) <= now and await self._renew(node, peer, places):
            return True
        if self.reads and wanted and (room := self._peers.room_for(node, places)) > 0:
            await self._fetch(node, peer, places, wanted, room)
            return True
        if peer.unread:
            self._take_in(node, peer)
            return True
        if not wanted:
            self._peers.pass_room(node)
        since = self.locks.waiting_since(places)
        due = since < math.inf or self.locks.renew_at(places) <= now
        if not session.is_open and due:
            await self._fetch(node, peer, places, [], 0)  # which opens one
        elif session.is_open and not places:
            await self._acknowledge(node, peer, places, closes=True)
        elif session.is_open and not wanted and session.known:
            await self._fetch(node, peer, places, wanted, 0)
        elif session.is_open and (now >= since + BUSY_WAIT_MS or (self.locks.flushes and since <= now)):
            await self._acknowledge(node, peer, places)
        else:
            for place in places:
                if not self.locks.count([place]) and place in self._where.acquired_at and since == math.inf:
                    self._forget_where(place)
            return False
        return True

    def _pause_ms(self, peer: SharePeer, places: list[PartitionId]) -> float | None:
        now, assigned = now_ms(), self.assignment()
        retries = (self._failing_until(place) for place in places if place in assigned)
        at = min(
            self.locks.waiting_since(places) + BUSY_WAIT_MS,
            self.locks.renew_at(places),
            self.locks.over_at(places),
            *(until for until in (*retries, peer.empty_at + BUSY_WAIT_MS) if until > now),
        )
        return None if at == math.inf else max(1.0, at - now)

    def _is_paused(self, place: PartitionId) -> bool:
        name = self._where.names.get(place)
        return name is not None and (name in self.paused or name.topic in self.paused)

    def _failing_until(self, place: PartitionId) -> float:
        failing = self._failing.get(place)
        return 0.0 if failing is None else failing.until

    async def _fetch(
        self, node: int, peer: SharePeer, places: list[PartitionId], wanted: list[PartitionId], room: int
    ) -> None:
        config, session, now = self.config, peer.session, now_ms()
        wait_ms, lingers_ms = config.fetch_max_wait_ms, peer.told_at + _LINGER_MS - now
        lingers = bool(room) and lingers_ms > 0 and self.locks.may_linger(places, _FEW_VERDICTS)
        taken = self.locks.take_waiting(places, now) if session.is_open and not lingers else {}
        left_at = self.locks.waiting_since(places)
        # what was refused as a whole is sent in parts, which do not wait for each other
        at_once = (taken and self.locks.flushes) or self._peers.is_crowded(peer)
        if not room or at_once or (left_at <= now and not lingers):
            wait_ms = 0
        elif lingers:
            wait_ms = min(wait_ms, math.ceil(lingers_ms))
        elif (
            taken
            or left_at < math.inf
            or self.locks.count(self.locks.held)
            or self._peers.sharing > config.max_locked_records
        ):
            wait_ms = min(wait_ms, BUSY_WAIT_MS)
        epoch = session.epoch
        topics, forgotten = session.name_partitions(wanted, _ranges(taken))
        body = ShareFetchRequest(
            config.group,
            self.member_id,
            epoch,
            wait_ms,
            config.fetch_min_bytes,
            config.fetch_max_bytes if room else 0,
            room,
            room,
            _RECORD_LIMIT,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        self._on_sending(peer, taken)
        if room:
            peer.set_pace(now)
        peer.asked_for = room
        try:
            timeout_ms = config.request_timeout_ms + wait_ms
            response = await self._ask(node, peer, body, timeout_ms)
            self._check_session(peer, response.error_code, response.error_message, "ShareFetch")
            self._on_fetched(node, peer, taken, response, now + wait_ms)
        except KohortError as error:
            self._on_refusal(node, taken, error)
            raise
        finally:
            peer.carries = False
            peer.asked_for = 0
            self._peers.on_answer()
        if self.locks.held and not self._renewal_told and self.config.renew_locks:
            await self._tell_renewal(node, peer)

    def _on_sending(self, peer: SharePeer, taken: dict[PartitionId, list[Said]]) -> None:
        peer.carries = bool(taken)
        if taken:
            peer.told_at = now_ms()

    def _on_fetched(
        self,
        node: int,
        peer: SharePeer,
        taken: dict[PartitionId, list[Said]],
        response: ShareFetchResponse,
        due: float,
    ) -> None:
        """Take in the answers, which leave ``taken``, and records, unless many are new: those are taken in
        while the broker works on the next request. The response was ``due`` then; it may have come slowly, or
        long ago, if this process stood still.
        """
        now = now_ms()
        peer.given = 0
        if response.acquisition_lock_timeout_ms:
            self.locks.duration_ms = float(response.acquisition_lock_timeout_ms)
        for topic in response.responses:
            for row in topic.partitions:
                place = _place_of(topic.topic_id, row.partition_index)
                self._on_acknowledged(
                    node,
                    place,
                    taken.pop(place, []),
                    row.acknowledge_error_code,
                    row.acknowledge_error_message,
                    now,
                )
                self._on_row(node, peer, place, row, min(now, due))
        if peer.asked_for:
            peer.has_records = peer.given > 0
            peer.empty_at = -math.inf if peer.given else now
        peer.brought = peer.given
        for place, part in taken.items():
            self.locks.on_answered(place, part, None, now)
        taken.clear()
        are_new = all(self.locks.are_new(place, row.acquired_records) for place, row, _ in peer.unread)
        if peer.given <= _FEW_RECORDS or self._over or not are_new:
            self._take_in(node, peer)

    def _check_session(self, peer: SharePeer, code: int, message: str | None, api: str) -> None:
        if code:
            raise KafkaError(code, message or f"the broker refused {api}")
        peer.session.on_answered()

    def _on_refusal(self, node: int, taken: dict[PartitionId, list[Said]], error: KohortError) -> None:
        """A request with verdicts was not answered, or refused as a whole: the session ends."""
        for place, part in taken.items():
            if not isinstance(error, KafkaError) or not error.retriable:
                self.locks.on_unanswered(part, error)
            elif self._where.acquired_at.get(place) == node:
                self.locks.put_back(place, part, error, now_ms())
            else:
                self.locks.on_lost(part, now_ms(), str(error))

    def _on_acknowledged(
        self, node: int, place: PartitionId, part: list[Said], code: int, message: str | None, now: float
    ) -> None:
        error = None
        if code:
            error = KafkaError(code, message or f"acknowledging {self._where.show(place)}")
        if error is not None and self._where.acquired_at.get(place) != node:
            # those locks have ended. By now another leader may have given the same records
            self.locks.on_lost(part, now, str(error))
        elif part and error is not None and error.retriable and error.code not in _GONE:
            self.locks.put_back(place, part, error, now, self._put_off_ms(place, error))
        elif part:
            self._put_off.pop(place, None)
            self.locks.on_answered(place, part, error, now)
        if error is not None and error.code not in NOT_LOCKED:
            self._lose_if_gone(node, place, error)

    def _put_off_ms(self, place: PartitionId, error: KafkaError) -> float:
        """How long to wait until what a broker has refused is asked for again; the first time is told."""
        count = self._put_off[place] = self._put_off.get(place, -1) + 1
        if not count:
            self.report(BrokerUnavailable(f"acknowledging records of {self._where.show(place)}", error))
        return self.backoff.delay_ms(count)

    def _on_row(self, node: int, peer: SharePeer, place: PartitionId, row: PartitionData, now: float) -> None:
        """Note what was acquired, at this time at the latest, or why nothing was."""
        if self._where.node_of(place) not in (None, node):
            # another broker has come to lead the partition meanwhile
            return
        if row.error_code:
            error = KafkaError(row.error_code, row.error_message or f"fetching {self._where.show(place)}")
            failing = self._failing[place]
            if place in self._where.names and failing.code != error.code:
                self.report(PartitionFailed(self._where.names[place], error))
            failing.code, failing.until = error.code, now + self.backoff.delay_ms(failing.count)
            failing.count += 1
            self._lose_if_gone(node, place, error)
            return
        self._failing.pop(place, None)
        if row.acquired_records:
            self._where.acquired_at[place] = node
            peer.unread.append((place, row, now))
            peer.given += sum(part.last_offset - part.first_offset + 1 for part in row.acquired_records)

    def _take_in(self, node: int, peer: SharePeer) -> None:
        """Deliver the records of the last answer."""
        unread, peer.unread = peer.unread, []
        for place, row, acquired_ms in unread:
            if self._where.acquired_at.get(place) != node:
                continue  # another broker leads the partition by now
            name = self._where.names.get(place)
            if name is None:
                raise MalformedMessageError(f"records of {place}, which were not asked for")
            lock = RecordLock(acquired_ms, acquired_ms + self.locks.duration_ms)
            found = self.reader.read(name.topic, place, lock, row.records or b"", row.acquired_records)
            if found.damage is not None:
                self.report(PartitionFailed(name, found.damage))
            self.locks.take(place, found.records, found.rest, acquired_ms)
            if found.records:
                self.deliver(found.records, found.size)

    async def _acknowledge(
        self, node: int, peer: SharePeer, places: list[PartitionId], *, closes: bool = False
    ) -> None:
        """Send what waits in a request of its own."""
        taken = self.locks.take_waiting(places, math.inf if closes else now_ms())
        epoch = CLOSING if closes else peer.session.epoch
        body = ShareAcknowledgeRequest(
            self.config.group, self.member_id, epoch, topics=acknowledged_topics(_ranges(taken))
        )
        self._on_sending(peer, taken)
        try:
            timeout_ms = _CLOSE_MS if closes else None
            response = await self._ask(node, peer, body, timeout_ms)
            self._check_session(peer, response.error_code, response.error_message, "ShareAcknowledge")
            if closes:
                peer.session.on_lost()
            answers = _answers(response)
        except KohortError as error:
            self._on_refusal(node, taken, error)
            raise
        finally:
            peer.carries = False
        now = now_ms()
        for place, code, message in answers:
            self._on_acknowledged(node, place, taken.pop(place, []), code, message, now)
        for place, part in taken.items():
            self.locks.on_answered(place, part, None, now)

    async def _ask(
        self,
        node: int,
        peer: SharePeer,
        body: RequestBody[T],
        timeout_ms: float | None = None,
    ) -> T:
        peer.is_asked = True
        self._peers.on_request(node)
        try:
            try:
                connection = await self.cluster.connect_to(node, Channel.DATA)
                answer = connection.ask(body, timeout_ms=timeout_ms or self.config.request_timeout_ms)
                if peer.unread:
                    # an event loop may write it at the end of its turn
                    await asyncio.sleep(0)
            finally:
                self._take_in(node, peer)
            return await answer
        except asyncio.CancelledError:
            # the broker carries it out before what closing sends behind it
            peer.session.on_answered()
            raise
        finally:
            peer.is_asked = False

    # renewals

    async def _tell_renewal(self, node: int, peer: SharePeer) -> None:
        """Warn before the first lock is lost if this broker cannot renew locks."""
        if peer.renews is None:
            connection = await self.cluster.connect_to(node, Channel.DATA)
            peer.renews = connection.version_for(ApiKey.SHARE_ACKNOWLEDGE) >= _RENEWING
            if not peer.renews:
                self._cannot_renew("the broker cannot renew locks (Apache Kafka: from 4.2 on)")

    def _cannot_renew(self, reason: str) -> None:
        if not self._renewal_told:
            self._renewal_told = True
            self.report(RenewalUnavailable(reason, self.locks.duration_ms))

    async def _renew(self, node: int, peer: SharePeer, places: list[PartitionId]) -> bool:
        """Renew the locks that end soon, and those that the user asked for."""
        now = now_ms()
        due = self.locks.due_renewals(places, now, unasked=self.config.renew_locks)
        self.locks.plan_renewals(places, now)
        if due and not self._renewal_told:
            await self._tell_renewal(node, peer)
        if not due or self._renewal_told:
            return False
        while due:
            try:
                due = await self._send_renewal(node, peer, due)
            except KohortError:
                # in another session, if the locks are still there
                for part in due.values():
                    self.locks.ask_again(part)
                raise
        # what has come due meanwhile is renewed next
        self.locks.plan_renewals(places, now)
        return True

    async def _send_renewal(
        self, node: int, peer: SharePeer, due: Mapping[PartitionId, list[ShareRecord]]
    ) -> dict[PartitionId, list[ShareRecord]]:
        """Return what is to be sent again, in parts."""
        said = {
            place: ranges_of([Gap(r.offset, AcknowledgeType.RENEW, 0.0) for r in part])
            for place, part in due.items()
        }
        body = ShareAcknowledgeRequest(
            self.config.group, self.member_id, peer.session.epoch, True, acknowledged_topics(said)
        )
        sent_at = now_ms()
        response = await self._ask(node, peer, body)
        self._check_session(peer, response.error_code, response.error_message, "ShareAcknowledge")
        if response.acquisition_lock_timeout_ms:
            self.locks.duration_ms = float(response.acquisition_lock_timeout_ms)
        return self._after_renewal(node, due, response, sent_at)

    def _after_renewal(
        self,
        node: int,
        asked: Mapping[PartitionId, list[ShareRecord]],
        response: ShareAcknowledgeResponse,
        sent_at: float,
    ) -> dict[PartitionId, list[ShareRecord]]:
        """Take in the answers; return the renewals to repeat one by one, as one of several was refused."""
        now, again = now_ms(), dict[PartitionId, list[ShareRecord]]()
        errors = {
            place: KafkaError(code, message or f"renewing locks of {self._where.show(place)}")
            for place, code, message in _answers(response)
            if code
        }
        for place, part in asked.items():
            error = errors.get(place)
            if error is None:
                self._put_off.pop(place, None)
                # the broker may have done it at once, and the answer come late
                self.locks.on_renewed(part, sent_at)
            elif _OFF_FOR_THE_GROUP in str(error):
                self._cannot_renew("share.renew.acknowledge.enable is false for the group")
            elif error.code in _GONE:
                self._lose_if_gone(node, place, error)
            elif error.code not in NOT_LOCKED:
                self.locks.renew_later(place, part, now + self._put_off_ms(place, error))
            elif len(part) == 1:
                self.locks.on_not_renewed(part[0], error, now)
            else:
                half = len(part) // 2
                again[place] = part[:half]
                self.locks.ask_again(part[half:])
        return again

    # the end

    async def close(self) -> None:
        """Send what waits, and close the sessions: brokers give the rest to others. ``run`` has ended."""

        async def close_session(node: int, peer: SharePeer) -> None:
            places = self._where.at(node)
            # with a session end the locks of its partitions, and not of those that it has forgotten
            self.locks.release_held([place for place in places if place not in peer.session.known])
            while peer.session.is_open:
                # again while something of what was said is to be sent in parts
                since = self.locks.waiting_since(places)
                if now_ms() < since < math.inf:
                    await asyncio.sleep((since - now_ms()) / 1000)
                await self._acknowledge(node, peer, places, closes=since == math.inf)
                if since == math.inf:
                    return

        closing = (close_session(node, peer) for node, peer in self._peers.by_node.items())
        await asyncio.gather(*closing, return_exceptions=True)


def _ranges(taken: Mapping[PartitionId, list[Said]]) -> dict[PartitionId, list[Range]]:
    return {place: ranges_of(part) for place, part in taken.items()}


def _place_of(topic_id: UUID | None, number: int) -> PartitionId:
    if topic_id is None:
        raise MalformedMessageError("a response has a topic without an id")
    return PartitionId(topic_id, number)


def _answers(response: ShareAcknowledgeResponse) -> list[tuple[PartitionId, int, str | None]]:
    return [
        (_place_of(topic.topic_id, row.partition_index), row.error_code, row.error_message)
        for topic in response.responses
        for row in topic.partitions
    ]
