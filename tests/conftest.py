"""Shared by every test: the root is no package of its own; a broker to talk to, names nobody else uses."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import signal
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.broker_process import BrokerProcess
from tests.group_configs import set_group_configs
from tests.meant_files import means_none_of
from tests.postgres import postgres_server
from tests.secured import Secured, secured_broker

if TYPE_CHECKING:
    from tests.clients.java import ToolServer

ROOT = Path(__file__).resolve().parent.parent


class _RootIsNoPackage:
    """The root's ``__init__.py`` is ``kohort``; collected as a package it would be imported a second time."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


# a busy machine is no reason to fail an example
settings.register_profile("kohort", deadline=None)
settings.load_profile("kohort")


def pytest_configure(config: pytest.Config) -> None:
    # tests that run side by side are told the terminal's width, commands under test write to a pipe
    os.environ.pop("COLUMNS", None)
    # Spark's jobs here and in processes under test take seconds, unless whoever runs the tests has settings
    os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "tests" / "spark" / "conf"))
    # started in the background by a shell, or under nohup, we ignore these, and so would commands under test
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.pluginmanager.register(_RootIsNoPackage(), "kohort-root-is-no-package")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bootstrap",
        metavar="HOST:PORT",
        default=None,
        help="run end-to-end tests against this cluster (an Apache Kafka, say), not the embedded broker",
    )
    parser.addoption(
        "--soak",
        metavar="SECONDS",
        type=float,
        default=None,
        help="how long each of the long runs goes on (default: a minute or less)",
    )
    parser.addoption(
        "--report",
        metavar="FILE",
        default=None,
        help="where the long runs write what they come to (docs/reports/reliability.md)",
    )
    parser.addoption(
        "--executors",
        action="store_true",
        help="run the tests of Spark executors in processes of their own, too (a minute on a quiet machine)",
    )
    parser.addoption(
        "--connect",
        action="store_true",
        help="run the test of Kafka Connect too, whose jars scripts/apache-kafka fetches with Maven",
    )


#: What a test takes on an idle machine, in seconds, where it has no ``slow`` with a figure of its own.
USUAL_SECONDS = {"spark": 3.0, "clients": 2.0, "kafka": 0.5}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that ``-m`` cannot mean are not imported, unless they are asked for by name."""
    if collection_path.suffix != ".py" or not config.option.markexpr:
        return None
    named = {Path(word.partition("::")[0]).absolute() for word in config.args}
    left_out = collection_path not in named and means_none_of(
        config.option.markexpr, collection_path.read_text("utf-8")
    )
    return True if left_out else None


def _seconds(marks: Mapping[str, pytest.Mark]) -> float:
    if (slow := marks.get("slow")) is not None:
        return float(slow.args[0])
    return next((s for name, s in USUAL_SECONDS.items() if name in marks), 0.02)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A second try where a foreign client may be at fault; side by side, files that take long come first."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for item in items:
        # all at once, the closest of a name last: to look for each name alone takes five times as long
        marks = {mark.name: mark for mark in reversed([*item.iter_markers()])}
        if "foreign_client" in marks:
            assert marks["foreign_client"].args, f"{item.nodeid}: foreign_client(reason)"
            item.add_marker(pytest.mark.flaky(reruns=1))
        seconds[_together(item.nodeid)] += _seconds(marks)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: -seconds[_together(item.nodeid)])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is collected is garbage: not looked for in ever more objects while they come."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What pytest has collected stays: no test that looks for garbage goes through all of it again."""
    gc.collect()
    gc.freeze()


def _together(nodeid: str) -> str:
    """Tests that run in one process: those of a file, and all that share the Spark session."""
    file = nodeid.partition("::")[0]
    return "tests/spark" if _needs_spark_session(file) else file


@cache
def _needs_spark_session(file: str) -> bool:
    # who deals out the tests knows their names alone
    return file.startswith("tests/spark/") and "pytest.mark.spark" in (ROOT / file).read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    scheduler = importlib.import_module("xdist.scheduler").LoadFileScheduling(config, log)
    scheduler._split_scope = _together
    return scheduler


@pytest.fixture(autouse=True)
def _process_state() -> Iterator[None]:
    """Commands under test set levels of loggers and extend ``sys.path``: both are put back."""
    levels = {
        name: logging.getLogger(name).level
        for name in ("kohort", "kohort.consumer.zookeeper", "kafka", "aiokafka")
    }
    path = sys.path[:]
    yield
    sys.path[:] = path
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``HOST:PORT`` of the end-to-end tests' cluster: ``--bootstrap``, else our broker in its own process."""
    given: str | None = request.config.getoption("--bootstrap")
    if given is not None:
        yield given
        return
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"), data=None)
    broker.start()
    try:
        yield broker.bootstrap
        assert broker.alive, f"the broker ended during the tests\n{broker.log}"
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def run_tool(bootstrap: str) -> Iterator[ToolServer]:
    """``run_tool(TOPIC_COMMAND, "--list")``: what it printed; AssertionError when it failed."""
    from tests.clients.java import ToolServer

    with ToolServer(bootstrap) as server:
        yield server


@pytest.fixture
def broker_process(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Our broker on a data folder of the test's own, running; the test may kill, stop and start it."""
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = BrokerProcess(folder, data=tmp_path / "data")
    broker.start()
    try:
        yield broker
    finally:
        if broker.alive:
            broker.kill()


@pytest.fixture(scope="session")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with TLS, SASL and access rules; with ``--bootstrap`` an Apache Kafka of the tests' own."""
    apache_kafka = request.config.getoption("--bootstrap") is not None
    with secured_broker(tmp_path_factory.mktemp("secured"), apache_kafka=apache_kafka) as broker:
        yield broker


def _unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def topic() -> Callable[[str], str]:
    """``topic("orders")`` is a topic name that no other test and no earlier run has used."""
    return _unique


@pytest.fixture
def group() -> Callable[[str], str]:
    """``group("billing")`` is a group id that no other test and no earlier run has used."""
    return _unique


@pytest.fixture
def queue(bootstrap: str, group: Callable[[str], str]) -> str:
    """A share group that reads its topics from their first record."""
    name = group("queue")
    set_group_configs(bootstrap, name, share_auto_offset_reset="earliest")
    return name


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[..., str]:
    """``new_topic("orders", partitions=6)`` makes a topic on ``bootstrap`` and returns its unique name."""
    from kafka import KafkaAdminClient

    def create(prefix: str, partitions: int = 3, **configs: str) -> str:
        name = _unique(prefix)
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            wanted = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}}
            admin.create_topics(wanted, wait_for_metadata=True)
        return name

    return create


@pytest.fixture
def produce(bootstrap: str) -> Callable[..., None]:
    """``produce(topic, range(100), partitions=3)``: value and key are the number, dealt in turn."""
    from kafka import KafkaProducer

    def send(topic: str, numbers: Iterable[int], *, partitions: int = 1, **settings: Any) -> None:
        producer = KafkaProducer(bootstrap_servers=bootstrap, **settings)
        try:
            for number in numbers:
                text = str(number).encode()
                producer.send(topic, text, key=text, partition=number % partitions)
            producer.flush()
        finally:
            producer.close()

    return send


@pytest.fixture
def filled_topic(new_topic: Callable[..., str], produce: Callable[..., None]) -> Callable[..., str]:
    """``filled_topic(20)`` makes a topic with the records 0 to 19, all in one partition, or dealt in turn."""

    def fill(count: int, partitions: int = 1) -> str:
        topic = new_topic("filled", partitions=partitions)
        produce(topic, range(count), partitions=partitions)
        return topic

    return fill


@pytest.fixture
def soaks(request: pytest.FixtureRequest) -> bool:
    """Whether the long runs are asked for: ``--soak`` was given."""
    return request.config.getoption("--soak") is not None


@pytest.fixture
def dsn() -> Iterator[str]:
    """The connection string of a PostgreSQL for this test."""
    with postgres_server() as dsn:
        yield dsn
