"""UpdateFeatures (57), v0-2: raises and lowers levels of features, all that are named or none (KIP-584).

From v2 on there is one result for all features.
"""

from __future__ import annotations

from ...protocol import ApiKey, KafkaError
from ...protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi, always
from ._errors import at_top
from ._guards import whole

_NO_RESULTS_FROM = 2


async def handle(node: Node, request: Request[UpdateFeaturesRequest]) -> UpdateFeaturesResponse:
    """Change levels of features, all or none (KIP-584)."""
    body, features = request.body, node.features
    try:
        levels = features.levels_after(
            (each.feature, each.max_version_level, each.upgrade_type) for each in body.feature_updates
        )
    except KafkaError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    if not body.validate_only:
        await features.set(levels)
    names = [each.feature for each in body.feature_updates] if request.version < _NO_RESULTS_FROM else []
    return UpdateFeaturesResponse(
        error_message=None, results=[UpdatableFeatureResult(name, 0, "NONE") for name in names]
    )


API = ServedApi(
    key=ApiKey.UPDATE_FEATURES,
    versions=(0, 2),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "the cluster")),
    errors=at_top(lambda _body, _version, _code: {"error_message": None}),
    by_controller=always,
    one_at_a_time=True,
)
