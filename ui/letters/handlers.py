"""Handlers of the pages of dead letters. A replay is planned, shown, confirmed, and executed once."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ...admin import GroupAdmin
from ...admin.pages.lists import ListQuery
from ...admin.records.letters import ConnectionSettings, LetterFilter
from ...admin.records.replay_plan import (
    PlanChangedError,
    ReplayChoice,
    ReplayPlan,
    execute_plan,
    plan_replay,
)
from ...client import ConfigError
from ...protocol import TopicPartition
from .. import layout
from ..fields import check_confirmed, group_in, page_number, topic_in
from ..layout import Frame
from ..observer import Observer, View
from . import pages as letter_pages
from .pages import TICK
from .views import ArchivedView, LettersView, LetterTopicsView

#: Most plans that can still be confirmed, and for how long.
_MOST_PLANS: Final = 64
_PLAN_S: Final = 900.0


@dataclass(slots=True, eq=False)
class ShownPlan:
    """A plan that a page has shown; ``task`` executes it, once it is confirmed."""

    plan: ReplayPlan
    made_at: float
    task: asyncio.Task[Mapping[str, int]] | None = None


@dataclass(slots=True)
class PlanShelf:
    """Plans by their tokens. Confirming one again gives the outcome of the first time."""

    _plans: dict[str, ShownPlan] = field(default_factory=dict)

    def keep(self, plan: ReplayPlan) -> str:
        """Keep a plan; return its token."""
        idle = [token for token, each in self._plans.items() if each.task is None or each.task.done()]
        for token in idle[: max(0, len(self._plans) - _MOST_PLANS + 1)]:
            del self._plans[token]
        token = secrets.token_urlsafe(24)
        self._plans[token] = ShownPlan(plan, time.monotonic())
        return token

    def find(self, token: str) -> ShownPlan:
        """The plan of a token. Raises HTTPException where it is unknown or old."""
        found = self._plans.get(token)
        if found is None or (found.task is None and time.monotonic() - found.made_at > _PLAN_S):
            raise HTTPException(409, "nothing has been written: this plan is unknown or old; make it again")
        return found


@dataclass(slots=True, eq=False)
class LetterPages:
    """The handlers. ``settings`` are those of the connection, which a replay's producer has, too;
    ``patience_s`` bounds its waits. ``frame_of`` and ``make_page`` are those of all pages.
    """

    observer: Observer
    settings: ConnectionSettings
    patience_s: float
    frame_of: Callable[[Request], Frame]
    make_page: Callable[..., HTMLResponse]
    shelf: PlanShelf = field(default_factory=PlanShelf)
    #: Letters of a plan are in memory.
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def topics(self, request: Request) -> Response:
        """``/deadletters``: the topics that have dead letters."""
        view = self.observer.view("deadletters", LetterTopicsView)
        await self.observer.fresh(view)
        query = ListQuery(request.query_params)
        body = letter_pages.letter_topics(view.rows, view.unreadable, view.hidden, query)
        return self.make_page(request, "Dead letters", view, "of=deadletters", body, "Dead letters")

    async def letters(self, request: Request) -> Response:
        """``/letters?name=``: the letters of a topic, filtered, with ticks to choose some for a replay."""
        name = topic_in(request.query_params)
        view = self.observer.view(("letters", name), lambda: LettersView(name))
        return await self._show_letters(request, view, "letters", f"Letters of {name}")

    async def archived(self, request: Request) -> Response:
        """``/archived?name=``: records that a share group has archived."""
        name = group_in(request.query_params)
        view = self.observer.view(("archived", name), lambda: ArchivedView(name))
        return await self._show_letters(request, view, "archived", f"Archived by {name}")

    async def _show_letters(self, request: Request, view: LettersView, of: str, title: str) -> Response:
        await self.observer.fresh(view)
        choice = ReplayChoice(view.name, of == "archived", _filter_of(request.query_params))
        at = page_number(request)
        body = letter_pages.letters(self.frame_of(request), choice, view.rows, view.notes, at)
        events = urlencode({"of": of, "name": view.name})
        return self.make_page(request, title, view, events, body, "Dead letters")

    # --- changes --------------------------------------------------------------------------------------------

    async def plan(self, request: Request, admin: GroupAdmin, given: dict[str, str]) -> Response:
        """Show what a replay would write, and keep it for a confirmation; nothing is written."""
        places = _ticked_places(given) if given.get("which") == "ticked" else None
        if places is not None and not places:
            raise HTTPException(400, "no letter is ticked")
        choice = ReplayChoice(
            given.get("name", ""),
            given.get("share") == "1",
            _filter_of(given) if places is None else LetterFilter(),
            places,
            given.get("to", "").strip() or None,
        )
        try:
            async with self.one_at_a_time:
                plan, _ = await plan_replay(admin.cluster, choice, self.patience_s)
        except ConfigError as error:
            raise HTTPException(400, str(error)) from None
        body = letter_pages.replay_plan(self.frame_of(request), plan, self.shelf.keep(plan))
        return layout.page(self.frame_of(request), f"Replay: {choice.source}", body)

    async def replay(self, request: Request, _: GroupAdmin, given: dict[str, str]) -> Response:
        """Write what was planned, once. 409: the plan is used up, or what it was made of has changed."""
        shown = self.shelf.find(given.get("plan", ""))
        check_confirmed(given, shown.plan.choice.source)
        if shown.task is None:
            shown.task = asyncio.create_task(self._execute(shown.plan))
            shown.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            # it goes on when the browser goes away
            written = await asyncio.shield(shown.task)
        except PlanChangedError as error:
            raise HTTPException(409, str(error)) from None
        body = letter_pages.replay_outcome(shown.plan.choice, written)
        return layout.page(self.frame_of(request), f"Replay: {shown.plan.choice.source}", body)

    async def _execute(self, plan: ReplayPlan) -> Mapping[str, int]:
        async with self.one_at_a_time, self.observer.admin() as admin:
            return await execute_plan(admin.cluster, self.settings, plan, self.patience_s)


def views_of_letters(name: str) -> Mapping[str, tuple[object, Callable[[], View]]]:
    """Keys and makers of views of dead letters, by the name that streams of events have for them."""
    return {
        "deadletters": ("deadletters", LetterTopicsView),
        "letters": (("letters", name), lambda: LettersView(name)),
        "archived": (("archived", name), lambda: ArchivedView(name)),
    }


def _filter_of(given: Mapping[str, str]) -> LetterFilter:
    return LetterFilter(*(given.get(name, "").strip() or None for name in ("error", "group", "origin")))


def _ticked_places(given: Mapping[str, str]) -> dict[TopicPartition, frozenset[int]]:
    """The places of ticked letters. Raises HTTPException for what is none."""
    found: dict[TopicPartition, set[int]] = {}
    for name in given:
        if not name.startswith(TICK):
            continue
        place, _, offset = name.removeprefix(TICK).rpartition("@")
        topic, _, partition = place.rpartition("-")
        if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in (partition, offset)):
            raise HTTPException(400, f"{name!r} names no letter")
        found.setdefault(TopicPartition(topic, int(partition)), set()).add(int(offset))
    return {place: frozenset(offsets) for place, offsets in found.items()}
