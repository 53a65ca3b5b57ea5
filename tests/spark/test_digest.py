from __future__ import annotations

from typing import Any

import pytest

from kohort.spark._digest import RowDigest
from tests.spark.sink_rows import one_row

ROW: dict[str, Any] = {"topic": "out", "key": b"k", "value": b"v"}


def digest_of(*rows: dict[str, Any]) -> int:
    digest = RowDigest()
    for row in rows:
        digest.add(one_row(**row))
    return digest.value


def test_the_same_rows_have_the_same_digest_in_any_order() -> None:
    rows = [ROW | {"value": b"%d" % n, "headers": [("h", b"1")], "timestamp_ms": n} for n in range(5)]
    assert digest_of(*rows) == digest_of(*reversed(rows))
    assert 0 <= digest_of(*rows) < 2**32


@pytest.mark.parametrize(
    "change",
    [
        {"topic": "out2"},
        {"key": None},
        {"key": b""},
        {"key": b"v", "value": b"k"},
        {"key": b"kv", "value": b""},
        {"value": None},
        {"value": b""},
        {"partition": 0},
        {"timestamp_ms": 0},
        {"headers": [("h", b"1")]},
        {"headers": [("h", b"")]},
        {"headers": [("h", None)]},
    ],
)
def test_another_row_has_another_digest(change: dict[str, Any]) -> None:
    others: list[dict[str, Any]] = [
        {},
        {"key": None, "value": None},
        {"key": b"", "value": b""},
        {"headers": [("h", b"2")]},
    ]
    known = {digest_of(ROW | other) for other in others if other != change}
    assert digest_of(ROW | change) not in known


def test_a_row_that_comes_twice_or_not_at_all_changes_the_digest() -> None:
    assert len({digest_of(), digest_of(ROW), digest_of(ROW, ROW)}) == 3


def test_a_digest_is_that_of_former_versions_whose_ledgers_are_read() -> None:
    row = {"headers": [("h", b"1"), ("ä", None)], "timestamp_ms": 1_700_000_000_123, "partition": 3}
    assert digest_of(ROW, ROW | {"key": None, "value": None}, ROW | row) == 3_818_738_382
