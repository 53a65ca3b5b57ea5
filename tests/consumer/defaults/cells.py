"""The cells of the matrix: each option with each feature.

A run leaves every setting at its default but those that it is about, which it checks. So one run of a feature
is its cell with *every* option's default. Pairs of features are drawn so that each pair of values is in one
run. Other values of options are run a few at a time, with a combination that is drawn; the whole product has
each of them with each reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from kohort.consumer.config import ConsumerConfig
from kohort.service._options import ServiceOptions
from tests.consumer.defaults.lives import READERS, SERVICES
from tests.consumer.defaults.scenes import MEMBERS, PROTOCOLS, TOPICS, Cell

#: Every option, and the other value that it is run with. A new option gets a row here, or one in ELSEWHERE.
OTHER: Final[dict[str, Any]] = {
    "client_id": "billing-1",
    "request_timeout_ms": 20_000,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 200,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 100,
    "metadata_max_age_ms": 500,
    "client_rack": "r1",
    "group_instance_id": "billing-1",
    "protocol": "auto",
    "assignor": "range",
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 500,
    "max_poll_interval_ms": 60_000,
    "rebalance_timeout_ms": 30_000,
    "leave_notice_ms": 0,
    "drain_timeout_ms": 1_000,
    "auto_offset_reset": "earliest",
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "auto_commit_interval_ms": 50,
    "max_poll_records": 1,
    "max_undone_records": 1,
    "fetch_min_bytes": 100,
    "fetch_max_bytes": 1,
    "max_partition_fetch_bytes": 1,
    "fetch_max_wait_ms": 10,
    "prefetch_max_bytes": 1,
    "max_decompressed_batch_bytes": 10_000,
    "receive_message_max_bytes": 200_000_000,
    "check_crcs": False,
    "default_api_timeout_ms": 30_000,
    "allow_auto_create_topics": True,
    "backlog_max_bytes": 1,
    "health_host": "localhost",
    "health_port": 0,
    "stalled_after_ms": 1_000,
    "fail_probes_on_hanging_call": True,
    "tracing": True,
}
_SECURITY: Final = "tests/consumer/test_e2e_security.py: it takes a broker with TLS and SASL"
#: Options without a run of their own, and why.
ELSEWHERE: Final[dict[str, str]] = {
    "bootstrap": "every run has it",
    "group": "every run has it",
    "config": "tests/settings: a file with the others",
    "group_type": "tests/service/share/test_share_services.py: another kind of group",
    "hold_retries_ms": "tests/service/share/test_share_services.py: for share groups",
    "auto_done": "a feature: auto_done loops",
    "coordination": "tests/consumer/group/test_zookeeper.py: it takes a ZooKeeper",
    "dual_commit": "tests/consumer/group/test_zookeeper.py: it takes a ZooKeeper",
    **{
        name: _SECURITY
        for name in ConsumerConfig.model_fields
        if name.startswith(("ssl_", "sasl_")) or name == "security_protocol"
    },
}
#: What other values do not go with: the members that they are run with, or the readers.
_MEMBERS: Final = {
    # another member with the same id takes its place, and one that leaves stays in the group
    "group_instance_id": ("stays",),
    # nothing is kept but what a program commits
    "enable_auto_commit": ("stays",),
    # whose session is to be ended depends on what was chosen
    "protocol": ("stays", "leaves", "is joined"),
}
#: Options that have their other values in the same run, in the short form.
_TOGETHER: Final = 3
_READERS: Final = {"enable_auto_commit": ("done by call", "arrow batches", "blocking")}


def options() -> set[str]:
    """The names of all options of consumers and services."""
    return {*ConsumerConfig.model_fields, *ServiceOptions.model_fields}


def product_of_features() -> list[Cell]:
    """Every reader, under each protocol, with all that happens to topics and to members."""
    return [Cell(*values) for values in product(READERS, PROTOCOLS, TOPICS, MEMBERS)]


def pairs_of_features() -> list[Cell]:
    """Runs that have each pair of a reader, a protocol, and what happens to topics and members.

    Greedy: of some that are drawn, the one with the most pairs that no run has yet; the order is always the
    same.
    """
    rng, left, chosen = Random(1), product_of_features(), []
    missing = {pair for cell in left for pair in _pairs(cell)}
    while missing:
        drawn = rng.sample(left, min(100, len(left)))
        best = max(drawn, key=lambda cell: len(missing & _pairs(cell)))
        if found := missing & _pairs(best):
            missing -= found
            chosen.append(best)
    return chosen


def _pairs(cell: Cell) -> set[tuple[str, str]]:
    # names of values are different in each
    return set(combinations((cell.reader, cell.protocol, cell.topics, cell.members), 2))


def fits(name: str, cell: Cell) -> bool:
    """Return whether an option's other value goes with a combination of features."""
    if name in ServiceOptions.model_fields.keys() - ConsumerConfig.model_fields.keys():
        return cell.reader in SERVICES
    if name == "protocol" and cell.protocol != "classic":
        return False
    return cell.members in _MEMBERS.get(name, MEMBERS) and cell.reader in _READERS.get(name, tuple(READERS))


def with_options(cell: Cell, *names: str) -> Cell:
    rows = tuple((name, OTHER[name]) for name in names)
    return Cell(cell.reader, cell.protocol, cell.topics, cell.members, rows)


def each_option_once() -> list[Cell]:
    """Each option's other value, a few in one run, with a combination of features that they go with."""
    rng = Random(4)
    names = rng.sample(sorted(OTHER), len(OTHER))
    groups = [names[at : at + _TOGETHER] for at in range(0, len(names), _TOGETHER)]
    return [
        with_options(rng.choice([c for c in product_of_features() if all(fits(n, c) for n in group)]), *group)
        for group in groups
    ]


def each_option_with_each_reader() -> Iterator[Cell]:
    """Each option's other value with every reader that it goes with, and with something that happens."""
    for name in OTHER:
        readers = set()
        for cell in _drawn(name):
            if cell.reader not in readers:
                readers.add(cell.reader)
                yield cell


def _drawn(name: str) -> Iterator[Cell]:
    cells = product_of_features()
    Random(name).shuffle(cells)
    return (with_options(cell, name) for cell in cells if fits(name, cell))


@st.composite
def combinations_with_options(draw: st.DrawFn) -> Cell:
    """A combination of features with some options at other values; simplest is the default of each."""
    cell = draw(st.sampled_from(product_of_features()))
    fitting = [name for name in OTHER if fits(name, cell)]
    names = draw(st.lists(st.sampled_from(fitting), max_size=5, unique=True))
    return with_options(cell, *sorted(names))
