"""``df.write`` and ``writeStream.format("kohort")``: rows to topics, a batch's number at most once.

The ledger is a commit of a group of its own: its offset is the number of the next batch. A batch that the
ledger has is not written again. Spark gives a sink no moment before its tasks, so a batch that was cut off
between its first record and the ledger's commit is written again from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..consumer import CommittedOffset
from ..protocol import Codec, TopicPartition
from ._client import Client, ConnectionOptions, process_client
from ._options import OptionsError
from ._produce import RecordWriter

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    #: PySpark 4.1 and newer give a stream's rows as Arrow batches.
    WRITES_STREAMS = True
except ImportError:
    WRITES_STREAMS = False

#: What Spark calls the number of a query's batch among a task's properties.
_BATCH_ID = "streaming.sql.batchId"

_TYPES: Mapping[str, tuple[str, ...]] = {
    "topic": ("string",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}


class SinkOptions(BaseModel):
    """What a write takes; aliases are the options' names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bootstrap: Annotated[str, Field(alias="kafka.bootstrap.servers", min_length=1)]
    #: For rows without a column of that name.
    topic: str | None = None
    compression: Annotated[Codec, Field(alias="kafka.compression.type")] = Codec.NONE
    ledger_group: Annotated[str | None, Field(alias="ledgerGroup", min_length=1)] = None
    ledger_topic: Annotated[str | None, Field(alias="ledgerTopic", min_length=1)] = None
    #: The number of a batch that is no query's, such as ``Batch.number``.
    batch_number: Annotated[int | None, Field(alias="batchNumber", ge=0)] = None
    client_id: Annotated[str, Field(alias="kafka.client.id", min_length=1)] = "kohort-spark"
    request_timeout_ms: Annotated[int, Field(alias="kafka.request.timeout.ms", gt=0)] = 30_000

    @field_validator("compression", mode="before")
    @classmethod
    def _codec(cls, name: object) -> object:
        if isinstance(name, str):
            if name.upper() not in Codec.__members__:
                raise ValueError(f"no codec: use {', '.join(one.lower() for one in Codec.__members__)}")
            return Codec[name.upper()]
        return name

    @model_validator(mode="after")
    def _ledger_has_a_place(self) -> SinkOptions:
        if self.ledger_group and not (self.ledger_topic or self.topic):
            raise ValueError(
                "ledgerGroup needs ledgerTopic (or topic): the ledger is a commit on its partition 0"
            )
        if self.batch_number is not None and not self.ledger_group:
            raise ValueError("batchNumber needs ledgerGroup, which remembers it")
        return self

    @property
    def connection(self) -> ConnectionOptions:
        return ConnectionOptions(self.bootstrap, self.client_id, self.request_timeout_ms)


_ALIASES = {(one.alias or name).lower(): one.alias or name for name, one in SinkOptions.model_fields.items()}


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """The options, checked. Raises OptionsError."""
    try:
        return SinkOptions.model_validate({_ALIASES.get(k.lower(), k): v for k, v in given.items()})
    except ValidationError as error:
        words = []
        for problem in error.errors():
            key = ".".join(map(str, problem["loc"]))
            if problem["type"] == "extra_forbidden":
                words.append(
                    f"unknown option {key!r}: the options are {', '.join(sorted(_ALIASES.values()))}"
                )
            else:
                text = problem["msg"].removeprefix("Value error, ")
                words.append(
                    f"{key}={problem['input']!r}: {text}"
                    if key and problem["type"] != "missing"
                    else f"{key}: {text}"
                    if key
                    else text
                )
        raise OptionsError("; ".join(words)) from error


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Refuse rows that cannot be records. Raises OptionsError."""
    problems = []
    for column in schema.fields:
        kind = column.dataType.simpleString()
        wanted = _TYPES.get(column.name)
        if wanted is None:
            problems.append(
                f"column {column.name!r} is none of {', '.join(_TYPES)}: drop it or put it into value"
            )
        elif kind not in wanted:
            problems.append(f"column {column.name!r} is {kind}: cast it to {' or '.join(wanted)}")
    if "value" not in schema.fieldNames():
        problems.append("there is no column 'value'")
    if "topic" not in schema.fieldNames() and options.topic is None:
        problems.append("there is neither a column 'topic' nor the option topic")
    if problems:
        raise OptionsError("; ".join(problems))


@dataclass
class Written(WriterCommitMessage):
    """What a task has written."""

    records: int


class Ledger:
    """The number of the last batch that is in the topics, as a group's commit."""

    def __init__(self, client: Client, options: SinkOptions) -> None:
        self._client = client
        self._group = options.ledger_group or ""
        self._place = TopicPartition(options.ledger_topic or options.topic or "", 0)

    def has(self, number: int) -> bool:
        found = self._client.run(lambda cluster: cluster.committed(self._group, [self._place]))
        return self._place in found and found[self._place].offset > number

    def note(self, number: int) -> None:
        entry = {self._place: CommittedOffset(number + 1)}
        self._client.run(lambda cluster: cluster.commit(self._group, entry))


class _Writer:
    """What both kinds of writers do."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write_rows(self, batches: Iterator[pa.RecordBatch], number: int | None) -> Written:
        """Write a task's rows, unless the ledger has their batch."""
        options = self.options
        client = process_client(options.connection)
        if options.ledger_group and number is not None and Ledger(client, options).has(number):
            return Written(0)
        writer = RecordWriter(client, options.compression)
        for batch in batches:
            for record in _records(batch):
                topic = record.pop("topic", None) or options.topic
                if topic is None:
                    raise OptionsError("a row has no topic: fill column topic, or set option topic")
                writer.add(topic, **record)
        writer.close()
        return Written(writer.records)

    def note(self, number: int | None) -> None:
        """All tasks are done: the ledger has the batch from now on."""
        if self.options.ledger_group and number is not None:
            ledger = Ledger(process_client(self.options.connection), self.options)
            if not ledger.has(number):
                ledger.note(number)


class BatchWriter(_Writer, DataSourceArrowWriter):
    """``df.write``."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.write_rows(iterator, self.options.batch_number)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's name
        self.note(self.options.batch_number)


if WRITES_STREAMS:

    class StreamWriter(_Writer, DataSourceStreamArrowWriter):
        """``df.writeStream``."""

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            from pyspark import TaskContext

            context = TaskContext.get()
            number = context.getLocalProperty(_BATCH_ID) if context is not None else None
            return self.write_rows(iterator, None if number is None else int(number))

        def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
            self.note(batchId)


def _records(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows as ``RecordWriter.add`` takes them."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {"key": [None] * batch.num_rows}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in ("key", "value"):
            columns[name] = column.cast(pa.binary()).to_pylist()
        elif name == "timestamp":
            micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
            columns["timestamp_ms"] = [None if one is None else one // 1000 for one in micros]
        elif name == "headers":
            columns[name] = [[(one["key"], one["value"]) for one in row or ()] for row in column.to_pylist()]
        else:
            columns[name] = column.to_pylist()
    names = list(columns)
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(names, row, strict=True))
