"""Names of Kafka's files and folders."""

from __future__ import annotations

import pytest

from kohort.log._names import (
    LOG,
    deleted_folder,
    file_name,
    is_deleted_folder,
    offset_of,
    parse_partition_folder,
    partition_folder,
)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0)),
        ("orders-a-12", ("orders-a", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("a.b_c-1", ("a.b_c", 1)),
        ("t" * 249 + "-0", ("t" * 249, 0)),
        ("t" * 250 + "-0", None),
        (".-0", None),
        ("..-0", None),
        ("orders", None),
        ("orders-x", None),
        ("-1", None),
        ("orders-1-future", None),
        ("orders-1.0123456789abcdef0123456789abcdef-delete", None),
        ("orders-1.0123456789abcdef0123456789abcdef-stray", None),
        ("sp ace-0", None),
        ("orders-٣", None),
    ],
)
def test_partition_folders_are_told_from_others(name: str, parsed: tuple[str, int] | None) -> None:
    assert parse_partition_folder(name) == parsed
    if parsed is not None:
        assert partition_folder(*parsed) == name


def test_a_folder_being_deleted_is_told_and_fits_a_file_name() -> None:
    unique = "0123456789abcdef" * 2
    assert deleted_folder("orders-1", unique) == f"orders-1.{unique}-delete"
    assert len(deleted_folder("t" * 249 + "-0", unique)) == 255
    assert is_deleted_folder(deleted_folder("t" * 249 + "-0", unique))
    assert not is_deleted_folder("orders-1-delete")


def test_files_are_named_by_their_base_offset() -> None:
    assert file_name(42, LOG) == "00000000000000000042.log"
    assert offset_of("00000000000000000042.log") == 42
    assert offset_of("00000000000000000042.index.deleted") == 42
    assert offset_of("42.log") is None
    assert offset_of("leader-epoch-checkpoint") is None
