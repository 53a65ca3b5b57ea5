"""``kohort cluster features``: levels of features (KIP-584), and changes of them, planned first."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from ..commands import reader
from ..screen import OK, Screen

if TYPE_CHECKING:
    from ...client import Cluster
    from .feature_levels import FeatureLevel


def add_feature_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``kohort cluster features``."""
    parser.add_argument(
        "levels",
        metavar="FEATURE=LEVEL",
        nargs="*",
        type=reader(_read_level),
        help="the level that a feature is to have, 0 for off; all are changed, or none",
    )
    parser.add_argument(
        "--latest", action="store_true", help="raise each to the highest that all brokers support"
    )
    parser.add_argument(
        "--unsafe", action="store_true", help="lower a level even if metadata are lost by that"
    )
    parser.add_argument("--execute", action="store_true", help="change them")


def _read_level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not (name and equals and level.isascii() and level.isdigit() and int(level) < 2**15):
        raise ValueError(f"{text!r} is no level of a feature: give FEATURE=LEVEL, such as share.version=1")
    return name, int(level)


async def change_features(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    """Run the command: show the levels and the plan, and with ``--execute`` do it; the exit code."""
    from ...client import ConfigError
    from .feature_levels import plan_features, update_features

    if options.levels and options.latest:
        raise ConfigError("give levels, or --latest")
    if options.execute and not (options.levels or options.latest):
        raise ConfigError("nothing to change: give FEATURE=LEVEL or --latest")
    plan = await plan_features(cluster, None if options.latest else dict(options.levels))
    moves = any(each.then not in (None, each.level) for each in plan)
    # without --execute the controller only says whether it would
    await update_features(cluster, plan, unsafe=options.unsafe, only_ask=not options.execute)
    # brokers may hear of it a moment later
    rows = [replace(each, level=_level_after(each)) for each in plan] if options.execute else plan
    wanted = any(each.then is not None for each in plan)
    _show(screen, rows, executed=options.execute and moves, planned=wanted)
    if not moves and (wanted or options.latest):
        screen.remark("nothing to change")
    elif moves and not options.execute:
        screen.remark("nothing is changed: --execute does it")
    return OK


def _level_after(each: FeatureLevel) -> int:
    return each.level if each.then is None else each.then


def _show(screen: Screen, rows: list[FeatureLevel], *, executed: bool, planned: bool) -> None:
    if screen.as_json:
        screen.document({"executed": executed, "features": rows})
        return
    from ..tables import table

    head = ["FEATURE", "LEVEL", "SUPPORTED", *(["THEN"] if planned and not executed else [])]
    cells = ((r.feature, r.level, f"{r.lowest} to {r.highest}", r.then)[: len(head)] for r in rows)
    screen.show(table(head, cells))
