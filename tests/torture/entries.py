"""A cluster's entries in ZooKeeper, as somebody reads and writes them who is no broker."""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

TOPICS, STATES, CONFIGS, CLUSTER_ID = "/brokers/topics", "/kohort/partitions", "/config/topics", "/cluster/id"


def read_entries(client: KazooClient, *roots: str) -> dict[str, bytes]:
    """What is at and below these paths, children before their parents, without what is ephemeral."""
    found: dict[str, bytes] = {}
    for path in roots:
        try:
            names, (value, stat) = client.get_children(path), client.get(path)
        except NoNodeError:
            continue
        found |= read_entries(client, *(f"{path}/{name}" for name in names))
        if value and not stat.ephemeralOwner:
            found[path] = value
    return found


def put_entries(client: KazooClient, entries: dict[str, bytes]) -> None:
    for path, value in entries.items():
        try:
            client.create(path, value, makepath=True)
        except NodeExistsError:
            client.set(path, value)
