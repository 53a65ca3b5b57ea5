"""Letters: records that services have set aside, or that a share group archived, each with its reason. They
are read, chosen, and written back.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from ...client import Cluster
from ...consumer import Record
from ...producer import Producer, TransactionAbortableError
from ...protocol import KafkaError, TopicPartition
from ...service.letters.failed_records import DEAD_LETTER_HEADERS, DeadLetter, read_dead_letter
from ...settings import MAX_INT, MAX_LONG
from ..errors import advise_error
from ..topics.requests import ranges, require_topics
from .archived import ArchivedOffsets, Archiving, find_archived, read_archived
from .reader import TopicReader

#: What a producer takes of a connection: ``settings.connection``.
ConnectionSettings: TypeAlias = Mapping[str, Any]

LETTERS_CLIENT: Final = "kohort-deadletters"
#: Header of a replayed record: the letter that it came from.
_REPLAYED: Final = "kohort.replayed"
#: Most letters in one transaction of a replay that has no end of its own.
_TOGETHER: Final = 500


class Letter(NamedTuple):
    """A record with what is said of it."""

    record: Record
    #: None for a record that is no dead letter.
    says: DeadLetter | None
    #: How a share group archived it; None for a letter that a service set aside.
    archived: Archiving | None = None

    @property
    def place(self) -> str:
        """Where the letter is: ``topic-partition@offset``."""
        return f"{self.record.topic}-{self.record.partition}@{self.record.offset}"


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which letters: of an error (a pattern such as ``*Timeout*``), a group, a topic of origin; None: all."""

    error: str | None = None
    group: str | None = None
    origin: str | None = None

    @property
    def takes_all(self) -> bool:
        """Return whether every letter passes."""
        return (self.error, self.group, self.origin) == (None, None, None)

    def takes(self, letter: DeadLetter) -> bool:
        """Return whether a letter is among them."""
        return (
            (self.error is None or fnmatch.fnmatchcase(letter.error_class, self.error))
            and self.group in (None, letter.group)
            and self.origin in (None, letter.topic)
        )


def progress_group(name: str) -> str:
    """The group that keeps how far replays of a topic's letters are; also their transactional id."""
    return f"{LETTERS_CLIENT}-{name}"


async def letter_ranges(
    cluster: Cluster, topic: str
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Start and end of each partition. Raises KafkaError."""
    known = await require_topics(cluster, [topic])
    return await ranges(cluster, known.partitions(topic), read_committed=True)


async def skip_replayed(
    cluster: Cluster, group: str, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Where the next replay of all letters begins, in each partition. Raises KafkaError."""
    done = await cluster.committed(group, starts)
    return {
        **starts,
        **{place: max(starts[place], min(at.offset, ends[place])) for place, at in done.items()},
    }


async def read_letters(
    cluster: Cluster,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    patience_s: float,
    remark: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[list[Letter]]:
    """Yield the records between ``starts`` and ``ends`` as they are read. Raises what TopicReader raises."""
    reader = TopicReader(cluster, starts, ends, read_committed=True, patience_s=patience_s, remark=remark)
    async with aclosing(reader.batches()) as batches:
        async for records in batches:
            for first in range(0, len(records), _TOGETHER):
                yield [
                    Letter(record, read_dead_letter(record)) for record in records[first : first + _TOGETHER]
                ]


async def read_archived_letters(
    cluster: Cluster,
    group: str,
    chosen: LetterFilter,
    patience_s: float,
    remark: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[list[Letter]]:
    """Yield what a share group archived, as far as it can be known; ``remark`` is told what cannot."""
    found = await find_archived(cluster, group)
    left = sum(map(len, found.places.values()))
    async with aclosing(read_archived(cluster, found.places, patience_s)) as batches:
        async for records in batches:
            left -= len(records)
            letters = []
            for record in records:
                how = found.places[record.topic_partition][record.offset]
                says = DeadLetter(
                    record.topic,
                    record.partition,
                    record.offset,
                    record.timestamp_ms,
                    group,
                    how.delivery_count,
                    how.reason,
                    f"member {how.member}",
                    error_stack="",
                )
                if chosen.takes(says):
                    letters.append(Letter(record, says, how))
            for first in range(0, len(letters), _TOGETHER):
                yield letters[first : first + _TOGETHER]
    for words in _name_unknown(found, left):
        remark(words)


def _name_unknown(found: ArchivedOffsets, left: int) -> Iterable[str]:
    if left:
        yield f"{left:,} archived records are not in their topics any more"
    if found.unnamed:
        yield f"{found.unnamed:,} more records were archived whose offsets the brokers do not know"
    if found.displaced:
        yield (
            f"{found.displaced:,} older events of the group have made way for newer ones: what they named is "
            "not shown"
        )
    if found.silent:
        nodes = ", ".join(map(str, found.silent))
        yield f"nothing is known of what was archived where these brokers lead: {nodes}"


def open_letter_producer(
    settings: ConnectionSettings, group: str, patience_s: float
) -> AbstractAsyncContextManager[Producer]:
    """The producer of a replay. It aborts the transaction of another replay of the same letters.

    ``settings`` are those of the connection.
    """
    return Producer(
        client_id=LETTERS_CLIENT,
        transactional_id=group,
        max_block_ms=max(1, round(patience_s * 1_000)),
        # as the services that wrote the letters: the topic limits the size of batches as sent
        compression="gzip",
        max_request_size=MAX_INT,
        buffer_memory=MAX_LONG,
        **settings,
    )


@dataclass(slots=True)
class Replay:
    """Letters that are written, or counted if there is no producer."""

    cluster: Cluster
    producer: Producer | None
    #: The topic for all of them; None for those that they come from.
    to: str | None
    written: Counter[str] = field(default_factory=Counter)
    _there: set[str] = field(default_factory=set)

    async def write(
        self, letters: list[Letter], progress: tuple[str, dict[TopicPartition, int]] | None = None
    ) -> None:
        """Write letters, and commit ``progress`` with them, in one transaction. Raises KafkaError."""
        for topic in {self.to or letter.says.topic for letter in letters if letter.says} - self._there:
            # a producer would make the broker create it
            await require_topics(self.cluster, [topic])
            self._there.add(topic)
        if self.producer is not None and (letters or progress is not None):
            try:
                await _write_letters(self.producer, letters, self.to, progress)
            except TransactionAbortableError as error:
                if not isinstance(cause := error.__cause__, KafkaError):
                    raise
                text = f"{cause.message}, and none of the letters with it is written"
                raise advise_error(cause.code, text) from error
        self.written.update(self.to or letter.says.topic for letter in letters if letter.says is not None)


async def _write_letters(
    producer: Producer,
    letters: list[Letter],
    to: str | None,
    progress: tuple[str, dict[TopicPartition, int]] | None,
) -> None:
    async with producer.transaction():
        for letter in letters:
            record, says, _ = letter
            assert says is not None, "only letters are written"
            topic = to or says.topic
            await producer.send(
                topic,
                record.value,
                record.key,
                same_partition(says, to, await producer.partitions_for(topic)),
                headers=[*_own_headers(letter), (_REPLAYED, letter.place.encode())],
            )
        if progress is not None:
            group, ends = progress
            await producer.send_offsets(ends, group)


def same_partition(says: DeadLetter, to: str | None, partitions: int) -> int | None:
    """The partition that a letter came from, if its topic still has it; None: that of the record's key."""
    # records of one key stay together
    return says.partition if to is None and 0 <= says.partition < partitions else None


def _own_headers(letter: Letter) -> list[tuple[str, bytes | None]]:
    """Headers that the record had before it was set aside."""
    # the last ones: a letter that was set aside again has the earlier ones too
    added = set() if letter.archived else {*DEAD_LETTER_HEADERS}
    own = []
    for name, value in reversed(letter.record.headers):
        if name in added:
            added.remove(name)
        elif name != _REPLAYED:
            own.append((name, value))
    return own[::-1]
