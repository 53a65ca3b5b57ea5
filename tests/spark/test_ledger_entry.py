from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from kohort.client.transactions import ProducerId, Transaction
from kohort.spark._ledger_entry import (
    Entry,
    LedgerError,
    Part,
    Stage,
    encode_entry,
    is_name_of,
    parse_entry,
    transaction_name,
)

#: Brokers refuse longer metadata by default.
MOST_BYTES = 4_096


def random_entry(group: str, tasks: int, *, key: str = "7-f00d", alike: bool = True) -> Entry:
    """An entry with producer ids of 8 digits: one after the other, as of new ids, or anywhere."""
    rng = random.Random(tasks)
    parts = []
    for task in range(tasks):
        name = transaction_name(group, task, rng.choice((0, 0, 0, 1)))
        producer = ProducerId(10_000_000 + task, 77)
        if not alike:
            producer = ProducerId(rng.randrange(10**7, 10**8), rng.randrange(1 << 15))
        parts.append(Part(task, rng.getrandbits(32), Transaction(name, producer)))
    return Entry(5, key, Stage.PREPARED, tuple(parts))


@pytest.mark.parametrize(
    "entry",
    [
        Entry(),
        Entry(3),
        Entry(4, "7-f00d", Stage.WRITTEN),
        Entry(4, "7-f00d", Stage.PARTIAL, (Part(0, 17), Part(3, None), Part(9, 2**32 - 1))),
        Entry(4, "7-é", Stage.PREPARED, (Part(0), Part(2, 0, Transaction("g-2", ProducerId(2**40, 32767))))),
        random_entry("g", 1),
        random_entry("g", 200, alike=False),
        random_entry("g", 400),
    ],
)
def test_an_entry_comes_back_as_it_was_written(entry: Entry) -> None:
    assert parse_entry("g", entry.batches, encode_entry(entry)) == entry


@pytest.mark.parametrize("partitions", [1, 2, 8])
@pytest.mark.parametrize("alike", [True, False])
def test_the_transactions_of_400_tasks_fit_into_a_commit_whatever_their_ids(
    partitions: int, alike: bool
) -> None:
    entry = random_entry("g", 400 * partitions, key="k" * 200, alike=alike)
    texts = encode_entry(entry, partitions)
    assert len(texts) <= partitions
    assert max(len(text.encode()) for text in texts) <= MOST_BYTES
    found = parse_entry("g", 5, texts)
    assert [part.transaction for part in found.parts] == [part.transaction for part in entry.parts]
    with pytest.raises(LedgerError, match=rf"write with fewer tasks \(df.coalesce\({400 * partitions}\)"):
        encode_entry(random_entry("g", 400 * partitions + 1), partitions)


def test_200_tasks_fit_with_their_digests_whatever_their_ids() -> None:
    entry = random_entry("g", 200, key="k" * 200, alike=False)
    assert parse_entry("g", 5, encode_entry(entry)) == entry


def test_commits_of_two_entries_are_not_taken_for_one() -> None:
    first, second = (
        encode_entry(replace(random_entry("g", 600, alike=alike), key="7-f00d"), 2) for alike in (True, False)
    )
    assert len(first) == len(second) == 2
    for texts in ([first[0], second[1]], first[:1], [first[0], ""]):
        with pytest.raises(LedgerError, match="damaged"):
            parse_entry("g", 5, texts)
    assert parse_entry("g", 5, [*first, second[1]]).key == "7-f00d"


def test_an_entry_of_an_earlier_kohort_says_which_transactions_there_are() -> None:
    text = json.dumps({"k": "7-f00d", "t": [[0, 1000, 5], [1, 1001, 0]]})
    transactions = Transaction("g-0", ProducerId(1000, 5)), Transaction("g-1", ProducerId(1001, 0))
    parts = tuple(Part(task, None, one) for task, one in enumerate(transactions))
    assert parse_entry("g", 3, [text]) == Entry(3, "7-f00d", Stage.PREPARED, parts)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("g-1-0", True),
        ("g-1-12.3", True),
        ("g-1", False),
        ("g-1-", False),
        ("g-1-0.", False),
        ("g-1-.1", False),
        ("g-1-0-0", False),
        ("g-12-0", False),
        ("other", False),
    ],
)
def test_the_ids_of_a_group_are_known_from_those_of_others(name: str, ours: bool) -> None:
    assert is_name_of("g-1", name) is ours
