"""Links of the torture's network lose packets, when they are to.

Covers: tests/torture/network.py, tests/torture/packet_loss.py.
"""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.torture.network import Network, network, problem
from tests.torture.packet_loss import loss_problem

SENT = 1_000
_SEND = """
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect((sys.argv[1], int(sys.argv[2])))
for _ in range(int(sys.argv[3])):
    sender.send(b"x")
"""


def received(net: Network, node: int) -> int:
    """How many packets come here of those that a node sends."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        here.bind((net.home, 0))
        arguments = (net.home, str(here.getsockname()[1]), str(SENT))
        subprocess.run([*net.inside(node), sys.executable, "-c", _SEND, *arguments], check=True)
        here.setblocking(False)
        count = 0
        while True:
            try:
                here.recv(10)
            except BlockingIOError:
                return count
            count += 1


@pytest.mark.skipif((problem() or loss_problem()) is not None, reason=str(problem() or loss_problem()))
def test_packets_of_one_node_are_lost_until_its_link_is_whole_again() -> None:
    with network((1, 2)) as net:
        assert received(net, 1) == SENT
        net.lose(1, 0.3)
        assert 0.6 * SENT < received(net, 1) < 0.8 * SENT
        assert received(net, 2) == SENT
        net.lose(1, 0.0)
        assert received(net, 1) == SENT
