"""Sections of the report are replaced one by one."""

from __future__ import annotations

from pathlib import Path

from tests.reliability_report import table, write_section


def test_a_section_is_added_and_replaced_and_the_others_stay(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    write_section(report, "torture", "one \\1")
    write_section(report, "fuzz", "two")
    write_section(report, "torture", "three \\1")
    text = report.read_text()
    assert text.startswith("# ")
    assert "one" not in text
    assert text.index("three \\1") < text.index("two")
    assert text.count("<!-- section torture -->") == 1


def test_a_table() -> None:
    assert table(("a", "b"), [(1, "x")]) == "| a | b |\n| --- | --- |\n| 1 | x |"
