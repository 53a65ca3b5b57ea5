"""The application: its routes and their handlers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from ..admin import GroupAdmin, ResetTo, notation
from ..admin.assignors.actions import Scene, live_scene, measure_of
from ..admin.assignors.workbench import Trial, WhatIf
from ..admin.cluster.commands import elect
from ..admin.pages.markup import asset, tag
from ..assignors import available_assignors
from ..assignors.server import OWN
from ..protocol import KohortError
from . import pages
from .guard import CsrfTokens, form_of
from .observer import Observer, TooBusyError, View
from .pages import LIST_ROWS, Frame
from .problems import ProblemsView
from .recording import ClusterRecorder
from .views import BrokersView, GroupsView, GroupView, TopicsView, TopicView, matching_rows

_ASSETS: Final = {"page.js": "text/javascript", "page.css": "text/css"}
#: Time that a what-if waits for a group that is rebalancing.
_SETTLE_S: Final = 5.0
#: Longest time in seconds that a page waits for the computation of a what-if.
_COMPUTE_S: Final = 60.0
#: Most members that a what-if adds: the computation takes their square in memory, or worse.
_MOST_JOINING: Final = 2_000


@dataclass(slots=True, eq=False)
class Pages:
    """The handlers. ``form_tokens`` is None where nothing may be changed, ``metrics`` are addresses of
    processes whose metrics are read.
    """

    observer: Observer
    bootstrap: str
    form_tokens: CsrfTokens | None
    recorder: ClusterRecorder | None = None
    metrics: Sequence[str] = ()
    computing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def frame(self, request: Request) -> Frame:
        tokens = self.form_tokens
        return Frame(self.bootstrap, None if tokens is None else tokens.of(request))

    def _make_page(
        self, request: Request, title: str, view: View, events: str, body: object, at: str = ""
    ) -> HTMLResponse:
        """A page that is kept up to date; it has no body before the view's first look."""
        seen = view.seen_at is not None and body is not None
        # a page without a body reloads itself at the first event
        place = body if seen else tag("p", "Waiting for the cluster.", id="waiting", class_="quiet")
        trouble = self.observer.trouble_of(view)
        where = f"/events?{events}&after={view.version if seen else -1}"
        return pages.page(self.frame(request), title, place, at=at, trouble=trouble, events=where)

    async def problems(self, request: Request) -> Response:
        view = self.observer.view("problems", self._make_problems)
        await self.observer.fresh(view)
        body = None if view.found is None else pages.problems(view.found, view.silent)
        return self._make_page(request, "Problems", view, "of=problems", body, "Problems")

    def _make_problems(self) -> ProblemsView:
        return ProblemsView(self.metrics)

    async def groups(self, request: Request) -> Response:
        view = self.observer.view("groups", GroupsView)
        await self.observer.fresh(view)
        text, at = request.query_params.get("q", ""), _page_number(request)
        found = matching_rows(view.rows, text, "group")
        rows = found[(at - 1) * LIST_ROWS : at * LIST_ROWS]
        if not view.show([row.group for row in rows]) and not view.trouble:
            looks = view.looks
            view.look_now()
            await self.observer.fresh(view, looks=looks + 1)
        body = pages.groups(rows, view.details, text, at, len(found))
        return self._make_page(request, "Groups", view, "of=groups", body, "Groups")

    async def group(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        view = self.observer.view(("group", name), lambda: GroupView(name, self.recorder))
        await self.observer.fresh(view)
        lanes, parts = view.lanes, view.parts()
        body = None
        if lanes is not None and parts is not None:
            body = pages.group(self.frame(request), lanes, parts, assignors(), view.batches)
        return self._make_page(request, f"Group {name}", view, urlencode({"of": "group", "name": name}), body)

    async def topics(self, request: Request) -> Response:
        view = self.observer.view("topics", TopicsView)
        await self.observer.fresh(view)
        text, at = request.query_params.get("q", ""), _page_number(request)
        found = matching_rows(view.rows, text, "topic")
        body = pages.topics(found[(at - 1) * LIST_ROWS : at * LIST_ROWS], text, at, len(found))
        return self._make_page(request, "Topics", view, "of=topics", body, "Topics")

    async def topic(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        view = self.observer.view(("topic", name), lambda: TopicView(name))
        await self.observer.fresh(view)
        body = None if view.found is None else pages.topic(view.found)
        return self._make_page(request, f"Topic {name}", view, urlencode({"of": "topic", "name": name}), body)

    async def cluster(self, request: Request) -> Response:
        view = self.observer.view("cluster", BrokersView)
        await self.observer.fresh(view)
        body = None if view.found is None else pages.cluster(self.frame(request), view.found)
        return self._make_page(request, "Cluster", view, "of=cluster", body, "Cluster")

    async def events(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        made: Mapping[str, tuple[object, Callable[[], View]]] = {
            "problems": ("problems", self._make_problems),
            "groups": ("groups", GroupsView),
            "group": (("group", name), lambda: GroupView(name, self.recorder)),
            "topics": ("topics", TopicsView),
            "topic": (("topic", name), lambda: TopicView(name)),
            "cluster": ("cluster", BrokersView),
        }
        try:
            key, make = made[request.query_params.get("of", "")]
            after = int(request.query_params.get("after", "-1"))
        except (KeyError, ValueError):
            raise HTTPException(404) from None
        # the limit is reported by a response, not by a stream that ends at once
        stream = self.observer.events(key, make, after)
        first = await anext(stream)

        async def all_of_them() -> AsyncIterator[bytes]:
            async with contextlib.aclosing(stream):
                yield first
                async for part in stream:
                    yield part

        return StreamingResponse(all_of_them(), media_type="text/event-stream")

    async def what_if(self, request: Request) -> Response:
        given = dict(request.query_params)
        name, spec = given.get("name", ""), given.get("assignor", "")
        # only listed names: for a dotted name its module would be imported, which runs code
        if spec not in assignors():
            raise HTTPException(400, "there is no such assignor")
        joining = given.get("join", "").strip() or "0"
        # int() raises for thousands of digits
        few = joining.isascii() and joining.isdigit() and len(joining) < 9
        if not few or int(joining) > _MOST_JOINING:
            raise HTTPException(400, f"give a number of members, {_MOST_JOINING:,} at most")
        leaving = tuple(part.strip() for part in given.get("leave", "").split(",") if part.strip())
        if self.computing.locked():
            raise HTTPException(503, "another what-if is being computed: try again")
        # it keeps other what-ifs out until it ends, even if its page no longer waits for it
        tried = asyncio.create_task(self._try_change(name, spec, WhatIf(leaving, int(joining))))
        tried.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            async with asyncio.timeout(_COMPUTE_S):
                scene, trial = await asyncio.shield(tried)
        except TimeoutError:
            text = f"{spec} has not answered for {_COMPUTE_S:.0f} s; the next what-if waits for its end"
            raise HTTPException(503, text) from None
        body = pages.what_if(name, assignors(), given, scene, trial)
        return pages.page(self.frame(request), f"What if: {name}", body)

    async def _try_change(self, group: str, spec: str, change: WhatIf) -> tuple[Scene, Trial]:
        measure = measure_of(spec)
        async with self.computing:
            async with self.observer.admin() as admin:
                measures = set() if measure is None else {measure}
                scene = await live_scene(admin.cluster, group, change, measures, wait_s=_SETTLE_S)
            [trial] = await _call_apart(partial(scene.try_all, [spec]))
            return scene, trial

    # --- changes --------------------------------------------------------------------------------------------

    async def reset(self, request: Request, admin: GroupAdmin, given: dict[str, str]) -> Response:
        to = _reset_target(given)
        wanted = given.get("topic", "").split()
        try:
            topics = notation.topic_partitions(wanted) if wanted else None
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        name = given.get("name", "")
        plan = await admin.plan_reset(name, to, topics)
        if "confirm" in given:
            _check_confirmed(given, name)
            plan = await admin.execute(plan)
        asked = {field: given.get(field, "") for field in ("to", "value", "topic")}
        body = pages.reset_page(self.frame(request), plan, asked)
        return pages.page(self.frame(request), f"Reset offsets: {name}", body)

    async def delete(self, request: Request, admin: GroupAdmin, given: dict[str, str]) -> Response:
        name = given.get("name", "")
        _check_confirmed(given, name)
        done = (await admin.delete_groups([name]))[name]
        body = pages.outcomes("/groups", "Deleted groups", [(name, done.error or "deleted")])
        return pages.page(self.frame(request), f"Delete: {name}", body)

    async def elect(self, request: Request, admin: GroupAdmin, given: dict[str, str]) -> Response:
        _check_confirmed(given, "elect")
        done = await elect(admin.cluster, None, unclean=False)
        rows = [(f"{place.topic}-{place.partition}", each.error or "elected") for place, each in done.items()]
        body = pages.outcomes("/cluster", "Elections", rows or [("all", "no partition needed an election")])
        return pages.page(self.frame(request), "Elect leaders", body)

    def change(
        self, act: Callable[[Request, GroupAdmin, dict[str, str]], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Make the handler of a form from one of our pages."""

        async def handle(request: Request) -> Response:
            given = await form_of(request)
            tokens = self.form_tokens
            if tokens is None or not tokens.fits(request, given.get("csrf", "")):
                raise HTTPException(
                    403, "this form is not from a page of kohort ui, or is old: load the page again"
                )
            async with self.observer.admin() as admin:
                return await act(request, admin, given)

        return handle


def assignors() -> list[str]:
    """Names of assignors that a what-if may run: the installed ones, and those of coordinators."""
    return sorted({*available_assignors(), *OWN})


async def _call_apart(function: Callable[[], Any]) -> Any:
    """Call in a thread that does not keep the process from ending: an assignor may be third-party code."""
    loop = asyncio.get_running_loop()
    called: asyncio.Future[tuple[object, Exception | None]] = loop.create_future()

    def tell(outcome: tuple[object, Exception | None]) -> None:
        if not called.done():
            called.set_result(outcome)

    def call() -> None:
        outcome: tuple[object, Exception | None]
        try:
            outcome = function(), None
        except Exception as error:
            outcome = None, error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=call, name="kohort ui: what if", daemon=True).start()
    found, error = await called
    if error is not None:
        raise error
    return found


def _page_number(request: Request) -> int:
    text = request.query_params.get("p", "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def _check_confirmed(given: Mapping[str, str], wanted: str) -> None:
    # all kinds of spaces are equal: non-breaking ones cannot be typed
    if given.get("confirm", "").split() != wanted.split():
        raise HTTPException(400, "nothing has been changed: what you typed is another name")


def _reset_target(given: Mapping[str, str]) -> ResetTo:
    kind, value = given.get("to", ""), given.get("value", "").strip()
    try:
        match kind:
            case "earliest" | "latest" | "current":
                return {"earliest": ResetTo.earliest, "latest": ResetTo.latest, "current": ResetTo.current}[
                    kind
                ]()
            case "timestamp":
                return ResetTo.timestamp(notation.datetime_ms(value))
            case "offset" | "shift" if -(2**63) <= (number := int(value)) < 2**63:
                if kind == "shift":
                    return ResetTo.shift(number)
                if number >= 0:
                    return ResetTo.offset(number)
        raise ValueError(f"{value!r} is no {kind}")
    except ValueError as error:
        raise HTTPException(400, str(error)) from None


async def _serve_asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise HTTPException(404)
    # the address has the content's hash
    return Response(asset(name), media_type=_ASSETS[name], headers={"cache-control": "max-age=86400"})


def make_app(
    observer: Observer,
    bootstrap: str,
    form_tokens: CsrfTokens | None,
    recorder: ClusterRecorder | None = None,
    metrics: Sequence[str] = (),
) -> Starlette:
    """The application, without its guard; ``form_tokens`` where it may change something. ``recorder`` is
    started and closed with it, ``metrics`` are addresses of processes whose metrics are read.
    """
    made = Pages(observer, bootstrap, form_tokens, recorder, metrics)

    async def refused(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            status, told = error.status_code, error.detail
        else:
            status, told = 503 if isinstance(error, TooBusyError) else 502, str(error)
        body = tag("p", told, class_="trouble", role="alert")
        return pages.page(made.frame(request), "That did not work", body, status=status)

    routes = [
        Route("/", made.problems),
        Route("/groups", made.groups),
        Route("/group", made.group),
        Route("/topics", made.topics),
        Route("/topic", made.topic),
        Route("/cluster", made.cluster),
        Route("/what-if", made.what_if),
        Route("/events", made.events),
        Route("/assets/{name}", _serve_asset),
    ]
    if form_tokens is not None:
        routes += [
            Route("/group/reset", made.change(made.reset), methods=["POST"]),
            Route("/group/delete", made.change(made.delete), methods=["POST"]),
            Route("/elect", made.change(made.elect), methods=["POST"]),
        ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if recorder is not None:
            recorder.start()
        yield
        if recorder is not None:
            await recorder.close()
        await observer.close()

    return Starlette(
        routes=routes, exception_handlers={HTTPException: refused, KohortError: refused}, lifespan=lifespan
    )
