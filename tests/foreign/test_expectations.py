"""A run beside what is recorded, and the table that is made of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.foreign import expectations
from tests.foreign.brokers import Target
from tests.foreign.expectations import Figures, differences
from tests.foreign.results import Outcome, read_go
from tests.foreign.suites import AIOKAFKA, LIBRDKAFKA, SUITES, Command, LeftOutError, Suite, _go_chosen

EXPECTED = Figures("1.0", passed=3, left_out=1, failed=("b",))


def suite(**changes: object) -> Suite:
    told: dict[str, object] = {
        "name": "some",
        "version": "1.0",
        "source": "sdist",
        "prepare": lambda _suite, cache: cache,
        "command": lambda _suite, folder, _target, _only: Command(("true",), folder),
        "read": read_go,
        "left_out": {"c": "needs a moon"},
    }
    return Suite(**told | changes)  # type: ignore[arg-type]  # of the fields' types


def named(name: str) -> Suite:
    return next(each for each in SUITES if each.name == name)


def test_a_run_as_recorded_differs_in_nothing() -> None:
    assert differences(EXPECTED, EXPECTED) == []


def test_a_test_that_fails_or_no_longer_does_is_a_difference() -> None:
    found = Figures("1.0", passed=3, left_out=1, failed=("a",))
    assert differences(EXPECTED, found) == ["fails: a", "does not fail: b"]


def test_fewer_tests_than_recorded_are_a_difference() -> None:
    found = Figures("1.0", passed=2, left_out=2, failed=("b",))
    assert differences(EXPECTED, found) == ["2 passed, not 3"]


def test_on_a_given_cluster_fewer_may_pass_but_not_none() -> None:
    assert differences(EXPECTED, Figures("1.0", 2, 2, ()), same_size=False) == []
    assert differences(EXPECTED, Figures("1.0", 2, 2, ("a",)), same_size=False) == ["fails: a"]
    assert differences(EXPECTED, Figures("1.0", 0, 2, ()), same_size=False) == ["none passed"]


def test_a_suite_without_records_differs() -> None:
    assert len(differences(None, EXPECTED)) == 1


def test_tests_that_are_not_run_are_counted_as_left_out() -> None:
    results = expectations.complete(suite(), {"a": Outcome.PASSED, "b": Outcome.FAILED})
    assert Figures.of(suite(), results) == Figures("1.0", passed=1, left_out=1, failed=("b",))


def test_figures_are_read_as_they_were_stored(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    assert expectations.load(path) == {}
    expectations.store({"some": {"kohort": EXPECTED}}, path)
    assert expectations.load(path) == {"some": {"kohort": EXPECTED}}


def test_new_figures_take_the_place_of_old_ones_of_the_same_suite_and_broker() -> None:
    newer = Figures("1.1", 4, 0, ())
    old = {"some": {"kohort": EXPECTED, "apache-kafka": EXPECTED}, "other": {"kohort": EXPECTED}}
    assert expectations.merge(old, {"some": {"kohort": newer}, "third": {"kohort": newer}}) == {
        "some": {"kohort": newer, "apache-kafka": EXPECTED},
        "other": {"kohort": EXPECTED},
        "third": {"kohort": newer},
    }


def test_the_table_has_both_brokers_and_every_reason() -> None:
    one = suite(known={"b": "kohort has no b"}, known_on_apache_kafka={"d": "there is no d"})
    made = expectations.render({"some": {"kohort": EXPECTED}}, (one,))
    assert "| some 1.0 | sdist | 3 passed, 1 failed, 1 left out | not run |" in made
    assert "| some | `c` | left out: needs a moon |" in made
    assert "| some | `b` | fails on kohort: kohort has no b |" in made
    assert "| some | `d` | fails on Apache Kafka: there is no d |" in made


@pytest.mark.parametrize("one", SUITES, ids=lambda one: one.name)
def test_every_recorded_failure_has_a_reason_and_no_other(one: Suite) -> None:
    brokers = expectations.load().get(one.name, {})
    for broker, figures in brokers.items():
        reasons = one.known if broker == "kohort" else one.known_on_apache_kafka
        assert set(figures.failed) == set(reasons), broker
        assert figures.version == one.version, broker
        assert figures.passed > 0, broker


def test_go_is_told_whole_names_of_what_it_leaves_out_and_runs() -> None:
    one = suite(left_out={"kgo:TestA": "", "kgo:TestB/x": ""})
    assert _go_chosen(one, ()) == ("-skip", "^TestA$|^TestB$/^x$")
    assert _go_chosen(suite(left_out={}), ["kgo:TestC/x", "kgo:TestC/y"]) == ("-run", "^TestC$")


@pytest.mark.parametrize(
    ("client", "variable"), [("librdkafka", LIBRDKAFKA), ("aiokafka", AIOKAFKA)], ids=lambda word: word
)
def test_a_suite_that_no_package_has_asks_for_a_checkout_in_one_line(
    client: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = named(client)
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(LeftOutError, match=f"^.*set {variable} to a checkout of v{one.version}$"):
        one.prepare(one, tmp_path)
    monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(LeftOutError, match=f"is no checkout of {client}"):
        one.prepare(one, tmp_path)


CONFTEST = """
import docker, pytest

@pytest.fixture
def kafka_server():
    return docker.from_env()

@pytest.fixture
def their_own():
    return 7

def pytest_addoption(parser):
    parser.addoption("--docker-image")
"""
TEST = """
from confluent_kafka.admin import AclOperation, AclPermissionType, ResourceType
from aiokafka_fixtures import _rule

class TestKafkaIntegrationTestCase:
    def test_fixtures(self, kafka_server, their_own):
        assert (kafka_server.hosts, kafka_server.sasl_plain_port, their_own) == (["127.0.0.1:1"], 2, 7)

    def test_rules(self, acl_manager):
        one = _rule({"deny_principal": "test", "operation": "READ", "group": "g"})
        assert (one.restype, one.name, one.principal) == (ResourceType.GROUP, "g", "User:test")
        assert (one.operation, one.permission_type) == (AclOperation.READ, AclPermissionType.DENY)
        one = _rule({"allow_principal": "test", "operation": "All", "cluster": True})
        assert (one.restype, one.name) == (ResourceType.BROKER, "kafka-cluster")
        assert (one.operation, one.permission_type) == (AclOperation.ALL, AclPermissionType.ALLOW)
"""


def test_aiokafkas_tests_get_a_broker_without_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "tests").mkdir(parents=True)
    (checkout / "tests" / "__init__.py").touch()
    (checkout / "tests" / "conftest.py").write_text(CONFTEST)
    (checkout / "tests" / "test_some.py").write_text(TEST)
    (checkout / "tests" / "test_other.py").write_text("def test_without_broker(): pass")
    (checkout / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    monkeypatch.setenv(AIOKAFKA, str(checkout))
    one = named("aiokafka")
    monkeypatch.setattr("importlib.metadata.version", lambda _package: one.version)
    folder = one.prepare(one, tmp_path)
    command = one.command(one, folder, Target("kohort", "127.0.0.1:1", "127.0.0.1:2"), ())
    done = subprocess.run(
        command.words, cwd=folder, env={**os.environ, **command.environment}, capture_output=True, text=True
    )
    assert one.read(done.stdout) == {
        f"tests/test_some.py::TestKafkaIntegrationTestCase::{test}": Outcome.PASSED
        for test in ("test_fixtures", "test_rules")
    }


def test_aiokafkas_tests_are_left_out_beside_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").touch()
    monkeypatch.setenv(AIOKAFKA, str(tmp_path))
    monkeypatch.setattr("importlib.metadata.version", lambda _package: "0.1")
    one = named("aiokafka")
    with pytest.raises(LeftOutError, match=f"tests of aiokafka {one.version}, and 0.1 is installed"):
        one.prepare(one, tmp_path / "cache")


def test_a_missing_toolchain_leaves_the_suite_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    one = named("franz-go")
    with pytest.raises(LeftOutError, match="there is no go here: install Go"):
        one.prepare(one, tmp_path)
