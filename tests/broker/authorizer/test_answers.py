"""Every API and every missing right: what Apache Kafka answers, and nothing done that is not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.broker.authorizer.answers import lines, recorded
from tests.broker.authorizer.cases import CASES, Case
from tests.broker.authorizer.place import Place
from tests.broker.authorizer.world import World


@pytest.fixture(scope="module")
def world(place: Place) -> Iterator[World]:
    with place.world() as made:
        yield made


@pytest.mark.kafka
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_missing_is_answered_as_apache_kafka_does(
    case: Case, world: World, request: pytest.FixtureRequest
) -> None:
    theirs, ours = case.ours
    expected = recorded()[str(case)]
    if request.config.getoption("--bootstrap") is None and theirs:
        expected = [re.sub(theirs, ours, line) for line in expected]
    assert lines(world, case) == expected
