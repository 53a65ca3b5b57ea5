"""The garbage collector of a process that is a broker and nothing else."""

from __future__ import annotations

import gc

#: Objects made and not yet freed before the youngest are looked at. Answers that wait for one write are some
#: thousands, none of them garbage: with Python's 700 each such burst was looked through several times, a
#: tenth of what a commit costs. While they are looked at everybody waits: at 20,000 for 10 ms, and for 200
#: with those of middle age.
YOUNG_OBJECTS = 5_000


def settle_collector() -> None:
    """What was loaded stays: it is never looked through again; what comes is looked through less often."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 20)
