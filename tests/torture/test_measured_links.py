"""Every link of a cluster is cut in every direction, with the controller in every part.

Covers: tests/torture/measured_links.py.
"""

from __future__ import annotations

import pytest

from tests.torture.measured_links import ROWS, Row

PAIRS = {
    "leader-controller",
    "leader-follower",
    "controller-follower",
    "leader-is-controller-follower",
    "leader-zookeeper",
    "controller-zookeeper",
    "follower-zookeeper",
    "leader-is-controller-zookeeper",
}


def test_each_pair_is_cut_both_ways_and_either_way() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert set(names) == {f"{pair}-{way}" for pair in PAIRS for way in ("both", "there", "back")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_only_what_apache_kafka_has_is_compared_with_it(row: Row) -> None:
    assert row.has_store == row.metrics[0].own == ("zookeeper" in row.name)
