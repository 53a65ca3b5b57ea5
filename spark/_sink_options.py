"""Options of ``write`` and ``writeStream.format("kohort")``, and the columns that they accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import field_validator, model_validator
from pyspark.sql.types import StructType

from ..protocol import Codec
from ..settings import MAX_INT, SPARK_SINK, Row, Scope
from ._connection_options import WRITING, SecurityOptions, from_spark, read_connected, without_tuning
from ._options import OptionsError
from ._produce import BATCH_BYTES, WriteSettings

_TYPES: Mapping[str, tuple[str, ...]] = {
    "topic": ("string",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}
_CODECS = tuple(name.lower() for name in Codec.__members__)


class SinkOptions(SecurityOptions):
    """Options of a write."""

    SCOPE: ClassVar[Scope] = SPARK_SINK

    topic: Annotated[str | None, Row("topic of rows without a column of that name")] = None
    compression: Annotated[
        Codec,
        Row(
            "compression of record batches",
            kafka="kafka.compression.type",
            allowed=f"one of {', '.join(_CODECS)}",
        ),
    ] = Codec.NONE
    batch_size: Annotated[
        int,
        Row(
            "bytes of one partition's records that make a batch full",
            1,
            MAX_INT,
            unit="bytes",
            kafka="kafka.batch.size",
        ),
    ] = BATCH_BYTES
    ignore_keys: Annotated[
        bool,
        Row(
            "whether records with keys are spread over the partitions like those without, and do not go to "
            "the partition of their key",
            kafka="kafka.partitioner.ignore.keys",
        ),
    ] = False
    ledger_group: Annotated[
        str | None,
        Row(
            "group of a commit that records the last batch, so that it is not written twice; its name begins "
            "the transactional ids",
            kafka="ledgerGroup",
            shortest=1,
        ),
    ] = None
    ledger_topic: Annotated[
        str | None,
        Row(
            "topic of that commit, which is on partition 0; by default the topic that is written",
            kafka="ledgerTopic",
            shortest=1,
        ),
    ] = None
    batch_key: Annotated[
        str | None,
        Row(
            "unique key of the batch, such as `Batch.key`; batches of a query have one automatically",
            kafka="batchKey",
            shortest=1,
            longest=200,
        ),
    ] = None
    transactions: Annotated[
        Literal["auto", "required", "never"],
        Row(
            "whether tasks write in transactions, which the driver commits when all are done; `auto`: with a "
            "ledger or in a query, if broker and rights allow it"
        ),
    ] = "auto"
    transaction_timeout_ms: Annotated[
        int,
        Row(
            "time after which the broker aborts a transaction; a batch must not take longer",
            1,
            kafka="kafka.transaction.timeout.ms",
        ),
    ] = 900_000

    @property
    def write_settings(self) -> WriteSettings:
        return WriteSettings(self.compression, self.batch_size, self.ignore_keys)

    @field_validator("compression", mode="before")
    @classmethod
    def _codec(cls, name: object) -> object:
        if isinstance(name, str):
            if name.lower() not in _CODECS:
                raise ValueError(f"no codec: use {', '.join(_CODECS)}")
            return Codec[name.upper()]
        return name

    @model_validator(mode="after")
    def _ledger_has_a_place(self) -> SinkOptions:
        if self.ledger_group and not (self.ledger_topic or self.topic):
            raise ValueError(
                "ledgerGroup needs ledgerTopic (or topic): the ledger is a commit on its partition 0"
            )
        if self.batch_key is not None and not self.ledger_group:
            raise ValueError("batchKey needs ledgerGroup, which remembers it")
        return self


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Check the options. Raises OptionsError, which names each problem."""
    wanted = without_tuning(from_spark(given), WRITING)
    if any(key.lower() == "batchnumber" for key in wanted):
        raise OptionsError(
            "batchNumber is not taken: after a reset of the job's offsets a number comes again for other "
            "records, which would be passed over. Give batchKey=batch.key"
        )
    return read_connected(SinkOptions, wanted)


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Check that rows with these columns can be records. Raises OptionsError."""
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
