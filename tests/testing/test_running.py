"""running_broker: a broker in a thread, for code without an event loop.

Covers: testing/_broker_thread.py.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kohort.broker import SettingsError
from kohort.log import DataFolderInUseError
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, offset_at, produce

LATEST = -1


def broker_threads() -> int:
    return [thread.name for thread in threading.enumerate()].count("kohort-broker")


def test_it_serves_inside_its_block() -> None:
    before = broker_threads()
    with running_broker() as broker:
        assert broker.bootstrap == f"{broker.host}:{broker.port}"
        with Wire(broker.bootstrap) as wire:
            assert create_topic(wire, "orders").error_code == 0
    assert not broker.data.exists()
    with pytest.raises(ConnectionRefusedError):
        Wire(broker.bootstrap)
    assert broker_threads() == before


def test_a_data_folder_outlives_the_block(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        produce(wire, "orders", batch(2))
        cluster_id = broker.cluster_id
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert broker.cluster_id == cluster_id
        assert offset_at(wire, "orders", LATEST).offset == 2


def test_settings_have_underscores_and_are_checked() -> None:
    with running_broker(num_partitions=3) as broker, Wire(broker.bootstrap) as wire:
        assert create_topic(wire, "orders", -1).num_partitions == 3
    with pytest.raises(SettingsError, match=r"did you mean num\.partitions"), running_broker(num_partition=3):
        pass


def test_the_callers_port_is_taken() -> None:
    with running_broker() as first:
        port = first.port
    with running_broker(port=port) as broker:
        assert broker.port == port


def test_a_start_that_fails_is_the_callers_error(tmp_path: Path) -> None:
    with running_broker(data=tmp_path), pytest.raises(DataFolderInUseError), running_broker(data=tmp_path):
        pass


def test_the_callers_error_ends_the_broker_too() -> None:
    before = broker_threads()
    with pytest.raises(RuntimeError, match="mine"), running_broker():
        raise RuntimeError("mine")
    assert broker_threads() == before


def test_two_brokers_side_by_side() -> None:
    with running_broker() as first, running_broker() as second:
        assert first.bootstrap != second.bootstrap
        assert first.cluster_id != second.cluster_id
