"""Settings of Apache Kafka that mean nothing here: a ``server.properties`` serves as it is."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import pytest

from kohort.broker import Broker, BrokerSettings, SettingsError
from kohort.broker.kafka_names import MEANINGLESS, find_meaningless
from kohort.broker.security._listeners import listeners_of
from kohort.broker.settings import broker_settings, given_settings
from kohort.cli import main
from kohort.protocol import ApiKey
from kohort.settings import read_settings_file, settings_of
from tests.broker.wire import Wire, part

#: What Apache Kafka brings for a node that is broker and controller, and what people add to it.
SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
listener.name.controller.max.connections=9
listener.name.plaintext.socket.send.buffer.bytes=1024
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=3
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
transaction.state.log.replication.factor=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
log.flush.scheduler.interval.ms=1000
queued.max.requests=500
background.threads=10
rlmm.config.remote.log.metadata.topic.replication.factor=1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(SERVER_PROPERTIES)
    return path


def test_a_server_properties_of_apache_kafka_is_taken(file: Path) -> None:
    settings = broker_settings(read_settings_file(file))
    assert settings.num_partitions == 3
    (listener,) = listeners_of(settings)
    assert (listener.name, listener.port, listener.advertised) == ("PLAINTEXT", 9092, ("localhost", 9092))


def test_one_line_names_what_means_nothing_here(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    Broker(settings=read_settings_file(file))
    (line,) = caplog.messages
    assert line.startswith("settings of Apache Kafka that mean nothing here: process.roles, ")
    for name in ("num.io.threads", "log.dirs", "listener.name.plaintext.socket.send.buffer.bytes"):
        assert f", {name}" in line
    assert "num.partitions" not in line
    assert caplog.records[0].levelno == logging.WARNING
    caplog.clear()
    Broker(settings={"num.partitions": "3"})
    assert caplog.messages == []


def test_serve_check_names_them_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve-check", "--settings", str(file), "--strict"]) == 1
    assert "settings of Apache Kafka that mean nothing here: process.roles, " in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["num.io.thread", "listener.name.plaintext.num.io.thread", "num.io.threads.x", "kohort.x"]
)
def test_what_apache_kafka_does_not_know_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=name.rpartition(".")[2]):
        broker_settings({name: "1"})


def test_in_python_underscores_are_dots() -> None:
    assert broker_settings({"num_io_threads": 8, "num_partitions": 3}).num_partitions == 3


def test_the_older_name_of_node_id_is_taken_for_it(tmp_path: Path) -> None:
    old = {"broker.id": "7", "broker.id.generation.enable": "true", "zookeeper.connect": "zk:2181"}
    assert broker_settings(old).node_id == 7
    assert broker_settings({"broker_id": 7}).node_id == 7
    assert broker_settings({"broker.id": "7", "node.id": "7"}).node_id == 7
    assert find_meaningless(old) == []
    path = tmp_path / "server.properties"
    path.write_text("broker.id=7\n")
    options = argparse.Namespace(settings_file=str(path), settings=[], zookeeper=None, node_id="8", rack=None)
    assert broker_settings(given_settings(options)).node_id == 8, "the command line goes before the file"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"broker.id": "7", "node.id": "8"}, "broker.id=7 and node.id=8 differ"),
        ({"broker.id": "-1"}, "no ids are made here"),
        ({"zookeeper.connect": "zk:2181", "broker.id.generation.enable": "true"}, "needs node.id"),
        ({"broker.id": "seven"}, "node.id=seven is not allowed"),
    ],
)
def test_an_older_name_of_node_id_that_says_something_else_is_refused(
    given: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        broker_settings(given)


def test_no_setting_of_ours_is_among_them() -> None:
    ours = [setting.kafka_name for setting in settings_of(BrokerSettings).values()]
    assert find_meaningless(ours) == []


@pytest.mark.kafka
def test_every_setting_that_a_broker_shows_is_taken(bootstrap: str) -> None:
    """Apache Kafka's own, where it is one."""
    key = ApiKey.DESCRIBE_CONFIGS
    with Wire(bootstrap) as wire:
        row = part(key, 4, "DescribeConfigsResource", resource_type=4, resource_name="1")
        (result,) = wire.call(key, 4, resources=[row]).results
    assert not result.error_code
    ours = {setting.kafka_name for setting in settings_of(BrokerSettings).values()}
    shown = {config.name for config in result.configs}
    assert shown - ours - MEANINGLESS == {"broker.id"} & shown
