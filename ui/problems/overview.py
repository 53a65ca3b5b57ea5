"""The first page where several clusters are shown: what is wrong with each, whoever else is away."""

from __future__ import annotations

import asyncio
import contextlib
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from ...admin.errors import explain_error
from ...admin.pages.lists import ListQuery
from ...admin.pages.markup import tag
from ...protocol import KafkaError
from .. import layout
from ..layout import Frame
from ..observer import KEEP_ALIVE_S, Observer, TooBusyError
from . import pages as problem_pages
from .pages import ClusterState
from .views import ProblemsView


class Watched(NamedTuple):
    """A cluster, and how its problems are looked for."""

    name: str
    bootstrap: str
    observer: Observer
    make: Callable[[], ProblemsView]

    def view(self) -> ProblemsView:
        """Its problems, which are looked for from now on. Raises TooBusyError."""
        return self.observer.view("problems", self.make)


class Overview:
    """The handlers of the first page. Each cluster is looked at on its own."""

    def __init__(self, clusters: Sequence[Watched]) -> None:
        self._clusters = clusters
        self._frame = Frame(f"{len(clusters)} clusters", names=[each.name for each in clusters])

    def __repr__(self) -> str:
        return f"<Overview: {', '.join(each.name for each in self._clusters)}>"

    async def show(self, request: Request) -> Response:
        """The first page of several clusters: the problems of each."""
        views = [each.view() for each in self._clusters]
        await asyncio.gather(
            *(each.observer.fresh(view) for each, view in zip(self._clusters, views, strict=True))
        )
        states = [
            ClusterState(
                *(each.name, each.bootstrap, each.observer.trouble_of(view)),
                *(view.report, view.silent, view.is_refused),
            )
            for each, view in zip(self._clusters, views, strict=True)
        ]
        body = problem_pages.overview(states, ListQuery(request.query_params))
        events = f"events?after={self._mark()}"
        return layout.page(self._frame, "Problems", body, at="All clusters", events=events)

    async def events(self, request: Request) -> Response:
        """A stream that tells when any cluster has changed."""
        stream = self._news(request.query_params.get("after", ""))
        return stream_of(await anext(stream), stream)

    async def refused(self, _: Request, error: Exception) -> Response:
        """The page that says why there is no other."""
        return refusal(self._frame, error)

    def _mark(self) -> str:
        """Another text when the page would be another."""
        seen = [(each.view().version, each.observer.trouble_of(each.view())) for each in self._clusters]
        return str(zlib.crc32(repr(seen).encode()))

    async def _news(self, after: str) -> AsyncGenerator[bytes, None]:
        """A stream of events, one whenever the page is another."""
        with contextlib.ExitStack() as listening:
            for each in self._clusters:
                listening.enter_context(each.observer.listening_to(each.view()))
            yield b"retry: 2000\n\n"
            spoken_at = time.monotonic()
            while not any(each.observer.is_closing for each in self._clusters):
                if (mark := self._mark()) != after:
                    after, spoken_at = mark, time.monotonic()
                    yield b"event: page\ndata: null\n\n"
                elif time.monotonic() - spoken_at > KEEP_ALIVE_S:
                    spoken_at = time.monotonic()
                    yield b": still here\n\n"
                await asyncio.sleep(1.0)


def stream_of(first: bytes, stream: AsyncGenerator[bytes, None]) -> StreamingResponse:
    """A response of server-sent events whose first part is known."""

    async def all_of_them() -> AsyncIterator[bytes]:
        async with contextlib.aclosing(stream):
            yield first
            async for part in stream:
                yield part

    return StreamingResponse(all_of_them(), media_type="text/event-stream")


def refusal(frame: Frame, error: Exception) -> HTMLResponse:
    """The page that says why there is no other."""
    if isinstance(error, HTTPException):
        status, told = error.status_code, error.detail
    else:
        status = 503 if isinstance(error, TooBusyError) else 502
        told = explain_error(error) if isinstance(error, KafkaError) else str(error)
    body = tag("p", told, class_="trouble", role="alert")
    return layout.page(frame, "That did not work", body, status=status)
