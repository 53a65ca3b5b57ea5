"""The tables of layouts in docstrings are those that the code reads and writes."""

from __future__ import annotations

import re
import struct
from itertools import accumulate
from types import ModuleType

import pytest

from kohort.client import zookeeper_requests
from kohort.log import _indexes, _producers
from kohort.offsets_topic import _encoded, records
from kohort.protocol import _batch
from kohort.spark import _ledger_entry

CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint32": "I",
    "3 * int8": "bbb",
    "16 bytes": "16s",
}
ROW = re.compile(rf"^(?:\S+ +| +)?(\d+) +({'|'.join(map(re.escape, CODES))})  ", re.M)


def rows_of(module: ModuleType) -> list[tuple[int, str]]:
    """Offset and code of each row of the module's table."""
    return [(int(at), CODES[kind]) for at, kind in ROW.findall(module.__doc__ or "")]


def form_of(rows: list[tuple[int, str]]) -> str:
    """The struct of rows, whose offsets must be where the fields before them end."""
    sizes = [struct.calcsize(f">{code}") for _, code in rows]
    assert [at for at, _ in rows] == [0, *accumulate(sizes)][:-1]
    return ">" + "".join(code for _, code in rows)


@pytest.mark.parametrize(
    ("module", "forms"),
    [
        (_batch, [_batch.BATCH_HEADER]),
        (zookeeper_requests, [zookeeper_requests._HEADER, zookeeper_requests._STAT]),
        (_indexes, [_indexes.OffsetIndex.ENTRY, _indexes.TimeIndex.ENTRY, _indexes._ENTRY]),
        (_producers, [_producers._HEAD, _producers._ENTRY]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, ModuleType) else "",
)
def test_tables_of_fixed_layouts(module: ModuleType, forms: list[struct.Struct]) -> None:
    rows = rows_of(module)
    begins = [number for number, (at, _) in enumerate(rows) if at == 0]
    ends = [*begins[1:], len(rows)]
    assert [form_of(rows[begin:end]) for begin, end in zip(begins, ends, strict=True)] == [
        form.format for form in forms
    ]


def test_the_table_of_plain_commits() -> None:
    rows = rows_of(_encoded)
    assert form_of(rows[:5]) == _encoded._VALUE.format
    assert form_of(rows[:3] + rows[5:]) == records.BARE_OFFSET_V4.format


def test_the_table_of_the_ledgers_columns() -> None:
    kinds = re.findall(r"^(u?int\d+)  ", _ledger_entry.__doc__ or "", re.M)
    assert [CODES[kind] for kind in kinds] == list(_ledger_entry._COLUMNS.replace("?", "b"))
