"""Dashboards ask for metrics, and labels of them, that brokers and services really have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.metrics._families import FAMILIES
from kohort.service.handlers.handler import Handler
from kohort.service.reporting.metrics import HandlerNumbers, ServiceCounters, Snapshot, metric_families

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "grafana"
#: Words of PromQL in the dashboards that are no metrics.
FUNCTIONS = {"sum", "max", "min", "count", "rate", "increase", "topk", "by", "label_values", "or", "time"}
#: What Prometheus adds when it asks.
ADDED = {"instance", "job"}


def of_brokers() -> dict[str, set[str]]:
    """Labels by name, as they are shown."""
    shown: dict[str, set[str]] = {}
    for family in FAMILIES:
        labels = {*family.labels, *ADDED}
        if family.kind == "summary":
            shown[family.name] = labels | {"quantile"}
            shown[f"{family.name}_sum"] = shown[f"{family.name}_count"] = labels
        else:
            shown[family.name + "_total" * (family.kind == "counter")] = labels
    return shown


def of_services() -> dict[str, set[str]]:
    def handle() -> None: ...

    now = Snapshot(
        "g",
        "STABLE",
        1,
        True,
        [HandlerNumbers(Handler(handle, ("orders",)), 0, 0, 0.0, 0)],
        ServiceCounters(),
        {},
        {},
    )
    return {
        name + "_total" * counter: {"group", *labels, *ADDED}
        for name, _, counter, labels, _ in metric_families(now)
    }


def expressions(dashboard: dict[str, Any]) -> list[str]:
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return asked + [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]


@pytest.mark.parametrize(("name", "known"), [("broker", of_brokers()), ("services", of_services())])
def test_every_metric_and_label_of_a_dashboard_is_there(name: str, known: dict[str, set[str]]) -> None:
    dashboard = json.loads((FOLDER / f"{name}.json").read_text())
    assert len(expressions(dashboard)) >= 20
    for expression in expressions(dashboard):
        check(expression, known)


def check(expression: str, known: dict[str, set[str]]) -> None:
    text = re.sub(r"\[[^\]]*\]|\"[^\"]*\"", "", expression)
    lists = re.findall(r"by \(([^)]*)\)", text)
    labels = {label.strip() for found in lists for label in found.split(",")}
    labels |= set(re.findall(r"(\w+)=", text))
    bare = re.sub(r"by \([^)]*\)|\{[^}]*\}", "", text)
    words = {word for word in re.findall(r"[a-z_]\w+", bare) if word not in FUNCTIONS | ADDED | {"group"}}
    assert words, expression
    for word in words:
        assert word in known, f"{word} of {expression!r}"
        assert labels <= known[word], expression


@pytest.mark.parametrize("name", ["broker", "services"])
def test_panels_have_ids_of_their_own_and_do_not_overlap(name: str) -> None:
    panels = json.loads((FOLDER / f"{name}.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23
