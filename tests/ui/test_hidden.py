"""The pages as users see them whose rights do not cover all: what is hidden is said, and what is refused."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kohort.admin import AclRule, ClusterAdmin
from kohort.admin.cluster.problems import ProblemReport
from kohort.admin.pages.lists import ListQuery
from kohort.client import Cluster, CommittedOffset
from kohort.consumer import Record
from kohort.producer import Producer
from kohort.protocol import TopicPartition
from kohort.service.letters.deadletter import error_headers
from kohort.ui.problems import pages as problem_pages
from kohort.ui.problems.pages import ClusterState
from tests.secured import PASSWORD, Secured
from tests.ui.conftest import TOKEN, Browser, MakeBrowser
from tests.ui.letters.test_handlers import asked, plan_token
from tests.ui.test_app import form_token, words
from tests.waiting import wait_until

GROUPS = "the right to DESCRIBE the cluster shows all"
TOPICS = "the right to DESCRIBE every topic ('*') shows all"
PageOf = Callable[..., Browser]


@pytest.fixture(scope="module", autouse=True)
def things(secured: Secured) -> None:
    """A topic, a group and letters of ``reader``'s, who may write to one topic of the two that they come
    from, and a topic of others. ``guest`` has no right.
    """
    for user in ("guest", "reader"):
        secured.create_user(user)
    mine = [
        ("topic", "paid", "Read Describe Write"),
        ("topic", "sent", "Describe"),
        ("topic", "paid.dlt", "Read Describe"),
        ("group", "payers", "Read Describe"),
        ("group", "kohort-deadletters-paid.dlt", "Read Describe"),
        ("transactional-id", "kohort-deadletters-paid.dlt", "Write Describe"),
    ]
    rules = [
        AclRule("User:reader", "Allow", operation, kind, name)
        for kind, name, operations in mine
        for operation in operations.split()
    ]

    async def make() -> None:
        async with Cluster(secured.plain) as cluster:
            await cluster.create_topics(dict.fromkeys(("paid", "sent", "paid.dlt", "private"), 1))
            await cluster.commit("payers", {TopicPartition("paid", 0): CommittedOffset(0)})
            await cluster.commit("strangers", {TopicPartition("private", 0): CommittedOffset(0)})
        async with Producer(bootstrap=secured.plain) as producer:
            for origin in ("paid", "sent"):
                record = Record(origin, 0, 0, 1_700_000_000_000, b"key", b"value")
                headers = error_headers(record, ValueError("odd"), 1, "payers")
                await producer.send_and_wait("paid.dlt", b"value", b"key", headers=headers)
        async with ClusterAdmin(secured.plain) as admin:
            assert all(done.ok for done in (await admin.add_acls(rules)).values())

    asyncio.run(make())


@pytest.fixture
def page_of(secured: Secured, browser: MakeBrowser, tmp_path: Path) -> PageOf:
    """``page_of("guest")``: the page as this user's, which may change things."""

    def open_one(user: str, *, is_known: bool = True) -> Browser:
        file = tmp_path / user
        file.write_text(PASSWORD if is_known else "another password")
        login = f"--bootstrap {secured.sasl} --security-protocol SASL_PLAINTEXT --sasl-username {user}"
        login += f" --sasl-mechanism SCRAM-SHA-256 --sasl-password-file {file} --allow-changes"
        made = browser(*login.split(), token=TOKEN)
        assert made.get(f"/?token={TOKEN}").status_code == 303
        return made

    return open_one


def _text_with(page: Browser, path: str, part: str) -> str:
    shown = words(page.get(path))
    return shown if part in shown else ""


def text_of(page: Browser, path: str) -> str:
    """The text of a page once the cluster has answered."""

    def seen() -> str:
        found = words(page.get(path))
        return "" if "Waiting for the cluster" in found else found

    return wait_until(seen, f"{path} is shown")


def test_who_may_see_nothing_is_told_what_is_hidden_on_every_page(page_of: PageOf) -> None:
    page = page_of("guest")
    problems = text_of(page, "/")
    assert "State unknown" in problems
    assert "Whether anything is wrong is not known" in problems
    assert "Nothing is wrong" not in problems
    for path, rights in (
        ("/", [GROUPS, TOPICS]),
        ("/groups", [GROUPS]),
        ("/topics", [GROUPS, TOPICS]),
        ("/deadletters", [TOPICS]),
        ("/cluster", ["The cluster refuses: CLUSTER_AUTHORIZATION_FAILED", "ask for the right to DESCRIBE"]),
        ("/group?name=payers", ["group 'payers'", "ask for the right to DESCRIBE"]),
        ("/topic?name=paid", ["topic 'paid'", "ask for the right to DESCRIBE"]),
        ("/records?name=paid", ["topic 'paid'", "ask for the right to DESCRIBE"]),
        ("/letters?name=paid.dlt", ["topic 'paid.dlt'", "ask for the right to DESCRIBE"]),
        ("/archived?name=payers", ["group 'payers'", "ask for the right to DESCRIBE"]),
    ):
        shown = text_of(page, path)
        for right in rights:
            assert right in shown, path


def test_who_has_a_topic_and_a_group_sees_these_and_that_others_may_be_hidden(page_of: PageOf) -> None:
    page = page_of("reader")
    for path, seen, right in (
        ("/", "topic paid.dlt", TOPICS),
        ("/groups", "payers", GROUPS),
        ("/topics", "paid.dlt", TOPICS),
        ("/topic?name=paid", "Records", GROUPS),
        ("/deadletters", "paid.dlt", TOPICS),
    ):
        shown = wait_until(partial(_text_with, page, path, right), f"{path} says {right}")
        assert seen in shown
        assert "private" not in shown
        assert "strangers" not in shown


def test_a_replay_that_is_refused_at_its_end_leaves_nothing_half_done(
    secured: Secured, page_of: PageOf
) -> None:
    page = page_of("reader")
    text_of(page, "/letters?name=paid.dlt")
    given = asked(page, "paid.dlt")
    planned = page.post("/plan-replay", data=given)
    assert "paid 1" in words(planned)
    confirm = {"csrf": given["csrf"], "plan": plan_token(planned.text), "confirm": "paid.dlt"}
    refused = page.post("/replay-letters", data=confirm)
    assert refused.status_code == 502
    assert "1 record was refused for sent-0, and none of the letters with it is written" in words(refused)
    assert "WRITE" in words(refused)

    async def read() -> tuple[int, int]:
        async with Cluster(secured.plain) as cluster:
            fetched = await cluster.fetch({TopicPartition("paid", 0): 0}, read_committed=True, max_wait_ms=0)
            done = await cluster.committed("kohort-deadletters-paid.dlt")
        [row] = fetched.values()
        return len(row.aborted), len(done)

    aborted, remembered = asyncio.run(read())
    assert remembered == 0
    # a letter for the topic that may be written to was sent or not: it is not read
    assert aborted <= 1
    assert "Nothing found" in text_of(page, "/records?name=paid&committed=1")


def test_changes_that_are_refused_name_the_right(page_of: PageOf) -> None:
    page = page_of("reader")
    text_of(page, "/group?name=payers")
    csrf = form_token(page.get("/group?name=payers"))
    deleted = words(page.post("/delete-group", data={"csrf": csrf, "name": "payers", "confirm": "payers"}))
    assert "deleting group 'payers'; ask for the right to DESCRIBE (to change: READ, DELETE" in deleted
    elected = words(page.post("/elect", data={"csrf": csrf, "confirm": "elect"}))
    assert "the election; ask for the right to DESCRIBE (to change: ALTER" in elected
    reset = {"csrf": csrf, "name": "strangers", "to": "earliest", "value": "", "topic": ""}
    refused = words(page.post("/reset-offsets", data={**reset, "confirm": "strangers"}))
    assert "group 'strangers'; ask for the right to DESCRIBE" in refused


def test_a_wrong_password_is_said_and_is_no_silence_of_the_cluster(page_of: PageOf) -> None:
    page = page_of("reader", is_known=False)
    shown = text_of(page, "/")
    assert "The cluster refuses: " in shown
    assert "authentication" in shown.lower()
    assert "Nothing is wrong" not in shown


@pytest.mark.parametrize(
    "path",
    ["/topic", "/topic?name=", "/records?topic=paid", "/record?partition=0&offset=0", "/letters"],
)
def test_an_address_that_names_no_topic_says_how(page_of: PageOf, path: str) -> None:
    answer = page_of("guest").get(path)
    assert (answer.status_code, "names no topic: write it as name=TOPIC" in words(answer)) == (400, True)


@pytest.mark.parametrize("path", ["/group", "/archived", "/what-if?assignor=range"])
def test_an_address_that_names_no_group_says_how(page_of: PageOf, path: str) -> None:
    answer = page_of("guest").get(path)
    assert (answer.status_code, "names no group: write it as name=GROUP" in words(answer)) == (400, True)


def test_clusters_of_which_not_all_is_seen_are_not_called_ok() -> None:
    whole, part = ProblemReport([]), ProblemReport([], ("this is hidden",))
    blind = ProblemReport([], is_blind=True)
    states = [
        ClusterState("whole", "h:1", "", whole, {}),
        ClusterState("part", "h:2", "", part, {}),
        ClusterState("blind", "h:3", "", blind, {}),
        ClusterState("shut", "h:4", "The cluster refuses: no.", None, {}, is_refused=True),
    ]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", problem_pages.overview(states, ListQuery({}))))
    assert "whole ok 0 0 h:1" in text
    assert "part ok, in part 0 0 h:2" in text
    assert "blind unknown 0 0 h:3" in text
    assert "shut refuses - - h:4 The cluster refuses: no." in text
    assert "part: this is hidden." in text
    assert "Nothing is wrong," in problem_pages.problems(whole, {}, ListQuery({}))
