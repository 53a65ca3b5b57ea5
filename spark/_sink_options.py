"""The options of ``write`` and ``writeStream.format("kohort")``, and the columns that they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pyspark.sql.types import StructType

from ..protocol import Codec
from ._client import ConnectionOptions
from ._options import OptionsError
from ._security_options import ALL_SPARK_NAMES, SPARK_NAME_OF, SecurityOptions, described, from_spark
from ._tuning import WRITING, without_tuning

_TYPES: Mapping[str, tuple[str, ...]] = {
    "topic": ("string",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}


class SinkOptions(SecurityOptions):
    """What a write takes; aliases are the options' names."""

    bootstrap: Annotated[str, Field(alias="kafka.bootstrap.servers", min_length=1)]
    #: For rows without a column of that name.
    topic: str | None = None
    compression: Annotated[Codec, Field(alias="kafka.compression.type")] = Codec.NONE
    ledger_group: Annotated[str | None, Field(alias="ledgerGroup", min_length=1)] = None
    ledger_topic: Annotated[str | None, Field(alias="ledgerTopic", min_length=1)] = None
    #: What tells a batch apart for ever, such as ``Batch.key``; a query's batches have one by themselves.
    batch_key: Annotated[str | None, Field(alias="batchKey", min_length=1, max_length=200)] = None
    #: Whether a batch is to be seen as a whole or not at all by readers with read_committed.
    transactions: Literal["auto", "required", "never"] = "auto"
    #: How long the broker keeps a transaction open; a batch must not take longer.
    transaction_timeout_ms: Annotated[int, Field(alias="kafka.transaction.timeout.ms", gt=0)] = 900_000
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
        if self.batch_key is not None and not self.ledger_group:
            raise ValueError("batchKey needs ledgerGroup, which remembers it")
        return self

    @property
    def connection(self) -> ConnectionOptions:
        return ConnectionOptions(self.bootstrap, self.client_id, self.request_timeout_ms, self.security)


_OWN = {name: field.alias or name for name, field in SinkOptions.model_fields.items()}
_NAMES = [alias for name, alias in _OWN.items() if name not in SPARK_NAME_OF]
_ALIASES = {name.lower(): name for name in _NAMES}


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """The options, checked. Raises OptionsError, which names each problem."""
    wanted = without_tuning(from_spark(given), WRITING)
    named = {_ALIASES.get(key.lower(), key): value for key, value in wanted.items()}
    if any(key.lower() == "batchnumber" for key in named):
        raise OptionsError(
            "batchNumber is not taken: after a reset of the job's offsets a number comes again for other "
            "records, which would be passed over. Give batchKey=batch.key"
        )
    try:
        return SinkOptions.model_validate(named)
    except ValidationError as error:
        raise OptionsError("; ".join(_described(problem) for problem in error.errors())) from None


def _described(problem: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown option {key!r}: the options are {', '.join(sorted([*_NAMES, *ALL_SPARK_NAMES]))}"
    if problem["type"] == "missing":
        return f"option {key} is required"
    return described(problem)


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
