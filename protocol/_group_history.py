"""DescribeGroupHistory, an API of kohort's own: what happened in a group, and why.

No Kafka has it. A broker that does says so among its supported features (KIP-584) and not among its API
numbers, so that other clients never see a number they do not know; ask nobody else for it.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage


class DescribeGroupHistoryRequest(ApiMessage, load_json=__package__):
    """Which group's events, how many of the newest (-1: all), after which sequence (-1: any)."""


class DescribeGroupHistoryResponse(ApiMessage, load_json=__package__):
    """The events, oldest first."""
