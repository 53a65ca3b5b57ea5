"""Bugs planted in the share consumer, and in services on share groups: see ``planted``.

``python -m tests.simulation.planted_share_consumers`` writes their table of docs/simulation.md.
"""

from __future__ import annotations

import sys
from functools import partial

from kohort.testing import simulate_share_consumers, simulate_share_services
from tests.simulation.planted import Bug, look_for

_Bug = partial(Bug, simulate=simulate_share_consumers)

_LOCKS = (
    _Bug(
        "a refused acknowledgement counts",
        "consumer.share.locks:Locks.on_answered",
        "if error is None:",
        "if error is None or part:",
    ),
    _Bug(
        "an acknowledgement counts though its answer was lost",
        "consumer.share.locks:Locks.on_unanswered",
        "self._answer(records_in(part), error)",
        "self._answer(records_in(part), None)",
    ),
    _Bug(
        "of a list that is refused no part is sent again",
        "consumer.share.locks:Locks.on_answered",
        "if error.code in NOT_LOCKED and",
        "if False and",
    ),
    _Bug(
        "nobody is told that a lock is lost",
        "consumer.share.locks:Locks._lose",
        "self.report(LockLost(record, record.verdict, late_ms, reason))",
        "pass",
    ),
    _Bug(
        "the verdict on a record is that on its neighbour",
        "consumer.share.session:ranges_of",
        "and said.verdict is verdict",
        "",
    ),
    _Bug(
        "what is between two records is acknowledged with them",
        "consumer.share.session:ranges_of",
        "offset == last + 1",
        "offset > last >= 0",
    ),
)

_EXCHANGE = (
    _Bug(
        "locks are not renewed",
        "consumer.share.exchange:ShareExchange._renew",
        "if not due or",
        "if True or",
    ),
    _Bug(
        "a lock is taken to last three times as long",
        "consumer.share.exchange:ShareExchange._take_in",
        "acquired_ms + self.locks.duration_ms",
        "acquired_ms + 3 * self.locks.duration_ms",
    ),
    _Bug(
        "more is locked than may be",
        "consumer.share.peers:SharePeers.room_for",
        "return min(room, free)",
        "return limit",
    ),
    _Bug(
        "a partition that was refused is left out for good",
        "consumer.share.exchange:ShareExchange._on_row",
        "now + self.backoff.delay_ms(failing.count)",
        "now + 1e9",
    ),
    _Bug(
        "after an error a session goes on as it was",
        "consumer.share.exchange:ShareExchange._end_session",
        "peer.session.on_lost()",
        "pass",
    ),
    _Bug(
        "the epoch of a session does not rise",
        "consumer.share.session:PeerSession.on_answered",
        "1 if self.epoch == _LAST else self.epoch + 1",
        "1",
    ),
    _Bug(
        "what is assigned is not looked for",
        "consumer.share.consumer:ShareConsumer._on_assigned",
        "self._exchange.assigned()",
        "pass",
    ),
    _Bug(
        "records behind the first of a batch are called gaps",
        "consumer.share.fetched:ShareReader.read",
        "places += range(first, last)",
        "places += range(first, min(last, 1))",
    ),
    _Bug(
        "each delivery counts as the first",
        "consumer.share.fetched:ShareReader.read",
        "[span.delivery_count]",
        "[1]",
    ),
)

_CONSUMER = (
    _Bug(
        "a record that fails is accepted",
        "consumer.share.records:ShareRecord.__aexit__",
        "_ACCEPT if kind is None else _RELEASE",
        "_ACCEPT",
    ),
    _Bug(
        "a record is delivered though its lock ended as it waited",
        "consumer.share.consumer:ShareConsumer.next_records",
        "and lock.deadline_ms > now",
        "",
    ),
    _Bug(
        "what was not delivered is accepted at the end",
        "consumer.share.consumer:ShareConsumer._release_buffered",
        "AcknowledgeType.RELEASE",
        "AcknowledgeType.ACCEPT",
    ),
    _Bug(
        "a consumer that closes keeps its sessions",
        "consumer.share.consumer:ShareConsumer.close",
        "await self._exchange.close()",
        "pass",
    ),
    _Bug(
        "a consumer that closes stays in the group",
        "consumer.share.consumer:ShareConsumer.close",
        "await self._member.leave()",
        "pass",
    ),
)

_SERVICE = (
    Bug(
        "what a service cannot handle is rejected without a letter",
        "service.handlers.handler:Handler._set_aside",
        "await send(topic, record, error, attempt, due_ms)",
        "pass",
        simulate_share_services,
    ),
    Bug(
        "what a service has set aside is accepted",
        "service.handlers.handler:Handler._set_aside",
        "reject(record)",
        "pass",
        simulate_share_services,
    ),
    Bug(
        "what waits for another try is accepted without being in a retry topic",
        "service.handlers.handler:Handler._set_aside",
        "await send(topic, record, error, attempt, due_ms)",
        "due_ms is None and await send(topic, record, error, attempt, due_ms)",
        simulate_share_services,
    ),
    Bug(
        "what fails in a retry topic goes into the first one again",
        "service.handlers.handler:Handler._next_retry_topic",
        "nth = int(stage)",
        "nth = 0",
        simulate_share_services,
    ),
    Bug(
        "a handler of a share group that fails has handled its records",
        "service.handlers.handler:Handler._after_failure",
        "if delay_ms is not None and self._can_wait(records, delay_ms):",
        "return None\n    if delay_ms is not None:",
        simulate_share_services,
    ),
    Bug(
        "a handler begins with a record whose lock has ended",
        "service.share.deliveries:Deliveries.is_over",
        "lock.deadline_ms <= now_ms()",
        "False",
        simulate_share_services,
    ),
)

SHARE_CONSUMER_BUGS = (*_LOCKS, *_EXCHANGE, *_CONSUMER, *_SERVICE)


if __name__ == "__main__":
    sys.exit(look_for(SHARE_CONSUMER_BUGS, " in share consumers"))
