"""Programs of backfill.md, and a topic that is read twice by them.

tests/spark/test_snippets.py runs those of Spark.
"""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from kafka import KafkaProducer

from kohort.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "backfill.md"
SNIPPETS: dict[str, str] = dict(
    re.findall(r"```python\n# (\w+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
)
OF_SPARK = {"backfill_spark", "backfill_new_place"}

pytestmark = pytest.mark.kafka


def test_the_page_has_its_programs() -> None:
    assert SNIPPETS.keys() == {"backfill_service", "backfill_beside", *OF_SPARK}


def serve(script: Path, last: str) -> None:
    """Run a service until it has printed a line for each record."""
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=script.parent
    ) as process:
        assert process.stdout is not None
        lines: Sequence[str] = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    assert lines[-1] == last, errors


def test_a_topic_that_is_read_again_leaves_no_row_twice_and_a_second_group_begins_where_the_first_stands(
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, billing, beside = new_topic("orders", 1), group("billing"), group("billing-new")
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for value in (b"one", b"two", b"three"):
            producer.send(topic, value)
    scripts: dict[str, Path] = {}
    for name, code in SNIPPETS.items():
        scripts[name] = tmp_path / f"{name}.py"
        for old, new in {
            "localhost:9092": bootstrap,
            '"orders"': f'"{topic}"',
            '"billing"': f'"{billing}"',
            '"billing-new"': f'"{beside}"',
        }.items():
            code = code.replace(old, new)
        scripts[name].write_text(code)
    serve(scripts["backfill_service"], "3 bills\n")
    words = ["groups", "reset-offsets", billing, "--topic", topic, "--to-earliest", "--bootstrap", bootstrap]
    assert main([*words, "--execute"]) == 0
    serve(scripts["backfill_service"], "3 bills\n")
    with sqlite3.connect(tmp_path / "bills.db") as database:
        assert database.execute("SELECT amount FROM bills ORDER BY position").fetchall() == [
            (b"one",),
            (b"two",),
            (b"three",),
        ]
    begun = subprocess.run(
        [sys.executable, scripts["backfill_beside"]], capture_output=True, text=True, timeout=250, check=False
    )
    assert (begun.returncode, begun.stdout) == (0, "begins at [3]\n"), begun.stderr
    capsys.readouterr()
    assert main(["groups", "describe", beside, "--bootstrap", bootstrap]) == 0
    assert re.search(rf"{topic}\s+0\s+3\s+3\s+0", capsys.readouterr().out)
