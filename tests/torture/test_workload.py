"""What is told of clients that hang."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.torture.clients import MEMBERS, ConfluentClient
from tests.torture.history import History
from tests.torture.workload import GroupMember

PATIENCE_S = 20


class Hanging:
    """A consumer whose poll does not return before ``enough``."""

    def __init__(self) -> None:
        self.polled, self.enough = threading.Event(), threading.Event()

    def poll(self, _: float) -> None:
        self.polled.set()
        self.enough.wait(PATIENCE_S)

    def assignment(self) -> list[Any]:
        return []

    def close(self) -> None:
        pass


def test_a_member_that_hangs_tells_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, client = Hanging(), ConfluentClient.__new__(ConfluentClient)
    client._consumer = hanging
    monkeypatch.setitem(MEMBERS, "hanging", lambda *_: client)
    member = GroupMember("hanging", History(), "", "")
    assert member.call == ""
    member.start()
    assert hanging.polled.wait(PATIENCE_S)
    assert member.call == "poll"
    hanging.enough.set()
    member.stop()
    member.join()
    assert not member.failures
