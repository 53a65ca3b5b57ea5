"""Settings: what is allowed, and what a wrong one is told."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.client import ConfigError
from kohort.producer.config import producer_config
from kohort.protocol import Codec

BASE: dict[str, Any] = {"bootstrap": "localhost:9092"}


def test_defaults_are_kafkas() -> None:
    config = producer_config(**BASE)
    assert (config.acks, config.idempotent, config.codec) == (-1, True, Codec.NONE)
    assert (config.linger_ms, config.batch_size, config.max_request_size) == (5, 16_384, 1_048_576)
    assert (config.buffer_memory, config.max_in_flight_requests) == (33_554_432, 5)
    assert (config.delivery_timeout_ms, config.max_block_ms, config.request_timeout_ms) == (
        120_000,
        60_000,
        30_000,
    )


def test_kafkas_names_are_taken() -> None:
    config = producer_config(bootstrap_servers="a:1", compression_type="zstd")
    assert (config.bootstrap, config.codec) == ("a:1", Codec.ZSTD)


@pytest.mark.parametrize("acks", ["all", -1, "1", 1, "0", 0])
def test_acks_in_every_spelling(acks: Any) -> None:
    config = producer_config(**BASE, acks=acks)
    assert config.acks == (-1 if acks in ("all", -1) else int(acks))
    assert config.idempotent == (config.acks == -1)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"acks": 2}, "acks=2 is not allowed: it must be 'all'"),
        ({"compression": "brotli"}, "compression='brotli'.*none, gzip, snappy, lz4, zstd"),
        ({"acks": 1, "enable_idempotence": True}, "enable_idempotence=True needs acks='all'"),
        ({"acks": 1, "transactional_id": "x"}, "transactional_id needs acks='all'"),
        ({"enable_idempotence": False, "transactional_id": "x"}, "transactional_id needs acks='all'"),
        ({"transactional_id": ""}, "transactional_id=''"),
        ({"max_in_flight_requests": 6}, "whole number from 1 to 5"),
        ({"delivery_timeout_ms": 10}, "must not be less than linger_ms"),
        ({"lingerms": 10}, r"lingerms is no setting of a producer: did you mean linger_ms\?"),
        ({"group": "x"}, "group is no setting of a producer"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism needs security_protocol='SASL_PLAINTEXT'"),
        ({"bootstrap_servers": "a:1"}, "bootstrap and bootstrap_servers are the same setting"),
    ],
)
def test_a_wrong_setting_is_told(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        producer_config(**BASE, **settings)
