"""Each alert asks for metrics that there are, and has an entry in the runbook; each entry names lines of the
log and metrics that there are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from kohort.broker import Broker
from kohort.broker.metrics._exposer import exposition
from kohort.problems import KINDS
from kohort.service.reporting.metrics import LockNumbers, ServiceCounters, Snapshot, metric_families
from tests.test_dashboards import ADDED, check, of_brokers, of_services

yaml = pytest.importorskip("yaml")

ROOT: Final = Path(__file__).resolve().parent.parent
RUNBOOK: Final = (ROOT / "docs" / "runbook.md").read_text()
#: Of Prometheus itself, of the client library's collector for processes, and of Apache Kafka alone.
FOREIGN: Final = {
    "up": ADDED,
    "process_open_fds": ADDED,
    "process_max_fds": ADDED,
    "kafka_network_requestmetrics_deprecatedrequests_total": {"request", "version", *ADDED},
}
#: Rooms in which lines of the log are written, and names of events.
WRITERS: Final = (
    "broker",
    "client",
    "cluster",
    "consumer",
    "coordinator",
    "protocol",
    "recording",
    "service",
)


def rules_of(part: str) -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((ROOT / "docs" / "alerts" / f"{part}.yml").read_text())["groups"]
    assert group["name"] == f"kohort-{part}"
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def shares() -> dict[str, set[str]]:
    """The metrics of a share group's service, which the example of the dashboards' tests does not have."""
    now = Snapshot("g", "STABLE", 1, True, [], ServiceCounters(), {}, {}, LockNumbers(0, 0, 0, 5))
    return {name + "_total" * counter: {"group", *ADDED} for name, _, counter, _, _ in metric_families(now)}


KNOWN: Final = {
    "brokers": of_brokers() | FOREIGN,
    "services": of_brokers() | shares() | of_services() | FOREIGN,
}
RULES: Final = [(part, rule) for part in KNOWN for rule in rules_of(part)]


@pytest.mark.parametrize(("part", "rule"), RULES, ids=[rule["alert"] for _, rule in RULES])
def test_a_rule_asks_for_what_there_is(part: str, rule: dict[str, Any]) -> None:
    check(rule["expr"], KNOWN[part])
    told = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert told <= set.union(*(KNOWN[part][name] for name in named_in(rule["expr"])))


def test_rules_problems_and_entries_of_the_runbook_are_the_same_in_the_same_order() -> None:
    kinds = [(kind.alert, kind.severity) for kind in KINDS.values()]
    assert [(rule["alert"], rule["labels"]["severity"]) for _, rule in RULES] == kinds
    entries = re.findall(r"^### (\w+)\n\n\*\*(\w+)\*\*", RUNBOOK, re.MULTILINE)
    assert [(f"Kohort{name}", severity) for name, severity in entries] == kinds
    assert all(kind.anchor == kind.name.lower() for kind in KINDS.values())


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")
def test_prometheus_takes_the_rules() -> None:
    files = sorted((ROOT / "docs" / "alerts").glob("*.yml"))
    done = subprocess.run(["promtool", "check", "rules", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == len(files)


async def test_a_broker_that_runs_shows_what_the_rules_ask_for() -> None:
    async with Broker() as broker:
        shown = exposition(broker.metrics())[0].decode()
    asked = {name for _, rule in RULES[: len(rules_of("brokers"))] for name in named_in(rule["expr"])}
    ours = asked - {"up", "kafka_network_requestmetrics_deprecatedrequests_total"}
    assert {name for name in ours if f"# TYPE {name} " not in shown} == set()


@pytest.mark.parametrize("name", KINDS)
def test_an_entry_names_lines_and_metrics_that_there_are_and_says_where_to_look_and_what_to_do(
    name: str,
) -> None:
    entry = RUNBOOK.partition(f"### {name}\n")[2].partition("\n##")[0]
    head = entry.strip().partition("\n\n")[0].replace("\n", " ")
    lines, _, metrics = head.partition(" · Log: ")[2].partition(" · Metrics: ")
    for line in re.findall("`([^`]+)`", lines):
        assert line in written(), f"no room writes {line!r}"
    known = {metric for names in KNOWN.values() for metric in names}
    named = set(re.findall("`([^`]+)`", metrics))
    assert named <= known
    (rule,) = (rule for _, rule in RULES if rule["alert"] == f"Kohort{name}")
    assert named_in(rule["expr"]) <= named, "what the rule asks for"
    assert [line.split(":")[0] for line in entry.splitlines() if line.startswith("- ")] == ["- Look", "- Do"]


def named_in(expression: str) -> set[str]:
    text = re.sub(r"\[[^\]]*\]|\{[^}]*\}|\"[^\"]*\"|by \([^)]*\)", "", expression)
    words = set(re.findall(r"[a-z_]+", text))
    return {word for word in words if word == "up" or word.startswith(("kohort_", "kafka_", "process_"))}


@cache
def written() -> str:
    """The source of those who write lines, strings of several lines joined."""
    files = (path for room in WRITERS for path in (ROOT / room).rglob("*.py"))
    return re.sub(r'"\s*f?"', "", "\n".join(path.read_text() for path in files))
