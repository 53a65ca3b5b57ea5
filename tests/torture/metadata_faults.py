"""What happens to ZooKeeper: its servers go, its entries are removed, an older copy takes their place.

Whatever happens to entries, no broker may remove a file, and in the end all topics are served with all
they have: the controller writes what the brokers know, or people follow docs/cluster.md, "When ZooKeeper's
data are lost or old".
"""

# ruff: noqa: ARG002 - faults share one interface

from __future__ import annotations

import random
import time
from abc import abstractmethod

from kazoo.exceptions import NoNodeError

from tests.torture.cluster_fault import MISSED_S, ClusterFault
from tests.torture.cluster_machine import ClusterMachine
from tests.torture.entries import CLUSTER_ID, CONFIGS, STATES, TOPICS, put_entries, read_entries

#: Nobody acknowledges anything more after so many seconds without brokers.
_QUIET_S = 0.5


class ZooKeeperGone(ClusterFault):
    """All its servers are killed, and started again."""

    def __init__(self, seconds: float) -> None:
        self.name = "ZooKeeper away" if seconds < 30 else f"ZooKeeper away for {seconds:.0f} s"
        self.shortest_s, self.longest_s = (0.2, seconds) if seconds < 30 else (seconds, seconds)

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        for server in range(1, machine.ensemble.servers + 1):
            machine.ensemble.kill(server)

    def end(self, machine: ClusterMachine) -> None:
        machine.ensemble.all_again()


class ZooKeeperServer(ClusterFault):
    """One of its servers is killed, and started again; where it is the leader, another one is elected."""

    name = "a ZooKeeper server killed"

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        self._server = rng.randint(1, machine.ensemble.servers)
        machine.ensemble.kill(self._server)

    def end(self, machine: ClusterMachine) -> None:
        machine.ensemble.again(self._server)


class OfEntries(ClusterFault):
    """Something is done to entries, and no file goes."""

    is_of_metadata = True

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        self._folders = {node.node_id: node.partitions() for node in machine.nodes.values()}
        self.harm(machine, rng)

    def end(self, machine: ClusterMachine) -> None:
        self.heal(machine)
        for node in machine.nodes.values():
            gone = self._folders[node.node_id] - node.partitions()
            if gone:
                machine.removed.append(f"{self}: broker {node.node_id} has no {sorted(gone)} any more")

    @abstractmethod
    def harm(self, machine: ClusterMachine, rng: random.Random) -> None: ...

    def heal(self, machine: ClusterMachine) -> None:
        """The controller does it."""


class EntriesRemoved(OfEntries):
    """Somebody removes entries while brokers run: of some topics, of all of them, and what else there is."""

    name = "entries removed in ZooKeeper"

    def harm(self, machine: ClusterMachine, rng: random.Random) -> None:
        if not machine.become_known():
            return
        with machine.metadata() as client:
            entries = read_entries(client, TOPICS, STATES, CONFIGS, CLUSTER_ID)
            topics = [path for path in entries if path.startswith(TOPICS)]
            match rng.randrange(3):
                case 0:
                    gone = rng.sample(topics, rng.randint(1, len(topics)))
                case 1:
                    gone = topics
                case _:
                    gone = list(entries)
            for path in gone:
                try:
                    client.delete(path)
                except NoNodeError:
                    continue


class EntriesSetBack(OfEntries):
    """Somebody puts an older copy of the entries in their place while brokers run."""

    name = "entries set back in ZooKeeper"

    def harm(self, machine: ClusterMachine, rng: random.Random) -> None:
        if not machine.become_known():
            return
        with machine.metadata() as client:
            put_entries(client, machine.older_entries)
        machine.keep_entries()


class EntriesRemovedMeanwhile(OfEntries):
    """Entries are removed while no broker runs: brokers refuse to start, or serve nothing. People stop them,
    put the entries back, and start them.
    """

    name = "entries removed while all brokers are away"
    has_process = alone = True
    shortest_s, longest_s = 3.0, 2 * MISSED_S

    def harm(self, machine: ClusterMachine, rng: random.Random) -> None:
        self._entries = {}
        if not machine.become_whole():
            return
        machine.stop_all()
        roots = (TOPICS, STATES, CONFIGS, *([CLUSTER_ID] if rng.random() < 0.3 else []))
        with machine.metadata() as client:
            self._entries = read_entries(client, *roots)
            for path in self._entries:
                client.delete(path)
        for node in machine.nodes.values():
            node.start()

    def heal(self, machine: ClusterMachine) -> None:
        if not self._entries:
            return
        for node in machine.nodes.values():
            node.kill()
        with machine.metadata() as client:
            put_entries(client, self._entries)
        machine.start_all()


class OlderCopy(OfEntries):
    """An older copy of ZooKeeper's data takes their place, with all brokers stopped meanwhile."""

    name = "an older copy of ZooKeeper's data restored"
    has_process = alone = True
    shortest_s = longest_s = 0.0

    def harm(self, machine: ClusterMachine, rng: random.Random) -> None:
        if not machine.become_whole():
            return
        machine.stop_all()
        # by the copy everybody is in sync, so everybody has to be
        time.sleep(_QUIET_S)
        if machine.all_in_sync():
            machine.restore_metadata()
        machine.start_all()
        if machine.become_whole():
            machine.copy_metadata()
