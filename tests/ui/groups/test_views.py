"""Views: what is learned of a group from looks, with and without a broker that keeps events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from kohort.admin import (
    Generation,
    GroupAdmin,
    GroupDescription,
    GroupHistory,
    HistoryEntry,
    ListedGroup,
    PartitionOffsets,
)
from kohort.admin.pages.lists import ListQuery
from kohort.lag import GroupLag, PartitionLag
from kohort.protocol import ApiKey, ErrorCode, EventName, KafkaError
from kohort.protocol.messages.describe_cluster import DescribeClusterResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.ui.groups import pages as group_pages
from kohort.ui.groups import views
from kohort.ui.groups.views import MOST_DETAILED, GroupsView, GroupView
from tests.admin.pages.test_lanes import generation, group, member


class OpenCluster:
    """Brokers without access rules: they do not know what a user may do, and hide nothing."""

    async def request(self, _: int | None, api_key: int, *__: object, **___: object) -> object:
        return DescribeClusterResponse() if api_key == ApiKey.DESCRIBE_CLUSTER else MetadataResponse()


class Scripted:
    """A group as a test says it is. ``entries`` is None for a broker that keeps no events."""

    def __init__(self, now: GroupDescription, generations: Sequence[Generation] = ()) -> None:
        self.now = now
        self.generations = tuple(generations)
        self.entries: list[HistoryEntry] | None = None
        self.refused: KafkaError | None = None
        self.reads: list[dict[str, Any]] = []
        self.lags = 0
        self.cluster = OpenCluster()

    @property
    def admin(self) -> GroupAdmin:
        return cast(GroupAdmin, self)

    async def list_groups(self) -> list[ListedGroup]:
        return [ListedGroup(self.now.group, "consumer", self.now.state, "classic", 1)]

    async def describe(self, groups: Sequence[str]) -> dict[str, GroupDescription]:
        if self.refused is not None:
            raise self.refused
        return dict.fromkeys(groups, self.now)

    async def lag(self, groups: Sequence[str]) -> list[GroupLag]:
        self.lags += 1
        rows = (PartitionLag("orders", 0, 5, 5 + 10 * self.lags, 10 * self.lags, 90_000),)
        return [GroupLag(name, "classic", self.now.state, 5_000 * self.lags, rows) for name in groups]

    async def events(self, _: str, after: int = -1) -> list[HistoryEntry] | None:
        return None if self.entries is None else [each for each in self.entries if each.sequence > after]

    async def history(self, name: str, limit: int, **more: Any) -> GroupHistory:
        self.reads.append(more)
        if self.refused is not None:
            raise self.refused
        entries = tuple(self.entries or ())
        return GroupHistory(name, "offsets topic", entries, self.generations[-limit:], ("told",))


def owners(view: GroupView) -> list[str]:
    assert view.lanes is not None
    return [view.lanes.owners[lane.spans[-1].owner].name for lane in view.lanes.lanes]


def event(sequence: int, kind: str = EventName.REBALANCE_COMPLETED) -> HistoryEntry:
    return HistoryEntry(sequence, 1_000, kind, sequence, "a joined", "a", "app", "/h", {})


async def test_records_are_read_again_when_the_group_has_changed_and_only_then() -> None:
    cluster = Scripted(group(member("a", 0)), [generation(1, 1_000, (0, None, "a"))])
    view = GroupView("billing")
    await view.look(cluster.admin)
    await view.look(cluster.admin)
    assert len(cluster.reads) == 1
    cluster.now = group(member("b", 0))
    cluster.generations += (generation(2, 2_000, (0, "a", "b")),)
    await view.look(cluster.admin)
    assert [more["max_offsets"] for more in cluster.reads] == [views.MANY_OFFSETS, views._FEW_OFFSETS]
    assert view.lanes is not None
    assert [row.generation for row in view.lanes.generations] == [1, 2]
    assert owners(view) == ["b"]


async def test_a_change_that_left_no_record_is_told_as_it_was_seen() -> None:
    cluster = Scripted(group(member("a", 0, 1), epoch=4))
    view = GroupView("billing")
    await view.look(cluster.admin)
    cluster.now = group(member("a", 0), member("b", 1), epoch=5)
    await view.look(cluster.admin)
    assert view.lanes is not None
    [row] = view.lanes.generations
    assert (row.generation, row.joined, row.left, row.cause) == (5, ("b",), (), None)
    assert [tuple(move) for move in row.moves or ()] == [("orders", 1, "a", "b")]
    assert view.lanes.unknown == ("told",) or "begin when somebody looks" in view.lanes.unknown[0]
    assert owners(view) == ["a", "b"]


async def test_a_topic_that_may_not_be_read_leaves_what_looks_tell() -> None:
    cluster = Scripted(group(member("a", 0)))
    view = GroupView("billing")

    async def history(*_: Any, **__: Any) -> GroupHistory:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic '__consumer_offsets'")

    cluster.history = history  # type: ignore[method-assign]
    await view.look(cluster.admin)
    cluster.now = group(member("b", 0))
    await view.look(cluster.admin)
    assert view.lanes is not None
    assert "records cannot be read" in view.lanes.unknown[0]
    assert owners(view) == ["b"]


async def test_with_events_the_history_is_read_after_a_rebalance_only() -> None:
    cluster = Scripted(group(member("a", 0)), [generation(1, 1_000, (0, None, "a"))])
    cluster.entries = [event(1)]
    view = GroupView("billing")
    await view.look(cluster.admin)
    cluster.entries.append(event(2, "MemberJoined"))
    await view.look(cluster.admin)
    assert len(cluster.reads) == 1
    assert view.lanes is not None
    assert [each.sequence for each in view.lanes.entries] == [1, 2]
    cluster.entries.append(event(3))
    await view.look(cluster.admin)
    assert len(cluster.reads) == 2
    assert cluster.reads[-1] == {"every_move": True}


async def test_a_broker_that_has_restarted_begins_its_events_anew() -> None:
    cluster = Scripted(group(member("a", 0)))
    cluster.entries = [event(7)]
    view = GroupView("billing")
    await view.look(cluster.admin)
    restarted = [event(1, "MemberJoined")]

    async def events(_: str, after: int = -1) -> list[HistoryEntry]:
        return [each for each in restarted if each.sequence > (after if after <= 1 else -1)]

    cluster.events = events  # type: ignore[method-assign]
    await view.look(cluster.admin)
    assert len(cluster.reads) == 2
    await view.look(cluster.admin)
    assert len(cluster.reads) == 2


async def test_pages_are_sent_the_model_when_it_changes_and_ticks_in_between() -> None:
    cluster = Scripted(group(member("a", 0)))
    view = GroupView("billing")
    await view.look(cluster.admin)
    first = view.version
    assert b"event: model" in view.events_since(-1)[0]
    await view.look(cluster.admin)
    [tick] = view.events_since(first)
    assert tick.startswith(b"event: tick")
    assert json.loads(tick.split(b"data: ")[1])["lags"] == [None]
    second = view.version
    cluster.now = replace(cluster.now, state="PreparingRebalance")
    await view.look(cluster.admin)
    assert b"event: model" in b"".join(view.events_since(second))


async def test_lanes_are_drawn_anew_when_something_has_moved_and_only_then() -> None:
    def lagging(lag: int) -> GroupDescription:
        return group(member("a", 0), partitions=(PartitionOffsets("orders", 0, 5, 5 + lag, lag, "a"),))

    cluster = Scripted(lagging(1), [generation(1, 1_000, (0, None, "a"))])
    view = GroupView("billing")
    await view.look(cluster.admin)
    first = view.lanes
    parts = view.parts(ListQuery({}))
    assert view.parts(ListQuery({})) is parts
    cluster.now = lagging(7)
    await view.look(cluster.admin)
    assert first is not None
    assert view.lanes is not None
    assert view.lanes.lanes[0].spans is first.lanes[0].spans
    assert view.lanes.lanes[0].lag == 7
    assert [sample.lag for sample in view.lanes.samples] == [1, 7]
    assert view.parts(ListQuery({})) is not parts


async def test_lag_in_time_and_its_trend_are_looked_at_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([5_000, 9_999, 10_000])
    monkeypatch.setattr(views, "now_ms", lambda: next(times))
    cluster = Scripted(group(member("a", 0)), [generation(1, 1_000, (0, None, "a"))])
    view = GroupView("billing")
    await view.look(cluster.admin)
    assert ">1 min 30 s</span>" in str(view.parts(ListQuery({})))
    await view.look(cluster.admin)
    assert cluster.lags == 1
    await view.look(cluster.admin)
    assert cluster.lags == 2
    assert "grows by 2 a second" in str(view.parts(ListQuery({})))
    assert '"trend":"grows by 2 a second"' in view.events_since(0)[-1].decode()


async def test_the_list_has_lag_in_time() -> None:
    cluster = Scripted(group(member("a", 0)), [generation(4, 1_000, (0, None, "a"))])
    view = GroupsView()
    view.show(["billing"])
    for _ in range(2):
        await view.look(cluster.admin)
    assert view.details["billing"].behind is not None
    shown = group_pages.groups(view.rows, view.details, ListQuery({}))
    assert '<td data-label="Oldest unread"><span>1 min 30 s</span></td>' in shown
    assert '<td data-label="Trend">grows by 2 a second</td>' in shown


async def test_the_lists_lag_is_that_of_records_as_in_kohort_groups_lag() -> None:
    cluster = Scripted(replace(group(), partitions=(PartitionOffsets("orders", 0, 9, 5, -4, None),)))
    view = GroupsView()
    view.show(["billing"])
    await view.look(cluster.admin)
    assert (cluster.now.total_lag, view.details["billing"].lag) == (-4, 10)


async def test_only_groups_that_are_shown_are_described() -> None:
    cluster = Scripted(group(member("a", 0)), [generation(4, 1_000, (0, None, "a"))])
    view = GroupsView()
    await view.look(cluster.admin)
    assert view.details == {}
    assert not view.show(["billing"])
    await view.look(cluster.admin)
    assert view.show(["billing"])
    detail = view.details["billing"]
    assert (detail.members, detail.last and detail.last.generation) == (1, 4)
    await view.look(cluster.admin)
    assert len(cluster.reads) == 1
    assert cluster.reads[0]["max_offsets"] == views._ROW_OFFSETS


async def test_a_group_that_may_not_be_seen_hides_no_other() -> None:
    cluster = Scripted(group())
    cluster.refused = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "group 'billing'")
    view = GroupsView()
    view.show(["billing"])
    await view.look(cluster.admin)
    assert "GROUP_AUTHORIZATION_FAILED" in str(view.details["billing"].error)


async def test_what_is_wanted_of_groups_is_bounded() -> None:
    view = GroupsView()
    view.show(f"g{number}" for number in range(views.MOST_DETAILED + 50))
    assert len(view._shown) == views.MOST_DETAILED
    assert "g0" not in view._shown


@pytest.mark.parametrize("count", [3, MOST_DETAILED + 1])
async def test_to_sort_by_lag_all_groups_are_asked_for_it(count: int) -> None:
    cluster = Scripted(group(member("a", 0)), [generation(4, 1_000, (0, None, "a"))])
    names = [f"g{number:03}" for number in range(count)]
    rows = [ListedGroup(name, "consumer", "Stable", "classic", 1) for name in names]

    async def list_groups() -> list[ListedGroup]:
        return rows

    async def lag(_: list[str] | None = None) -> list[GroupLag]:
        lags = [PartitionLag("orders", 0, 0, int(name[1:]), int(name[1:]), None) for name in names]
        return [GroupLag(n, "classic", "Stable", 0, (one,), 1) for n, one in zip(names, lags, strict=True)]

    admin = cast("Any", cluster.admin)
    admin.list_groups, admin.lag = list_groups, lag
    view, query = GroupsView(), ListQuery({"sort.groups": "-lag"})
    await view.look(admin)
    chosen, by_details = group_pages.choose_groups(view.rows, view.details, query)
    assert by_details
    assert not view.show([row.group for row in chosen], everything=True)
    await view.look(admin)
    assert view.details.keys() == set(names)
    chosen, _ = group_pages.choose_groups(view.rows, view.details, query)
    assert view.show([row.group for row in chosen], everything=True) == (count <= MOST_DETAILED)
    if count > MOST_DETAILED:
        assert chosen[0].group == names[-1]
        assert len(cluster.reads) <= MOST_DETAILED
