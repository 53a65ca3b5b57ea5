"""``kohort consume --group GROUP --share``: reads topics as a member of a share group."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Final

from ...consumer import BlockingShareConsumer
from ...consumer.events import Event
from ...consumer.share.event_lines import line_of_share
from ...consumer.share.events import LockLost
from ...consumer.share.records import ShareRecord
from ...protocol import ErrorCode, KafkaError
from ...settings import MAX_INT
from ..screen import Screen
from .membership import Complaints, member_settings
from .output import LOOK_S, Output, pipe_of_stdout

#: Most records at a time, and the longest wait for the first of them.
_MOST, _WAIT_MS = 500, 200
#: A share group has no end that a member could see: without ``--follow`` it has given everything when it
#: gives nothing for so long.
_QUIET_S: Final = 2.0


def print_as_share_member(
    options: argparse.Namespace, client_id: str, write: Callable[[list[ShareRecord]], int]
) -> None:
    """Write records as ``options`` say, and accept what the reader of the output has used. Raises KafkaError.

    The reader of the output may take its time: locks are renewed in another thread meanwhile.
    """
    settings = {
        **member_settings(options, client_id, _WAIT_MS),
        # what is locked and not printed has been delivered once more; some are printed and not used yet
        "max_locked_records": min(2 * _MOST, options.count or 2 * _MOST),
        # for as long as the reader of the output takes
        "max_processing_ms": MAX_INT,
    }
    consumer = BlockingShareConsumer(*dict.fromkeys(options.topics), **settings)
    consumer.logged = False
    consumer.events.listen(Complaints().note_event)
    consumer.events.listen(_tell_lost)
    left, output = options.count, Output[ShareRecord](pipe_of_stdout())
    with consumer:
        until = time.monotonic() + options.timeout
        while left is None or left > 0:
            shown = consumer.getmany(_MOST if left is None else min(left, _MOST), _WAIT_MS)
            if shown:
                output.note_written(shown, write(shown))
                until = time.monotonic() + _QUIET_S
            elif not options.follow and time.monotonic() > until:
                if consumer.assignment():
                    break
                text = f"no partition was assigned for {options.timeout:g} s: how many members has the group?"
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, text)
            consumer.accept(output.take_used())
            if left is not None:
                left -= len(shown)
        while output.end():
            time.sleep(LOOK_S)
            consumer.accept(output.take_used())
        consumer.flush()


def _tell_lost(event: Event) -> None:
    if isinstance(event, LockLost):
        Screen(as_json=False).remark(line_of_share(event)[1])
