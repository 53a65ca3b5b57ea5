"""ApiVersions (18), v0-4: the APIs and versions that this broker serves (KIP-35, KIP-511, KIP-584).

kohort's own APIs are told as features: clients may stumble over API numbers that no Kafka has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ...protocol import GROUP_HISTORY_FEATURE, ApiKey, ErrorCode
from ...protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ...transactions import EPOCH_BUMP_VERSION
from .._node import Node
from ._api import Request, ServedApi
from ._guards import OPEN_TO_ALL

_SOFTWARE_FROM = 3
#: Features that are told with the last of their versions as the one in force: consumer groups (KIP-848), and
#: the protocol of transactions (KIP-890). Each may be 0, which this API cannot say before
#: ``_FROM_ZERO_FROM``.
_FEATURES = (("group.version", 0, 1), ("transaction.version", 0, EPOCH_BUMP_VERSION))
_FROM_ZERO_FROM = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?", re.ASCII)


async def handle(_node: Node, request: Request) -> Any:
    body = request.body
    if request.version >= _SOFTWARE_FROM and not (
        _SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version)
    ):
        return request.answer(error_code=ErrorCode.INVALID_REQUEST)
    features = [SupportedFeatureKey(*each) for each in _FEATURES if request.version >= _FROM_ZERO_FROM]
    if ApiKey.DESCRIBE_GROUP_HISTORY in request.apis:
        features.append(SupportedFeatureKey(*GROUP_HISTORY_FEATURE))
    return request.answer(
        api_keys=ranges(request.apis.values()),
        supported_features=features,
        finalized_features_epoch=0,
        finalized_features=[FinalizedFeatureKey(name, last, last) for name, _, last in _FEATURES],
    )


def ranges(apis: Iterable[ServedApi]) -> list[ApiVersion]:
    """Key, first and last version of each API as clients are told, without kohort's own."""
    return [
        ApiVersion(api.key, api.versions[0] if api.told_from is None else api.told_from, api.versions[1])
        for api in apis
        if not api.private
    ]


def unknown_version() -> ApiVersionsResponse:
    """The answer, in version 0, to a version that is not served: the versions that are (KIP-511)."""
    return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, ranges([API]))


API = ServedApi(
    key=ApiKey.API_VERSIONS,
    versions=(0, 4),
    handler=handle,
    guard=OPEN_TO_ALL,
    reads_only=True,
)
