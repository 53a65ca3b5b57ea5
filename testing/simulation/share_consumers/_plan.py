"""The plan of a schedule of share consumers: that of a share group, with what concerns its members."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from ..brokers._plan import draw_incidents
from ..cluster._plan import LONGEST_MS
from ..engine._plan import show_faults
from ..share_groups._plan import INCIDENTS, SharePlan, draw_common_plan
from ..workloads._share_consumers import CUT, SLOW

#: The group is never empty for these, and its offsets stay: each record has one story.
_LEFT_OUT: Final = frozenset({"offsets-altered", "group-deleted"})
#: What happens to members, in calm schedules too.
_OF_MEMBERS: Final = {
    "client-kill": ("a member is killed, and another one starts", 2),
    "member-leave": INCIDENTS["member-leave"],
}
#: What happens to the ways between members and brokers.
WAYS: Final = {
    SLOW: ("between a member and a broker everything takes long for a while", 3),
    CUT: ("nothing arrives between a member and a broker for a while", 2),
}
#: How many schedules have no other faults, and how likely each of them is.
_CALM_SHARE: Final = 0.3
_ON: Final = 0.4
#: How many schedules of services have retry topics.
_RETRIES_SHARE: Final = 0.4


@dataclass(slots=True)
class ShareConsumerPlan(SharePlan):
    """``calm``: members come and go, and nothing else goes wrong. ``services``: members are services, whose
    ``retries`` are the delays of their retry topics.
    """

    calm: bool = False
    services: bool = False
    retries: list[int] = field(default_factory=list)


def draw_consumer_plan(seed: int) -> ShareConsumerPlan:
    """The plan of a seed."""
    share, rng = draw_common_plan(seed), Random(f"share consumers {seed}")
    plan = ShareConsumerPlan(**{name: getattr(share, name) for name in SharePlan.__dataclass_fields__})
    plan.incidents = [incident for incident in plan.incidents if incident.kind not in _LEFT_OUT]
    plan.calm = rng.random() < _CALM_SHARE
    if plan.calm:
        plan.network, plan.lost_writes, plan.late, plan.state_faults = {}, 0.0, 0.0, 0.0
        plan.incidents, plan.aborts, plan.idles = [], 0.0, 0.0
    kinds = _OF_MEMBERS if plan.calm else _OF_MEMBERS | WAYS
    on = {name for name in kinds if rng.random() < _ON}
    plan.incidents += draw_incidents(rng, kinds, on, plan.faults_ms, longest_ms=LONGEST_MS, letter="c")
    return plan


def draw_service_plan(seed: int) -> ShareConsumerPlan:
    """The plan of a seed for services."""
    plan = draw_consumer_plan(seed)
    plan.services = True
    rng = Random(f"retries of share services {seed}")
    if rng.random() < _RETRIES_SHARE:
        plan.retries = [rng.choice((20, 200)), rng.choice((20, 400))][: rng.choice((1, 2))]
    return plan


def faults_table() -> str:
    """Incidents of share consumers, beside those of share groups, as a Markdown table."""
    return show_faults(WAYS)
