"""The options of a driver loop, checked: an unknown or impossible one is an error that says what is right."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from ._client import ConnectionOptions
from ._offsets import OffsetsFormatError, parse_offsets
from ._plan import Fallback, Limits, Start, StartRules
from ._security import OptionsError as OptionsError
from ._security_options import SecurityOptions, described

#: A trigger, in Python's spelling and in Spark's.
AVAILABLE_NOW = ("available_now", "availableNow")

Positive = Annotated[int, Field(gt=0)]

_NAMED_STARTS: dict[str, Start] = {"committed": "committed", "earliest": "earliest", "latest": "latest"}


class ReadOptions(SecurityOptions):
    """What it takes to read topics, and to commit if there is a group.

    Names in Spark's own spelling are in brackets.
    """

    #: "host:port", several with commas (kafka.bootstrap.servers).
    bootstrap: Annotated[str, Field(min_length=1)]
    #: The group whose commits are read and written (groupId); empty for none.
    group: str = ""
    #: Topics to read (subscribe) ...
    topics: tuple[Annotated[str, Field(min_length=1)], ...] | None = None
    #: ... or every topic whose whole name matches (subscribePattern) ...
    topic_pattern: str | None = None
    #: ... or these partitions of topics (assign). Exactly one of the three.
    assign: dict[str, tuple[Annotated[int, Field(ge=0)], ...]] | None = None
    #: "committed", "earliest", "latest", or offsets in nested JSON (startingOffsets).
    starting_offsets: str = "committed"
    starting_offsets_fallback: Fallback = "earliest"
    #: Offsets a batch takes at most (maxOffsetsPerTrigger).
    max_offsets: Positive | None = None
    max_offsets_per_partition: Positive | None = None
    #: Tasks a batch is read by, at least (minPartitions); a batch that small enough is read by the driver.
    min_tasks: Positive = 1
    #: Offsets a task takes at most (maxRecordsPerPartition); by size and cores unless given.
    records_per_task: Positive | None = None
    #: Batches of fewer offsets are read by the driver itself; 0 turns that off.
    read_on_driver_below: Annotated[int, Field(ge=0)] = 10_000
    fail_on_data_loss: bool = True
    #: While members of the group make commits refused: False waits and warns, True is an error at once.
    fail_on_commit_error: bool = False
    #: "standalone": no member of its group. "exclusive": its only member, so that nobody else can join.
    group_mode: Literal["standalone", "exclusive"] = "standalone"
    include_headers: bool = False
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    client_id: Annotated[str, Field(min_length=1)] = "kohort-spark"
    request_timeout_ms: Positive = 30_000
    #: How soon new topics and partitions are seen.
    metadata_max_age_ms: Positive = 5_000
    #: How often an idle loop looks for new records.
    poll_interval_ms: Positive = 50

    @field_validator("topics", mode="before")
    @classmethod
    def _one_topic(cls, topics: object) -> object:
        return tuple(name.strip() for name in topics.split(",")) if isinstance(topics, str) else topics

    @field_validator("starting_offsets")
    @classmethod
    def _readable(cls, text: str) -> str:
        if text not in _NAMED_STARTS:
            try:
                parse_offsets(text)
            except OffsetsFormatError as error:
                raise ValueError(f"neither one of {', '.join(_NAMED_STARTS)} nor offsets: {error}") from error
        return text

    @field_validator("topic_pattern")
    @classmethod
    def _pattern(cls, text: str | None) -> str | None:
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
        """For the first batch."""
        named = self.starting_offsets
        start = _NAMED_STARTS[named] if named in _NAMED_STARTS else parse_offsets(named)
        return StartRules(start, self.starting_offsets_fallback, self.fail_on_data_loss)

    @property
    def connection(self) -> ConnectionOptions:
        """What executors get, too. Raises OptionsError for TLS files that cannot be read."""
        return ConnectionOptions(self.bootstrap, self.client_id, self.request_timeout_ms, self.security)

    @property
    def limits(self) -> Limits:
        return Limits(self.max_offsets, self.max_offsets_per_partition)


class GroupBatchesOptions(ReadOptions):
    """What :class:`kohort.spark.GroupBatches` takes.

    ``starting_offsets`` other than "committed" count for the first batch only, and against what the group
    has committed; ``starting_offsets_fallback`` is for partitions without a commit.
    """

    group: Annotated[str, Field(min_length=1)]


_Options = TypeVar("_Options", bound=ReadOptions)


def read_options(kind: type[_Options], **options: object) -> _Options:
    """The options, checked. Raises OptionsError, which names each key, its value and what is allowed."""
    try:
        return kind.model_validate(options)
    except ValidationError as error:
        raise OptionsError("; ".join(_described(problem) for problem in error.errors())) from None


def _described(problem: object) -> str:
    assert isinstance(problem, dict)
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        allowed = ", ".join(sorted(GroupBatchesOptions.model_fields))
        return f"unknown option {key!r}: the options are {allowed}"
    return described(problem)
