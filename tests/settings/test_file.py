"""server.properties, as Java reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.settings import SettingsError, read_settings_file


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (
            "num.partitions=6\nnode.id = 2\nlog.roll.hours:3",
            {"num.partitions": "6", "node.id": "2", "log.roll.hours": "3"},
        ),
        ("# a comment\n! another\n\n  a=1  ", {"a": "1  "}),
        ("a=1\na=2", {"a": "2"}),
        ("a", {"a": ""}),
        ("a b=c", {"a": "b=c"}),
        ("key=-----BEGIN\\nab\\n-----END", {"key": "-----BEGIN\nab\n-----END"}),
        ('jaas=Module required \\\n   user_a="x";\nb=1', {"jaas": 'Module required user_a="x";', "b": "1"}),
        ("rules=RULE:^CN=(.*?),.*$/$1/L,DEFAULT", {"rules": "RULE:^CN=(.*?),.*$/$1/L,DEFAULT"}),
        (r"a\=b=c\\d\u00e9", {"a=b": "c\\dé"}),
        ("a=ends with two\\\\\nb=1", {"a": "ends with two\\", "b": "1"}),
    ],
)
def test_lines_are_names_and_values(tmp_path: Path, text: str, settings: dict[str, str]) -> None:
    path = tmp_path / "server.properties"
    path.write_text(text)
    assert read_settings_file(path) == settings


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.properties cannot be read \(No such file"):
        read_settings_file(tmp_path / "nowhere.properties")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="it is no text"):
        read_settings_file(tmp_path / "binary")
