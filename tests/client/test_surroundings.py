"""What clients work in, where no simulation has replaced it."""

from __future__ import annotations

import logging

import pytest

from kohort.client import BrokerRefusedError
from kohort.client.metadata import Address
from kohort.client.surroundings import SURROUNDINGS, Surroundings
from kohort.client.zookeeper import ZooKeeperSession, ZooKeeperSettings
from tests.ports import free_port


async def test_connections_are_those_of_the_machine() -> None:
    around = SURROUNDINGS.get()
    assert not around.in_virtual_time
    with pytest.raises(BrokerRefusedError):
        await around.open_connection(Address("127.0.0.1", free_port()), client_id="c")


async def test_sessions_are_those_of_zookeeper() -> None:
    settings = ZooKeeperSettings("127.0.0.1:1")
    session = Surroundings().open_zookeeper(settings, logging.getLogger("kohort.client"))
    assert isinstance(session, ZooKeeperSession)
