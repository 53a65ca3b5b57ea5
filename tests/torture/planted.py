"""Bugs that torture of a cluster has to find and simulated schedules cannot: they need a ZooKeeper whose
entries somebody removes.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.planted import Bug
from tests.simulation.planted_cluster import CLUSTER_BUGS

METADATA_BUGS: Final = (
    Bug(
        "topics whose entries are missing count as deleted",
        "cluster._view:ClusterView._is_gone",
        "is_deleted = before.id in self._deletions or self._forgetting",
        "is_deleted = True",
    ),
)


def bug_named(what: str) -> Bug:
    """The bug of this name, of these and the simulator's. Raises ValueError for others."""
    for bug in (*METADATA_BUGS, *CLUSTER_BUGS):
        if bug.what == what:
            return bug
    raise ValueError(f"no planted bug is named {what!r}")
