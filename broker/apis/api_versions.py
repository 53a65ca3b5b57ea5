"""ApiVersions (18), v0-4: the APIs and versions that this broker serves (KIP-35, KIP-511, KIP-584).

kohort's own APIs are listed as features: clients may fail on API numbers that Kafka does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...protocol import OWN_FEATURES, ApiKey, ErrorCode
from ...protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ..metadata.features import SUPPORTED
from ..node import Node
from ._api import AnyApi, Request, ServedApi
from ._guards import OPEN_TO_ALL

#: Version from which clients say which software they are (KIP-511).
_SOFTWARE_FROM = 3
#: Version from which a feature whose lowest level is 0 can be listed; all features here have that level.
_FROM_ZERO_FROM = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?", re.ASCII)


async def handle(node: Node, request: Request[ApiVersionsRequest]) -> ApiVersionsResponse:
    """List APIs with their versions; from v3 also features, and the client's software is noted (KIP-511)."""
    body = request.body
    if request.version >= _SOFTWARE_FROM and not (
        _SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    features = []
    if request.version >= _FROM_ZERO_FROM:
        features = [SupportedFeatureKey(name, 0, last) for name, last in SUPPORTED.items()]
    levels = {name: level for name, level in node.features.levels.items() if level}
    for name, key in OWN_FEATURES.items():
        api = request.apis.get(key)
        if api is not None:
            features.append(SupportedFeatureKey(name, api.versions[0] + 1, api.versions[1] + 1))
            # some clients raise what is below the highest level, which these cannot be
            levels[name] = api.versions[1] + 1
    return ApiVersionsResponse(
        api_keys=ranges(request.apis.values()),
        supported_features=features,
        finalized_features_epoch=node.features.epoch,
        finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in levels.items()],
    )


def ranges(apis: Iterable[AnyApi]) -> list[ApiVersion]:
    """Key, first and last version of each API as ApiVersions lists them, without kohort's own."""
    return [
        ApiVersion(api.key, api.versions[0] if api.told_from is None else api.told_from, api.versions[1])
        for api in apis
        if not api.private
    ]


def unknown_version() -> ApiVersionsResponse:
    """The response, in version 0, to an unsupported version: the supported versions (KIP-511)."""
    return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, ranges([API]))


API = ServedApi(
    key=ApiKey.API_VERSIONS,
    versions=(0, 4),
    handler=handle,
    guard=OPEN_TO_ALL,
    reads_only=True,
)
