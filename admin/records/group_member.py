"""``kohort consume --group``: reads topics as a member of a group."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from ...consumer import AsyncGroupConsumer, Record, StaleRecordError
from ...protocol import ErrorCode, KafkaError, TopicPartition
from ...settings import MAX_INT
from ...statemachine import MemberState
from .membership import Complaints, member_settings
from .output import END_S, LOOK_S, Output, pipe_of_stdout

#: Most records at a time, and the longest wait for the first of them.
_MOST, _WAIT_MS = 500, 200
_FETCH_WAIT_MS: Final = 500


async def print_as_member(
    options: argparse.Namespace,
    client_id: str,
    ends: Mapping[TopicPartition, int],
    write: Callable[[list[Record]], int],
) -> None:
    """Write records as ``options`` say, and commit what the output's reader has used. Raises KafkaError."""
    settings = {
        **member_settings(options, client_id, _FETCH_WAIT_MS),
        # as without a group
        "receive_message_max_bytes": MAX_INT,
        "isolation_level": "read_committed" if options.read_committed else "read_uncommitted",
        # a reader of the output that does not read holds up no other member
        "drain_timeout_ms": round(END_S * 1_000),
        "auto_offset_reset": options.start if isinstance(options.start, str) else options.start[1],
    }
    consumer = AsyncGroupConsumer(*dict.fromkeys(options.topics), **settings)
    consumer.logged = False
    consumer.events.listen(Complaints().note_event)
    left = options.count
    watch, output = _Patience(options.timeout), Output[Record](pipe_of_stdout())
    async with consumer:
        while options.follow or not _at_end(consumer, ends):
            if not options.follow:
                watch.require_progress(consumer)
            shown = await consumer.getmany(_MOST if left is None else min(left, _MOST), _WAIT_MS)
            if not options.follow:
                # leave out what was written after the command began
                shown = [record for record in shown if record.offset < ends.get(record.topic_partition, 0)]
            if shown:
                output.note_written(shown, write(shown))
            _mark_done(consumer, output.take_used())
            if left is not None:
                left -= len(shown)
                if left <= 0:
                    break
        while output.end():
            await asyncio.sleep(LOOK_S)
            _mark_done(consumer, output.take_used())


def _mark_done(consumer: AsyncGroupConsumer, used: list[Record]) -> None:
    with suppress(StaleRecordError):  # others have those by now
        consumer.done_all(used)


class _Patience:
    """Ends the wait for records up to the end of topics that were deleted, or have no leader."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before: object = None
        self._until = 0.0

    def require_progress(self, consumer: AsyncGroupConsumer) -> None:
        """Raise KafkaError if a member of a stable group has read nothing for too long."""
        positions = {partition: consumer.position(partition) for partition in consumer.assignment()}
        now = time.monotonic()
        if positions != self._before or consumer.state.state is not MemberState.STABLE:
            self._before, self._until = positions, now + self._seconds
        elif now > self._until:
            text = f"nothing more could be read for {self._seconds:g} s: was the topic deleted?"
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"{text} `kohort topics describe` shows its leaders"
            )


def _at_end(consumer: AsyncGroupConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    """Return whether every partition of this member is read to its end."""
    if consumer.state.state is not MemberState.STABLE:
        return False
    positions = {partition: consumer.position(partition) for partition in consumer.assignment()}
    return all(
        position is not None and position >= ends.get(partition, 0)
        for partition, position in positions.items()
    )
