"""Requests of every API and version, with each of their arrays full: their cost grows with their size alone.

The APIs are those that a broker serves, and the requests are made from their schemas: an API that is new is
in here by itself. Work is counted in steps, not in seconds. Of older versions a share of the cases is tried,
with ``--soak`` all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kohort.broker.apis import AnyApi, served_apis
from kohort.broker.event_loop.time_slices import SLICE_S
from kohort.client.surroundings import SURROUNDINGS, Surroundings
from kohort.protocol import ApiKey, MessageCodec
from tests.limits.cases import APIS, KINDS, Case, chosen_cases
from tests.limits.counted import STEP_S, Steps, counted
from tests.limits.prepared_broker import PreparedBroker, prepared_broker

#: Elements of a full array, and how many times as many the other request has.
FEW, TIMES = 40, 4
FEW_LARGE = 8

#: Four times the elements may cost this much more.
MOST_GROWTH: Final = 4.2

#: Most steps that one element may cost; one that writes to a log is the dearest.
MOST_STEPS: Final = 1_200

#: Steps of a turn besides its slice: those of the request itself, and for each element. Its array is read,
#: and its answer written, as a whole; on a busy machine a turn has more of what was waited for.
TURN_STEPS, TURN_STEPS_OF_ELEMENT = 6_000, 150

#: Requests whose elements may cost more in one turn: most are carried out as a whole, since they change
#: things at once.
WHOLE: Final = {
    ApiKey.CREATE_PARTITIONS: "partitions are counted and added in one turn",
    ApiKey.FETCH: "what a session has sent is noted in one turn",
    ApiKey.DELETE_GROUPS: "one step of the coordinator",
    ApiKey.OFFSET_COMMIT: "one step of the coordinator, of kohort.commit.max.partitions at most",
    ApiKey.TXN_OFFSET_COMMIT: "one step of the coordinator",
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "one step of the share coordinator",
    ApiKey.WRITE_SHARE_GROUP_STATE: "one step of the share coordinator",
    ApiKey.DELETE_SHARE_GROUP_STATE: "one step of the share coordinator",
    ApiKey.WRITE_TXN_MARKERS: "markers are read with two arrays and tagged fields each",
}
#: Tagged fields take a quarter of them.
WHOLE_STEPS_OF_ELEMENT = 260

#: Most bytes of an answer for each element, besides three times those of the element itself.
ANSWER_BYTES: Final = 250


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    """Counts what the broker does with what it decodes."""
    found, read = Steps(), MessageCodec.request

    def request(codec: MessageCodec, frame: bytes, at: int) -> Any:
        body = read(codec, frame, at)
        found.pause()
        try:
            return counted(body)
        finally:
            found.resume()

    monkeypatch.setattr(MessageCodec, "request", request)
    token = SURROUNDINGS.set(Surroundings(work_clock=found.clock))
    yield found
    SURROUNDINGS.reset(token)


@pytest.fixture
def unexpected(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Log lines of errors that nobody expects."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.slow(0.7)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
async def test_the_work_and_the_answer_grow_with_the_request_alone(
    api: AnyApi, steps: Steps, unexpected: Callable[[], list[str]], tmp_path: Path, soaks: bool
) -> None:
    wrong: list[str] = []
    async with prepared_broker(tmp_path, in_cluster=api.cluster_only) as broker:
        for case in chosen_cases(api, *KINDS, soaks=soaks):
            wrong += [f"{case}: {what}" for what in await _excess(broker, case, steps)]
    assert wrong == []
    assert unexpected() == []


async def _excess(broker: PreparedBroker, case: Case, steps: Steps) -> list[str]:
    """What grows more than it may from some elements to four times as many, in words."""
    few = FEW_LARGE if case.naming.largest else FEW
    sizes, answers, counts, turns = [], [], [], []
    for count in (1, few, TIMES * few):
        if "Delete" in api_name(case.key):
            await broker.fill()  # the last one has taken effect
        frame = case.frame(count, broker.topic_id)
        steps.begin()
        answer = await broker.ask(frame)
        steps.end()
        sizes.append(len(frame))
        answers.append(len(answer))
        counts.append(steps.count)
        turns.append(steps.longest_turn)
    more = (TIMES - 1) * few
    wrong = []
    if counts[2] > MOST_GROWTH * counts[1]:
        wrong.append(f"{counts[1]} steps for {few} elements, {counts[2]} for {TIMES * few}")
    if counts[2] - counts[1] > MOST_STEPS * more:
        wrong.append(f"{(counts[2] - counts[1]) / more:.0f} steps for each element")
    of_element = WHOLE_STEPS_OF_ELEMENT if case.key in WHOLE else TURN_STEPS_OF_ELEMENT
    if turns[2] > SLICE_S / STEP_S + TURN_STEPS + of_element * TIMES * few:
        wrong.append(f"{turns[2]} steps in one turn for {TIMES * few} elements")
    if answers[2] - answers[1] > ANSWER_BYTES * more + 3 * (sizes[2] - sizes[1]):
        wrong.append(f"{answers[1]} bytes answer {few} elements, {answers[2]} answer {TIMES * few}")
    return wrong


def api_name(key: ApiKey) -> str:
    return served_apis()[key].name
