"""Looks: one for all pages, while somebody wants it; troubles are said, and everything has an end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import cast

import pytest

from kohort.admin import GroupAdmin
from kohort.client import AuthenticationError, BrokerConnectionError
from kohort.protocol import ApiKey, ErrorCode, KafkaError, UnsupportedVersionError
from kohort.ui import observer as module
from kohort.ui.observer import MOST_LISTENERS, MOST_VIEWS, Observer, TooBusyError, View
from tests.waiting import until


class FakeAdmin:
    """A client that counts; ``away`` makes it fail to connect."""

    def __init__(self) -> None:
        self.made = self.connects = self.closes = 0
        self.away = False

    def make(self) -> GroupAdmin:
        self.made += 1
        return cast(GroupAdmin, self)

    async def connect(self) -> None:
        self.connects += 1
        await asyncio.sleep(0)
        if self.away:
            raise BrokerConnectionError("broker:9092", "refused")

    async def close(self) -> None:
        self.closes += 1


class Counter(View):
    """Looks that are counted; ``hold`` lets one hang."""

    every_s = 0.01

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.fails: Exception | None = None
        self.hold: asyncio.Event | None = None

    async def look(self, admin: GroupAdmin) -> None:  # noqa: ARG002
        if self.hold is not None:
            await self.hold.wait()
        if self.fails is not None:
            raise self.fails
        self.count += 1
        self.tell("tick", self.count)


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@asynccontextmanager
async def observing(admin: FakeAdmin) -> AsyncIterator[Observer]:
    observer = Observer(admin.make)
    try:
        yield observer
    finally:
        await observer.close()


async def test_all_pages_share_one_client_and_one_look(admin: FakeAdmin) -> None:
    async with observing(admin) as observer:
        views = {id(observer.view("a", Counter)) for _ in range(50)}
        other = observer.view("b", Counter)
        await observer.fresh(other)
        assert (len(views), admin.made) == (1, 1)


async def test_a_view_that_nobody_wants_is_left_alone_and_the_client_closed(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.05)
    async with observing(admin) as observer:
        view = observer.view("a", Counter)
        await until(lambda: view.task is None)
        assert admin.closes == 1
        assert not observer.is_connected
        looks = view.looks
        assert observer.view("a", Counter) is view
        await observer.fresh(view, looks=looks + 1)
        assert (admin.made, view.looks > looks) == (2, True)


async def test_a_stream_keeps_a_view_wanted_and_lets_go_of_it(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.02)
    async with observing(admin) as observer:
        view: Counter
        async with aclosing(observer.events("a", Counter, -1)) as stream:
            assert await anext(stream) == b"retry: 2000\n\n"
            view = observer.view("a", Counter)
            numbers = [int((await anext(stream)).split(b"data: ")[1]) for _ in range(20)]
            assert numbers == sorted(set(numbers))
        await until(lambda: view.task is None)
        assert view.listeners == 0


async def test_a_newcomer_gets_the_last_event_of_each_kind(admin: FakeAdmin) -> None:
    async with observing(admin) as observer:
        view = observer.view("a", Counter)
        await observer.fresh(view, looks=3)
        view.tell("model", {"text": "x\ny"})
        news = view.events_since(-1)
        assert [part.split(b"\n")[0] for part in sorted(news)] == [b"event: model", b"event: tick"]
        assert all(part.count(b"\n") == 3 for part in news)
        assert view.events_since(view.version) == []


async def test_a_cluster_that_is_away_is_asked_again_and_its_return_noticed(admin: FakeAdmin) -> None:
    admin.away = True
    async with observing(admin) as observer:
        view = observer.view("a", Counter)
        await observer.fresh(view)
        assert observer.trouble_of(view).startswith(
            "The cluster cannot be asked: broker:9092: refused. Trying"
        )
        async with aclosing(observer.events("a", Counter, -1)) as stream:
            await anext(stream)
            assert b"event: trouble" in await anext(stream)
            admin.away = False
            parts = b""
            while b'event: trouble\ndata: ""' not in parts:
                parts += await anext(stream)
        assert observer.trouble_of(view) == ""


@pytest.mark.parametrize(
    ("error", "said", "again"),
    [
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION, "no broker tells"), "These brokers cannot tell: ", False),
        (UnsupportedVersionError(ApiKey.FETCH, 1), "These brokers cannot tell: ", False),
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic 't'"), "The cluster refuses: ", True),
        (AuthenticationError("broker:9092", "no such user"), "The cluster refuses: ", True),
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT, "late"), "The cluster cannot be asked: ", True),
    ],
)
async def test_what_asking_again_cannot_help_is_not_promised(
    admin: FakeAdmin, error: Exception, said: str, again: bool
) -> None:
    async with observing(admin) as observer:
        view = observer.view("a", Counter)
        view.fails = error
        await observer.fresh(view)
        words = observer.trouble_of(view)
        assert (words.startswith(said), words.endswith("Trying again.")) == (True, again)
        # rights are named where they are what is missing
        assert ("ask for the right" in words) is ("'t'" in words)
        # brokers may be others by then: the look is repeated all the same
        view.fails = None
        await until(lambda: view.count > 0)
        assert observer.trouble_of(view) == ""


async def test_the_trouble_of_a_look_of_long_ago_is_not_shown_again(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.05)
    async with observing(admin) as observer:
        admin.away = True
        view = observer.view("a", Counter)
        await until(lambda: view.task is None)
        assert observer.trouble_of(view)
        admin.away = False
        assert observer.view("a", Counter) is view
        await observer.fresh(view)
        assert (observer.trouble_of(view), view.count > 0) == ("", True)


async def test_those_who_wait_for_the_same_attempt_fail_with_it(admin: FakeAdmin) -> None:
    admin.away = True
    async with observing(admin) as observer:

        async def use() -> None:
            async with observer.admin():
                raise AssertionError("nobody answers")

        for attempts in (1, 2):
            found = await asyncio.gather(*(use() for _ in range(9)), return_exceptions=True)
            assert {type(each) for each in found} == {BrokerConnectionError}
            assert admin.connects == attempts
        admin.away = False
        async with observer.admin() as connected:
            assert connected is cast(GroupAdmin, admin)


async def test_what_is_seen_stays_when_a_look_fails(admin: FakeAdmin) -> None:
    async with observing(admin) as observer:
        view = observer.view("a", Counter)
        await observer.fresh(view)
        view.fails = RuntimeError("a <bug>")
        await until(lambda: view.trouble)
        assert "RuntimeError: a <bug>. What is shown is from " in observer.trouble_of(view)
        view.fails = None
        await until(lambda: not view.trouble)


async def test_a_cluster_that_hangs_does_not_hang_a_page(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_LOOK_S", 0.05)
    async with observing(admin) as observer:
        view = observer.view("a", Counter)
        view.hold = asyncio.Event()
        async with asyncio.timeout(5):
            await observer.fresh(view)
        assert observer.trouble_of(view) == "The cluster does not answer. Trying again."
        async with aclosing(observer.events("a", Counter, -1)) as stream:
            await anext(stream)
            assert json.loads((await anext(stream)).split(b"data: ")[1]).startswith(
                "The cluster does not answer"
            )
        view.hold.set()


async def test_views_and_pages_have_a_limit(admin: FakeAdmin) -> None:
    async with observing(admin) as observer:
        for number in range(MOST_VIEWS):
            observer.view(number, Counter)
        with pytest.raises(TooBusyError, match="close some"):
            observer.view("more", Counter)
        view = observer.view(0, Counter)
        view.listeners = MOST_LISTENERS
        with pytest.raises(TooBusyError, match="close some"):
            await anext(observer.events(0, Counter, -1))
        view.listeners = 0


async def test_views_that_are_not_looked_at_make_room(
    admin: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.0)
    async with observing(admin) as observer:
        first = observer.view("first", Counter)
        await until(lambda: first.task is None)
        for number in range(MOST_VIEWS):
            view = observer.view(number, Counter)
            await view.task  # type: ignore[misc]
        assert observer.view("first", Counter) is not first


async def test_streams_end_with_the_server(admin: FakeAdmin) -> None:
    async with observing(admin) as observer:
        stream = observer.events("a", Counter, -1)
        await anext(stream)
        observer.end()
        async with asyncio.timeout(5):
            async for _ in stream:
                pass
