"""What clients may name never steers files, logs or code."""

from __future__ import annotations

import ast
import logging
import os
import re
import stat
from pathlib import Path

import pytest

from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, produce
from tests.messages import request_of

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in {"tests", "docs"}]

#: Names that would lead astray: up the tree, into another line, to a terminal's colours.
WICKED = [
    "../../outside",
    "/etc/outside",
    "a\nb ERROR forged",
    "\x1b[31mred",
    "nul\x00byte",
    "x" * 30_000,
    "'; --",
]


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("a", True),
        ("a" * 249, True),
        ("a" * 250, False),
        ("", False),
        (".", False),
        ("..", False),
        ("a/b", False),
        ("../a", False),
        ("a\x00", False),
        ("ä", False),
        ("a b", False),
        ("A.b_c-9", True),
    ],
)
def test_a_topics_name_has_1_to_249_characters_and_stays_in_the_data_folder(
    tmp_path: Path, name: str, allowed: bool
) -> None:
    data = tmp_path / "data"
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        assert create_topic(wire, name).error_code == (0 if allowed else ErrorCode.INVALID_TOPIC_EXCEPTION)
        if allowed:
            assert produce(wire, name, batch(1)).error_code == 0
            assert (data / f"{name}-0").resolve().parent == data.resolve()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_files_are_the_owners_alone_0600(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with running_broker(data=tmp_path / "data") as broker, Wire(broker.bootstrap) as wire:
            create_topic(wire, "orders")
            assert produce(wire, "orders", batch(3)).error_code == 0
            _join(wire, "billing", "worker", "instance")
    finally:
        os.umask(before)
    paths = list((tmp_path / "data").rglob("*"))
    assert any(path.suffix == ".log" for path in paths)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    wanted = {path: 0o700 if path.is_dir() else 0o600 for path in paths}
    assert modes == wanted
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def _join(wire: Wire, group: str, protocol: str, instance: str | None) -> int:
    make = request_of(ApiKey.JOIN_GROUP)
    answer = wire.call(
        ApiKey.JOIN_GROUP,
        9,
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[make.JoinGroupRequestProtocol(version=9, name=protocol, metadata=b"")],
        reason="because\nof \x1b[31m",
    )
    return int(answer.error_code)


@pytest.mark.parametrize("name", WICKED, ids=range(len(WICKED)))
def test_ids_are_never_part_of_a_path_and_escaped_in_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    with (
        caplog.at_level(logging.DEBUG, "kohort"),
        running_broker(data=tmp_path / "data") as broker,
        Wire(broker.bootstrap) as wire,
    ):
        _join(wire, name, name[:100], name)
        _join(wire, name, name[:100], None)
        wire.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[name])
        wire.call(ApiKey.DELETE_GROUPS, 2, groups_names=[name])
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    lines = [record.getMessage() for record in caplog.records]
    assert all(line.isprintable() for line in lines), lines


#: What runs text or bytes as code.
RUNS_CODE = {"eval", "exec", "compile", "__import__"}
UNSAFE_LOADS = {("yaml", "load"), ("yaml", "full_load"), ("yaml", "unsafe_load")}
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


def test_nothing_is_unpickled_evaluated_or_loaded_as_yaml_objects() -> None:
    # where none of the words stands, the syntax tree, which takes longer, has none of the names
    words = RUNS_CODE | UNSAFE_MODULES | {module for module, _ in UNSAFE_LOADS}
    named = re.compile(rf"\b(?:{'|'.join(sorted(words))})\b")
    found = []
    for room in ROOMS:
        for path in room.rglob("*.py"):
            text = path.read_text()
            if not named.search(text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    names = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
                    found += [(path.name, name) for name in names if name.split(".")[0] in UNSAFE_MODULES]
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    found += [(path.name, node.func.id)] if node.func.id in RUNS_CODE else []
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    call = (node.value.id, node.attr)
                    found += [(path.name, node.attr)] if call in UNSAFE_LOADS else []
    assert len(ROOMS) > 8
    assert found == []
