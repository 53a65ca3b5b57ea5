"""UpdateFeatures, drawn by chance, is answered as by the cluster of ``--bootstrap``, whose levels change
meanwhile and are put back at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey
from tests.broker.wire import Wire

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

STEPS = 60
HIGHEST = {"group.version": 1, "share.version": 1, "transaction.version": 2}


@pytest.fixture
def sides(compared: tuple[str, str]) -> Iterator[list[Wire]]:
    wires = [Wire(bootstrap, timeout_s=30) for bootstrap in compared]
    try:
        yield wires
    finally:
        for wire in wires:
            updates = [(name, level, 1) for name, level in HIGHEST.items()]
            assert update(wire, 1, updates).error_code == 0
            wire.close()


def update(wire: Wire, version: int, rows: list[tuple[str, int, int]], *, only: bool = False) -> Any:
    names = ("feature", "max_version_level", "allow_downgrade" if version == 0 else "upgrade_type")
    updates = [dict(zip(names, row, strict=True)) for row in rows]
    validate: dict[str, Any] = {"validate_only": only} if version else {}
    return wire.call(ApiKey.UPDATE_FEATURES, version, feature_updates=updates, **validate)


def levels(wire: Wire) -> dict[str, int]:
    answer = wire.call(ApiKey.API_VERSIONS, 4, client_software_name="x", client_software_version="1")
    return {each.name: each.max_version_level for each in answer.finalized_features if each.name in HIGHEST}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_drawn_is_answered_alike(sides: list[Wire], seed: int) -> None:
    random = Random(seed)
    told: list[str] = []
    for _ in range(STEPS):
        version = random.randrange(3)
        rows = [
            (
                random.choices([*HIGHEST, "no.version", ""], [10, 10, 10, 1, 1])[0],
                random.choices([0, 1, 2, 3, -1], [6, 6, 6, 1, 1])[0],
                random.choices([1, 2, 3, 0, 9], [6, 4, 3, 1, 1])[0],
            )
            for _ in range(random.choices([1, 2, 3, 0], [12, 6, 2, 1])[0])
        ]
        only = random.random() < 0.2
        # which of several features is met first is up to a hash table of Java's
        words = len({name for name, _, _ in rows}) == 1
        theirs, ours = (_told(update(wire, version, rows, only=only), words=words) for wire in sides)
        told.append(f"v{version} {rows} {only}: {ours}")
        assert ours == theirs, "\n".join([*told[-5:], f"theirs: {theirs}"])
        assert levels(sides[1]) == levels(sides[0])


def _told(answer: Any, *, words: bool) -> tuple[Any, ...]:
    results = sorted(tuple(each) for each in answer.results)
    return answer.error_code, answer.error_message if words else None, results
