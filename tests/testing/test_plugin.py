"""The pytest plug-in, loaded by its entry point."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.testing import RunningBroker
from tests.broker.wire import Wire, create_topic

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "testing.md"


def test_the_fixture_is_there_without_an_import(kohort_broker: RunningBroker) -> None:
    with Wire(kohort_broker.bootstrap) as wire:
        assert create_topic(wire, "mine").error_code == 0


def test_each_test_has_a_broker_of_its_own(kohort_broker: RunningBroker) -> None:
    with Wire(kohort_broker.bootstrap) as wire:
        assert create_topic(wire, "mine").error_code == 0


@pytest.mark.kohort_broker(num_partitions=5)
def test_the_marker_sets_its_settings(kohort_broker: RunningBroker) -> None:
    with Wire(kohort_broker.bootstrap) as wire:
        assert create_topic(wire, "mine", -1).num_partitions == 5


@pytest.mark.slow(6)
@pytest.mark.clients
def test_the_guides_examples_work_in_a_project_of_somebody_else(tmp_path: Path) -> None:
    """kafka-python, aiokafka, confluent-kafka and FastStream users' tests, and one of a service."""
    # those about clusters and queues are run by test_snippets.py
    guide = re.sub(r"\n## A (cluster|queue)\n.*?(?=\n## )", "", GUIDE.read_text(), flags=re.DOTALL)
    examples = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    for number, example in enumerate(examples):
        (tmp_path / f"test_theirs_{number}.py").write_text(example)
    clients = ("from kafka", "import aiokafka", "import confluent_kafka", "from faststream", "kohort_service")
    assert [name for name in clients if not any(name in example for example in examples)] == []
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout
    tests = sum("def test_" in example for example in examples)
    assert tests > 4
    assert f"{tests} passed" in outcome.stdout


@pytest.mark.slow(4)
def test_a_project_that_makes_errors_of_warnings_can_use_it(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(
        "def test_it(kohort_broker):\n"
        "    kohort_broker.create_topic('orders', 2)\n"
        "    kohort_broker.produce('orders', [('a', 'b'), ('c', 'd')])\n"
        "    assert len(kohort_broker.read('orders')) == 2\n"
    )
    outcome = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "error",
            "-p",
            "no:asyncio",
            "-p",
            "no:cacheprovider",
            ".",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout
    assert "warning" not in outcome.stdout


def test_loading_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import kohort.testing.plugin;"
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('kohort')))"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"
