"""Letters: records on which a handler failed, as they are in a topic, with the reason in their headers.

Dead letters stay there; letters in a retry topic name the time at which they are handled again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...consumer.record import Record

#: Headers that are added to a record.
DEAD_LETTER_HEADERS: Final = (
    "kohort.origin.topic",
    "kohort.origin.partition",
    "kohort.origin.offset",
    "kohort.origin.timestamp_ms",
    "kohort.group",
    "kohort.attempts",
    "kohort.error.class",
    "kohort.error.message",
    "kohort.error.stack",
)
#: Those of them whose values may be cut.
MESSAGE_HEADER, STACK_HEADER = DEAD_LETTER_HEADERS[-2:]
#: Header of a letter in a retry topic, after the ones above: when it is due, in milliseconds since 1970.
RETRY_DUE_HEADER: Final = "kohort.retry.due_ms"
#: All of them.
RETRY_HEADERS: Final = (*DEAD_LETTER_HEADERS, RETRY_DUE_HEADER)


class DeadLetter(NamedTuple):
    """The content of a dead letter's headers. Times are milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    group: str
    attempts: int
    error_class: str
    error_message: str
    error_stack: str


def read_dead_letter(record: Record) -> DeadLetter | None:
    """Where a dead letter comes from, and why; None for a record that no service has set aside."""
    # a replay removes these headers, so a letter that failed again has only the last ones
    said = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    try:
        topic, partition, offset, time, group, attempts, *why = (said[name] for name in DEAD_LETTER_HEADERS)
        return DeadLetter(topic, int(partition), int(offset), int(time), group, int(attempts), *why)
    except (KeyError, ValueError):
        return None


class RetryLetter(NamedTuple):
    """A letter in a retry topic: the record as it was at first, and when it is due, in ms since 1970."""

    letter: DeadLetter
    record: Record
    due_ms: int


def no_retry_letter(record: Record) -> str:
    """Why ``read_retry`` returned None for a record."""
    names = [name for name, _ in record.headers]
    missing = [name for name in RETRY_HEADERS if name not in names]
    if len(missing) == len(RETRY_HEADERS):
        return "it has none of a letter's headers"
    if missing:
        return f"it has no header {missing[0]}"
    if tuple(names[-len(RETRY_HEADERS) :]) != RETRY_HEADERS:
        return "a letter's headers are not its last ones"
    return "a number in a letter's headers cannot be read"


def read_retry(record: Record) -> RetryLetter | None:
    """The content of a letter in a retry topic; None for any other record."""
    own = record.headers[-len(RETRY_HEADERS) :]
    if tuple(name for name, _ in own) != RETRY_HEADERS:
        return None
    said = read_dead_letter(record)
    try:
        due_ms = int(own[-1][1] or b"")
    except ValueError:
        return None
    if said is None:
        return None
    first = record._replace(
        topic=said.topic,
        partition=said.partition,
        offset=said.offset,
        timestamp_ms=said.timestamp_ms,
        headers=record.headers[: -len(RETRY_HEADERS)],
    )
    return RetryLetter(said, first, due_ms)
