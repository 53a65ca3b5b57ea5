"""The first page: what is wrong with a cluster and with the processes that give their metrics."""

from __future__ import annotations

import re

from kohort.admin.cluster.problems import ProblemReport
from kohort.admin.pages.lists import ListQuery
from kohort.problems import FoundProblem
from kohort.testing import RunningBroker
from kohort.ui.problems import pages as problem_pages
from kohort.ui.problems.views import ProblemsView
from tests.metrics_process import metrics_process
from tests.ui.conftest import MakeBrowser
from tests.ui.test_app import EVIL, words

DESCRIPTORS = "process_open_fds {}\nprocess_max_fds 100\n"


def test_a_cluster_without_problems_says_so(broker: RunningBroker, browser: MakeBrowser) -> None:
    page = browser("--bootstrap", broker.bootstrap)
    answer = page.get("/")
    assert 'href="./" aria-current="page"' in answer.text
    # a machine with little space has a problem of its own
    if "DiskFills" not in words(answer):
        assert "State ok" in words(answer)
        assert "Nothing is wrong, as far as brokers" in words(answer)


def test_problems_of_processes_come_and_go_with_the_time_of_their_beginning(
    broker: RunningBroker, browser: MakeBrowser
) -> None:
    with metrics_process() as shown:
        address, silent = shown[0], "127.0.0.1:1"
        shown[:] = [DESCRIPTORS.format(10)]
        page = browser("--bootstrap", broker.bootstrap, "--metrics", address, "--metrics", silent)
        assert "DescriptorsRunOut" not in words(page.get("/"))
        seen = page.observer.view("problems", ProblemsView)
        shown[:] = [DESCRIPTORS.format(95)]
        page.look(seen)
        answer = page.get("/")
        assert "DescriptorsRunOut" in words(answer)
        assert re.search(r"DescriptorsRunOut<.*?<time>\d{4}-", answer.text)
        shown[:] = [DESCRIPTORS.format(10)]
        page.look(seen)
        assert "DescriptorsRunOut" not in words(page.get("/"))


def test_each_problem_links_to_where_it_shows_and_no_name_becomes_part_of_the_page() -> None:
    found = [
        FoundProblem("BrokerDown", "broker 3", "it does not answer"),
        FoundProblem("GroupStandsStill", f"group {EVIL}", "5 records are unread", 1_700_000_000_000),
        FoundProblem("GroupBehind", "group a b", "5 records are unread"),
        FoundProblem("ServiceStandsStill", "host:9 group at host:9", "no record is handled"),
        FoundProblem("TransactionHangs", "topic orders", "a transaction is open"),
        FoundProblem("DeadLetters", "topic orders.dlt", "5 records are set aside"),
    ]
    body = problem_pages.problems(ProblemReport(found), {"host:9": EVIL}, ListQuery({}))
    assert 'href="cluster">broker 3</a>' in body
    assert 'href="group?name=a+b"' in body
    assert 'href="group?name=at+host%3A9">host:9 group at host:9</a>' in body
    assert 'href="topic?name=orders">topic orders</a>' in body
    assert 'href="letters?name=orders.dlt">topic orders.dlt</a>' in body
    again = problem_pages.problems(
        ProblemReport(found), {}, ListQuery({"sort.problems": "-problem", "q.problems": "GROUP"})
    )
    assert [again.index(each) for each in ("GroupStandsStill", "GroupBehind")] == sorted(
        again.index(each) for each in ("GroupStandsStill", "GroupBehind")
    )
    assert "BrokerDown" not in again
    assert "<script>alert" not in body
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))
    assert "State look now To look at now 4 That can wait 2" in text
    assert "2023-11-14" in text
    assert "before this page looked" in text
    assert "No metrics at host:9" in text
