from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pytest
from pydantic import BaseModel, Field

from kohort.spark import ModelError, from_json
from kohort.spark._json import columns_of, spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Colour(enum.Enum):
    RED = "red"


class Item(BaseModel):
    name: str
    count: int = 1


class Order(BaseModel):
    id: int
    item: Item | None = None


FIELDS = [
    pa.field("id", pa.int64()),
    pa.field("item", pa.struct([("name", pa.string()), ("count", pa.int64())])),
    pa.field("bad_record", pa.struct([("value", pa.binary()), ("error", pa.string())])),
]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, "bigint"),
        (bool, "boolean"),
        (float | None, "double"),
        (str, "string"),
        (uuid.UUID, "string"),
        (datetime.datetime, "timestamp"),
        (datetime.date, "date"),
        (decimal.Decimal, "decimal(38,18)"),
        (Colour, "string"),
        (Literal["a", "b"], "string"),
        (list[int], "array<bigint>"),
        (tuple[str, ...], "array<string>"),
        (dict[str, float], "map<string,double>"),
        (list[Item], "array<struct<`name`: string, `count`: bigint>>"),
    ],
)
def test_types_of_fields(annotation: Any, expected: str) -> None:
    assert spark_type(annotation, "field") == expected


@pytest.mark.parametrize("annotation", [object, int | str, dict[int, str], tuple[int, str], Literal[1, "a"]])
def test_a_field_that_no_column_can_hold_is_named(annotation: Any) -> None:
    with pytest.raises(ModelError, match="field colour"):
        spark_type(annotation, "colour")


class Tree(BaseModel):
    children: list[Tree] = []


def test_a_model_that_holds_itself_is_refused() -> None:
    with pytest.raises(ModelError, match="without an end"):
        spark_type(Tree, "tree")


def test_what_the_model_does_not_take_is_kept_with_the_reason() -> None:
    values = [b'{"id": 1, "item": {"name": "pen"}}', b'{"id": "one"}', b"nonsense", None, b'{"id": 5}']
    ids, items, bad = columns_of(Order, values, FIELDS)
    assert ids.to_pylist() == [1, None, None, None, 5]
    assert items.to_pylist() == [{"name": "pen", "count": 1}, None, None, None, None]
    kept = bad.to_pylist()
    assert [row and row["value"] for row in kept] == [None, b'{"id": "one"}', b"nonsense", None, None]
    assert kept[1]["error"].startswith("id: Input should be a valid integer")
    assert kept[2]["error"].startswith("value: Invalid JSON")


def test_a_number_too_large_for_its_column_is_one_bad_record() -> None:
    values = [b'{"id": 1}', b'{"id": 9223372036854775808}', b'{"id": 3}']
    ids, _, bad = columns_of(Order, values, FIELDS)
    assert ids.to_pylist() == [1, None, 3]
    assert [row is not None for row in bad.to_pylist()] == [False, True, False]


def test_values_that_are_not_json_are_decoded_first() -> None:
    def decode(value: bytes) -> Any:
        return {"id": int(value.decode())}

    values = [b"1", None, b"\xff", b"x", b"2"]
    ids, _, bad = columns_of(Order, values, FIELDS, decode)
    assert ids.to_pylist() == [1, None, None, None, 2]
    errors = [one and one["error"].split(":")[0] for one in bad.to_pylist()]
    assert errors == [None, None, "UnicodeDecodeError", "ValueError", None]


def test_a_decoder_that_reaches_nobody_fails_the_task() -> None:
    def decode(_: bytes) -> Any:
        raise ConnectionRefusedError("no registry")

    with pytest.raises(ConnectionRefusedError):
        columns_of(Order, [b"1"], FIELDS, decode)


@pytest.mark.spark
def test_a_dataframe_gets_typed_columns_and_a_bad_record_column(spark: SparkSession) -> None:
    class Reading(BaseModel):
        """Made here, as in a notebook: workers cannot import it."""

        id: int
        at: datetime.datetime
        tags: dict[str, list[int]] = Field(default_factory=dict)
        price: decimal.Decimal | None = None

    good = b'{"id": 7, "at": "2024-05-06T07:08:09Z", "tags": {"a": [1, 2]}, "price": "1.5"}'
    df = spark.createDataFrame([(b"k", good, 0), (b"l", b"{", 1)], "key binary, value binary, offset bigint")
    made = from_json(df, Reading)
    assert made.columns == ["key", "offset", "id", "at", "tags", "price", "bad_record"]
    first, second = (
        made.selectExpr("offset", "id", "unix_seconds(at) as at", "tags", "price", "bad_record.value as bad")
        .orderBy("offset")
        .collect()
    )
    assert tuple(first) == (0, 7, 1714979289, {"a": [1, 2]}, decimal.Decimal("1.5"), None)
    assert (second["id"], bytes(second["bad"])) == (None, b"{")
    with pytest.raises(ModelError, match="column 'offset' would be there twice"):
        from_json(df, type("Clash", (BaseModel,), {"__annotations__": {"offset": int}}))
    with pytest.raises(ModelError, match="no column 'payload'"):
        from_json(df, Reading, column="payload")
