"""Commands of ``kohort assignors``: each queries, shows the result and returns its exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ...assignors import Measure, MeasuringAssignor, available_assignors, load_assignor
from ...assignors.server import load_server_assignor
from ...client import Cluster
from ..connection import open_cluster
from ..errors import with_advice
from ..pages.assignor_page import comparison_page
from ..screen import OK, REFUSED, Screen, plain
from . import report as tables
from .group_file import read_group
from .group_snapshot import read_topics, take_snapshot, weights_of
from .workbench import GroupSnapshot, Trial, Weights, WhatIf, WorkbenchError, named_limits, try_assignor


@dataclass(slots=True)
class Scene:
    """The group before and after the change, with the measured weights that assignors asked for."""

    now: GroupSnapshot
    then: GroupSnapshot
    measured: dict[Measure, Weights] = field(default_factory=dict)

    def try_all(self, specs: Sequence[str]) -> list[Trial]:
        """Return a trial for each spec, in their order; one that fails has an error."""
        trials = []
        for spec in specs:
            measure = measure_of(spec)
            weights = None if measure is None else self.measured.get(measure)
            trials.append(try_assignor(spec, self.now, self.then, weights))
        return trials


async def run_assignor_action(options: argparse.Namespace) -> int:
    """Read or ask what is needed, and run the command."""
    # an assignor can be scored from the folder that it is written in, before it is installed
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    screen = Screen(as_json=options.json)
    return await ACTIONS[options.action](options, screen)


async def _list_assignors(_: argparse.Namespace, screen: Screen) -> int:
    rows = []
    for name, origin in available_assignors().items():
        try:
            assignor = load_assignor(name)
        except Exception as error:  # a broken assignor must not hide the others
            rows.append(tables.ListedAssignor(name, origin, None, (), "", str(error)))
        else:
            protocols = tuple(sorted(p.name.lower() for p in assignor.rebalance_protocols))
            # the first line of a docstring, without reStructuredText marks
            told = next(iter((type(assignor).__doc__ or "").strip().splitlines()), "").replace("``", "")
            rows.append(tables.ListedAssignor(name, origin, assignor.version, protocols, told, None))
    if screen.as_json:
        screen.document({"assignors": rows})
    else:
        screen.show(tables.assignors_table(rows))
    return OK if all(row.error is None for row in rows) else REFUSED


async def _try_assignor(options: argparse.Namespace, screen: Screen) -> int:
    scene = await _load_scene(options, [options.assignor])
    [trial] = scene.try_all([options.assignor])
    if screen.as_json:
        screen.document(_trials_document(scene, [trial]))
    else:
        screen.show(*tables.trial_report(scene.now, scene.then, trial, every_move=options.moves))
    return OK if trial.usable else REFUSED


async def _compare_assignors(options: argparse.Namespace, screen: Screen) -> int:
    scene = await _load_scene(options, options.assignors)
    trials = scene.try_all(options.assignors)
    if options.html is not None:
        try:
            Path(options.html).write_text(comparison_page(scene.now, scene.then, trials), encoding="utf-8")
        except OSError as error:
            raise WorkbenchError(f"{options.html} cannot be written: {error.strerror or error}") from error
    if screen.as_json:
        screen.document(_trials_document(scene, trials))
    else:
        screen.show(*tables.comparison_table(scene.now, trials))
        if options.html is not None:
            screen.remark(f"the page is in {options.html}")
    return OK if all(trial.usable for trial in trials) else REFUSED


async def _explain_assignment(options: argparse.Namespace, screen: Screen) -> int:
    scene = await _load_scene(options, [])
    limits = named_limits(scene.then)
    if screen.as_json:
        rows = [{**plain(limit), "text": str(limit)} for limit in limits]
        screen.document({"group": scene.now.group, "limits": rows})
    else:
        screen.show(*tables.limit_lines(limits))
    return OK


def _trials_document(scene: Scene, trials: Sequence[Trial]) -> dict[str, object]:
    return {"group": scene.now.group, "protocol": scene.now.protocol or None, "trials": plain(list(trials))}


async def _load_scene(options: argparse.Namespace, specs: Sequence[str]) -> Scene:
    measures = {measure for spec in specs if (measure := measure_of(spec)) is not None}
    change = WhatIf(tuple(options.leave), options.join.members, options.join.topics, dict(options.topics))
    if options.file is not None:
        if options.weights:
            raise WorkbenchError("--weights measures a live group: a file has weights of its own")
        now = read_group(options.file)
        return Scene(now, change.apply(now))
    return await _live_scene(options, change, measures)


async def _live_scene(options: argparse.Namespace, change: WhatIf, measures: set[Measure]) -> Scene:
    weights = Measure(options.weights) if options.weights else None
    async with open_cluster(options, "kohort-workbench") as cluster:
        return await live_scene(
            cluster, options.group, change, measures, wait_s=options.timeout, weights=weights
        )


@with_advice
async def live_scene(
    cluster: Cluster,
    group: str,
    change: WhatIf,
    measures: set[Measure],
    *,
    wait_s: float,
    weights: Measure | None = None,
) -> Scene:
    """A live group before and after the change; the cluster is asked for what ``measures`` names."""
    now = await take_snapshot(cluster, group, wait_s=wait_s)
    more = set(change.join_topics) - now.topics.keys()
    now = replace(now, topics={**now.topics, **await read_topics(cluster, more)})
    shown = weights or next(iter(sorted(measures, key=repr)), None)
    asked = measures | ({shown} if shown else set())
    measured: dict[Measure, Weights] = {each: await weights_of(cluster, now, each) for each in asked}
    if shown is not None:
        now = replace(now, weights=measured[shown])
    return Scene(now, change.apply(now), measured)


def measure_of(spec: str) -> Measure | None:
    """The measure by which an assignor weighs partitions; None without one. Raises AssignorError."""
    assignor = load_server_assignor(spec)
    return assignor.measure if isinstance(assignor, MeasuringAssignor) else None


Action = Callable[[argparse.Namespace, Screen], Awaitable[int]]
ACTIONS: Final[dict[str, Action]] = {
    "list": _list_assignors,
    "try": _try_assignor,
    "compare": _compare_assignors,
    "explain": _explain_assignment,
}
