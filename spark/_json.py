"""Turns JSON values, or values that a decoder reads, into typed columns by a pydantic model.

Invalid values are kept in a column of their own.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from ..protocol import JsonObject, KohortError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

#: Spark's type for each Python type.
_SCALARS: Mapping[type, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double",
    str: "string",
    bytes: "binary",
    uuid.UUID: "string",
    datetime.datetime: "timestamp",
    datetime.date: "date",
    decimal.Decimal: "decimal(38,18)",
}


#: Deepest nesting of models; a model that contains itself would have no end.
_DEEPEST = 30


class ModelError(KohortError, TypeError):
    """A model or DataFrame cannot be turned into columns. The text names the field and an alternative."""


def from_json(
    df: DataFrame,
    model: type[BaseModel],
    *,
    column: str = "value",
    bad_record: str = "bad_record",
    decode: Callable[[bytes], object] | None = None,
) -> DataFrame:
    """Return ``df`` with ``column`` replaced by the model's fields, followed by a column ``bad_record``.

    For a value that the model does not accept, all fields are null and ``bad_record`` is ``struct<value
    binary, error string>``; for other values ``bad_record`` is null. A null value (a tombstone) is not an
    error: all columns are null. Field types: bool, int, float, str, bytes, datetime, date, Decimal, UUID,
    enums, Literal, other models, lists, dicts with str keys, and each of them optional. Raises ModelError.

    ``decode``: a function that turns the bytes into what the model validates, such as a decoder of a
    SchemaRegistry. It must be picklable. An error that it raises makes the value a bad record, except
    OSError, which fails the task.
    """
    from pyspark.sql.types import StructType

    if column not in df.columns:
        raise ModelError(f"there is no column {column!r}: the DataFrame has {', '.join(df.columns)}")
    kept = df.drop(column)
    fields = {name: spark_type(field.annotation, name) for name, field in model.model_fields.items()}
    if clash := sorted({*kept.columns, bad_record} & fields.keys() | {*kept.columns} & {bad_record}):
        raise ModelError(f"column {clash[0]!r} would be there twice: rename it in the DataFrame first")
    made = [f"`{name}` {kind}" for name, kind in fields.items()]
    made.append(f"`{bad_record}` struct<value: binary, error: string>")
    # StructType.fromDDL came with PySpark 4.0
    typed = df.sparkSession.createDataFrame([], ", ".join(made)).schema
    schema = StructType([*kept.schema.fields, *typed.fields])
    _forget_where_it_was_made(model)
    arrow = [_arrow_field(field) for field in typed.fields]
    return df.mapInArrow(_make_parser(model, column, kept.columns, arrow, decode), schema)


def _forget_where_it_was_made(annotation: Any) -> None:
    """Make a model picklable that was defined in a function, by removing its reference to the function's
    variables.

    Among these may be a Spark session, which cannot be pickled.
    """
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    if is_model and annotation.__pydantic_parent_namespace__ is not None:
        annotation.__pydantic_parent_namespace__ = None
        for field in annotation.model_fields.values():
            _forget_where_it_was_made(field.annotation)
    for inner in typing.get_args(annotation):
        _forget_where_it_was_made(inner)


def spark_type(annotation: object, where: str) -> str:
    """Return the DDL type for a field's annotation. Raises ModelError, which names the field ``where``."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return spark_type(arguments[0], where)
    if origin in (typing.Union, types.UnionType):
        some = [one for one in arguments if one is not type(None)]
        if len(some) == 1:
            return spark_type(some[0], where)
    if origin is typing.Literal:
        kinds = {type(value) for value in arguments}
        if len(kinds) == 1:
            return spark_type(kinds.pop(), where)
    if origin in (list, tuple, set, frozenset, Sequence) and (len(arguments) == 1 or arguments[1:] == (...,)):
        return f"array<{spark_type(arguments[0], where)}>"
    if origin in (dict, Mapping) and arguments[0] is str:
        return f"map<string,{spark_type(arguments[1], where)}>"
    if isinstance(annotation, type):
        return _class_type(annotation, where)
    raise ModelError(
        f"field {where}: {annotation} is no type of a column. Use a model, a scalar, list[...], "
        "dict[str, ...], or one of these | None"
    )


def _class_type(kind: type, where: str) -> str:
    if where.count(".") > _DEEPEST:
        raise ModelError(f"field {where}: models within models without an end are no columns")
    if issubclass(kind, BaseModel):
        inner = (
            f"`{name}`: {spark_type(field.annotation, f'{where}.{name}')}"
            for name, field in kind.model_fields.items()
        )
        return f"struct<{', '.join(inner)}>"
    if issubclass(kind, enum.Enum):
        kinds = {type(member.value) for member in kind}
        kind = kinds.pop() if len(kinds) == 1 else object
    for scalar in kind.__mro__:
        if scalar in _SCALARS:
            return _SCALARS[scalar]
    raise ModelError(
        f"field {where}: {kind.__name__} is no type of a column. Use one of "
        f"{', '.join(sorted(one.__name__ for one in _SCALARS))}, or a model"
    )


def _arrow_field(field: StructField) -> pa.Field:
    import pyarrow as pa

    return pa.field(field.name, _arrow_type(field.dataType))


def _arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type for a Spark type. Timestamps are UTC, whatever the session's time zone is."""
    import pyarrow as pa
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    match kind:
        case StructType():
            return pa.struct([_arrow_field(field) for field in kind.fields])
        case ArrayType():
            return pa.list_(_arrow_type(kind.elementType))
        case MapType():
            return pa.map_(_arrow_type(kind.keyType), _arrow_type(kind.valueType))
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
    return {
        "boolean": pa.bool_(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
    }[kind.simpleString()]


def _make_parser(
    model: type[BaseModel],
    column: str,
    kept: Sequence[str],
    fields: Sequence[pa.Field],
    decode: Callable[[bytes], object] | None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            values = batch.column(column).to_pylist()
            made = columns_of(model, values, fields, decode)
            kept_fields = [batch.schema.field(name) for name in kept]
            arrays = [*(batch.column(name) for name in kept), *made]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*kept_fields, *fields]))

    return parse


def columns_of(
    model: type[BaseModel],
    values: Sequence[bytes | str | None],
    fields: Sequence[pa.Field],
    decode: Callable[[bytes], object] | None = None,
) -> list[pa.Array]:
    """Return Arrow columns of the values: the model's fields in order, then bad records (``from_json``)."""
    import pyarrow as pa

    rows: list[dict[str, object] | None] = []
    bad: list[dict[str, object] | None] = []
    for value in values:
        row, error = _read_value(model, value, decode)
        rows.append(row)
        bad.append(error)
    whole = pa.struct(fields[:-1])
    try:
        table = pa.array(rows, whole)
    except (pa.ArrowException, OverflowError):
        # for example a number is too large for its column: find the rows
        for nth, row in enumerate(rows):
            try:
                pa.array([row], whole)
            except (pa.ArrowException, OverflowError) as error:
                rows[nth], bad[nth] = None, _bad_row(values[nth], str(error))
        table = pa.array(rows, whole)
    return [*table.flatten(), pa.array(bad, fields[-1].type)]


def _read_value(
    model: type[BaseModel], value: bytes | str | None, decode: Callable[[bytes], Any] | None
) -> tuple[JsonObject | None, JsonObject | None]:
    if value is None:
        return None, None
    try:
        if decode is None:
            return _to_plain(model.model_validate_json(value)), None
        try:
            found = decode(value.encode() if isinstance(value, str) else bytes(value))
        except OSError:
            raise
        except Exception as error:
            return None, _bad_row(value, f"{type(error).__name__}: {error}")
        return _to_plain(model.model_validate(found, from_attributes=True)), None
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, one['loc'])) or 'value'}: {one['msg']}" for one in error.errors())
        return None, _bad_row(value, "; ".join(problems))


def _bad_row(value: bytes | str | None, error: str) -> JsonObject:
    return {"value": value.encode() if isinstance(value, str) else value, "error": error}


def _to_plain(value: Any) -> Any:
    """Convert a value for Arrow: models to dicts, maps to pairs, enums to values, UUIDs to text."""
    if isinstance(value, BaseModel):
        return {name: _to_plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return [(key, _to_plain(one)) for key, one in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_plain(one) for one in value]
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, uuid.UUID) else value
