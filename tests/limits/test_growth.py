"""Nothing that a broker has grows faster than in proportion, or a little more where it is sorted."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kohort.coordinator.classic_groups import static
from tests.limits.growing import Lines
from tests.limits.growth_cases import CASES, Case

FEW: Final = 50
TIMES: Final = 4
#: What is not in proportion to them is found with this many.
ALMOST_NONE: Final = 2
MOST_GROWTH: Final = 5
#: Of turns of the loop that happen to fall in between.
OTHER_STEPS: Final = 1_000


@pytest.mark.slow(0.5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_four_times_as_many_take_less_than_five_times_as_many_steps(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # steps that are counted take longer
    monkeypatch.setattr(static, "MEMBERS_A_MS", 0.1)
    counts = []
    for count in (ALMOST_NONE, FEW, TIMES * FEW):
        lines = Lines()
        await case(tmp_path / str(count), lines, count)
        counts.append(lines.count)
    least, few, many = counts
    assert many - least < MOST_GROWTH * (few - least) + OTHER_STEPS, counts
