"""The application: its routes and their handlers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from ..admin import GroupAdmin, ResetTo, notation
from ..admin.assignors.actions import Scene, live_scene, measure_of
from ..admin.assignors.workbench import Trial, WhatIf
from ..admin.cluster.commands import elect
from ..admin.groups.results import TimeStretch
from ..admin.pages.lists import ListQuery
from ..admin.pages.markup import asset, tag
from ..assignors import available_assignors
from ..assignors.server import OWN
from ..protocol import KohortError
from . import layout
from .cluster import pages as cluster_pages
from .cluster.views import BrokersView
from .fields import check_confirmed, group_in, topic_in
from .groups import pages as group_pages
from .groups import past_pages
from .groups.past import AskedTime, PastView, asked_time
from .groups.views import GroupsView, GroupView
from .guard import CsrfTokens, form_of
from .layout import Frame
from .letters.handlers import LetterPages, views_of_letters
from .observer import Observer, View, now_ms
from .problems import pages as problem_pages
from .problems.overview import Overview, Watched, refusal, stream_of
from .problems.views import ProblemsView
from .recording import ClusterRecorder
from .records.handlers import RecordPages
from .topics import pages as topic_pages
from .topics.views import SharedLags, TopicsView, TopicView

Lifespan = Callable[[Starlette], contextlib.AbstractAsyncContextManager[None]]

_ASSETS: Final = {"page.js": "text/javascript", "page.css": "text/css"}
#: Time that a what-if waits for a group that is rebalancing.
_SETTLE_S: Final = 5.0
#: Longest time in seconds that a page waits for the computation of a what-if.
_COMPUTE_S: Final = 60.0
#: Time that a page waits for a look that is known to take long: what it lacks then comes by an event.
_LONG_LOOK_S: Final = 0.5
#: A page does not wait for the details of more partitions.
_MANY_PARTITIONS: Final = 2_000
#: Most members that a what-if adds: the computation takes their square in memory, or worse.
_MOST_JOINING: Final = 2_000


@dataclass(slots=True, eq=False)
class Pages:
    """The handlers of a cluster's pages. ``form_tokens`` is None where nothing may be changed, ``metrics``
    are addresses of processes whose metrics are read. Where several clusters are shown, each has a ``name``.
    """

    observer: Observer
    bootstrap: str
    form_tokens: CsrfTokens | None
    recorder: ClusterRecorder | None = None
    metrics: Sequence[str] = ()
    name: str = ""
    names: Sequence[str] = ()
    lags: SharedLags = field(default_factory=SharedLags)
    computing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def frame(self, request: Request) -> Frame:
        """What surrounds a page: the cluster, the token of its forms, and the other clusters."""
        tokens = self.form_tokens
        token = None if tokens is None else tokens.of(request)
        return Frame(self.bootstrap, token, self.name, self.names)

    async def refused(self, request: Request, error: Exception) -> Response:
        """The page that says why there is no other."""
        return refusal(self.frame(request), error)

    def make_page(
        self, request: Request, title: str, view: View, events: str, body: object, at: str = ""
    ) -> HTMLResponse:
        """A page that is kept up to date; it has no body before the view's first look."""
        seen = view.seen_at is not None and body is not None
        # a page without a body reloads itself at the first event
        waiting = "" if view.is_refused else "Waiting for the cluster."
        place = body if seen else tag("p", waiting, id="waiting", class_="quiet")
        trouble = self.observer.trouble_of(view)
        where = f"events?{events}&after={view.version if seen else -1}"
        return layout.page(self.frame(request), title, place, at=at, trouble=trouble, events=where)

    async def problems(self, request: Request) -> Response:
        """``/``: what is wrong with the cluster, each problem with a link to its cause."""
        view = self.observer.view("problems", self.make_problems)
        await self.observer.fresh(view)
        report = view.report
        body = None if report is None else problem_pages.problems(report, view.silent, _list_query(request))
        return self.make_page(request, "Problems", view, "of=problems", body, "Problems")

    def make_problems(self) -> ProblemsView:
        """A view of what is wrong with the cluster."""
        return ProblemsView(self.metrics, self.recorder)

    async def groups(self, request: Request) -> Response:
        """``/groups``: all groups with members, lag and the last rebalance, a page of them at a time."""
        view = self.observer.view("groups", GroupsView)
        await self.observer.fresh(view)
        query = _list_query(request)
        # groups that come to the page with what a look has learned are looked at, too
        for _ in range(2):
            rows, by_details = group_pages.choose_groups(view.rows, view.details, query)
            if view.show([row.group for row in rows], everything=by_details) or view.trouble:
                break
            looks = view.looks
            view.look_now()
            await self.observer.fresh(view, looks=looks + 1)
        body = group_pages.groups(view.rows, view.details, query, view.hidden)
        return self.make_page(request, "Groups", view, "of=groups", body, "Groups")

    async def group(self, request: Request) -> Response:
        """``/group?name=``: a group as it is, or, with a day or a stretch of time, as it was."""
        name, asked = group_in(request.query_params), asked_time(request.query_params)
        if any(asked):
            return await self._past(request, name, asked)
        view = self.observer.view(("group", name), lambda: GroupView(name, self.recorder))
        await self.observer.fresh(view)
        query = _list_query(request)
        lanes, parts = view.lanes, view.parts(query)
        body = None
        if lanes is not None and parts is not None:
            other = past_pages.time_form(name, AskedTime())
            body = group_pages.group(
                self.frame(request), lanes, parts, assignors(), query, view.batches, other
            )
        return self.make_page(request, f"Group {name}", view, urlencode({"of": "group", "name": name}), body)

    async def _past(self, request: Request, name: str, asked: AskedTime) -> Response:
        key, make = self._past_view(name, asked)
        view = self.observer.view(key, make)
        await self.observer.fresh(view)
        body = None
        if view.lanes is not None:
            body = past_pages.past_page(name, asked, view.lanes, view.stretch, _list_query(request))
        given = {key: value for key, value in asked._asdict().items() if value}
        events = urlencode({"of": "past", "name": name, **given})
        return self.make_page(request, f"Group {name}", view, events, body)

    def _past_view(self, name: str, asked: AskedTime) -> tuple[object, Callable[[], PastView]]:
        """The key of a view of the past, and what makes it. Raises HTTPException."""
        try:
            stretch = asked.stretch(now_ms())
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        # "24h" is another stretch at every moment
        return ("past", name, asked), lambda: PastView(name, stretch or TimeStretch(), self.recorder)

    async def topics(self, request: Request) -> Response:
        """``/topics``: all topics with sizes, rates and readers."""
        view = self.observer.view("topics", self._make_topics)
        await self._wait_for_details(view)
        body = topic_pages.topics(view.rows, view.notes, _list_query(request))
        return self.make_page(request, "Topics", view, "of=topics", body, "Topics")

    def _make_topics(self) -> TopicsView:
        return TopicsView(self.lags)

    async def _wait_for_details(self, view: TopicsView | TopicView) -> None:
        """Wait for the first look, which is quick, and a little for the one that tells the rest. Of very many
        partitions that comes by an event.
        """
        if view.seen_at is None:
            await self.observer.fresh(view)
        if view.partition_count <= _MANY_PARTITIONS:
            await self.observer.fresh(view, looks=2, within_s=_LONG_LOOK_S)

    async def topic(self, request: Request) -> Response:
        """``/topic?name=``: a topic with readers, partitions and configs."""
        name = topic_in(request.query_params)
        view = self.observer.view(("topic", name), lambda: TopicView(name, self.lags))
        await self._wait_for_details(view)
        body = None if view.found is None else topic_pages.topic(view.found, _list_query(request))
        return self.make_page(request, f"Topic {name}", view, urlencode({"of": "topic", "name": name}), body)

    async def cluster(self, request: Request) -> Response:
        """``/cluster``: brokers, replicas that are behind, and partitions that move."""
        view = self.observer.view("cluster", BrokersView)
        await self.observer.fresh(view)
        found, query = view.found, _list_query(request)
        body = (
            None if found is None else cluster_pages.cluster(self.frame(request), found, query, view.hidden)
        )
        return self.make_page(request, "Cluster", view, "of=cluster", body, "Cluster")

    async def events(self, request: Request) -> Response:
        """``/events?of=&after=``: a stream that tells each change of a view behind version ``after``.

        404: there is no such view. 503: too many streams are open.
        """
        name = request.query_params.get("name", "")
        made: Mapping[str, tuple[object, Callable[[], View]]] = {
            "problems": ("problems", self.make_problems),
            "groups": ("groups", GroupsView),
            "group": (("group", name), lambda: GroupView(name, self.recorder)),
            "topics": ("topics", self._make_topics),
            "topic": (("topic", name), lambda: TopicView(name, self.lags)),
            "cluster": ("cluster", BrokersView),
            **views_of_letters(name),
        }
        if request.query_params.get("of") == "past":
            asked = asked_time(request.query_params)
            made = {**made, "past": self._past_view(name, asked)}
        try:
            key, make = made[request.query_params.get("of", "")]
            after = int(request.query_params.get("after", "-1"))
        except (KeyError, ValueError):
            raise HTTPException(404) from None
        # the limit is reported by a response, not by a stream that ends at once
        stream = self.observer.events(key, make, after)
        first = await anext(stream)

        return stream_of(first, stream)

    async def what_if(self, request: Request) -> Response:
        """``/what-if``: what an assignor would assign if members left or joined; nothing is changed.

        400: no listed assignor, or no number. 503: another one is being computed.
        """
        given = dict(request.query_params)
        name, spec = group_in(given), given.get("assignor", "")
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
        body = group_pages.what_if(name, assignors(), given, scene, trial)
        return layout.page(self.frame(request), f"What if: {name}", body)

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
        """``/reset-offsets``: plan new offsets and show the plan; with ``confirm`` commit them."""
        to = _reset_target(given)
        wanted = given.get("topic", "").split()
        try:
            topics = notation.topic_partitions(wanted) if wanted else None
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        name = given.get("name", "")
        plan = await admin.plan_reset(name, to, topics)
        if "confirm" in given:
            check_confirmed(given, name)
            plan = await admin.execute(plan)
        asked = {field: given.get(field, "") for field in ("to", "value", "topic")}
        body = group_pages.reset_page(self.frame(request), plan, asked)
        return layout.page(self.frame(request), f"Reset offsets: {name}", body)

    async def delete(self, request: Request, admin: GroupAdmin, given: dict[str, str]) -> Response:
        """``/delete-group``: delete a group whose name was typed to confirm it."""
        name = given.get("name", "")
        check_confirmed(given, name)
        done = (await admin.delete_groups([name]))[name]
        body = layout.outcomes("groups", "Deleted groups", [(name, done.error or "deleted")])
        return layout.page(self.frame(request), f"Delete: {name}", body)

    async def elect(self, request: Request, admin: GroupAdmin, given: dict[str, str]) -> Response:
        """``/elect``: have preferred leaders elected, if that was confirmed."""
        check_confirmed(given, "elect")
        done = await elect(admin.cluster, None, unclean=False)
        rows = [(f"{place.topic}-{place.partition}", each.error or "elected") for place, each in done.items()]
        body = layout.outcomes("cluster", "Elections", rows or [("all", "no partition needed an election")])
        return layout.page(self.frame(request), "Elect leaders", body)

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


def _list_query(request: Request) -> ListQuery:
    return ListQuery(request.query_params)


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


class ClusterPages(NamedTuple):
    """The handlers of one cluster's pages."""

    made: Pages
    letters: LetterPages
    records: RecordPages


def _cluster_app(handlers: ClusterPages, lifespan: Lifespan | None = None) -> Starlette:
    made, letters, records = handlers
    routes = [
        Route("/", made.problems),
        Route("/groups", made.groups),
        Route("/group", made.group),
        Route("/topics", made.topics),
        Route("/topic", made.topic),
        Route("/records", records.records),
        Route("/record", records.record),
        Route("/value", records.value),
        Route("/export", records.export),
        Route("/cluster", made.cluster),
        Route("/deadletters", letters.topics),
        Route("/letters", letters.letters),
        Route("/archived", letters.archived),
        Route("/what-if", made.what_if),
        Route("/events", made.events),
        Route("/assets/{name}", _serve_asset),
    ]
    if made.form_tokens is not None:
        routes += [
            Route("/reset-offsets", made.change(made.reset), methods=["POST"]),
            Route("/delete-group", made.change(made.delete), methods=["POST"]),
            Route("/elect", made.change(made.elect), methods=["POST"]),
            Route("/plan-replay", made.change(letters.plan), methods=["POST"]),
            Route("/replay-letters", made.change(letters.replay), methods=["POST"]),
        ]

    return Starlette(
        routes=routes,
        exception_handlers=dict.fromkeys((HTTPException, KohortError), made.refused),
        lifespan=lifespan,
    )


def make_app(clusters: Sequence[ClusterPages]) -> Starlette:
    """The application, without its guard: the pages of one cluster, or those of each below ``/at/NAME/`` and
    a first page with the problems of all. Recorders are started and closed with it.
    """
    everywhere = [each.made for each in clusters]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        recorders = [made.recorder for made in everywhere if made.recorder is not None]
        for recorder in recorders:
            recorder.start()
        yield
        await asyncio.gather(*(recorder.close() for recorder in recorders))
        await asyncio.gather(*(made.observer.close() for made in everywhere))

    if len(clusters) == 1:
        return _cluster_app(clusters[0], lifespan)
    overview = Overview(
        [Watched(made.name, made.bootstrap, made.observer, made.make_problems) for made in everywhere]
    )
    routes = [
        Route("/", overview.show),
        Route("/events", overview.events),
        Route("/assets/{name}", _serve_asset),
        *(Mount(f"/at/{each.made.name}", _cluster_app(each)) for each in clusters),
    ]
    handlers = dict.fromkeys((HTTPException, KohortError), overview.refused)
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
