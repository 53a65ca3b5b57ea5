"""A network of this machine's own: each broker in a network namespace, with links that can be cut and slowed.

What one node sends another can be lost without what comes back being lost: the sender takes the other one's
address for a card that nobody has. Nobody is told that packets are lost, as with a cable that is pulled out
somewhere between. Needs Linux, root and iproute2.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.torture.packet_loss import lose_received

#: A card that nobody has.
_NOBODY = "02:00:00:00:00:fe"
#: Bits a second, and ms that a packet waits at most, of a slow link.
SLOW_KBITS, SLOW_MS = 300, 3_000


class Network:
    """Nodes 1, 2, 3 ... on one bridge; ``home`` is the address of whoever made it."""

    def __init__(self, nodes: Iterable[int]) -> None:
        self.nodes = tuple(nodes)
        self._tag = f"{os.getpid() % 0x10000:04x}"
        self._net = f"10.{200 + os.getpid() // 250 % 50}.{os.getpid() % 250}"
        self.home = f"{self._net}.1"
        # what loses packets of a node, as a descriptor
        self._losing: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Network({self._net}.0, {len(self.nodes)} nodes)"

    def address(self, node: int) -> str:
        return f"{self._net}.{10 + node}"

    def inside(self, node: int) -> tuple[str, ...]:
        """What a command begins with that is run on a node."""
        return ("nsenter", f"--net=/run/netns/{self._name(node)}")

    # -- trouble ---------------------------------------------------------------------------------------------

    def cut(self, sender: int, receiver: int) -> None:
        """Lose what one node sends another one from now on."""
        self._let(sender, receiver, _NOBODY)

    def join(self, sender: int, receiver: int) -> None:
        """Lose nothing more of it."""
        self._let(sender, receiver, self._card(receiver))

    def slow_down(self, node: int) -> None:
        """Let what a node sends pass slowly, whoever it is for."""
        queue = f"tbf rate {SLOW_KBITS}kbit burst 5kb latency {SLOW_MS}ms".split()
        _run("tc", "-n", self._name(node), "qdisc", "replace", "dev", "eth0", "root", *queue)

    def speed_up(self, node: int) -> None:
        _run("tc", "-n", self._name(node), "qdisc", "del", "dev", "eth0", "root")

    def lose(self, node: int, share: float) -> None:
        """Lose this share of the packets that a node sends, whoever they are for; 0: none any more."""
        if node in self._losing:
            os.close(self._losing.pop(node))
        if share:
            # what it sends is what the card's other end receives
            self._losing[node] = lose_received(self._name(node), share)

    def _let(self, sender: int, receiver: int, card: str) -> None:
        entry = (self.address(receiver), "lladdr", card, "nud", "permanent", "dev", "eth0")
        _run("ip", "-n", self._name(sender), "neigh", "replace", *entry)

    # -- made and removed ------------------------------------------------------------------------------------

    def make(self) -> None:
        bridge = f"kt{self._tag}"
        _run(*f"ip link add {bridge} type bridge".split())
        _run(*f"ip addr add {self.home}/24 dev {bridge}".split())
        _run(*f"ip link set {bridge} up".split())
        for node in self.nodes:
            name = self._name(node)
            _run(*f"ip netns add {name}".split())
            _run(*f"ip link add {name} type veth peer name eth0 netns {name}".split())
            _run(*f"ip link set {name} master {bridge} up".split())
            _run(*f"ip -n {name} link set lo up".split())
            _run(*f"ip -n {name} addr add {self.address(node)}/24 dev eth0".split())
            _run(*f"ip -n {name} link set eth0 address {self._card(node)} up".split())
        for sender, receiver in itertools.permutations(self.nodes, 2):
            self.join(sender, receiver)

    def remove(self) -> None:
        """Remove all of it that is there."""
        for node in self.nodes:
            self.lose(node, 0)
            subprocess.run(["ip", "netns", "del", self._name(node)], capture_output=True)
            subprocess.run(["ip", "link", "del", self._name(node)], capture_output=True)
        subprocess.run(["ip", "link", "del", f"kt{self._tag}"], capture_output=True)

    def _name(self, node: int) -> str:
        return f"kt{self._tag}-{node}"

    @staticmethod
    def _card(node: int) -> str:
        return f"02:00:00:00:00:{node:02x}"


def problem() -> str | None:
    """Why there can be no such network here; None if there can."""
    missing = [each for each in ("ip", "tc", "nsenter") if shutil.which(each) is None]
    if missing:
        return f"network namespaces need iproute2 and util-linux: there is no {', '.join(missing)}"
    return None if os.geteuid() == 0 else "network namespaces need root"


@contextmanager
def network(nodes: Iterable[int]) -> Iterator[Network]:
    made = Network(nodes)
    try:
        made.make()
        yield made
    finally:
        made.remove()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
