"""Configs of consumer groups: asked for, changed, refused in Kafka's words, and there after a restart."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kohort.broker.metadata.group_configs import GROUP_CONFIGS
from kohort.cluster import Document
from kohort.coordinator.groups.group_config import GroupConfig
from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire

GROUP = 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def change(wire: Wire, group: str, name: str, value: str | None, *, only_check: bool = False) -> Any:
    config = {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
    resource = {"resource_type": GROUP, "resource_name": group, "configs": [config]}
    answer = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=only_check)
    return answer.responses[0].error_code, answer.responses[0].error_message


def shown(wire: Wire, group: str) -> dict[str, tuple[str, int]]:
    resource = {"resource_type": GROUP, "resource_name": group, "configuration_keys": None}
    answer = wire.call(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        resources=[resource],
        include_synonyms=True,
        include_documentation=True,
    )
    (result,) = answer.results
    assert result.error_code == 0
    return {row.name: (row.value, row.config_source) for row in result.configs}


def test_a_group_has_the_brokers_until_it_has_its_own(wire: Wire, name: str) -> None:
    assert shown(wire, name)[SESSION] == ("45000", 5)
    assert change(wire, name, SESSION, "50000") == (0, None)
    assert shown(wire, name)[SESSION] == ("50000", 8)
    assert shown(wire, f"{name}-other")[SESSION] == ("45000", 5)
    assert change(wire, name, SESSION, "55000", only_check=True) == (0, None)
    assert change(wire, name, SESSION, None) == (0, None)
    assert shown(wire, name)[SESSION] == ("45000", 5)


@pytest.mark.parametrize(
    ("config", "value", "message"),
    [
        (SESSION, "1", f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms"),
        (SESSION, "99999", f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"),
        (SESSION, "x", f"Invalid value x for configuration {SESSION}: Not a number of type INT"),
        ("x", "1", "Unknown group config name: x"),
    ],
)
def test_what_cannot_be_is_refused_in_kafkas_words(
    wire: Wire, name: str, config: str, value: str, message: str
) -> None:
    assert change(wire, name, config, value) == (40, message)


def test_a_config_may_be_of_another_type_and_without_a_setting_of_the_broker(
    wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get_default(default: int | str, _settings: object) -> int | str:
        return default

    def parse(text: str, _settings: object) -> int | str:
        return {"true": True, "false": False}.get(text, text)

    for config, kind, default in (("toy.enable", bool, True), ("toy.level", str, "all")):
        row = GroupConfig(config, kind, "", "", partial(get_default, default), parse)
        monkeypatch.setitem(GROUP_CONFIGS, config, row)
    assert shown(wire, name) | {"toy.enable": ("true", 5), "toy.level": ("all", 5)} == shown(wire, name)
    assert change(wire, name, "toy.enable", "false") == (0, None)
    assert change(wire, name, "toy.level", "some") == (0, None)
    assert shown(wire, name) | {"toy.enable": ("false", 8), "toy.level": ("some", 8)} == shown(wire, name)
    for config in ("toy.enable", "toy.level"):
        assert change(wire, name, config, None) == (0, None)


def test_there_are_no_defaults_of_all_groups(wire: Wire) -> None:
    assert change(wire, "", SESSION, "50000") == (42, "Default group resources are not allowed.")


def test_the_groups_of_a_request_are_saved_at_once(
    wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[Any] = []
    save = Document.save

    async def counted(document: Document, content: Any) -> None:
        saved.append(content)
        await save(document, content)

    monkeypatch.setattr(Document, "save", counted)
    config = {"name": SESSION, "config_operation": 0, "value": "50000"}
    wrong = {"name": SESSION, "config_operation": 0, "value": "x"}
    resources = [
        {
            "resource_type": GROUP,
            "resource_name": f"{name}-{number}",
            "configs": [wrong if number == 7 else config],
        }
        for number in range(100)
    ]
    answer = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    assert [row.error_code for row in answer.responses] == [40 if number == 7 else 0 for number in range(100)]
    assert len(saved) == 1
    assert shown(wire, f"{name}-99")[SESSION] == ("50000", 8)
    assert shown(wire, f"{name}-7")[SESSION] == ("45000", 5)


def test_groups_whose_configs_cannot_be_saved_keep_theirs(
    wire: Wire, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(_document: Document, _content: Any) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(Document, "save", failing)
        code, _ = change(wire, name, SESSION, "50000")
    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    assert shown(wire, name)[SESSION] == ("45000", 5)
