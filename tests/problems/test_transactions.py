"""What transactions tell that nobody will end."""

from __future__ import annotations

from kohort.problems import TransactionSeen, find_in_transactions


def test_each_topic_is_told_with_its_partitions_what_is_held_back_and_the_command() -> None:
    found = find_in_transactions(
        [
            TransactionSeen("ledger", 0, 3_600_000, 5),
            *(TransactionSeen("bills", number, 1_000_000 + number, 1_000) for number in (3, 2, 1, 0)),
        ]
    )
    assert [(each.kind, each.about) for each in found] == [
        ("TransactionHangs", "topic bills"),
        ("TransactionHangs", "topic ledger"),
    ]
    assert found[0].text == (
        "4 partitions (bills-0, bills-1, bills-2, ...) have a transaction open that no coordinator knows, "
        "without a record for 1,000 s: 4,000 offsets are held back from readers of committed records until "
        "`kohort transactions abort --topic bills --execute` ends it"
    )
    assert found[1].text.startswith("1 partition (ledger-0) has a transaction open that no coordinator knows")
    assert find_in_transactions([]) == []
