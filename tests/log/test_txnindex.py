"""The index of aborted transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.log import OS_FILES
from kohort.log._txnindex import AbortedTransaction, TxnIndex

#: ``clicks-a-2`` of a data folder of Apache Kafka 4.3.1: producer 1 aborted 52..53, stable up to 54.
GOLDEN = bytes.fromhex("0000 0000000000000001 0000000000000034 0000000000000035 0000000000000036")
ABORTED = AbortedTransaction(producer_id=1, first_offset=52, last_offset=53, last_stable_offset=54)


def index(folder: Path) -> TxnIndex:
    return TxnIndex(OS_FILES.file(str(folder / "x.txnindex")))


def test_entries_are_written_and_read_as_kafka_does(tmp_path: Path) -> None:
    made = index(tmp_path)
    assert made.open()
    assert made.file is None
    made.append(ABORTED)
    assert (tmp_path / "x.txnindex").read_bytes() == GOLDEN
    again = index(tmp_path)
    assert again.open()
    assert again.entries == [ABORTED]
    again.truncate(0)
    assert (tmp_path / "x.txnindex").read_bytes() == b""


def test_no_file_is_made_without_an_aborted_transaction(tmp_path: Path) -> None:
    assert index(tmp_path).open()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [GOLDEN[:-1], b"\x00\x01" + GOLDEN[2:], b"x"])
def test_a_file_of_something_else_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.txnindex").write_bytes(content)
    assert not index(tmp_path).open()
