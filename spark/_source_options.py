"""Options of the source ``format("kohort")``, under the names of Spark's own Kafka source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge
from pydantic import field_validator, model_validator

from ..settings import (
    SPARK_BATCH,
    SPARK_SOURCE,
    SPARK_STREAM,
    Row,
    Scope,
    read_settings,
    settings_of,
)
from ._connection_options import READING, fallback_options, from_spark, without_tuning
from ._offsets import Offsets, parse_offsets
from ._options import STARTS, OptionsError, ReadingOptions, ReadOptions, read_options, readable_offsets
from ._plan import StartRules

_ENDS = ("latest", "committed")
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)\s*$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

#: Settings of Java's consumer that contradict how this source works, and what to do instead.
_REFUSED = {
    "kafka.auto.offset.reset": "use startingOffsets and startingOffsetsFallback",
    "kafka.enable.auto.commit": "commits follow Spark's own log; see commitOffsets",
    "kafka.auto.commit.interval.ms": "commits follow Spark's own log; see commitOffsets",
    "kafka.key.deserializer": "keys are binary; cast them in the DataFrame",
    "kafka.value.deserializer": "values are binary; cast them, or use kohort.spark.from_json",
    "kafka.interceptor.classes": "there is no Java consumer",
}


class SourceOptions(ReadingOptions):
    """Options of ``spark.read`` and ``spark.readStream.format("kohort")``."""

    SCOPE: ClassVar[Scope] = SPARK_SOURCE

    group: Annotated[
        str | None,
        Row(
            "group whose offsets are read and committed; optional for batch reads only",
            kafka="groupId",
            also=("kafka.group.id",),
            shortest=1,
        ),
    ] = None
    subscribe: Annotated[
        str | None, Row("names of topics with commas; exactly one of subscribe, subscribePattern and assign")
    ] = None
    subscribe_pattern: Annotated[
        str | None, Row("regular expression for whole names of topics", kafka="subscribePattern")
    ] = None
    assign: Annotated[
        dict[str, tuple[Annotated[int, Ge(0)], ...]] | None,
        Row('partitions of topics, as JSON: `{"orders": [0, 1]}`'),
    ] = None
    starting_offsets: Annotated[
        str,
        Row(
            "where the first batch of a new checkpoint begins",
            kafka="startingOffsets",
            allowed="committed, earliest, latest or JSON",
        ),
    ] = "committed"
    starting_timestamp: Annotated[
        int | None,
        Row(
            "start at the first record of this time, in ms since 1970, or later", 0, kafka="startingTimestamp"
        ),
    ] = None
    starting_times: Annotated[
        str | None, Row("the same by partition", kafka="startingOffsetsByTimestamp", allowed="JSON")
    ] = None
    by_timestamp_strategy: Annotated[
        Literal["latest", "error"],
        Row(
            "if all records are older than the time: start at the end of the log, or an error",
            kafka="startingOffsetsByTimestampStrategy",
        ),
    ] = "latest"
    ending_offsets: Annotated[
        str | None,
        Row(
            "end of a batch read; after the log's end is an error, unless failOnDataLoss=false",
            kafka="endingOffsets",
            scope=SPARK_BATCH,
            allowed="latest, committed or JSON",
        ),
    ] = None
    ending_timestamp: Annotated[
        int | None,
        Row(
            "end before the first record of this time or later", 0, kafka="endingTimestamp", scope=SPARK_BATCH
        ),
    ] = None
    ending_times: Annotated[
        str | None,
        Row("the same by partition", kafka="endingOffsetsByTimestamp", scope=SPARK_BATCH, allowed="JSON"),
    ] = None
    min_offsets: Annotated[
        int | None,
        Row("fewest offsets for which a batch starts", 1, kafka="minOffsetsPerTrigger", scope=SPARK_STREAM),
    ] = None
    max_trigger_delay: Annotated[
        float,
        Row(
            "longest wait for minOffsetsPerTrigger",
            kafka="maxTriggerDelay",
            unit="s",
            allowed="a duration such as 500ms, 30s, 15m or 1h",
            scope=SPARK_STREAM,
        ),
    ] = 900.0
    cores: Annotated[
        int | None,
        Row(
            "number of tasks that run at the same time; by default what the session and its settings say, "
            "and no limit on a cluster where they do not",
            1,
        ),
    ] = None
    commit_offsets: Annotated[
        Literal["afterBatch", "never"],
        Row("whether the group's offsets follow Spark's own log", kafka="commitOffsets"),
    ] = "afterBatch"
    start_state_path: Annotated[
        str | None,
        Row(
            "file that keeps where the first batch began; written once",
            kafka="startStatePath",
            scope=SPARK_STREAM,
        ),
    ] = None
    report_folder: Annotated[
        str | None,
        Row(
            "folder in which the source reports batches to the driver; `stream` sets it",
            kafka="reportFolder",
            scope=SPARK_STREAM,
        ),
    ] = None

    @field_validator("assign", mode="before")
    @classmethod
    def _check_assigned(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError) as error:
            raise ValueError(f'no JSON: {error}; write {{"orders": [0, 1]}}') from error

    @field_validator("starting_offsets", "ending_offsets", "starting_times", "ending_times")
    @classmethod
    def _check_readable(cls, text: str | None, info: Any) -> str | None:
        named = {"starting_offsets": tuple(STARTS), "ending_offsets": _ENDS}.get(info.field_name, ())
        return text if text is None else readable_offsets(text, named)

    @field_validator("max_trigger_delay", mode="before")
    @classmethod
    def _parse_duration(cls, value: object) -> object:
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
        """The same options for GroupOffsets. Raises OptionsError."""
        return read_options(
            ReadOptions,
            group=self.group or "",
            topics=self.subscribe,
            topic_pattern=self.subscribe_pattern,
            assign=self.assign,
            starting_offsets=self.starting_offsets,
            **{name: getattr(self, name) for name in ReadingOptions.model_fields},
        )

    @property
    def rules(self) -> StartRules:
        """Where to begin where the group has no offset, and what to do about losses."""
        return self.group_options.start_rules

    @property
    def chooses_anew(self) -> bool:
        """Return whether the options choose another start when the logs have changed."""
        named = self.starting_offsets
        if self.times("starting") is not None or named in ("earliest", "latest"):
            return True
        return named != "committed" and any(offset < 0 for offset in parse_offsets(named).values())

    @property
    def falls_back_to_latest(self) -> bool:
        """Whether a time after the last record stands for the end of the log."""
        return self.starting_offsets_fallback == "latest"

    @property
    def commits(self) -> bool:
        """Whether the group's offsets are committed after each batch."""
        return self.commit_offsets == "afterBatch"

    def times(self, which: Literal["starting", "ending"]) -> int | Offsets | None:
        """Return one time for all partitions, or a time for each, in ms since 1970; None if not given."""
        stamp = self.starting_timestamp if which == "starting" else self.ending_timestamp
        by_partition = self.starting_times if which == "starting" else self.ending_times
        return parse_offsets(by_partition) if by_partition is not None else stamp


#: Spark's name of each option by Python's, including the options of GroupBatches.
ALIAS_OF = {
    name: setting.shown_name(SPARK_SOURCE)
    for table in (ReadOptions, SourceOptions)
    for name, setting in settings_of(table).items()
}


def read_source_options(given: Mapping[str, str], *, stream: bool) -> SourceOptions:
    """Check the options. Case is ignored in names. Raises OptionsError, which names each problem."""
    named = without_tuning(from_spark(given), READING)
    known = {
        name.lower(): setting
        for setting in settings_of(SourceOptions).values()
        for name in setting.names(SPARK_SOURCE)
    }
    elsewhere, wrong = (SPARK_BATCH, []) if stream else (SPARK_STREAM, list[str]())
    fallback = fallback_options(SourceOptions, named)
    found = set(fallback.values)
    for key in named:
        if (instead := _REFUSED.get(key.lower())) is not None:
            raise OptionsError(f"{key} is not taken: {instead}")
        if (setting := known.get(key.lower())) is not None:
            found.add(setting.name)
            wrong += [setting.kafka_name] * (setting.scope is elsewhere)
    if "group" not in found:
        _read_without_group(named, found, stream=stream)
    if wrong:
        raise OptionsError(f"{', '.join(wrong)}: only for {'spark.read' if stream else 'spark.readStream'}")
    options = read_settings(SourceOptions, named, OptionsError, fallback)
    try:
        options.group_options  # noqa: B018 - checks that topics are chosen in one way, and the pattern
    except OptionsError as error:
        words = str(error).replace("topic_pattern", "subscribePattern").replace("topics", "subscribe")
        raise OptionsError(words) from None
    return options


def _read_without_group(named: dict[str, object], found: set[str], *, stream: bool) -> None:
    """Set the start of a read without a group, as the built-in source does. Raises OptionsError."""
    missing = [] if "bootstrap" in found else ["kafka.bootstrap.servers"]
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
    texts = {key.lower(): value for key, value in named.items()}
    for name in ("startingOffsets", "endingOffsets"):
        if texts.get(name.lower()) == "committed":
            raise OptionsError(f"{name}=committed needs groupId, the group whose commits are meant")
    if not found & {"starting_offsets", "starting_timestamp", "starting_times"}:
        named["startingOffsets"] = "earliest"
