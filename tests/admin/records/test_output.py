"""What the reader of a pipe has used.

Covers: admin/records/output.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kohort.admin.records import output as module
from kohort.admin.records.output import Output


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """A pipe."""
    reading, writing = os.pipe()
    yield reading, writing
    for number in (reading, writing):
        with suppress(OSError):
            os.close(number)


def write(ends: tuple[int, int], output: Output[str], record: str) -> None:
    output.note_written([record], os.write(ends[1], record.encode()))


def test_what_a_reader_has_read_is_used_when_it_reads_on(ends: tuple[int, int]) -> None:
    output = Output[str](ends[1])
    write(ends, output, "first")
    write(ends, output, "second")
    assert output.take_used() == []
    os.read(ends[0], 5)
    assert output.take_used() == []
    os.read(ends[0], 3)
    assert output.take_used() == ["first"]


def test_what_a_reader_has_read_is_used_when_it_stays(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = Output[str](ends[1])
    write(ends, output, "first")
    os.read(ends[0], 5)
    assert output.take_used() == []
    later = time.monotonic() + 2 * module.STAYS_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert output.take_used() == ["first"]
    assert not output.end()


def test_what_a_reader_had_when_it_ended_is_not_used(ends: tuple[int, int]) -> None:
    output = Output[str](ends[1])
    write(ends, output, "first")
    os.read(ends[0], 5)
    os.close(ends[0])
    with pytest.raises(BrokenPipeError):
        output.take_used()


def test_one_that_does_not_read_is_waited_for_at_the_end_for_a_time(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = Output[str](ends[1])
    write(ends, output, "first")
    assert output.end()
    assert output.take_used() == []
    later = time.monotonic() + 2 * module.END_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert output.end()
    assert output.take_used() == ["first"]
    assert not output.end()


def test_what_is_written_to_anything_else_is_used() -> None:
    output = Output[str](None)
    output.note_written(["first"], 5)
    assert output.take_used() == ["first"]
