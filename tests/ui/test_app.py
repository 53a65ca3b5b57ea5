"""The pages on a broker: what they show, what they try, and what they change.

Covers: ui/layout.py, ui/groups/pages.py, ui/cluster/pages.py, ui/problems/pages.py.
"""

from __future__ import annotations

import asyncio
import html
import re
import threading

import httpx
import pytest

from kohort.admin import GroupAdmin, ListedGroup
from kohort.admin.assignors.actions import Scene
from kohort.admin.cluster.commands import Ailing, BrokerRow, ClusterStatus, Disk
from kohort.admin.cluster.reassignment import Moving
from kohort.admin.pages.lists import ListQuery
from kohort.client import Cluster
from kohort.spark._batch_log import BatchLog, BatchRow, UnderWay, encode_log
from kohort.spark._intent import add_log
from kohort.testing import RunningBroker
from kohort.ui import app
from kohort.ui.cluster import pages as cluster_pages
from kohort.ui.groups import pages as group_pages
from kohort.ui.groups.views import GroupsView, GroupView
from kohort.ui.layout import Frame
from kohort.ui.observer import MOST_LISTENERS
from tests.broker.apis.share_members import REJECT, RELEASE, ShareMember
from tests.broker.share_requests import join_share_group, share_beat
from tests.broker.wire import Wire, batch, create_topic, produce
from tests.ui.conftest import TOKEN, Browser, MakeBrowser, commit
from tests.ui.members import grouped

EVIL = "<script>alert('g')</script>&\"x"


def words(answer: httpx.Response) -> str:
    """What a reader reads."""
    body = re.sub(r'<script type="application/json".*?</script>', "", answer.text)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", body)))


def form_token(answer: httpx.Response) -> str:
    [token, *_] = re.findall(r'name="csrf" value="(\w+)"', answer.text)
    return str(token)


def test_groups_are_listed_found_and_turned_over(broker: RunningBroker, page: Browser) -> None:
    for number in range(3):
        commit(broker.bootstrap, f"listed-{number}", {"listed": number})
    shown = page.get("/groups")
    assert "listed-0 ○" not in words(shown)
    assert all(f"listed-{number} Empty" in words(shown) for number in range(3))
    found = page.get("/groups?q.groups=LISTED-1")
    assert ("listed-1 Empty" in words(found), "listed-0" in words(found)) == (True, False)
    assert re.search(r"\b1 of \d+ rows match", words(found))
    assert page.get("/groups?q.groups=nothing-like-it").text.count("<tr>") == 1
    for odd in (
        "p.groups=0",
        "p.groups=-1",
        "p.groups=x",
        f"p.groups={'9' * 20}",
        "q.groups=%00%ff",
        "sort.groups=x",
    ):
        assert page.get(f"/groups?{odd}").status_code == 200


def test_lists_are_cut_into_pages() -> None:
    rows = [ListedGroup(f"g&{number}", "consumer", "Empty", "classic", 1) for number in range(120)]
    first = group_pages.groups(rows, {}, ListQuery({"q.groups": "G&"}))
    assert 'href="?q.groups=G%26&amp;p.groups=2" rel="next"' in first
    assert "previous" not in first
    assert "1 to 50 of 120" in first
    last = group_pages.groups(rows, {}, ListQuery({"p.groups": "3"}))
    assert ("101 to 120 of 120" in last, "next" in last, 'rel="prev"' in last) == (True, False, True)


def test_no_name_of_a_client_becomes_part_of_a_page(broker: RunningBroker, page: Browser) -> None:
    commit(broker.bootstrap, EVIL, {"evil": 0})
    for answer in (
        page.get("/groups"),
        page.get("/group", params={"name": EVIL}),
        page.get("/groups", params={"q.groups": EVIL}),
    ):
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "alert('g')" in words(answer)
    missing = page.get("/topic", params={"name": EVIL})
    assert "<script>alert" not in missing.text


def test_a_group_is_shown_with_its_lanes(broker: RunningBroker, page: Browser) -> None:
    with grouped(broker, "shown", "orders", ["app-1", "app-2"]):
        shown = page.get("/group?name=shown")
    assert '"group":"shown"' in shown.text
    text = words(shown)
    assert "State Stable" in text
    assert "Members 2" in text
    assert "member app-1" in text
    assert "orders-0 app-" in text
    assert "Changes" not in text
    assert 'method="post"' not in shown.text


async def watched(page: Browser) -> GroupView:
    return page.observer.view(("group", "remade"), lambda: GroupView("remade"))


def test_a_group_that_is_deleted_and_made_anew_is_another_one(broker: RunningBroker, page: Browser) -> None:
    with grouped(broker, "remade", "orders", ["old"]):
        text = words(page.get("/group?name=remade"))
    assert "member old" in text
    assert "Oldest unread" in text

    async def delete() -> None:
        async with GroupAdmin(broker.bootstrap) as admin:
            assert (await admin.delete_groups(["remade"]))["remade"].ok

    asyncio.run(delete())
    view = page.run(watched(page))
    page.look(view)
    text = words(page.get("/group?name=remade"))
    assert "State does not exist" in text
    assert "Oldest unread" not in text  # how it was tells nothing of how it is
    with grouped(broker, "remade", "orders", ["new"]):
        page.look(view)
        text = words(page.get("/group?name=remade"))
    assert "State Stable" in text
    assert "member new" in text
    assert "member old" not in text


def test_topics_and_brokers_are_shown(broker: RunningBroker, page: Browser) -> None:
    commit(broker.bootstrap, "reader", {"payments": 0})
    assert "payments 2 1" in words(page.get("/topics?q.topics=PAY"))
    topic = words(page.get("/topic?name=payments"))
    assert "Partitions (2)" in topic
    assert "0 node 1 1 1 0 0" in topic
    assert 'href="group?name=reader"' in page.get("/topic?name=payments").text
    assert 'href="topic?name=payments"' in page.get("/group?name=reader").text
    assert "does not exist" in words(page.get("/topic?name=nothing"))
    cluster = words(page.get("/cluster"))
    assert f"1 {broker.bootstrap} - yes" in cluster


def test_an_assignor_is_tried_on_the_live_group(broker: RunningBroker, page: Browser) -> None:
    with grouped(broker, "tried", "orders", ["app-1", "app-2"]):
        text = words(page.get("/what-if?name=tried&assignor=range&join=1&leave=app-2"))
        unknown = words(page.get("/what-if?name=tried&assignor=range&leave=app-9"))
    assert "now: range 2 1 2" in text
    assert "range 2 1 2" in text
    assert "from" not in text.partition("Loads")[2]
    assert "new-1" in text
    assert "'app-9' is no member" in unknown


@pytest.mark.parametrize(
    "query",
    [
        "assignor=os.system",
        "assignor=kohort.assignors.RangeAssignor",
        "assignor=sticky?seed=1",
        "",
        "assignor=range&join=-1",
        "assignor=range&join=1000000",
        f"assignor=range&join={'9' * 5_000}",
        "assignor=range&join=²",
    ],
)
def test_a_what_if_runs_installed_assignors_only(page: Browser, query: str) -> None:
    assert page.get(f"/what-if?name=g&{query}").status_code == 400


def test_a_what_if_that_does_not_end_is_waited_for_in_vain_and_keeps_the_next_one_out(
    broker: RunningBroker, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, try_all = threading.Event(), Scene.try_all

    def hang(scene: Scene, specs: list[str]) -> object:
        may_end.wait(60)
        return try_all(scene, specs)

    monkeypatch.setattr(Scene, "try_all", hang)
    asked = "/what-if?name=hung&assignor=range"
    with grouped(broker, "hung", "orders", ["app-1"]):
        monkeypatch.setattr(app, "_COMPUTE_S", 0.5)
        assert "range has not answered for" in words(page.get(asked))
        assert "another what-if is being computed" in words(page.get(asked))
        monkeypatch.setattr(app, "_COMPUTE_S", 60)
        may_end.set()
        answers = (page.get(asked).status_code for _ in range(1_000))
        assert next((status for status in answers if status != 503), 503) == 200


def test_what_is_not_there_is_said(page: Browser) -> None:
    assert page.get("/nothing").status_code == 404
    assert page.get("/assets/../../pyproject.toml").status_code == 404
    assert page.get("/assets/page.py").status_code == 404
    assert page.get("/events?of=nothing").status_code == 404
    assert page.get("/events?of=groups&after=x").status_code == 404
    assert page.get("/group").status_code == 400


def test_too_many_pages_are_refused_not_left_to_wait(page: Browser) -> None:
    async def fill() -> None:
        page.observer.view("groups", GroupsView).listeners = MOST_LISTENERS

    page.run(fill())
    answer = page.get("/events?of=groups")
    assert answer.status_code == 503
    assert "close some of them" in words(answer)


def test_without_permission_nothing_is_changed(page: Browser) -> None:
    for path in ("/reset-offsets", "/delete-group", "/elect"):
        assert page.post(path, data={"name": "g", "confirm": "g"}).status_code in (404, 405)


def test_a_group_without_members_is_reset_once_it_is_confirmed(
    broker: RunningBroker, changing: Browser
) -> None:
    commit(broker.bootstrap, "reset", {"resets": 7, "kept": 5})
    csrf = form_token(changing.get("/group?name=reset"))
    asked = {"csrf": csrf, "name": "reset", "to": "earliest", "value": "", "topic": "resets"}
    planned = changing.post("/reset-offsets", data=asked)
    assert "Nothing has been changed yet. Offsets Partition Now New Note resets-0 7 0" in words(planned)
    assert offsets(broker, "reset") == {"resets": 7, "kept": 5}
    mistyped = changing.post("/reset-offsets", data={**asked, "confirm": "resett"})
    assert mistyped.status_code == 400
    assert offsets(broker, "reset") == {"resets": 7, "kept": 5}
    done = changing.post("/reset-offsets", data={**asked, "confirm": "reset"})
    assert "These offsets are committed." in words(done)
    assert offsets(broker, "reset") == {"resets": 0, "kept": 5}


def offsets(broker: RunningBroker, group: str) -> dict[str, int]:
    async def ask() -> dict[str, int]:
        async with Cluster(broker.bootstrap) as cluster:
            found = await cluster.committed(group)
            return {place.topic: each.offset for place, each in found.items() if place.partition == 0}

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "given",
    [
        {"to": "nowhere"},
        {"to": "offset", "value": "-1"},
        {"to": "offset", "value": "x"},
        {"to": "shift", "value": str(2**70)},
        {"to": "timestamp", "value": "yesterday"},
        {"to": "earliest", "topic": "resets:x"},
    ],
)
def test_a_target_that_cannot_be_read_changes_nothing(
    broker: RunningBroker, changing: Browser, given: dict[str, str]
) -> None:
    commit(broker.bootstrap, "odd", {"resets": 7})
    csrf = form_token(changing.get("/group?name=odd"))
    answer = changing.post("/reset-offsets", data={"csrf": csrf, "name": "odd", "confirm": "odd", **given})
    assert answer.status_code == 400
    assert offsets(broker, "odd") == {"resets": 7}


def test_a_group_with_members_is_neither_reset_nor_deleted(broker: RunningBroker, changing: Browser) -> None:
    with grouped(broker, "busy", "orders", ["app"]):
        shown = changing.get("/group?name=busy")
        assert "stop its members first" in words(shown)
        commit(broker.bootstrap, "idle", {"resets": 0})
        csrf = form_token(changing.get("/group?name=idle"))
        asked = {"csrf": csrf, "name": "busy", "confirm": "busy"}
        reset = changing.post("/reset-offsets", data={**asked, "to": "earliest"})
        deleted = changing.post("/delete-group", data=asked)
    assert "NON_EMPTY_GROUP" in words(reset)
    assert "NON_EMPTY_GROUP" in words(deleted)


def test_a_group_is_deleted_once_its_name_is_typed(broker: RunningBroker, changing: Browser) -> None:
    commit(broker.bootstrap, "gone", {"resets": 3})
    csrf = form_token(changing.get("/group?name=gone"))
    assert changing.post("/delete-group", data={"csrf": csrf, "name": "gone"}).status_code == 400
    assert offsets(broker, "gone") == {"resets": 3}
    done = changing.post("/delete-group", data={"csrf": csrf, "name": "gone", "confirm": "gone"})
    assert "gone deleted" in words(done)
    assert offsets(broker, "gone") == {}


def test_a_name_with_spaces_that_nobody_can_type_is_confirmed_with_plain_ones(
    broker: RunningBroker, changing: Browser
) -> None:
    name = "two\N{NO-BREAK SPACE}words"
    commit(broker.bootstrap, name, {"resets": 3})
    csrf = form_token(changing.get(f"/group?name={name}"))
    done = changing.post("/delete-group", data={"csrf": csrf, "name": name, "confirm": "two words"})
    assert "deleted" in words(done)
    assert offsets(broker, name) == {}


def test_leaders_are_elected(changing: Browser) -> None:
    csrf = form_token(changing.get("/cluster"))
    assert changing.post("/elect", data={"csrf": csrf}).status_code == 400
    done = changing.post("/elect", data={"csrf": csrf, "confirm": "elect"})
    assert "no partition needed an election" in words(done)


def test_a_form_without_its_own_token_changes_nothing(broker: RunningBroker, changing: Browser) -> None:
    commit(broker.bootstrap, "forged", {"resets": 3})
    for csrf in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": "é"}):
        answer = changing.post("/delete-group", data={"name": "forged", "confirm": "forged", **csrf})
        assert answer.status_code == 403
    assert offsets(broker, "forged") == {"resets": 3}


def test_a_cluster_that_is_away_leaves_the_page_usable(browser: MakeBrowser) -> None:
    page = browser("--bootstrap", "127.0.0.1:1", "--timeout", "0.1", "--allow-changes", token=TOKEN)
    page.get(f"/?token={TOKEN}")
    for path in ("/", "/groups", "/group?name=g", "/cluster"):
        answer = page.get(path)
        assert answer.status_code == 200
        assert "The cluster cannot be asked" in words(answer)
        assert "Waiting for the cluster." in words(answer)
    assert page.get("/what-if?name=g&assignor=range").status_code == 502


def test_offline_partitions_and_reassignments_are_shown() -> None:
    found = ClusterStatus(
        "c", [], 2, 1, [Ailing("t", 0, None, [1, 2], [])], [Moving("t", 1, [1, 2], [2], [1], [2])]
    )
    text = re.sub(r"<[^>]*>", " ", cluster_pages.cluster(Frame("b"), found, ListQuery({})))
    assert "t-0   offline   1, 2  none" in re.sub(r" {4,}", "   ", text)
    assert "t-1   1, 2  2  1  2" in text


def test_a_broker_whose_disk_refuses_writes_is_the_state_of_the_cluster() -> None:
    broker = BrokerRow(1, "b:9092", None, True, 2, 2, 0, Disk(0, 3 << 30, failing=True))
    status = ClusterStatus("c", [broker], 2, 0, [], [])
    text = re.sub(r"<[^>]*>", " ", cluster_pages.cluster(Frame("b"), status, ListQuery({})))
    assert "State   disk failing" in re.sub(r" {3,}", "   ", text)
    assert "refuses writes, 0% of 3.00 GiB free" in text


def test_the_page_of_a_spark_job_s_group_shows_its_batches(broker: RunningBroker, page: Browser) -> None:
    mark = '{"b":7,"e":50,"k":"f00d"}'
    commit(broker.bootstrap, "old-etl", {"old-etl": 3}, metadata=mark)
    without = words(page.get("/group?name=old-etl"))
    assert "unknown: no commit of the group carries a log of batches" in without
    row = BatchRow(6, 1_700_000_000_000, 4_000, 2, 750, sink_ms=1_500, lag=4, replays=1, run=1)
    log = BatchLog((row,), UnderWay(7, 1_700_000_009_000, 1), runs=1, applications={1: EVIL})
    commit(broker.bootstrap, "etl", {"etl": 3}, metadata=add_log(mark, encode_log(log)))
    shown = page.get("/group?name=etl")
    assert "Batch 7 is under way since 2023-11-14 22:13:29.000 UTC, announced again 1 time." in words(shown)
    assert "6 2023-11-14 22:13:20 UTC 1 4,000 2 75.0 % - - - 1.5 s - 4 - 1" in words(shown)
    assert EVIL not in shown.text
    commit(broker.bootstrap, "no-job", {"no-job": 3})
    assert "Batches" not in words(page.get("/group?name=no-job"))


def test_a_share_group_has_a_page_of_its_share_partitions(broker: RunningBroker, page: Browser) -> None:
    with Wire(broker.bootstrap) as wire, ShareMember(broker.bootstrap, "work", EVIL) as member:
        place = create_topic(wire, "jobs").topic_id
        join_share_group(wire, "work", EVIL, "jobs")
        # a new group begins at the end
        member.fetch(place, 0, max_wait_ms=50)
        produce(wire, "jobs", batch(9))
        member.fetch(max_records=5, share_acquire_mode=1)
        member.acknowledge(place, (1, 1, [REJECT]), (2, 3, [RELEASE]))
        assert "work Stable share" in words(page.get("/groups"))
        answer = page.get("/group?name=work")
        shown = words(answer)
        assert "<script>alert" not in answer.text
        assert f"jobs-0 0 9 8 2 2 4 x 1 0 1 rejected, 0 delivered too often - {EVIL} (2)" in shown
        assert f"Member Partition Records {EVIL} jobs-0 2" in shown
        assert (
            f"1 record of jobs-0 was rejected: nobody is given it again; offset 1, delivery 1, member {EVIL}"
            in shown
        )
        assert 'id="lanes"' not in answer.text
        assert "What if" not in shown
        assert "Target" not in shown
        share_beat(wire, "work", EVIL, -1)
