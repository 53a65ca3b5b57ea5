"""``kohort cluster features``: levels of features (KIP-584), and changes of them, planned first."""

from __future__ import annotations

import argparse
import asyncio
import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..commands import reader
from ..screen import OK, Screen

if TYPE_CHECKING:
    from ...client import Cluster
    from ...protocol.messages.api_versions import ApiVersionsResponse

#: Types of updates: a level rises, falls without loss, or falls with it.
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3

#: Names under which kohort's brokers tell versions of their own APIs.
_APIS_OF_KOHORT: Final = "kohort."


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """A feature: its ``level`` (0: off), and the levels that all brokers support; ``then`` is the level that
    is asked for.
    """

    feature: str
    level: int
    lowest: int
    highest: int
    then: int | None = None


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

    if options.levels and options.latest:
        raise ConfigError("give levels, or --latest")
    if options.execute and not (options.levels or options.latest):
        raise ConfigError("nothing to change: give FEATURE=LEVEL or --latest")
    features = await list_features(cluster)
    wanted = dict(options.levels)
    if options.latest:
        wanted = {each.feature: each.highest for each in features if each.highest > each.level}
    known = [each.feature for each in features]
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f", did you mean {near[0]}?" if near else f": there are {', '.join(known) or 'none'}"
            raise ConfigError(f"no broker has a feature {name!r}{meant}")
    levels = {each.feature: each.level for each in features}
    moves = {name: level for name, level in wanted.items() if level != levels[name]}
    if moves:
        # without --execute the controller only says whether it would
        await update_features(cluster, levels, moves, unsafe=options.unsafe, only_ask=not options.execute)
    if options.execute:
        # brokers may hear of it a moment later
        features = [replace(each, level=moves.get(each.feature, each.level)) for each in features]
    rows = [replace(each, then=wanted.get(each.feature)) for each in features]
    _show(screen, rows, executed=bool(options.execute and moves), planned=bool(wanted))
    if not moves and (wanted or options.latest):
        screen.remark("nothing to change")
    elif moves and not options.execute:
        screen.remark("nothing is changed: --execute does it")
    return OK


def _show(screen: Screen, rows: list[FeatureLevel], *, executed: bool, planned: bool) -> None:
    if screen.as_json:
        screen.document({"executed": executed, "features": rows})
        return
    from ..tables import table

    head = ["FEATURE", "LEVEL", "SUPPORTED", *(["THEN"] if planned and not executed else [])]
    cells = ((r.feature, r.level, f"{r.lowest} to {r.highest}", r.then)[: len(head)] for r in rows)
    screen.show(table(head, cells))


# --- requests -----------------------------------------------------------------------------------------------


async def list_features(cluster: Cluster) -> list[FeatureLevel]:
    """Features by name, with the levels that every broker supports. Raises KafkaError."""
    nodes = (await cluster.metadata([])).nodes
    answers = await asyncio.gather(*(_ask_versions(cluster, node) for node in sorted(nodes)))
    levels: dict[str, int] = {}
    ranges: dict[str, list[tuple[int, int]]] = {}
    for answer in answers:
        levels.update({row.name: row.max_version_level for row in answer.finalized_features or ()})
        for row in answer.supported_features or ():
            if row.name.startswith(_APIS_OF_KOHORT):
                continue
            ranges.setdefault(row.name, []).append((row.min_version, row.max_version))
    return [
        FeatureLevel(
            name,
            levels.get(name, 0),
            max(low for low, _ in ranges[name]),
            # what one of the brokers does not have is not supported by all
            min(high for _, high in ranges[name]) if len(ranges[name]) == len(answers) else 0,
        )
        for name in sorted(ranges)
    ]


async def _ask_versions(cluster: Cluster, node: int) -> ApiVersionsResponse:
    from ... import __version__
    from ...protocol import ApiKey, KafkaError
    from ...protocol.messages.api_versions import ApiVersionsRequest

    async def attempt() -> ApiVersionsResponse:
        body = ApiVersionsRequest("kohort", __version__.replace("+", "-"))
        answer = await cluster.request(node, ApiKey.API_VERSIONS, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, "the versions of a broker")
        return answer

    return await cluster.retrying(attempt)


async def update_features(
    cluster: Cluster, levels: dict[str, int], wanted: dict[str, int], *, unsafe: bool, only_ask: bool
) -> None:
    """Change the levels of features from what they are, all or none. Raises KafkaError."""
    from ...client.requests import controller
    from ...protocol import ApiKey, KafkaError
    from ...protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

    fall = _UNSAFE_DOWNGRADE if unsafe else _SAFE_DOWNGRADE
    rows = [
        FeatureUpdateKey(name, level, level < levels[name], fall if level < levels[name] else _UPGRADE)
        for name, level in wanted.items()
    ]
    body = UpdateFeaturesRequest(cluster.request_timeout_ms, rows, only_ask)

    async def attempt() -> None:
        answer = await cluster.request(await controller(cluster), ApiKey.UPDATE_FEATURES, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message or "the features")
        for row in answer.results:
            if row.error_code:
                raise KafkaError(row.error_code, row.error_message or f"feature {row.feature!r}")

    await cluster.retrying(attempt)
