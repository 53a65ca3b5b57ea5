"""``kohort cluster features``: levels are shown, planned and changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kohort.testing import running_broker
from tests.admin.conftest import Ran, ran

Command = Callable[..., Ran]


@pytest.fixture
def features(capsys: pytest.CaptureFixture[str]) -> Command:
    """``features(broker, "--latest")``: ``kohort cluster features``."""
    return lambda to, *words: ran(
        capsys, ["cluster", "features", *words, "--bootstrap", to, "--timeout", "20"]
    )


def levels(features: Command, to: str) -> dict[str, int]:
    return {row["feature"]: row["level"] for row in features(to, "--json").document["features"]}


def test_a_level_is_planned_then_changed_and_raised_again(features: Command) -> None:
    with running_broker() as broker:
        to = broker.bootstrap
        before = levels(features, to)
        assert before["share.version"] == 1
        planned = features(to, "share.version=0")
        assert planned.code == 0
        assert ["share.version", "1", "0", "to", "1", "0"] in planned.rows()
        assert "--execute does it" in planned.err
        assert levels(features, to) == before
        done = features(to, "share.version=0", "--execute", "--json").document
        assert done["executed"]
        assert levels(features, to) == {**before, "share.version": 0}
        latest = features(to, "--latest")
        assert ["share.version", "0", "0", "to", "1", "1"] in latest.rows()
        assert features(to, "--latest", "--execute").code == 0
        assert levels(features, to) == before
        assert "nothing to change" in features(to, "--latest").err


@pytest.mark.kafka
def test_levels_of_any_broker_and_what_it_refuses(features: Command, bootstrap: str) -> None:
    before = levels(features, bootstrap)
    assert before["group.version"] == 1
    refused = features(bootstrap, "group.version=9", "--execute")
    assert refused.code == 1
    assert "INVALID_UPDATE_VERSION" in refused.err
    assert levels(features, bootstrap) == before


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["share.version"], "is no level of a feature: give FEATURE=LEVEL"),
        (["share.versions=1"], "no broker has a feature 'share.versions', did you mean share.version?"),
        (["x=1"], "no broker has a feature 'x': there are "),
        (["share.version=1", "--latest"], "give levels, or --latest"),
        (["--execute"], "nothing to change: give FEATURE=LEVEL or --latest"),
    ],
)
def test_wrong_use_is_told(features: Command, bootstrap: str, words: list[str], said: str) -> None:
    found = features(bootstrap, *words)
    assert found.code == 2
    assert said in found.err
