"""What ``spark_session`` sets, what it leaves as others have set it, and Spark Connect, without a session."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError

from kohort.spark import OptionsError, _session, stream
from kohort.spark._python import workers_python
from kohort.spark._session import choose_settings, is_remote

#: What the JVM says when nobody has set anything, if Python has started it, and under spark-submit.
BARE = {"spark.master": "local[*]", "spark.app.name": "pyspark-shell", "spark.ui.showConsoleProgress": "true"}
SUBMITTED = {"spark.master": "yarn", "spark.app.name": "job.py"}
BY_SUBMIT = {"PYSPARK_GATEWAY_PORT": "25333"}

SOCKETS = "spark.python.unix.domain.socket.enabled"


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/jobs/job.py"])


def test_what_nobody_has_set_gets_kohorts_defaults() -> None:
    python, settings = choose_settings("etl", {}, BARE, {})
    assert python == workers_python()
    assert settings == {
        "spark.app.name": "etl",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": "kohort.spark._daemon",
        SOCKETS: "true",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.ui.enabled", "true"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.app.name", "nightly"),
        ("spark.driver.host", "10.0.0.7"),
        ("spark.python.daemon.module", "ours.daemon"),
        (SOCKETS, "false"),
    ],
)
def test_what_spark_submit_or_its_files_have_set_stays(name: str, value: str) -> None:
    _, settings = choose_settings("etl", {}, BARE | {name: value}, {})
    assert name not in settings
    _, settings = choose_settings("etl", {name: "in code"}, BARE | {name: value}, {})
    assert settings[name] == "in code"


@pytest.mark.parametrize(
    ("found", "environment", "name"),
    [
        (BARE, {}, "etl"),
        (SUBMITTED, BY_SUBMIT, "etl"),
        (SUBMITTED | {"spark.app.name": "nightly"}, BY_SUBMIT, None),
        # a name like the shell's that somebody has given to a job
        (SUBMITTED | {"spark.app.name": "pyspark-shell"}, BY_SUBMIT, None),
    ],
)
def test_the_name_is_that_of_spark_submit_if_it_was_given_one(
    found: dict[str, str], environment: dict[str, str], name: str | None
) -> None:
    assert choose_settings("etl", {}, found, environment)[1].get("spark.app.name") == name


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "k8s://host", "local-cluster[2,1,1024]"])
def test_a_cluster_gets_neither_sockets_nor_addresses_nor_the_daemon_of_this_machine(master: str) -> None:
    python, settings = choose_settings("etl", {}, SUBMITTED | {"spark.master": master}, BY_SUBMIT)
    assert python == sys.executable
    assert settings == {
        "spark.app.name": "etl",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
    }


@pytest.mark.parametrize("master", ["yarn", "local[2]"])
@pytest.mark.parametrize(
    ("given", "found", "environment", "python"),
    [
        ({}, {}, {"PYSPARK_PYTHON": "./environment/bin/python"}, "./environment/bin/python"),
        # as Spark has it: a setting comes before the variable
        ({}, {"spark.pyspark.python": "/a/python"}, {"PYSPARK_PYTHON": "/b/python"}, "/a/python"),
        ({"spark.pyspark.python": "/c/python"}, {"spark.pyspark.python": "/a/python"}, {}, "/c/python"),
    ],
)
def test_the_executors_python_is_the_one_that_was_set(
    master: str, given: dict[str, str], found: dict[str, str], environment: dict[str, str], python: str
) -> None:
    chosen, settings = choose_settings(
        "etl", given, SUBMITTED | found | {"spark.master": master}, environment
    )
    assert chosen == python
    # that Python may not have kohort
    assert "spark.python.daemon.module" not in settings


def test_an_address_that_a_variable_sets_stays() -> None:
    _, settings = choose_settings("etl", {}, BARE, {"SPARK_LOCAL_IP": "10.0.0.7"})
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & settings.keys()
    assert settings[SOCKETS] == "true"


@pytest.mark.parametrize(
    ("given", "environment"),
    [({"spark.remote": "sc://host"}, {}), ({}, {"SPARK_REMOTE": "sc://host"})],
)
def test_a_connect_session_starts_no_jvm_and_gets_no_defaults(
    given: dict[str, str], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    class Builder:
        settings: dict[str, str] = {}

        def config(self, key: str, value: str) -> Builder:
            self.settings[key] = value
            return self

        def getOrCreate(self) -> Any:  # noqa: N802 - Spark's name
            return object()

    assert is_remote(given, environment)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", builder := Builder())
    monkeypatch.setattr(_session, "_start_jvm", lambda _: pytest.fail("a JVM was started"))
    _session.spark_session("etl", **given)
    assert builder.settings == {"spark.app.name": "etl"} | given


class ConnectSession:
    """As of Spark Connect: it has neither a JVM nor a context, and raises."""

    conf = SimpleNamespace(get=lambda _name, default: default)
    dataSource = SimpleNamespace(register=lambda _: None)  # noqa: N815 - Spark's name

    def __getattr__(self, name: str) -> Any:
        raise PySparkAttributeError(f"[JVM_ATTRIBUTE_NOT_SUPPORTED] {name}")


def test_a_query_of_spark_connect_is_told_to_say_where_its_start_is_kept() -> None:
    session: Any = ConnectSession()
    where: dict[str, Any] = {"bootstrap": "localhost:1", "group": "etl", "topics": "orders"}
    with pytest.raises(OptionsError, match=r"a Spark Connect session cannot reach .* set start_state_path"):
        stream(session, checkpoint="/checkpoint", foreach_batch=lambda _, __: None, **where)
