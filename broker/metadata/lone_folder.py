"""Move of a single broker's data folder into a cluster: its topics, users and settings become the
cluster's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

from ...cluster import (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DOCUMENTS,
    PRODUCER_IDS,
    TOPICS,
    Check,
    ClusterView,
    ConflictError,
    Create,
    Delete,
    FolderStore,
    MetadataStore,
    PartitionState,
    Put,
    TopicImage,
    TopicRecord,
    WrongClusterError,
    shared_cluster_id,
    stored_controller,
    topic_path,
)
from ...cluster.controller import Decision, steps_to_write
from ...log import DataFolder, known_cluster_id
from ...protocol import KohortError
from .controller_client import config_texts
from .live_settings import SharedSettings

log = logging.getLogger("kohort.broker")

#: Suffix for the names of metadata files whose content the cluster has.
_BROUGHT: Final = ".alone"
#: Longest time, in seconds, that the session of a killed controller may still last.
_CONTROLLER_S: Final = 20.0

#: Documents that have the same form in a cluster.
_SHARED: Final = [path for kind, path in DOCUMENTS.items() if kind != "settings"]


async def begun_cluster(data: Path, store: MetadataStore, node_id: int) -> str:
    """Return the id of the cluster of this store. If there is none, create it from the data folder of a
    broker that was alone. Raises KohortError, OSError.
    """
    known, alone = known_cluster_id(data), FolderStore(data)
    files = alone.files()
    if known is not None and not files and store.get(CLUSTER_ID) is None:
        raise WrongClusterError(
            f"the data folder {data} is of cluster {known}, of which there are no metadata: check the "
            "address and the chroot of zookeeper.connect, or give the broker an empty folder"
        )
    cluster_id = await shared_cluster_id(store, known)
    if known is not None and files:
        await _write_to_store(data, alone, store, node_id)
        # steps that a crash has left go into the topics' file, which goes last: a start that was interrupted
        # does this again
        alone.close()
        for path in alone.files()[::-1]:
            path.rename(path.with_name(path.name + _BROUGHT))
    return cluster_id


async def _write_to_store(data: Path, alone: FolderStore, store: MetadataStore, node_id: int) -> None:
    """Write topics, with this broker as their only replica, and documents to the store, except those that are
    there already.
    """
    epoch = await _become_controller(store, node_id)
    view = ClusterView(store, lambda: None)
    folder = DataFolder.open(data, node_id=node_id)
    try:
        topics = [_topic_for_cluster(name, alone, folder, node_id) for name in alone.children(TOPICS)]
    finally:
        folder.close(clean=folder.clean_start)
    missing = []
    for topic in topics:
        there = view.image.topic(topic.name)
        if there is None:
            missing.append(topic)
        elif there.id != topic.id:
            raise KohortError(
                f"{data} has a topic {topic.name}, and the cluster has another one of that name: delete "
                "one of them, or give the broker an empty folder"
            )
    for step in list(steps_to_write(view.image, view.entries(), store.get, Decision(None, missing))):
        await store.commit(Check(CONTROLLER_EPOCH, epoch), *step)
    entries = {path: alone.get(path) for path in (PRODUCER_IDS, *_SHARED)}
    for path, entry in entries.items():
        if entry is not None and store.get(path) is None:
            await store.commit(Create(path, entry.value))
    settings, shared = alone.get(DOCUMENTS["settings"]), SharedSettings(store, node_id)
    if settings is not None and not any((shared.load(dict) or {}).values()):
        await shared.save(settings.value)
    await store.commit(Delete(CONTROLLER))
    log.info("the cluster has the %d topics of the data folder %s", len(topics), data)


async def _become_controller(store: MetadataStore, node_id: int) -> int:
    """Become controller, so that no other broker writes topics and their states; return the version of the
    epoch. If this is interrupted, the entry ends with the session. Raises KohortError if another broker stays
    controller.
    """
    gone = asyncio.Event()
    try:
        async with asyncio.timeout(_CONTROLLER_S):
            while True:
                store.watch(CONTROLLER, lambda _: gone.set())
                before = store.get(CONTROLLER_EPOCH)
                raised = (
                    Create(CONTROLLER_EPOCH, 1)
                    if before is None
                    else Put(CONTROLLER_EPOCH, int(before.value) + 1, before.version)
                )
                value = stored_controller(node_id, time.time_ns() // 1_000_000)
                try:
                    await store.commit(Create(CONTROLLER, value, ephemeral=True), raised)
                except ConflictError:
                    await gone.wait()
                    gone.clear()
                else:
                    found = store.get(CONTROLLER_EPOCH)
                    assert found is not None, "it was written just now"
                    return found.version
    except TimeoutError:
        raise KohortError(
            "the topics of this data folder are to be the cluster's, and its brokers run already: stop them "
            "until this broker has started"
        ) from None


def _topic_for_cluster(name: str, alone: FolderStore, folder: DataFolder, node_id: int) -> TopicImage:
    """A topic for the cluster, under leader epochs that no record has."""
    entry = alone.get(topic_path(name))
    assert entry is not None, "it is among the children"
    record = TopicRecord.parse(entry.value)
    states = [
        PartitionState(node_id, folder.newest_epoch(name, number) + 1, (node_id,), (node_id,))
        for number in range(record.partitions)
    ]
    return TopicImage(name, record.id, config_texts(record.configs), states)
