"""Options of the driver loop, and the base classes that it shares with the data source."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, ClassVar, Literal, Self, TypeVar

from annotated_types import Ge, MinLen
from pydantic import field_validator, model_validator

from ..settings import SPARK_LOOP, SPARK_STREAM, Row, Scope
from ._client import OptionsError as OptionsError
from ._connection_options import SecurityOptions, read_connected
from ._offsets import OffsetsFormatError, parse_offsets
from ._plan import Fallback, Limits, Start, StartRules

#: A trigger, in Python's spelling and in Spark's.
AVAILABLE_NOW = ("available_now", "availableNow")

STARTS: dict[str, Start] = {"committed": "committed", "earliest": "earliest", "latest": "latest"}


def readable_offsets(text: str, named: Collection[str] = ()) -> str:
    """Return ``text`` if it is one of ``named`` or offsets as JSON. Raises ValueError otherwise."""
    if text not in named:
        try:
            parse_offsets(text)
        except OffsetsFormatError as error:
            words = f"neither one of {', '.join(named)} nor offsets: " if named else ""
            raise ValueError(f"{words}{error}") from error
    return text


class ReadingOptions(SecurityOptions):
    """Options that the driver loop and the data source share."""

    SCOPE: ClassVar[Scope] = SPARK_LOOP

    starting_offsets_fallback: Annotated[
        Fallback,
        Row(
            "where the partitions begin if the group has no commit of any; others that are added later begin "
            "at their first record",
            kafka="startingOffsetsFallback",
        ),
    ] = "earliest"
    max_offsets: Annotated[
        int | None,
        Row(
            "most offsets of a batch, split over partitions in proportion to lag; PySpark 4.2 and newer",
            1,
            kafka="maxOffsetsPerTrigger",
            scope=SPARK_STREAM,
        ),
    ] = None
    max_offsets_per_partition: Annotated[
        int | None,
        Row(
            "most offsets of a partition in one batch; PySpark 4.2 and newer",
            1,
            kafka="maxOffsetsPerPartition",
            scope=SPARK_STREAM,
        ),
    ] = None
    min_tasks: Annotated[
        int,
        Row("fewest tasks of a batch that the driver does not read itself", 1, kafka="minPartitions"),
    ] = 1
    records_per_task: Annotated[
        int | None,
        Row(
            "most offsets of a task; by default a task for each 100,000 offsets, up to the number of cores",
            1,
            kafka="maxRecordsPerPartition",
        ),
    ] = None
    fail_on_data_loss: Annotated[
        bool,
        Row(
            "whether lost offsets are an error; otherwise reading continues after them, with an event",
            kafka="failOnDataLoss",
        ),
    ] = True
    fail_on_commit_error: Annotated[
        bool,
        Row(
            "whether a commit refused because the group has members is an error; otherwise it is retried",
            kafka="failOnCommitError",
        ),
    ] = False
    group_mode: Annotated[
        Literal["standalone", "exclusive"],
        Row("not a member of the group, or its only member, so that no other can join", kafka="groupMode"),
    ] = "standalone"
    include_headers: Annotated[
        bool, Row("whether there is a column with the headers of records", kafka="includeHeaders")
    ] = False
    isolation_level: Annotated[
        Literal["read_uncommitted", "read_committed"],
        Row(
            "whether records of open and aborted transactions are read",
            kafka="isolationLevel",
            also=("kafka.isolation.level",),
        ),
    ] = "read_uncommitted"
    client_rack: Annotated[
        str,
        Row(
            "rack of the machines that read: they read from replicas in it; env:NAME is the value of a "
            "variable on each of them",
            kafka="kafka.client.rack",
        ),
    ] = ""
    metadata_max_age_ms: Annotated[
        int,
        Row("longest time until new topics and partitions are read", 1, kafka="kafka.metadata.max.age.ms"),
    ] = 5_000

    @property
    def limits(self) -> Limits:
        """The limits of a batch."""
        return Limits(self.max_offsets, self.max_offsets_per_partition)


class ReadOptions(ReadingOptions):
    """Options to read topics, and to commit if there is a group."""

    SCOPE: ClassVar[Scope] = SPARK_LOOP

    group: Annotated[str, Row("group whose offsets are read and committed", kafka="groupId")] = ""
    topics: Annotated[
        tuple[Annotated[str, MinLen(1)], ...] | None,
        Row(
            "names of topics; exactly one of topics, topic_pattern and assign",
            kafka="subscribe",
            allowed="a list of names, or names with commas",
        ),
    ] = None
    topic_pattern: Annotated[
        str | None, Row("regular expression for whole names of topics", kafka="subscribePattern")
    ] = None
    assign: Annotated[dict[str, tuple[Annotated[int, Ge(0)], ...]] | None, Row("partitions of topics")] = None
    starting_offsets: Annotated[
        str,
        Row(
            "where the first batch of this driver begins",
            kafka="startingOffsets",
            allowed='committed, earliest, latest, or offsets such as {"orders": {"0": 23, "1": -2}}',
        ),
    ] = "committed"
    read_on_driver_below: Annotated[
        int, Row("a batch of fewer offsets is read by the driver itself; 0: never", 0)
    ] = 10_000
    poll_interval_ms: Annotated[
        int, Row("shortest pause of an idle loop between two looks for new records", 1)
    ] = 50

    @field_validator("topics", mode="before")
    @classmethod
    def _one_topic(cls, topics: object) -> object:
        return tuple(name.strip() for name in topics.split(",")) if isinstance(topics, str) else topics

    @field_validator("starting_offsets")
    @classmethod
    def _check_readable(cls, text: str) -> str:
        return readable_offsets(text, STARTS)

    @field_validator("topic_pattern")
    @classmethod
    def _check_pattern(cls, text: str | None) -> str | None:
        try:
            re.compile(text or "")
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from error
        return text

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> Self:
        chosen = [way for way in (self.topics, self.topic_pattern, self.assign) if way is not None]
        if len(chosen) != 1 or not chosen[0]:
            raise ValueError("give exactly one of topics, topic_pattern and assign, and not an empty one")
        return self

    @property
    def start_rules(self) -> StartRules:
        """Rules for the start of the first batch."""
        named = self.starting_offsets
        start = STARTS[named] if named in STARTS else parse_offsets(named)
        return StartRules(start, self.starting_offsets_fallback, self.fail_on_data_loss)


class GroupBatchesOptions(ReadOptions):
    """Options of :class:`kohort.spark.GroupBatches`.

    ``starting_offsets`` other than "committed" apply to the first batch only, and take precedence over the
    group's commits. ``starting_offsets_fallback`` applies while the group has no commit of what is read;
    after that, partitions without one begin at their first record ("fail": they are an error).
    """

    group: Annotated[
        str,
        Row("group whose offsets are read and committed", kafka="groupId", also=("group_id",), shortest=1),
    ]


_Options = TypeVar("_Options", bound=ReadOptions)


def read_options(kind: type[_Options], **options: object) -> _Options:
    """Check options. Raises OptionsError, which names each wrong one, its value and what is allowed."""
    return read_connected(kind, options)
