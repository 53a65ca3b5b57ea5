"""The view of a cluster: pages are told when what they show has changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kohort.admin.cluster.commands import BrokerRow, ClusterStatus, Disk
from kohort.ui.cluster import views as cluster_views
from kohort.ui.cluster.views import BrokersView
from tests.ui.groups.test_views import OpenCluster


async def test_pages_are_told_of_a_disk_when_what_they_show_of_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disks = [Disk(80_100_000, 100_000_000, False), Disk(80_000_000, 100_000_000, False)]
    disks += [Disk(40_000_000, 100_000_000, False), Disk(40_000_000, 100_000_000, True)]
    brokers = [BrokerRow(1, "localhost:9092", "", True, 0, 0, 0, disk) for disk in disks]
    found = iter([ClusterStatus("id", [broker], 0, 0, [], []) for broker in brokers])

    async def status(_cluster: object) -> ClusterStatus:
        return next(found)

    monkeypatch.setattr(cluster_views, "status", status)
    view, versions = BrokersView(), []
    for disk in disks:
        await view.look(cast("Any", SimpleNamespace(cluster=OpenCluster())))
        versions.append(view.version)
        assert view.found is not None
        assert view.found.brokers[0].disk == disk
    assert versions == [1, 1, 2, 3]
