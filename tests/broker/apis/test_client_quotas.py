"""DescribeClientQuotas and AlterClientQuotas: what Apache Kafka's tools send, and what they must be told.

Covers: broker/apis/alter_client_quotas.py, broker/apis/describe_client_quotas.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.wire import Wire, part

ALTER, DESCRIBE = ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_CLIENT_QUOTAS
EXACT, DEFAULT, ANY = 0, 1, 2


@pytest.fixture
def own() -> Iterator[Wire]:
    with running_broker() as broker, Wire(broker.bootstrap) as wire:
        yield wire


def alter(
    wire: Wire,
    *entries: tuple[list[tuple[str, str | None]], dict[str, float | None]],
    version: int = 1,
    validate_only: bool = False,
) -> list[tuple[int, str | None]]:
    """Set values of entities, None removes one; the error of each."""
    sent = [
        part(
            ALTER,
            version,
            "EntryData",
            entity=[
                part(ALTER, version, "EntryData", "EntityData", entity_type=kind, entity_name=name)
                for kind, name in entity
            ],
            ops=[
                part(ALTER, version, "EntryData", "OpData", key=key, value=value or 0.0, remove=value is None)
                for key, value in values.items()
            ],
        )
        for entity, values in entries
    ]
    answer = wire.call(ALTER, version, entries=sent, validate_only=validate_only)
    return [(entry.error_code, entry.error_message) for entry in answer.entries]


def describe(
    wire: Wire, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    answer = asked(wire, *components, strict=strict, version=version)
    assert answer.error_code == ErrorCode.NONE
    return {
        tuple((one.entity_type, one.entity_name) for one in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


def asked(
    wire: Wire, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> Any:
    sent = [
        part(DESCRIBE, version, "ComponentData", entity_type=kind, match_type=how, match=name)
        for kind, how, name in components
    ]
    return wire.call(DESCRIBE, version, components=sent, strict=strict)


@pytest.mark.parametrize("version", [0, 1])
def test_what_is_set_is_described_and_can_be_removed(own: Wire, version: int) -> None:
    user: list[tuple[str, str | None]] = [("user", "alice")]
    values: dict[str, float | None] = {"producer_byte_rate": 1_000.0, "request_percentage": 2.5}
    assert alter(own, (user, values), version=version) == [(0, None)]
    assert describe(own, version=version) == {(("user", "alice"),): values}
    assert alter(own, (user, {"request_percentage": None})) == [(0, None)]
    assert describe(own) == {(("user", "alice"),): {"producer_byte_rate": 1_000.0}}
    assert alter(own, (user, {"producer_byte_rate": None})) == [(0, None)]
    assert describe(own) == {}


def test_filters_find_names_defaults_and_any(own: Wire) -> None:
    alter(
        own,
        ([("user", "alice")], {"producer_byte_rate": 1.0}),
        ([("user", None)], {"producer_byte_rate": 2.0}),
        ([("user", "alice"), ("client-id", "app")], {"producer_byte_rate": 3.0}),
        ([("client-id", "app")], {"producer_byte_rate": 4.0}),
        ([("client-id", None)], {"producer_byte_rate": 5.0}),
    )

    def found(*components: tuple[str, int, str | None], strict: bool = False) -> set[float]:
        shown = describe(own, *components, strict=strict)
        return {value for values in shown.values() for value in values.values()}

    assert found() == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert found(("user", EXACT, "alice")) == {1.0, 3.0}
    assert found(("user", EXACT, "alice"), strict=True) == {1.0}
    assert found(("user", DEFAULT, None)) == {2.0}
    assert found(("user", ANY, None)) == {1.0, 2.0, 3.0}
    assert found(("client-id", ANY, None), strict=True) == {4.0, 5.0}
    assert found(("user", ANY, None), ("client-id", EXACT, "app")) == {3.0}
    assert found(("user", EXACT, "bob")) == set()


@pytest.mark.parametrize(
    ("entity", "values", "words"),
    [
        ([], {"producer_byte_rate": 1.0}, "empty"),
        ([("user", "")], {"producer_byte_rate": 1.0}, "1 to"),
        ([("group", "g")], {"producer_byte_rate": 1.0}, "'group'"),
        ([("user", "a")], {"bytes": 1.0}, "is no quota"),
        ([("user", "a")], {"producer_byte_rate": 1.5}, "whole number"),
        ([("user", "a")], {"producer_byte_rate": -1.0}, "above 0"),
        ([("user", "a")], {"request_percentage": float("nan")}, "above 0"),
        ([("user", "a")], {"request_percentage": float("inf")}, "above 0"),
    ],
)
def test_what_cannot_be_a_quota_is_refused_and_says_why(
    own: Wire, entity: list[tuple[str, str | None]], values: dict[str, float | None], words: str
) -> None:
    other: tuple[list[tuple[str, str | None]], dict[str, float | None]] = (
        [("user", "other")],
        {"producer_byte_rate": 9.0},
    )
    (refused, accepted) = alter(own, (entity, values), other)
    assert refused[0] == ErrorCode.INVALID_REQUEST
    assert refused[1] is not None
    assert words in refused[1]
    assert accepted == (0, None)
    assert describe(own) == {(("user", "other"),): {"producer_byte_rate": 9.0}}


def test_an_entity_may_be_in_a_request_once(own: Wire) -> None:
    twice: tuple[list[tuple[str, str | None]], dict[str, float | None]] = (
        [("user", "a")],
        {"producer_byte_rate": 9.0},
    )
    assert [code for code, _ in alter(own, twice, twice)] == [ErrorCode.INVALID_REQUEST]
    assert describe(own) == {}


def test_validate_only_changes_nothing(own: Wire) -> None:
    assert alter(own, ([("user", "a")], {"producer_byte_rate": 9.0}), validate_only=True) == [(0, None)]
    assert describe(own) == {}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense_are_refused(
    own: Wire, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    assert asked(own, *components).error_code == code


def test_quotas_are_there_after_a_restart(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        alter(wire, ([("user", None), ("client-id", "app")], {"consumer_byte_rate": 1_024.0}))
        before = describe(wire)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert describe(wire) == before != {}
