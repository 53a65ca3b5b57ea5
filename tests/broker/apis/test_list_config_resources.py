"""ListConfigResources, asked of either broker: topics, brokers and groups that have configs."""

from __future__ import annotations

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, create_topic

pytestmark = pytest.mark.kafka

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
_SET = 0


def listed(link: Wire, *kinds: int, version: int = 1) -> list[tuple[str, int]]:
    asked = {"resource_types": list(kinds)} if version else {}
    answer = link.call(ApiKey.LIST_CONFIG_RESOURCES, version, **asked)
    assert answer.error_code == 0
    return [(one.resource_name, one.resource_type) for one in answer.config_resources]


def set_group_config(link: Wire, group: str, operation: int) -> None:
    change = ("consumer.session.timeout.ms", operation, "46000")
    resource = (GROUP, group, [change])
    answer = link.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    assert [one.error_code for one in answer.responses] == [0]


def test_topics_and_brokers_are_listed_as_asked_for(link: Wire, name: str) -> None:
    create_topic(link, name, 1)
    assert (name, TOPIC) in listed(link, TOPIC)
    assert {kind for _, kind in listed(link, TOPIC)} == {TOPIC}
    assert listed(link, BROKER) == listed(link, BROKER, BROKER) == [("1", BROKER)]
    assert {(name, TOPIC), ("1", BROKER)} <= set(listed(link, BROKER, TOPIC))


def test_all_types_are_listed_when_none_is_named(link: Wire, name: str) -> None:
    create_topic(link, name, 1)
    assert {(name, TOPIC), ("1", BROKER)} <= set(listed(link))


def test_a_group_is_listed_while_it_has_configs(link: Wire, name: str) -> None:
    assert (name, GROUP) not in listed(link, GROUP)
    set_group_config(link, name, _SET)
    assert (name, GROUP) in listed(link, GROUP)
    assert (name, GROUP) in listed(link)
    set_group_config(link, name, 1)
    assert (name, GROUP) not in listed(link, GROUP)


def test_version_0_lists_client_metrics(link: Wire) -> None:
    assert listed(link, version=0) == listed(link, METRICS) == []


@pytest.mark.parametrize("kinds", [[0], [64], [-1], [BROKER, 64]])
def test_a_type_that_has_no_configs_refuses_the_request(link: Wire, kinds: list[int]) -> None:
    answer = link.call(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=kinds)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
