"""Drawn requests about share groups (KIP-932) are answered as by the cluster of ``--bootstrap``."""

from __future__ import annotations

from random import Random

import pytest

from tests.clients.alike.consumer_groups import Side
from tests.clients.alike.share_groups import begin, draw_step, send

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

STEPS = 60


@pytest.mark.parametrize("seed", range(30))
def test_what_is_drawn_is_answered_alike(sides: tuple[Side, Side], seed: int) -> None:
    rng, told = Random(seed), list[str]()
    begin(sides)
    for number in range(STEPS):
        step = draw_step(rng)
        theirs, ours = (send(side, step) for side in sides)
        told.append(f"{number} {step}: {ours}")
        assert ours == theirs, "\n".join([*told[-12:], f"theirs: {theirs}"])
