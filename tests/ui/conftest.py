"""For the tests of the page: a client of its application, on a broker."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import httpx
import pytest
from starlette.applications import Starlette

from kohort.cli import _make_parser
from kohort.client import Cluster, CommittedOffset
from kohort.testing import RunningBroker, running_broker
from kohort.ui.guard import RequestGuard
from kohort.ui.observer import Observer, View
from kohort.ui.server import Ui, ui_of

T = TypeVar("T")

TOKEN = "0123456789abcdef-token"


@pytest.fixture
def new_topic(new_topic: Callable[..., str]) -> Callable[..., str]:
    """Topics of records of any time: by default a broker deletes old ones, at any moment."""
    return partial(new_topic, retention_ms="-1")


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker(num_partitions=3) as running:
        yield running


def options(*words: str) -> argparse.Namespace:
    """The options of ``kohort ui`` with these words."""
    return _make_parser(["ui"]).parse_args(["ui", *words])


def made(*words: str, token: str | None = None, listening: tuple[Any, ...] = ("127.0.0.1", 8090)) -> Ui:
    return ui_of(options(*words), listening, token)


class Browser:
    """Asks an application, and keeps its cookies. Looks go on while it asks."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(ui.app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8090")
        self.cookies = self._client.cookies

    @property
    def observer(self) -> Observer:
        return self._ui.observers[0]

    @property
    def observers(self) -> Sequence[Observer]:
        return self._ui.observers

    @property
    def app(self) -> Starlette:
        """The application behind its guard."""
        guard = cast("RequestGuard", self._ui.app)
        return cast("Starlette", guard._app)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run in the application's loop."""
        return self._runner.run(call)

    def ask(self, path: str) -> Coroutine[Any, Any, httpx.Response]:
        """As ``get``, in the application's loop."""
        return self._client.get(path)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.run(self._client.get(path, **more))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.run(self._client.post(path, **more))

    def put(self, path: str) -> httpx.Response:
        return self.run(self._client.put(path))

    def look(self, view: View) -> None:
        """Let the view be looked at once more."""

        async def wait() -> None:
            async with asyncio.timeout(20):
                # the first of them may have been under way
                for _ in range(2):
                    looks = view.looks
                    view.look_now()
                    while view.looks <= looks:
                        await view.wait_for_change(1.0)

        self.run(wait())

    def close(self) -> None:
        for observer in self._ui.observers:
            self._runner.run(observer.close())
        self._runner.run(self._client.aclose())
        self._runner.close()


MakeBrowser = Callable[..., Browser]


@pytest.fixture
def browser() -> Iterator[MakeBrowser]:
    """``browser("--bootstrap", ...)`` asks the page of these options."""
    opened: list[Browser] = []

    def open_one(*words: str, **more: Any) -> Browser:
        opened.append(Browser(made(*words, **more)))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def page(broker: RunningBroker, browser: MakeBrowser) -> Browser:
    return browser("--bootstrap", broker.bootstrap)


@pytest.fixture
def changing(broker: RunningBroker, browser: MakeBrowser) -> Browser:
    made = browser("--bootstrap", broker.bootstrap, "--allow-changes", token=TOKEN)
    assert made.get(f"/?token={TOKEN}").status_code == 303
    return made


def commit(bootstrap: str, group: str, offsets: dict[str, int], metadata: str = "") -> None:
    """Make a group that has no members, with offsets of partition 0 of these topics."""
    from kohort.protocol import TopicPartition

    async def run() -> None:
        async with Cluster(bootstrap) as cluster:
            await cluster.create_topics(dict.fromkeys(offsets, 2))
            at = {name: CommittedOffset(to, metadata=metadata) for name, to in offsets.items()}
            await cluster.commit(group, {TopicPartition(topic, 0): to for topic, to in at.items()})

    asyncio.run(run())
