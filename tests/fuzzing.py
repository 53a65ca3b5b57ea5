"""Damaged inputs: bytes that were right, changed in a few places."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

#: Together 10,000 for each test.
EXAMPLES, INPUTS = 50, 200

fuzzed = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
seeds = given(st.integers(0, 2**32).map(random.Random))


def damage(data: bytes, rng: random.Random) -> bytes:
    """One or a few changes: bits, bytes, fields, pieces cut out, doubled, moved or filled."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not made:
            return rng.randbytes(rng.randrange(40))
        at = rng.randrange(len(made))
        size = min(rng.choice((1, 2, 4, 8, 61, 200)), len(made) - at)
        kind = rng.randrange(7)
        if kind == 0:
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            made[at : at + size] = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * size
        elif kind == 2:
            made[at : at + size] = rng.randbytes(size)
        elif kind == 3:
            del made[at : at + size]
        elif kind == 4:
            other = rng.randrange(len(made) + 1)
            made[other:other] = made[at : at + size]
        elif kind == 5:
            del made[at:]
        else:
            made += made[at:] if rng.randrange(2) else bytes(size)
    return bytes(made)


def inputs(data: bytes, rng: random.Random) -> Iterator[bytes]:
    for _ in range(INPUTS):
        yield damage(data, rng)


def refused(call: Callable[[], object], *errors: type[Exception]) -> None:
    try:
        call()
    except errors:
        return
