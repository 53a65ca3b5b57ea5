"""Settings: what is allowed, and what a wrong one is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kohort.client.security import context_and_login
from kohort.consumer import AsyncGroupConsumer, ConfigError
from kohort.consumer.config import consumer_config
from kohort.protocol import TopicPartition

_PLAIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "me",
    "sasl_plain_password": "hunter2",
}
BASE: dict[str, Any] = {"bootstrap": "localhost:9092", "group": "billing"}


def test_defaults_are_kafkas() -> None:
    config = consumer_config(**BASE)
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (45_000, 3_000)
    assert (config.max_poll_interval_ms, config.rebalance_ms) == (300_000, 300_000)
    assert (config.auto_offset_reset, config.isolation_level) == ("latest", "read_uncommitted")
    assert context_and_login(config) == (None, None)


def test_kafkas_names_for_bootstrap_and_group_are_taken() -> None:
    config = consumer_config(bootstrap_servers=["a:1", "b"], group_id="billing")
    assert (config.bootstrap, config.group) == (["a:1", "b"], "billing")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"sesion_timeout_ms": 5},
            r"sesion_timeout_ms is no setting of a consumer: did you mean session_timeout_ms\?",
        ),
        ({"qwerty": 5}, "qwerty is no setting of a consumer: docs/consumer.md lists them all"),
        ({"session_timeout_ms": "10 s"}, "session_timeout_ms='10 s'.*whole number from 1"),
        ({"session_timeout_ms": 10.5}, "session_timeout_ms=10.5.*whole number from 1"),
        ({"session_timeout_ms": True}, "session_timeout_ms=True.*whole number from 1"),
        ({"heartbeat_interval_ms": 0}, "heartbeat_interval_ms=0.*whole number from 1"),
        ({"session_timeout_ms": 1_000}, r"heartbeat_interval_ms \(3000\) must be less than .*\(1000\)"),
        ({"group": ""}, "group=''"),
        ({"bootstrap": "localhost:port"}, "'port' is no port number"),
        ({"bootstrap": ""}, "bootstrap is empty"),
        ({"bootstrap": "::1:9092"}, "brackets"),
        ({"bootstrap": "http://localhost:9092"}, "without http://"),
        ({"auto_offset_reset": "newest"}, "auto_offset_reset='newest'.*'earliest', 'latest', 'fail'"),
        ({"isolation_level": "serializable"}, "isolation_level='serializable'.*, read_committed"),
        ({"bootstrap_servers": "a:1"}, "bootstrap and bootstrap_servers are the same setting"),
        ({"ssl_cafile": "ca.pem"}, "security_protocol='SSL'"),
        ({"ssl_cafile": "ca.pem", **_PLAIN}, "security_protocol='SSL'"),
        ({"ssl_keyfile": "key.pem", "security_protocol": "SSL"}, "ssl_keyfile needs ssl_certfile"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism needs security_protocol='SASL_PLAINTEXT'"),
        ({"security_protocol": "SSL", "sasl_plain_password": "x"}, "sasl_plain_password needs"),
        ({"security_protocol": "SASL_SSL"}, "'SASL_SSL' needs a sasl_mechanism"),
        ({**_PLAIN, "sasl_mechanism": "NTLM"}, "sasl_mechanism='NTLM'.*, SCRAM-SHA-512"),
        (
            {**_PLAIN, "sasl_plain_password": None},
            "'PLAIN' needs sasl_plain_username and sasl_plain_password",
        ),
        (
            {**_PLAIN, "sasl_mechanism": "OAUTHBEARER"},
            "needs sasl_oauth_token_url, .*_token_provider",
        ),
    ],
)
def test_a_wrong_setting_is_one_error_that_names_it_its_value_and_what_is_allowed(
    settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        consumer_config(**{**BASE, **settings})


@pytest.mark.parametrize("missing", ["bootstrap", "group"])
def test_what_has_no_default_must_be_given(missing: str) -> None:
    settings = {key: value for key, value in BASE.items() if key != missing}
    with pytest.raises(ConfigError, match=f"{missing}'? is missing"):
        AsyncGroupConsumer("orders", **settings)


def test_every_wrong_setting_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        consumer_config(**BASE, session_timeout_ms="x", fetch_min_bytes=-1, nonsense=1)
    assert all(key in str(caught.value) for key in ("session_timeout_ms", "fetch_min_bytes", "nonsense"))


def test_nones_old_name_is_taken_for_fail_and_a_number_is_a_time() -> None:
    assert consumer_config(**BASE, auto_offset_reset="none").auto_offset_reset == "fail"
    assert consumer_config(**BASE, auto_offset_reset=1_700_000_000_000).auto_offset_reset == 1_700_000_000_000


@pytest.mark.parametrize(
    ("settings", "drain_ms"),
    [
        ({}, 270_000),
        ({"rebalance_timeout_ms": 10_000}, 9_000),
        ({"drain_timeout_ms": 500}, 500),
        ({"drain_timeout_ms": 99_000, "rebalance_timeout_ms": 10_000}, 9_000),
        ({"drain_timeout_ms": 0}, 0),
    ],
)
def test_a_drain_never_outlasts_the_rebalance(settings: dict[str, Any], drain_ms: float) -> None:
    assert consumer_config(**BASE, **settings).drain_ms == drain_ms


def test_tls_files_that_cannot_be_read_are_told_before_anything_connects() -> None:
    config = consumer_config(**BASE, security_protocol="SSL", ssl_cafile="/nowhere/ca.pem")
    with pytest.raises(ConfigError, match="ssl_cafile"):
        context_and_login(config)
    assert context_and_login(consumer_config(**BASE, security_protocol="SSL"))[0] is not None


def test_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(consumer_config(**BASE, security_protocol="SSL", ssl_password="hunter2"))
    config = consumer_config(**BASE, **_PLAIN)
    assert "hunter2" not in repr(config)
    assert "hunter2" not in repr(context_and_login(config))


@pytest.mark.parametrize("topics", [(), ("",), ("orders", 5)])
def test_topics_must_be_named(topics: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError, match=re.escape(repr(topics))):
        AsyncGroupConsumer(*topics, **BASE)


@pytest.mark.parametrize(
    ("topics", "what", "text"),
    [
        (("orders",), {"pattern": "o.*"}, "cannot be mixed"),
        (("orders",), {"partitions": [TopicPartition("orders", 0)]}, "cannot be mixed"),
        ((), {"pattern": "o.*", "partitions": [TopicPartition("orders", 0)]}, "cannot be mixed"),
        ((), {"pattern": "o("}, r"'o\(' is no regular expression"),
        ((), {"pattern": ""}, "not empty"),
        ((), {"pattern": 5}, "5 is no regular expression"),
        ((), {"partitions": []}, "partitions are empty"),
        ((), {"partitions": ["orders"]}, r"'orders': give TopicPartition"),
        ((), {"partitions": [("orders", -1)]}, "give TopicPartition"),
    ],
)
def test_what_is_read_is_one_thing_and_well_formed(topics: Any, what: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        AsyncGroupConsumer(*topics, **BASE, **what)


def test_partitions_can_be_read_without_a_group_but_an_empty_name_is_none() -> None:
    partitions = [TopicPartition("orders", 0)]
    assert AsyncGroupConsumer(partitions=partitions, bootstrap="a").config.group == ""
    with pytest.raises(ConfigError, match="group=''"):
        AsyncGroupConsumer(partitions=partitions, bootstrap="a", group="")


@pytest.mark.parametrize("assignor", ["nonsense", [], [5], ["range", "range"]])
def test_assignors_must_be_known_and_different(assignor: Any) -> None:
    with pytest.raises(ConfigError, match="assignor"):
        AsyncGroupConsumer("orders", **BASE, assignor=assignor)


def test_a_misspelled_assignor_is_refused_though_assigned_partitions_need_none() -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        AsyncGroupConsumer(partitions=[TopicPartition("orders", 0)], **BASE, assignor="nonsense")
