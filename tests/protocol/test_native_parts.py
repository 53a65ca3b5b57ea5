"""Which compiled parts run: those that are there, unless they are ruled out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kohort.protocol import _native_parts, has_native, implementation
from tests.native_parts import ROOMS


def test_every_compiled_part_is_known() -> None:
    assert list(_native_parts._ROOMS) == ROOMS


def test_a_part_that_is_missing_is_done_without() -> None:
    assert not has_native("statemachine")
    # and one that was compiled before it had what is asked for
    assert not has_native("protocol", "what_it_has_not_yet")


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"assignors", "offsets_topic", "protocol"}, "native"),
        ({"assignors", "protocol"}, "native, offsets_topic pure Python"),
        (set[str](), "pure Python"),
    ],
)
def test_what_runs_is_told(there: set[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native_parts, "has_native", there.__contains__)
    assert implementation() == said


@pytest.mark.parametrize("value", ["1", ""])
def test_an_environment_variable_keeps_to_python(value: str) -> None:
    code = "from kohort.assignors import _ownership; from kohort.offsets_topic import _encoded; "
    code += "from kohort.protocol import implementation, records; "
    code += "print(_ownership.NATIVE, _encoded.NATIVE, records.NATIVE, implementation(), sep=', ')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KOHORT_PURE": value},
        capture_output=True,
        text=True,
        check=True,
    )
    if value:
        assert done.stdout == "False, False, False, pure Python\n"
    elif all(map(has_native, ROOMS)):
        assert done.stdout == "True, True, True, native\n"
