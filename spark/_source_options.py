"""The options of ``format("kohort")``: the names that users of Spark's Kafka source know, checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from ..protocol import TopicPartition
from ._client import ConnectionOptions
from ._offsets import OffsetsFormatError, parse_offsets
from ._options import OptionsError, Positive, ReadOptions, read_options
from ._plan import Fallback, Limits, StartRules
from ._security_options import (
    ALL_SPARK_NAMES,
    SPARK_NAME_OF,
    SecurityOptions,
    described,
    from_spark,
)
from ._tuning import READING, without_tuning

_STARTS = ("committed", "earliest", "latest")
_ENDS = ("latest", "committed")
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)\s*$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

#: Settings of Java's consumer that would contradict how offsets are kept here.
_REFUSED = {
    "kafka.auto.offset.reset": "use startingOffsets and startingOffsetsFallback",
    "kafka.enable.auto.commit": "commits follow Spark's own log; see commitOffsets",
    "kafka.auto.commit.interval.ms": "commits follow Spark's own log; see commitOffsets",
    "kafka.key.deserializer": "keys are binary; cast them in the DataFrame",
    "kafka.value.deserializer": "values are binary; cast them, or use kohort.spark.from_json",
    "kafka.interceptor.classes": "there is no Java consumer",
    "kafka.ssl.truststore.password": "certificates are PEM, without a password",
    "kafka.ssl.keystore.password": "certificates are PEM; the key's own is kafka.ssl.key.password",
}


class SourceOptions(SecurityOptions):
    """What ``spark.read`` and ``spark.readStream.format("kohort")`` take; aliases are the options' names."""

    bootstrap: Annotated[str, Field(alias="kafka.bootstrap.servers", min_length=1)]
    #: Only a batch read goes without.
    group: Annotated[str | None, Field(alias="groupId", min_length=1)] = None
    subscribe: str | None = None
    subscribe_pattern: Annotated[str | None, Field(alias="subscribePattern")] = None
    assign: dict[str, tuple[Annotated[int, Field(ge=0)], ...]] | None = None
    #: committed, earliest, latest or JSON.
    starting_offsets: Annotated[str, Field(alias="startingOffsets")] = "committed"
    starting_offsets_fallback: Annotated[Fallback, Field(alias="startingOffsetsFallback")] = "earliest"
    #: Milliseconds since 1970: the first record at or after it.
    starting_timestamp: Annotated[int | None, Field(alias="startingTimestamp", ge=0)] = None
    #: The same by partition, as JSON.
    starting_times: Annotated[str | None, Field(alias="startingOffsetsByTimestamp")] = None
    #: What a time after the last record is: the end of the log, or an error.
    by_timestamp_strategy: Annotated[
        Literal["latest", "error"], Field(alias="startingOffsetsByTimestampStrategy")
    ] = "latest"
    #: latest, committed or JSON; batches only, as are the two below.
    ending_offsets: Annotated[str | None, Field(alias="endingOffsets")] = None
    ending_timestamp: Annotated[int | None, Field(alias="endingTimestamp", ge=0)] = None
    ending_times: Annotated[str | None, Field(alias="endingOffsetsByTimestamp")] = None
    max_offsets: Annotated[Positive | None, Field(alias="maxOffsetsPerTrigger")] = None
    max_offsets_per_partition: Annotated[Positive | None, Field(alias="maxOffsetsPerPartition")] = None
    min_offsets: Annotated[Positive | None, Field(alias="minOffsetsPerTrigger")] = None
    #: Seconds that a batch waits for ``min_offsets`` at most.
    max_trigger_delay: Annotated[float, Field(alias="maxTriggerDelay")] = 900.0
    min_tasks: Annotated[Positive, Field(alias="minPartitions")] = 1
    records_per_task: Annotated[Positive | None, Field(alias="maxRecordsPerPartition")] = None
    #: Tasks that run at the same time; the driver's processors unless given.
    cores: Positive | None = None
    fail_on_data_loss: Annotated[bool, Field(alias="failOnDataLoss")] = True
    fail_on_commit_error: Annotated[bool, Field(alias="failOnCommitError")] = False
    include_headers: Annotated[bool, Field(alias="includeHeaders")] = False
    isolation_level: Annotated[
        Literal["read_uncommitted", "read_committed"], Field(alias="isolationLevel")
    ] = "read_uncommitted"
    commit_offsets: Annotated[Literal["afterBatch", "never"], Field(alias="commitOffsets")] = "afterBatch"
    group_mode: Annotated[Literal["standalone", "exclusive"], Field(alias="groupMode")] = "standalone"
    #: A file, written once, that keeps where the first batch began.
    start_state_path: Annotated[str | None, Field(alias="startStatePath")] = None
    #: Where the source tells the driver of each batch; ``stream`` sets it.
    report_folder: Annotated[str | None, Field(alias="reportFolder")] = None
    client_id: Annotated[str, Field(alias="kafka.client.id", min_length=1)] = "kohort-spark"
    request_timeout_ms: Annotated[Positive, Field(alias="kafka.request.timeout.ms")] = 30_000
    metadata_max_age_ms: Annotated[Positive, Field(alias="kafka.metadata.max.age.ms")] = 5_000

    @field_validator("assign", mode="before")
    @classmethod
    def _assigned(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError) as error:
            raise ValueError(f'no JSON: {error}; write {{"orders": [0, 1]}}') from error

    @field_validator("starting_offsets", "ending_offsets", "starting_times", "ending_times")
    @classmethod
    def _readable(cls, text: str | None, info: Any) -> str | None:
        named = {"starting_offsets": _STARTS, "ending_offsets": _ENDS}.get(info.field_name, ())
        if text is not None and text not in named:
            try:
                parse_offsets(text)
            except OffsetsFormatError as error:
                words = f"neither one of {', '.join(named)} nor offsets: " if named else ""
                raise ValueError(f"{words}{error}") from error
        return text

    @field_validator("max_trigger_delay", mode="before")
    @classmethod
    def _duration(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        found = _DURATION.match(value)
        if found is None:
            raise ValueError("no duration: write 500ms, 30s, 15m or 1h")
        return float(found[1]) * _SECONDS[found[2]]

    @model_validator(mode="after")
    def _one_start_and_one_end(self) -> SourceOptions:
        starts = [self.starting_offsets != "committed", self.starting_timestamp, self.starting_times]
        ends = [self.ending_offsets, self.ending_timestamp, self.ending_times]
        for name, given in (("starting", starts), ("ending", ends)):
            if sum(one is not None and one is not False for one in given) > 1:
                raise ValueError(
                    f"give at most one of {name}Offsets, {name}Timestamp and {name}OffsetsByTimestamp"
                )
        return self

    @property
    def group_options(self) -> ReadOptions:
        """The same, for what is shared with the driver loop. Raises OptionsError."""
        return read_options(
            ReadOptions,
            bootstrap=self.bootstrap,
            group=self.group or "",
            topics=self.subscribe,
            topic_pattern=self.subscribe_pattern,
            assign=self.assign,
            starting_offsets=self.starting_offsets,
            starting_offsets_fallback=self.starting_offsets_fallback,
            fail_on_data_loss=self.fail_on_data_loss,
            fail_on_commit_error=self.fail_on_commit_error,
            group_mode=self.group_mode,
            isolation_level=self.isolation_level,
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            metadata_max_age_ms=self.metadata_max_age_ms,
        )

    @property
    def connection(self) -> ConnectionOptions:
        return ConnectionOptions(self.bootstrap, self.client_id, self.request_timeout_ms, self.security)

    @property
    def rules(self) -> StartRules:
        return self.group_options.start_rules

    @property
    def limits(self) -> Limits:
        return Limits(self.max_offsets, self.max_offsets_per_partition)

    @property
    def chooses_anew(self) -> bool:
        """Whether a start is chosen by where the logs are when it is asked for."""
        named = self.starting_offsets
        if self.times("starting") is not None or named in ("earliest", "latest"):
            return True
        return named != "committed" and any(offset < 0 for offset in parse_offsets(named).values())

    @property
    def falls_back_to_latest(self) -> bool:
        return self.starting_offsets_fallback == "latest"

    @property
    def commits(self) -> bool:
        return self.commit_offsets == "afterBatch"

    def times(self, which: Literal["starting", "ending"]) -> int | dict[TopicPartition, int] | None:
        """One time in ms for all partitions, one for each, or None."""
        stamp = self.starting_timestamp if which == "starting" else self.ending_timestamp
        by_partition = self.starting_times if which == "starting" else self.ending_times
        return parse_offsets(by_partition) if by_partition is not None else stamp


#: Spark's names by Python's, those of GroupBatches among them.
ALIAS_OF = {
    **{name: field.alias or name for name, field in SourceOptions.model_fields.items()},
    "topics": "subscribe",
    "topic_pattern": "subscribePattern",
    **SPARK_NAME_OF,
}
_NAMES = [name for name in ALIAS_OF.values() if name not in SPARK_NAME_OF.values()]
_ALIASES = {name.lower(): name for name in _NAMES}
_OTHER_NAMES = {"kafka.group.id": "groupId", "kafka.isolation.level": "isolationLevel"}
_FOR_BATCHES = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_FOR_STREAMS = (
    "maxOffsetsPerTrigger",
    "maxOffsetsPerPartition",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "startStatePath",
    "reportFolder",
)


def read_source_options(given: Mapping[str, str], *, stream: bool) -> SourceOptions:
    """The options, checked; names count in any case. Raises OptionsError, which names each problem."""
    named: dict[str, Any] = {}
    for key, value in without_tuning(from_spark(given), READING).items():
        name = _OTHER_NAMES.get(key.lower(), _ALIASES.get(key.lower(), key))
        if (instead := _REFUSED.get(key.lower())) is not None:
            raise OptionsError(f"{key} is not taken: {instead}")
        named[name] = value
    if "groupId" not in named:
        _read_without_group(named, stream=stream)
    wrong = [name for name in (_FOR_BATCHES if stream else _FOR_STREAMS) if name in named]
    if wrong:
        where = "spark.read" if stream else "spark.readStream"
        raise OptionsError(f"{', '.join(wrong)}: only for {where}")
    try:
        options = SourceOptions.model_validate(named)
    except ValidationError as error:
        raise OptionsError("; ".join(_described(problem) for problem in error.errors())) from None
    try:
        options.group_options  # noqa: B018 - one way to choose topics, and a pattern that is one
    except OptionsError as error:
        words = str(error).replace("topic_pattern", "subscribePattern").replace("topics", "subscribe")
        raise OptionsError(words) from None
    return options


def _read_without_group(named: dict[str, Any], *, stream: bool) -> None:
    """Where a read begins that has no commits, as with the built-in source. Raises OptionsError."""
    missing = [] if "kafka.bootstrap.servers" in named else ["kafka.bootstrap.servers"]
    if stream:
        missing.append("groupId")
    if missing:
        words = "; ".join(f"option {name} is required" for name in missing)
        if not named:
            words += (
                ". A table of the catalog has no options from Spark: give them in the query, SELECT ... FROM "
                "table WITH (subscribe = 'orders', ...), or CREATE TEMPORARY VIEW ... USING kohort OPTIONS"
            )
        raise OptionsError(words)
    for name in ("startingOffsets", "endingOffsets"):
        if named.get(name) == "committed":
            raise OptionsError(f"{name}=committed needs groupId, the group whose commits are meant")
    if not named.keys() & {"startingTimestamp", "startingOffsetsByTimestamp"}:
        named.setdefault("startingOffsets", "earliest")


def _described(problem: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown option {key!r}: the options are {', '.join(sorted([*_NAMES, *ALL_SPARK_NAMES]))}"
    if problem["type"] == "missing":
        return f"option {key} is required"
    return described(problem)
