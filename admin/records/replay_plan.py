"""A replay of letters that is planned, looked at, and then executed as planned or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...client import Cluster, ConfigError
from ...protocol import KohortError, TopicPartition
from ...service.letters.failed_records import DeadLetter
from ..topics.requests import require_topics
from .letters import (
    ConnectionSettings,
    Letter,
    LetterFilter,
    Replay,
    letter_ranges,
    open_letter_producer,
    progress_group,
    read_archived_letters,
    read_letters,
    same_partition,
    skip_replayed,
)

#: Most letters of a plan, and most bytes: they are in memory, and are written in one transaction.
MOST_PLANNED: Final = 5_000
MOST_PLANNED_BYTES: Final = 64 * 1024 * 1024


class PlanChangedError(KohortError):
    """What was planned is not what there is now. Nothing was written: plan again."""


@dataclass(frozen=True, slots=True)
class ReplayChoice:
    """Letters to replay: those of topic ``source``, or what share group ``source`` archived, that ``wanted``
    takes, at ``places`` (None: anywhere), to the topic ``to`` (None: where they come from).
    """

    source: str
    is_share: bool = False
    wanted: LetterFilter = field(default_factory=LetterFilter)
    places: Mapping[TopicPartition, frozenset[int]] | None = None
    to: str | None = None

    @property
    def is_remembered(self) -> bool:
        """Return whether the replay is of all letters of a topic: the next one continues after it."""
        return not self.is_share and self.wanted.takes_all and self.places is None

    def takes(self, letter: Letter) -> bool:
        """Return whether a record is a letter, and chosen."""
        if letter.says is None or not self.wanted.takes(letter.says):
            return False
        record = letter.record
        return self.places is None or record.offset in self.places.get(record.topic_partition, ())


class PlannedLetter(NamedTuple):
    """A letter at ``place`` (``topic-partition@offset``), and the topic and partition that it would go to.

    ``partition`` is None where the record's key decides.
    """

    place: str
    says: DeadLetter
    topic: str
    partition: int | None


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay would write. ``missing`` chosen letters are not there any more, ``strange`` records are
    no letters. ``ends`` are where reading stops, and ``mark`` is of all that the plan depends on.
    """

    choice: ReplayChoice
    rows: tuple[PlannedLetter, ...]
    missing: int
    strange: int
    ends: Mapping[TopicPartition, int]
    mark: str


async def plan_replay(
    cluster: Cluster,
    choice: ReplayChoice,
    patience_s: float,
    ends: Mapping[TopicPartition, int] | None = None,
) -> tuple[ReplayPlan, list[Letter]]:
    """The plan, and its letters; those behind ``ends`` are left out. Raises KafkaError, ConfigError."""
    if choice.to is not None and choice.to == choice.source and not choice.is_share:
        raise ConfigError(f"{choice.to} is the topic of the letters themselves: a loop")
    starts: Mapping[TopicPartition, int] = {}
    if choice.is_share:
        read, ends = read_archived_letters(cluster, choice.source, choice.wanted, patience_s), {}
    else:
        starts, ends = await _chosen_ranges(cluster, choice, ends)
        read = read_letters(cluster, starts, ends, patience_s)
    letters, strange = await _collect_letters(read, choice)
    targets = await _known_targets(cluster, choice, letters)
    rows = []
    for letter in letters:
        assert letter.says is not None, "only letters are chosen"
        topic = choice.to or letter.says.topic
        partition = same_partition(letter.says, choice.to, targets[topic][1])
        rows.append(PlannedLetter(letter.place, letter.says, topic, partition))
    missing = 0 if choice.places is None else sum(map(len, choice.places.values())) - len(letters)
    # where a replay of all letters begins is where the last one ended
    begun = sorted(starts.items()) if choice.is_remembered else []
    mark = _digest([sorted(targets.items()), begun], letters)
    return ReplayPlan(choice, tuple(rows), missing, strange, ends, mark), letters


async def execute_plan(
    cluster: Cluster, settings: ConnectionSettings, plan: ReplayPlan, patience_s: float
) -> Mapping[str, int]:
    """Write what was planned in one transaction; return the number of letters for each topic.

    ``settings`` are those of the connection. Raises PlanChangedError if it is not what there is now, and what
    a producer raises: then nothing was written, unless the error says that this is not known.
    """
    choice = plan.choice
    group = progress_group(choice.source)
    async with open_letter_producer(settings, group, patience_s) as producer:
        now, letters = await plan_replay(cluster, choice, patience_s, plan.ends)
        if now.mark != plan.mark:
            raise PlanChangedError(
                "nothing was written: letters, the topics that they go to, or how far replays are have "
                "changed since the plan was made; make it again"
            )
        replay = Replay(cluster, producer, choice.to)
        await replay.write(letters, (group, dict(plan.ends)) if choice.is_remembered else None)
    return replay.written


async def _chosen_ranges(
    cluster: Cluster, choice: ReplayChoice, ends: Mapping[TopicPartition, int] | None
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    # the client is older than the plan: what it knows of the topic may be, too
    await cluster.metadata([choice.source])
    starts, now = await letter_ranges(cluster, choice.source)
    if ends is not None:
        now = {place: min(ends.get(place, starts[place]), end) for place, end in now.items()}
    if choice.is_remembered:
        return await skip_replayed(cluster, progress_group(choice.source), starts, now), now
    if choice.places is None:
        return starts, now
    asked = {place: at for place, at in choice.places.items() if place in now and at}
    return (
        {place: min(max(starts[place], min(at)), now[place]) for place, at in asked.items()},
        {place: max(starts[place], min(now[place], max(at) + 1)) for place, at in asked.items()},
    )


async def _collect_letters(
    read: AsyncGenerator[list[Letter]], choice: ReplayChoice
) -> tuple[list[Letter], int]:
    """Chosen letters, and the number of records that are no letters. Raises ConfigError for too many."""
    found: list[Letter] = []
    strange = size = 0
    async with aclosing(read):
        async for letters in read:
            strange += sum(letter.says is None for letter in letters)
            for letter in filter(choice.takes, letters):
                size += sum(map(len, _parts_of(letter)))
                found.append(letter)
            if len(found) > MOST_PLANNED or size > MOST_PLANNED_BYTES:
                raise ConfigError(
                    f"more than {MOST_PLANNED:,} letters, or {MOST_PLANNED_BYTES >> 20} MiB: choose fewer, "
                    "or run `kohort deadletters replay`, which has no limit"
                )
    found.sort(key=lambda letter: (letter.record.topic, letter.record.partition, letter.record.offset))
    return found, strange


async def _known_targets(
    cluster: Cluster, choice: ReplayChoice, letters: list[Letter]
) -> dict[str, tuple[str, int]]:
    """Id and number of partitions of each topic that letters go to. Raises KafkaError for a missing one."""
    names = {choice.to or letter.says.topic for letter in letters if letter.says is not None}
    if not names:
        return {}
    await cluster.metadata(names)
    known = await require_topics(cluster, names)
    return {name: (str(known.topic_id(name)), len(known.partitions(name))) for name in names}


def _parts_of(letter: Letter) -> list[bytes]:
    record = letter.record
    headers = [part for name, value in record.headers for part in (name.encode(), value or b"")]
    return [letter.place.encode(), record.key or b"", record.value or b"", *headers]


def _digest(depends_on: object, letters: list[Letter]) -> str:
    made = hashlib.sha256(repr(depends_on).encode())
    for letter in letters:
        for part in (str(letter.record.timestamp_ms).encode(), *_parts_of(letter)):
            made.update(len(part).to_bytes(8, "big"))
            made.update(part)
    return made.hexdigest()
