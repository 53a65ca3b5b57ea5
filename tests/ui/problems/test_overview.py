"""Several clusters in one page: each in its own place, and none waits for another."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from starlette.routing import Route

from kohort.admin.cluster.problems import ProblemReport
from kohort.admin.pages.lists import ListQuery
from kohort.client import ConfigError
from kohort.problems import FoundProblem
from kohort.testing import RunningBroker, running_broker
from kohort.ui import observer
from kohort.ui.problems import pages as problem_pages
from kohort.ui.problems.overview import Overview
from kohort.ui.problems.pages import ClusterState
from kohort.ui.problems.views import ProblemsView
from tests.ui.conftest import TOKEN, Browser, commit, made
from tests.ui.test_app import form_token, words

AWAY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def second() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture
def page(broker: RunningBroker, second: RunningBroker, browser: Callable[..., Browser]) -> Browser:
    clusters = (f"a={broker.bootstrap}", f"b.2={second.bootstrap}", f"gone={AWAY}")
    return browser(*(word for each in clusters for word in ("--cluster", each)), "--timeout", "2")


def test_the_first_page_has_every_cluster_though_one_does_not_answer(
    broker: RunningBroker, page: Browser
) -> None:
    text = words(page.get("/"))
    assert f"a ok 0 0 {broker.bootstrap}" in text
    assert "b.2 ok 0 0" in text
    assert f"gone does not answer - - {AWAY} The cluster cannot be asked" in text
    assert "None that is known." in text
    shown = page.get("/").text
    assert 'href="at/b.2/"' in shown
    assert 'data-events="events?after=' in shown


def test_each_cluster_has_its_own_pages_and_links_to_the_others(
    broker: RunningBroker, second: RunningBroker, page: Browser
) -> None:
    commit(broker.bootstrap, "only-in-a", {"payments": 0})
    commit(second.bootstrap, "only-in-b", {"payments": 0})
    first, other = (page.get(f"/at/{name}/groups") for name in ("a", "b.2"))
    assert ("only-in-a" in words(first), "only-in-b" in words(first)) == (True, False)
    assert ("only-in-a" in words(other), "only-in-b" in words(other)) == (False, True)
    assert "<title>Groups · a · kohort</title>" in first.text
    assert '<a href="../b.2/groups">b.2</a>' in first.text
    assert '<a href="../a/groups" aria-current="true">a</a>' in first.text
    assert '<a href="../../">All clusters</a>' in first.text
    assert page.get("/at/b.2/group?name=only-in-b").status_code == 200
    gone = page.get("/at/gone/groups")
    assert gone.status_code == 200
    assert "The cluster cannot be asked" in words(gone)
    for nowhere in ("/groups", "/at/c/groups", "/at/a/nothing"):
        assert page.get(nowhere).status_code == 404
    assert "All clusters" in words(page.get("/groups"))


def test_the_first_page_is_told_when_anything_of_a_cluster_is_new(
    page: Browser,
) -> None:
    [after] = re.findall(r'data-events="events\?after=(\d+)"', page.get("/").text)
    [first, *_] = page.app.routes
    overview: Overview = cast("Route", first).endpoint.__self__  # type: ignore[attr-defined]
    [watched, *_] = page.observers

    async def read() -> list[bytes]:
        found = []
        async with contextlib.aclosing(overview._news(after)) as stream, asyncio.timeout(30):
            found.append(await anext(stream))
            view = watched.view("problems", ProblemsView)
            assert view.listeners == 1
            view.tell("page", None)
            found.append(await anext(stream))
        assert view.listeners == 0
        return found

    assert page.run(read()) == [b"retry: 2000\n\n", b"event: page\ndata: null\n\n"]


def test_a_change_is_made_in_the_cluster_of_its_page_only(
    broker: RunningBroker, second: RunningBroker, browser: Callable[..., Browser]
) -> None:
    for each in (broker, second):
        commit(each.bootstrap, "twin", {"payments": 5})
    clusters = ("--cluster", f"a={broker.bootstrap}", "--cluster", f"b={second.bootstrap}")
    page = browser(*clusters, "--allow-changes", token=TOKEN)
    assert page.get(f"/?token={TOKEN}").status_code == 303
    form = page.get("/at/b/group?name=twin")
    assert 'action="delete-group"' in form.text
    asked = {"csrf": form_token(form), "name": "twin", "confirm": "twin"}
    assert "deleted" in words(page.post("/at/b/delete-group", data=asked))
    assert "State Empty" in words(page.get("/at/a/group?name=twin"))
    asked_again = (words(page.get("/at/b/group?name=twin")) for _ in range(1_000))
    assert any("State does not exist" in text for text in asked_again)


def test_one_cluster_is_shown_as_ever(broker: RunningBroker, browser: Callable[..., Browser]) -> None:
    page = browser("--cluster", f"a={broker.bootstrap}")
    assert page.get("/groups").status_code == 200
    assert "All clusters" not in page.get("/").text


def test_a_profile_is_a_cluster(
    broker: RunningBroker,
    browser: Callable[..., Browser],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path))
    (tmp_path / "kohort").mkdir()
    (tmp_path / "kohort" / "profiles.toml").write_text(f'[staging]\nbootstrap = "{broker.bootstrap}"\n')
    page = browser("--cluster", "staging", "--cluster", f"gone={AWAY}", "--timeout", "2")
    assert f"staging ok 0 0 {broker.bootstrap}" in words(page.get("/"))
    with pytest.raises(ConfigError, match=r"no profile 'stagign'.*did you mean staging"):
        made("--cluster", "stagign")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--cluster", f"a={AWAY}", "--cluster", f"a={AWAY}"], "there are several a"),
        (["--cluster", f"a={AWAY}", "--bootstrap", AWAY], "give --cluster for every cluster"),
        (["--cluster", f"a={AWAY}", "--profile", "x"], "give --cluster for every cluster"),
        (["--cluster", f"a={AWAY}", "--metrics", "m:1"], "of which cluster.*one of a"),
        (["--cluster", f"a={AWAY}", "--metrics", "b=m:1"], "of which cluster.*one of a"),
        (["--bootstrap", AWAY, "--metrics", "b=m:1"], "of which cluster.*give HOST:PORT"),
    ],
)
def test_clusters_that_cannot_be_told_apart_are_refused(given: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        made(*given)


@pytest.mark.parametrize("name", ["", "../x", ".x", "a/b", "a b", "a=", "=b:1", "é"])
def test_a_name_is_fit_for_an_address_and_a_folder(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        made("--cluster", name)
    assert "give NAME or NAME=HOST:PORT" in capsys.readouterr().err


def test_metrics_belong_to_their_cluster() -> None:
    url = "http://m:1/metrics?of=a"
    ui = made("--cluster", f"a={AWAY}", "--cluster", f"b={AWAY}", "--metrics", f"b={url}")
    assert len(ui.observers) == 2
    made("--bootstrap", AWAY, "--metrics", url)


def test_all_problems_are_in_one_table_the_urgent_ones_first() -> None:
    evil = "<script>alert(1)</script>"
    later, urgent = (
        FoundProblem("GroupBehind", f"group {evil}", "5 records are unread"),
        FoundProblem("BrokerDown", "broker 3", "it does not answer"),
    )
    assert later.described.severity != urgent.described.severity
    states = [
        ClusterState("a", "h:1", "", ProblemReport([later]), {"host:9": evil}),
        ClusterState("b", "h:2", "The cluster does not answer.", ProblemReport([urgent]), {}),
        ClusterState("c", "h:3", "", None, {}),
    ]
    body = problem_pages.overview(states, ListQuery({}))
    assert "<script>alert" not in body
    assert body.index("BrokerDown") < body.index("GroupBehind")
    assert 'href="at/b/cluster">broker 3</a>' in body
    assert 'href="at/a/group?name=%3Cscript' in body
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))
    assert "a look soon 0 1 h:1" in text
    assert "b does not answer 1 0 h:2 The cluster does not answer." in text
    assert "c unknown - - h:3" in text
    assert "a: no metrics at host:9" in text
    one = problem_pages.overview(states, ListQuery({"q.problems": "broker 3"}))
    assert "GroupBehind" not in one


def test_too_many_pages_are_refused(page: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    page.get("/")
    monkeypatch.setattr(observer, "MOST_LISTENERS", 0)
    assert page.get("/events?after=0").status_code == 503


def test_each_cluster_is_recorded_in_a_folder_of_its_own(tmp_path: Path) -> None:
    ui = made("--cluster", f"a={AWAY}", "--cluster", f"b={AWAY}", "--record", str(tmp_path))
    assert any(str(tmp_path) in words for words in ui.remarks)
    page = Browser(ui)

    async def run() -> None:
        async with page.app.router.lifespan_context(page.app):
            await asyncio.sleep(0)

    page.run(run())
    assert {each.name for each in tmp_path.iterdir()} == {"a", "b"}
    page.close()
