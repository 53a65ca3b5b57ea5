"""Bugs planted in the consumer and in ConsumerService: see ``planted``.

``python -m tests.simulation.planted_services`` writes their table of docs/simulation.md.
"""

from __future__ import annotations

import sys
from functools import partial

from kohort.testing import simulate_service
from tests.simulation.planted import Bug, look_for

_Bug = partial(Bug, simulate=simulate_service)

SERVICE_BUGS = (
    _Bug(
        "letters in a retry topic are read by the user's reset policy",
        "consumer.reading.positions:Positions._policy_of",
        "self.policies.get(position.partition.topic, self._policy)",
        "self._policy",
    ),
    _Bug(
        "where a group begins is committed with what is done, and not at once",
        "consumer.done.committer:Committer.keep_starts",
        "if not self.keeps_starts:",
        "if True:",
    ),
    _Bug(
        "a partition that is added begins at its end",
        "consumer.reading.first_seen:FirstSeen.is_newer",
        "if seen is None:",
        "if True:",
    ),
    _Bug(
        "a partition is released while its handlers run",
        "service.run.queues:QueueScheduler.release",
        "await asyncio.wait(ends, timeout=timeout_s)",
        "await asyncio.wait(ends, timeout=0)",
    ),
    _Bug(
        "what is said to be done beyond a gap outlives a cut of the log",
        "consumer.reading.delivery:Delivery.known_to",
        "session.cut(offset)",
        "pass",
    ),
    _Bug(
        "a record that another consumer delivered can be marked done",
        "consumer.done.tracker:Tracker.begin_session",
        "randbits(62) + 1",
        "next(vars(self).setdefault('ids', iter(range(1, 1_000_000))))",
    ),
    _Bug(
        "a commit for a topic that is gone is tried until its time is up",
        "consumer.done.committer:Committer._sort_answers",
        "elif error.code in _UNKNOWN_TOPIC:",
        "elif False:",
    ),
    _Bug(
        "a commit goes by the name of its topic, whichever has it",
        "client.offsets:commit_once",
        "None not in ids.values()",
        "False",
    ),
    _Bug(
        "a partition that is behind pauses the others as well",
        "service.run.running_handler:RunningHandler._add_records",
        "self.pause(partition)",
        "[self.pause(each) for each in self.queues._partitions]",
    ),
    _Bug(
        "a commit that is tried again says what it said before",
        "consumer.done.committer:Committer._to_send",
        "offsets = self.tracker.committable(job.left, again=job.again)",
        "done = self.tracker.committable(job.left)\n"
        "        first = vars(self.tracker).setdefault(f'first-{job.number}', done)\n"
        "        offsets = {p: offset for p, offset in first.items() if p in job.left}",
    ),
    _Bug(
        "a handler that lets a CancelledError out ends its queue in silence",
        "service.handlers.handler:Handler.run",
        "return await self._after_failure(taken, attempt, _handlers_own(error), threads, send)",
        "await asyncio.get_running_loop().create_future()",
    ),
    _Bug(
        "commits that are refused are tried again without a pause",
        "consumer.done.committer:Committer._start_backoff",
        "self._retry_at = now_ms() + self.backoff.delay_ms(self._failures)",
        "pass",
    ),
    _Bug(
        "who closes a second time does not wait for the first",
        "consumer.run.closing:Closing.close",
        "self._hurry_drain(drain_timeout_ms)",
        "return",
    ),
    _Bug(
        "a close that is cancelled leaves all as it is",
        "consumer.run.closing:Closing.close",
        "await self._end_soon(self._work)",
        "self._work = asyncio.get_running_loop().create_task(asyncio.sleep(0))",
    ),
    _Bug(
        "fetching goes on whatever is buffered",
        "consumer.reading.fetcher:Fetcher._has_enough",
        "return buffered > self.config.max_partition_fetch_bytes or (\n"
        "        buffered > 0 and whole >= self.config.prefetch_max_bytes\n"
        "    )",
        "return False",
    ),
    _Bug(
        "records are delivered however many are not done",
        "consumer.run.assembly:ConsumerAssembly._make_delivery",
        "max_undone=self._config.max_undone_records",
        "max_undone=100 * self._config.max_undone_records",
    ),
    _Bug(
        "of an answer of which a part is kept, only that part counts",
        "consumer.reading.fetched_records:ChunkReader.memory",
        "self._data.obj",
        "self._data",
    ),
    _Bug(
        "batches are taken apart together however long they are",
        "consumer.reading.fetched_records:ChunkReader.next_run",
        "records < most and size < RUN_BYTES",
        "records < most",
    ),
    _Bug(
        "records wait for their handler however long they are",
        "service.run.running_handler:RunningHandler._add_records",
        "held.records > self._most_records or held.bytes > self._most_bytes",
        "held.records > self._most_records",
    ),
    _Bug(
        "a partition without a leader keeps the others from starting",
        "client.offsets:_by_leader",
        "parts[node][partition] = what",
        "pass",
    ),
    _Bug(
        "exactly once does not hear that offsets were reset and logs cut",
        "service.exactly_once.stored_offsets:StoredOffsets.note_truncation",
        "match event:",
        "match None:",
    ),
    _Bug(
        "an offset out of the sink is taken for whichever topic has the name",
        "service.exactly_once.stored_offsets:StoredOffsets.go_to",
        "if row.topic_id is not None:",
        "if False:",
    ),
    _Bug(
        "a topic that was recreated is read on where the one before was",
        "consumer.reading.start_offsets:StartOffsets.made_anew",
        "self.reading.positions.made_anew(position)",
        "return",
    ),
    _Bug(
        "after a cut reading goes on there, whatever is not done",
        "consumer.reading.start_offsets:StartOffsets._on_truncation",
        "min(offset, session.committable)",
        "offset",
    ),
    _Bug(
        "nobody asks whether a new leader has cut the log",
        "consumer.reading.start_offsets:StartOffsets.validate_positions",
        "end is not None and end.offset < position.fetch_offset",
        "False",
    ),
    _Bug(
        "what is done is not committed when a partition is given up",
        "consumer.run.handover:Handover._in_order",
        "if self.config.commits:",
        "if False:",
    ),
    _Bug(
        "a release waits for one record, not for all",
        "consumer.run.handover:Handover._wait_until_done",
        "while undone :=",
        "if undone :=",
    ),
    _Bug(
        "a handler that fails has handled its records",
        "service.handlers.handler:Handler._after_failure",
        "if delay_ms is not None and self._can_wait(records, delay_ms):",
        "return None\n    if delay_ms is not None and self._can_wait(records, delay_ms):",
    ),
    _Bug(
        "a dead letter is not written",
        "service.letters.deadletter:_write_letter",
        "await producer.send_and_wait(",
        "(lambda *_: None)(",
    ),
    _Bug(
        "who leaves does not tell the group",
        "consumer.run.driver:Driver.leave",
        "self._request_answer(effect)\n",
        "asyncio.sleep(0)\n",
    ),
    _Bug(
        "the leader does not see that a topic has grown",
        "consumer.group.classic:Membership.on_topics",
        "if changed:",
        "if False:",
    ),
    _Bug(
        "who may not read a topic for a while never reads it again",
        "consumer.reading.positions:Positions.in_phase",
        "return [",
        "now = -1.0 if any(p.failures for p in self._all.values()) else now\n    return [",
    ),
    _Bug(
        "a queue goes on behind a record that has failed",
        "service.run.queues:QueueScheduler._after_turn",
        "queue.timer = loop.call_at(due, self._try_again, queue)",
        "queue.taken = []\n            self._try_again(queue) if queue.waiting else self._end_queue(queue)",
    ),
    _Bug(
        "a member commits what is delivered, done or not",
        "consumer.done.partition_session:PartitionSession.to_commit",
        "self.first, self.leader_epoch",
        "self.position, self.leader_epoch",
    ),
    _Bug(
        "a member says that all behind a gap is done",
        "consumer.done.partition_session:PartitionSession._done_ranges",
        "yield bounds[at], bounds[at + 1]",
        "yield bounds[at], self.position; return",
    ),
    Bug(
        "what is being revoked is told as given up",
        "consumer.group.consumer_group:ConsumerMembership._partitions_by_id",
        "self._held.items()",
        "self._held.items() if p in self.owned",
        partial(simulate_service, protocol="consumer"),
    ),
)


if __name__ == "__main__":
    sys.exit(look_for(SERVICE_BUGS, " in services"))
