"""The benchmark of join storms runs on a kohort: its figures are not looked at, but that groups settle."""

from __future__ import annotations

import json
import socket
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import join_storms
from benchmarks._brokers import Contender, kohort
from benchmarks._peers import Peers

MEMBERS = 6


@pytest.mark.slow(3.5)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_come_and_are_replaced_until_all_have_their_partitions(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**join_storms.SETTINGS, "group.initial.rebalance.delay.ms": "200"}
    monkeypatch.setattr(join_storms, "CONTENDERS", (Contender("kohort", partial(kohort, settings)),))
    monkeypatch.setattr(join_storms, "ROWS", [join_storms._row(protocol, MEMBERS)])
    monkeypatch.setattr(join_storms, "CLASSIC_HEARTBEAT_S", 0.2)
    monkeypatch.setattr(join_storms, "CONSUMER_HEARTBEAT_S", 0.2)
    file = tmp_path / "figures.json"
    options = ["--storm-s", "0.1", "--deploy-s", "0.5", "--partitions", "12", "--json", str(file)]
    assert join_storms.main(options) == 0
    (figures,) = json.loads(file.read_text())["figures"]["kohort"][f"{protocol}_{MEMBERS}"]
    assert figures["storm_rounds"] >= 1
    assert figures["deploy_rounds"] >= 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_connection_that_is_lost_before_its_first_answer_is_made_again(protocol: str) -> None:
    """As those are that wait in a full queue until the system gives them up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        bootstrap = f"127.0.0.1:{server.getsockname()[1]}"
        with join_storms.PROTOCOLS[protocol](bootstrap, join_storms.Effort()) as crowd:
            crowd._come()
            asked = []
            for times in (1, 2):
                link = _accept(crowd, server)
                asked.append(link.recv(1 << 16))
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                link.close()
                while crowd.lost < times:
                    crowd._turn(float("inf"))
            assert asked[0] == asked[1]


def _accept(crowd: Peers[Any], server: socket.socket) -> socket.socket:
    """The connection of its member, which has sent its first request."""
    link, _ = server.accept()
    while not crowd._active or any(peer.number == 0 for peer in crowd._active):
        crowd._turn(float("inf"))
    return link
