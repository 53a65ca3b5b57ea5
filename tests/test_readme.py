"""The README's examples, run as they stand there, but for the address of the broker."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES: dict[str, str] = dict(re.findall(r"```python\n# (\w+)\n(.*?)```", README, flags=re.DOTALL))
(ORDERS_COMMANDS,) = re.findall(r"```sh\n# orders\n(.*?)```", README, flags=re.DOTALL)
Names = Callable[[str], str]
ORDERS = range(20)


def example(name: str, bootstrap: str, topic: str, group: str, folder: Path) -> Path:
    """The example in a file of its own, on this broker, with a topic and a group of its own."""
    code = EXAMPLES[name].replace("localhost:9092", bootstrap)
    code = re.sub(r'"orders(\.dlt)?"', rf'"{topic}\1"', code)
    code = re.sub(r'group="\w+"', f'group="{group}"', code)
    path = folder / f"{name}.py"
    path.write_text(code)
    return path


@pytest.fixture
def orders(bootstrap: str, group: Names) -> str:
    """A topic with the records that the README's first commands send."""
    topic = group("orders")
    ours = rf"{shlex.quote(sys.executable)} -m kohort \1 {topic} --bootstrap {bootstrap}"
    commands = re.sub(r"\bkohort ([a-z ]+) orders\b", ours, ORDERS_COMMANDS)
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", commands],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r'^{"id": \d+, "amount": 9.5}$', done.stdout, re.MULTILINE)) == 3, done.stdout
    return topic


def test_the_readme_has_an_example_for_each_way_of_use() -> None:
    assert set(EXAMPLES) == {"service", "assignor", "spark"}


def test_the_examples_pass_a_strict_type_checker(tmp_path: Path) -> None:
    scripts = [
        str(example(name, "localhost:9092", "orders", "readme", tmp_path)) for name in sorted(EXAMPLES)
    ]
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    checked = subprocess.run(
        [*mypy, *scripts], cwd=ROOT, capture_output=True, text=True, timeout=250, check=False
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.kafka
def test_the_service_handles_every_order_and_stops_on_sigterm(
    bootstrap: str, orders: str, group: Names, tmp_path: Path
) -> None:
    script = example("service", bootstrap, orders, group("readme"), tmp_path)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in ORDERS]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert sorted(int(line.split()[1]) for line in lines) == list(ORDERS)


@pytest.mark.kafka
def test_the_assignor_conforms_and_is_used(bootstrap: str, orders: str, group: Names, tmp_path: Path) -> None:
    script = example("assignor", bootstrap, orders, group("readme"), tmp_path)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert f"topic='{orders}', partition=1" in done.stdout


@pytest.mark.kafka
@pytest.mark.spark
def test_the_spark_job_reads_what_the_group_has_not(
    bootstrap: str, orders: str, group: Names, tmp_path: Path
) -> None:
    script = example("spark", bootstrap, orders, group("readme"), tmp_path)
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=250, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert re.search(rf"{orders}\s*\|\s*20", done.stdout), done.stdout
