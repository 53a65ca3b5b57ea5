"""DescribeGroupHistory, an API of kohort's own: what happened in a group, and why.

No Kafka has it. A broker that does says so among its supported features (KIP-584) and not among its API
numbers, so that other clients never see a number they do not know; ask nobody else for it.
"""

from __future__ import annotations

import types
from typing import Any

from ._kafka_python import kafka_module


def _message(name: str) -> Any:
    """kafka-python's class for the schema of this name, which lies beside this file."""
    return types.new_class(
        name, (kafka_module("kafka.protocol.api_message").ApiMessage,), {"load_json": __package__}
    )


DescribeGroupHistoryRequest = _message("DescribeGroupHistoryRequest")
DescribeGroupHistoryResponse = _message("DescribeGroupHistoryResponse")
