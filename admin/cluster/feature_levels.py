"""Levels of features (KIP-584): the requests about them."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ... import __version__
from ...client import Cluster, ConfigError
from ...client.requests import controller, error_of
from ...protocol import ApiKey, KafkaError
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

#: Types of updates: a level rises, falls without loss, or falls with it.
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3

#: Names under which kohort's brokers tell versions of their own APIs.
_APIS_OF_KOHORT: Final = "kohort."


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """A feature: its ``level`` (0: off), and the levels that all brokers support; ``then`` is the level that
    is asked for, None if none is.
    """

    feature: str
    level: int
    lowest: int
    highest: int
    then: int | None = None


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
    async def attempt() -> ApiVersionsResponse:
        body = ApiVersionsRequest("kohort", __version__.replace("+", "-"))
        answer = await cluster.request(node, ApiKey.API_VERSIONS, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, "the versions of a broker")
        return answer

    return await cluster.retrying(attempt)


async def plan_features(cluster: Cluster, wanted: Mapping[str, int] | None) -> list[FeatureLevel]:
    """All features, with the levels that are asked for; None asks for the highest that all brokers support.
    Raises ConfigError for a feature that no broker has, KafkaError.
    """
    features = await list_features(cluster)
    if wanted is None:
        wanted = {each.feature: each.highest for each in features if each.highest > each.level}
    known = [each.feature for each in features]
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f", did you mean {near[0]}?" if near else f": there are {', '.join(known) or 'none'}"
            raise ConfigError(f"no broker has a feature {name!r}{meant}")
    return [replace(each, then=wanted.get(each.feature)) for each in features]


async def update_features(
    cluster: Cluster, plan: Iterable[FeatureLevel], *, unsafe: bool, only_ask: bool
) -> None:
    """Change the levels that are to be others, all or none. With ``unsafe`` one is lowered even if metadata
    are lost by that; with ``only_ask`` the controller only says whether it would. Raises KafkaError.
    """
    fall = _UNSAFE_DOWNGRADE if unsafe else _SAFE_DOWNGRADE
    rows = [
        FeatureUpdateKey(each.feature, then, then < each.level, fall if then < each.level else _UPGRADE)
        for each in plan
        if (then := each.then) is not None and then != each.level
    ]
    if not rows:
        return
    body = UpdateFeaturesRequest(cluster.request_timeout_ms, rows, only_ask)

    async def attempt() -> None:
        answer = await cluster.request(await controller(cluster), ApiKey.UPDATE_FEATURES, body)
        if answer.error_code:
            raise error_of(answer, "the features")
        for row in answer.results:
            if row.error_code:
                raise error_of(row, f"feature {row.feature!r}")

    await cluster.retrying(attempt)
