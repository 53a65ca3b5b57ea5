"""Every kept input, and 10,000 damaged ones, for each target. ``make fuzz`` looks for new ones."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import corpus
from tests.fuzz.samples import request, response, versions
from tests.fuzz.targets import TARGETS
from tests.fuzzing import INPUTS, damage, fuzzed, seeds

#: These have 10,000 inputs each in tests/log/test_fuzz.py, with more that must hold.
ELSEWHERE = {"batches", "recovery", "snapshot"}


@pytest.mark.parametrize("target", TARGETS)
def test_the_kept_inputs_are_read_or_refused(target: str) -> None:
    kept = corpus.read(target)
    assert len(kept) >= 3
    for data in kept:
        TARGETS[target](data)


@pytest.mark.parametrize("target", sorted(set(TARGETS) - ELSEWHERE - {"request", "response"}))
@fuzzed
@seeds
def test_damaged_inputs_are_read_or_refused(target: str, rng: random.Random) -> None:
    kept = corpus.read(target)
    for data in rng.choices(kept, k=INPUTS):
        TARGETS[target](damage(data, rng))


@fuzzed
@seeds
def test_damaged_requests_of_every_api_and_version(rng: random.Random) -> None:
    for key, version in rng.choices(versions(), k=INPUTS // 10):
        right = request(key, version, rng)
        TARGETS["request"](right)
        for _ in range(10):
            TARGETS["request"](damage(right, rng))


@fuzzed
@seeds
def test_damaged_responses_of_every_api_and_version(rng: random.Random) -> None:
    numbers = range(len(versions()))
    for number in rng.choices(numbers, k=INPUTS // 10):
        right = response(*versions()[number], rng)
        for _ in range(10):
            TARGETS["response"](number.to_bytes(2) + damage(right, rng))
