"""Pages of dead letters: what they list, and replays that are planned, confirmed and executed once.

Covers: ui/letters/pages.py, ui/letters/views.py, ui/fields.py.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable

import pytest

from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer, Record
from kohort.producer import Producer
from kohort.protocol import TopicPartition
from kohort.service.letters.deadletter import error_headers
from kohort.service.letters.failed_records import DEAD_LETTER_HEADERS
from kohort.testing import RunningBroker
from kohort.ui.letters import handlers as letters_module
from kohort.ui.letters.views import LetterTopicsView
from tests.admin.conftest import ran
from tests.broker.apis.share_members import REJECT, ShareMember
from tests.broker.share_requests import join_share_group, share_beat
from tests.broker.wire import Wire, batch, create_topic, produce
from tests.ui.conftest import Browser
from tests.ui.test_app import form_token, words

EVIL = "<script>alert('k')</script>"


def set_aside(
    broker: RunningBroker, orders: str, letters: str, errors: Iterable[BaseException], *, first: int = 0
) -> None:
    """Letters of these errors, the first from offset ``first`` of partition 1 of ``orders``."""

    async def write() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.create_topics({orders: 3, letters: 1})
        async with Producer(bootstrap=broker.bootstrap) as producer:
            for offset, error in enumerate(errors, first):
                value = f"{EVIL} {offset}".encode()
                record = Record(orders, 1, offset, 1_700_000_000_000, b"key", value)
                headers = [("trace", b"t"), *error_headers(record, error, 2, "billing")]
                await producer.send_and_wait(letters, value, b"key", headers=headers)

    asyncio.run(write())


def values_of(broker: RunningBroker, topic: str) -> list[str]:
    """What was written to a topic, in order."""

    async def read() -> list[str]:
        places = [TopicPartition(topic, number) for number in range(3)]
        found: list[Record] = []
        async with AsyncGroupConsumer(
            partitions=places,
            bootstrap=broker.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            while more := await consumer.getmany(100, 500):
                found += more
        return [f"{record.partition} {(record.value or b'').decode()}" for record in found]

    return asyncio.run(read())


def plan_token(shown: str) -> str:
    [token] = re.findall(r'name="plan" value="([\w-]+)"', shown)
    return str(token)


def asked(page: Browser, letters: str, **more: str) -> dict[str, str]:
    csrf = form_token(page.get(f"/letters?name={letters}"))
    return {"csrf": csrf, "name": letters, "which": "all", **more}


def test_topics_of_dead_letters_are_listed(broker: RunningBroker, page: Browser) -> None:
    assert "No topic has dead letters" in words(page.get("/deadletters"))
    set_aside(broker, "listed.orders", "listed.dlt", [KeyError("a"), ValueError("b")])
    page.look(page.run(_topics_view(page)))
    shown = words(page.get("/deadletters"))
    assert "listed.dlt 2 " in shown
    assert "listed.orders-1 billing builtins.ValueError b" in shown
    assert "listed.orders 0" not in shown


async def _topics_view(page: Browser) -> LetterTopicsView:
    return page.observer.view("deadletters", LetterTopicsView)


def test_letters_have_cause_and_origin_and_are_found_by_them(broker: RunningBroker, page: Browser) -> None:
    set_aside(broker, "orders", "dlt", [KeyError("a"), ValueError(EVIL), KeyError("two\nlines")])
    answer = page.get("/letters?name=dlt")
    shown = words(answer)
    assert "<script>alert" not in answer.text
    assert "builtins.KeyError 2" in shown
    assert "orders-1 at 2 billing 2 builtins.KeyError" in shown
    assert f"Value {EVIL} 2" in shown
    assert "<pre>KeyError: 'two\\nlines'\n</pre>" in answer.text
    assert "without --allow-changes: nothing can be replayed here" in shown
    assert 'method="post"' not in answer.text
    found = words(page.get("/letters?name=dlt&error=*.Val*"))
    assert ("orders-1 at 1" in found, "orders-1 at 2" in found) == (True, False)
    assert "no letters" in words(page.get("/letters?name=dlt&group=other"))
    assert "'missing' does not exist" in words(page.get("/letters?name=missing"))


def test_new_letters_are_read_when_they_come(broker: RunningBroker, page: Browser) -> None:
    set_aside(broker, "orders", "later.dlt", [KeyError("a")])
    assert "1 to 1 of 1 letters" in words(page.get("/letters?name=later.dlt"))
    set_aside(broker, "orders", "later.dlt", [ValueError("b")], first=7)
    time.sleep(1.1)  # what is shown is a second old at most
    assert "orders-1 at 7" in words(page.get("/letters?name=later.dlt"))


def test_letters_of_another_topic_of_the_name_are_not_those_of_the_first(
    broker: RunningBroker, page: Browser
) -> None:
    set_aside(broker, "orders", "anew.dlt", [KeyError("a")])
    assert "1 to 1 of 1 letters" in words(page.get("/letters?name=anew.dlt"))

    async def delete() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.delete_topics(["anew.dlt"])

    asyncio.run(delete())
    set_aside(broker, "orders", "anew.dlt", [ValueError("b"), ValueError("c")], first=7)
    time.sleep(1.1)  # what is shown is a second old at most
    shown = words(page.get("/letters?name=anew.dlt"))
    assert "1 to 2 of 2 letters" in shown
    assert [at for at in (0, 7, 8) if f"orders-1 at {at}" in shown] == [7, 8]


def test_letters_with_texts_longer_than_services_write_are_shown_cut(
    broker: RunningBroker, page: Browser
) -> None:
    set_aside(broker, "orders", "long.dlt", [])

    async def write() -> None:
        texts = ("t" * 9_000, "1", "2", "3", "g" * 9_000, "4", "e" * 9_000, "m" * 90_000, "s" * 90_000)
        headers = [(name, text.encode()) for name, text in zip(DEAD_LETTER_HEADERS, texts, strict=True)]
        async with Producer(bootstrap=broker.bootstrap) as producer:
            await producer.send_and_wait("long.dlt", b"v", headers=headers)

    asyncio.run(write())
    answer = page.get("/letters?name=long.dlt")
    shown = words(answer)
    assert len(answer.text) < 30_000
    assert ("m" * 997 + "..." in shown, "m" * 998 in shown) == (True, False)
    assert ("..." + "s" * 7_997 in shown, "s" * 7_998 in shown) == (True, False)
    page.look(page.run(_topics_view(page)))
    assert len(page.get("/deadletters").text) < 30_000


def test_ticked_letters_are_replayed_once_however_often_they_are_confirmed(
    broker: RunningBroker, changing: Browser
) -> None:
    set_aside(broker, "once.orders", "once.dlt", [KeyError("a"), ValueError("b"), KeyError("c")])
    given = asked(changing, "once.dlt", which="ticked", **{"at:once.dlt-0@0": "on", "at:once.dlt-0@2": "on"})
    planned = changing.post("/plan-replay", data=given)
    shown = words(planned)
    assert "Nothing has been written yet." in shown
    assert "To Letters once.orders 2" in shown
    assert "once.dlt-0@2 once.orders-1 at 2 once.orders-1 builtins.KeyError" in shown
    assert values_of(broker, "once.orders") == []
    confirm = {"csrf": given["csrf"], "plan": plan_token(planned.text), "confirm": "once.dlt"}
    mistyped = changing.post("/replay-letters", data={**confirm, "confirm": "once"})
    assert mistyped.status_code == 400

    async def click_twice() -> list[str]:
        clicks = (changing._client.post("/replay-letters", data=confirm) for _ in range(2))
        return [words(answer) for answer in await asyncio.gather(*clicks)]

    outcomes = [*changing.run(click_twice()), words(changing.post("/replay-letters", data=confirm))]
    assert all("These letters are written. Written to To Letters once.orders 2" in each for each in outcomes)
    assert values_of(broker, "once.orders") == [f"1 {EVIL} 0", f"1 {EVIL} 2"]


def test_a_replay_of_all_continues_after_the_last_one_as_that_of_the_command(
    broker: RunningBroker, changing: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    set_aside(broker, "all.orders", "all.dlt", [KeyError("a"), KeyError("b")])
    given = asked(changing, "all.dlt")
    planned = changing.post("/plan-replay", data=given)
    confirm = {"csrf": given["csrf"], "plan": plan_token(planned.text), "confirm": "all.dlt"}
    # one that comes after the plan is left for the next one
    set_aside(broker, "all.orders", "all.dlt", [KeyError("c")], first=2)
    assert "all.orders 2" in words(changing.post("/replay-letters", data=confirm))
    words_of_command = ["deadletters", "--bootstrap", broker.bootstrap, "replay", "all.dlt", "--execute"]
    assert ran(capsys, [*words_of_command, "--json"]).document["replayed"] == {"all.orders": 1}
    assert len(values_of(broker, "all.orders")) == 3
    assert "Nothing to replay." in words(changing.post("/plan-replay", data=given))


@pytest.mark.parametrize("change", ["another replay", "deleted", "topic made anew"])
def test_what_has_changed_since_the_plan_is_refused(
    broker: RunningBroker, changing: Browser, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    name = change.replace(" ", "-")
    set_aside(broker, f"{name}.orders", f"{name}.dlt", [KeyError("a"), KeyError("b")])
    given = asked(changing, f"{name}.dlt")
    token = plan_token(changing.post("/plan-replay", data=given).text)
    command = ["--bootstrap", broker.bootstrap]
    if change == "another replay":
        assert ran(capsys, ["deadletters", *command, "replay", f"{name}.dlt", "--execute"]).code == 0
    elif change == "deleted":
        asyncio.run(_delete_first(broker, f"{name}.dlt"))
    else:
        asyncio.run(_make_anew(broker, f"{name}.orders"))
    before = values_of(broker, f"{name}.orders")
    answer = changing.post(
        "/replay-letters", data={"csrf": given["csrf"], "plan": token, "confirm": f"{name}.dlt"}
    )
    assert answer.status_code == 409
    assert "nothing was written" in words(answer)
    assert values_of(broker, f"{name}.orders") == before


async def _delete_first(broker: RunningBroker, topic: str) -> None:
    from confluent_kafka import TopicPartition as Place
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for each in admin.delete_records([Place(topic, 0, 1)]).values():
        await asyncio.to_thread(each.result, 20)


async def _make_anew(broker: RunningBroker, topic: str) -> None:
    async with Cluster(broker.bootstrap) as cluster:
        await cluster.delete_topics([topic])
        await cluster.create_topics({topic: 3})


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"which": "ticked"}, "no letter is ticked"),
        ({"which": "ticked", "at:wrong.dlt-x@1": "on"}, "names no letter"),
        ({"to": "wrong.dlt"}, "a loop"),
    ],
)
def test_what_cannot_be_planned_is_said(
    broker: RunningBroker, changing: Browser, more: dict[str, str], told: str
) -> None:
    set_aside(broker, "wrong.orders", "wrong.dlt", [KeyError("a")])
    answer = changing.post("/plan-replay", data=asked(changing, "wrong.dlt", **more))
    assert (answer.status_code, told in words(answer)) == (400, True)


def test_letters_go_to_another_topic_and_one_that_is_gone_is_said(
    broker: RunningBroker, changing: Browser
) -> None:
    set_aside(broker, "away.orders", "away.dlt", [KeyError("a")])
    missing = changing.post("/plan-replay", data=asked(changing, "away.dlt", to="nowhere"))
    assert "'nowhere' does not exist" in words(missing)
    planned = changing.post("/plan-replay", data=asked(changing, "away.dlt", to="orders", error="*Key*"))
    assert "orders, by its key" in words(planned)
    assert "This replay is not remembered" in words(planned)


def test_a_plan_that_is_unknown_or_old_is_refused(
    broker: RunningBroker, changing: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_aside(broker, "old.orders", "old.dlt", [KeyError("a")])
    given = asked(changing, "old.dlt")
    token = plan_token(changing.post("/plan-replay", data=given).text)
    monkeypatch.setattr(letters_module, "_PLAN_S", -1.0)
    for plan in (token, "unknown", ""):
        confirm = {"csrf": given["csrf"], "plan": plan, "confirm": "old.dlt"}
        assert changing.post("/replay-letters", data=confirm).status_code == 409
    assert values_of(broker, "old.orders") == []


def test_without_permission_or_from_another_site_nothing_is_planned_or_written(
    broker: RunningBroker, page: Browser, changing: Browser
) -> None:
    set_aside(broker, "safe.orders", "safe.dlt", [KeyError("a")])
    given = asked(changing, "safe.dlt")
    for path in ("/plan-replay", "/replay-letters"):
        assert page.post(path, data=given).status_code in (404, 405)
        assert changing.get(path).status_code in (404, 405)
        assert changing.post(path, data={**given, "csrf": "0" * 64}).status_code == 403
        foreign = {"origin": "http://elsewhere.example"}
        assert changing.post(path, data=given, headers=foreign).status_code == 403


def test_what_a_share_group_archived_is_listed_and_replayed(broker: RunningBroker, changing: Browser) -> None:
    with Wire(broker.bootstrap) as wire, ShareMember(broker.bootstrap, "sharing", "worker") as member:
        place = create_topic(wire, "shared.jobs").topic_id
        join_share_group(wire, "sharing", "worker", "shared.jobs")
        member.fetch(place, 0, max_wait_ms=50)
        produce(wire, "shared.jobs", batch(3))
        member.fetch(max_records=3, share_acquire_mode=1)
        member.acknowledge(place, (1, 1, [REJECT]))
        answer = changing.get("/archived?name=sharing")
        assert "shared.jobs-0@1" in words(answer)
        assert "rejected member worker" in words(answer)
        given = {"csrf": form_token(answer), "name": "sharing", "share": "1", "which": "all"}
        planned = changing.post("/plan-replay", data=given)
        assert "shared.jobs 1" in words(planned)
        confirm = {"csrf": given["csrf"], "plan": plan_token(planned.text), "confirm": "sharing"}
        assert "shared.jobs 1" in words(changing.post("/replay-letters", data=confirm))
        share_beat(wire, "sharing", "worker", -1)
