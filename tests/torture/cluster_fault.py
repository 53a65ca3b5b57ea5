"""What faults of a cluster have in common: who they happen to, and what else may happen meanwhile."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable

from tests.torture.cluster_machine import COORDINATORS, NODES, SESSION_MS, ClusterMachine, Node
from tests.torture.episode import PARTITIONS, TOPIC
from tests.torture.nemesis import Fault

#: Who does what: node ids; -1 while nobody does it.
ROLES: dict[str, Callable[[ClusterMachine, random.Random], int]] = {
    "a leader": lambda machine, rng: machine.watch.leader(TOPIC, rng.randrange(PARTITIONS)),
    "a coordinator": lambda machine, rng: machine.watch.leader(
        rng.choice(("__consumer_offsets", "__transaction_state")), rng.randrange(COORDINATORS)
    ),
    "the controller": lambda machine, _: machine.watch.image.controller_id,
    "a broker": lambda _, rng: rng.choice(NODES),
}
#: Seconds in which a broker is missed whose session is not renewed, give or take a tick of ZooKeeper.
MISSED_S = SESSION_MS / 1_000


class ClusterFault(Fault[ClusterMachine]):
    """``has_process``: it stops, kills or starts a broker, which no other fault may do meanwhile. ``alone``:
    nothing else may be broken meanwhile. ``is_of_metadata``: it changes entries behind the brokers' backs, of
    which none may start then.
    """

    has_process = False
    alone = False
    is_of_metadata = False


class OfBroker(ClusterFault):
    """A fault of one broker, in a role that is drawn."""

    longest_s = 1.5 * MISSED_S

    def __init__(self, role: str | None = None) -> None:
        self._role = role
        self.node: Node | None = None

    def __str__(self) -> str:
        return f"{self.name} ({'nobody' if self.node is None else self.node.node_id})"

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        role = self._role or rng.choice(list(ROLES))
        node = machine.nodes.get(ROLES[role](machine, rng))
        if node is None or node.busy:
            # nobody has the role now
            node = rng.choice([each for each in machine.nodes.values() if not each.busy])
        node.busy = self.has_process
        self.node = node
        self.harm(machine, node, rng)

    def end(self, machine: ClusterMachine) -> None:
        if self.node is not None:
            self.heal(machine, self.node)
            self.node.busy = False

    @abstractmethod
    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None: ...

    @abstractmethod
    def heal(self, machine: ClusterMachine, node: Node) -> None: ...
