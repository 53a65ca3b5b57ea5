"""HTML of a cluster: its brokers, its controller, and elections of leaders."""

from __future__ import annotations

from collections.abc import Sequence

from ...admin.cluster.commands import ClusterStatus
from ...admin.notation import to_sentence
from ...admin.pages import lanes_page
from ...admin.pages.lists import ListQuery, list_table
from ...admin.pages.markup import Html, join, number, tag
from ..layout import (
    Frame,
    facts_list,
    hidden_fields,
    node_names,
    note_list,
    topic_address,
)


def _state_text(found: ClusterStatus) -> str:
    if found.offline:
        return "offline"
    if any(each.disk is not None and (each.disk.failing or each.disk.hanging) for each in found.brokers):
        return "disk failing"
    return "under-replicated" if found.under_replicated else "ok"


def cluster(frame: Frame, found: ClusterStatus, query: ListQuery, hidden: Sequence[str] = ()) -> Html:
    """Brokers and their disks, replicas that are behind, and reassignments under way. ``hidden`` says which
    partitions are not looked at.
    """
    state = _state_text(found)
    if hidden and state == "ok":
        state = "ok, in part" if found.partitions else "unknown"
    lead = [
        ("State", lanes_page.badge(state)),
        ("Cluster", found.cluster_id or "-"),
        ("Brokers", number(len(found.brokers))),
        ("Partitions", number(found.partitions)),
        ("Offline", number(found.offline)),
        ("Lack replicas", number(len(found.under_replicated))),
    ]
    brokers = list_table(
        query,
        "brokers",
        "Brokers",
        ["Broker", "Address", "Rack", "Controller", "Leads", "Replicas", "Not in sync", "Disk"],
        [
            (
                *(str(b.node_id), b.address, b.rack, "yes" if b.controller else None),
                *map(number, (b.leads, b.replicas, b.lagging)),
                None if b.disk is None else str(b.disk),
            )
            for b in found.brokers
        ],
    )
    ailing = list_table(
        query,
        "ailing",
        "Partitions that lack replicas",
        ["Partition", "Leader", "Replicas", "In sync"],
        [
            (
                tag("a", f"{each.topic}-{each.partition}", href=topic_address(each.topic)),
                lanes_page.badge("offline") if each.leader is None else f"node {each.leader}",
                node_names(each.replicas),
                node_names(each.in_sync),
            )
            for each in found.under_replicated
        ],
    )
    moving = list_table(
        query,
        "reassignments",
        "Reassignments",
        ["Partition", "Replicas", "Adding", "Removing", "Not in sync yet"],
        [
            (
                tag("a", f"{each.topic}-{each.partition}", href=topic_address(each.topic)),
                *map(node_names, (each.replicas, each.adding, each.removing, each.missing)),
            )
            for each in found.reassignments
        ],
    )
    live = tag(
        "div",
        facts_list(lead),
        note_list(map(to_sentence, hidden)),
        tag("h2", "Brokers"),
        brokers,
        (tag("h2", "Partitions that lack replicas"), ailing) if found.under_replicated else None,
        (tag("h2", "Reassignments"), moving) if found.reassignments else None,
        id="cluster",
        data_live=True,
    )
    return join((live, elect(frame)))


def elect(frame: Frame) -> Html | None:
    """What became of an election, by partition."""
    if frame.form_token is None:
        return None
    sure = tag(
        "label", "Yes, elect", tag("input", type="checkbox", name="confirm", value="elect", required=True)
    )
    form = tag(
        "form",
        hidden_fields(frame),
        sure,
        tag("button", "Let the first replicas lead", class_="danger"),
        method="post",
        action="elect",
    )
    return tag("section", tag("h2", "Changes"), form, aria_label="Changes")
