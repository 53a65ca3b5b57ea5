"""The document that the rules are kept in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kohort.broker.authorizer import Acl, Operation, PatternType, Permission, ResourceType
from kohort.broker.authorizer._keeping import AclsFile
from kohort.cluster import FolderStore, StateFileError

RULES = [
    Acl(
        ResourceType.GROUP,
        "büro-",
        PatternType.PREFIXED,
        "User:alice",
        "*",
        Operation.READ,
        Permission.ALLOW,
    ),
    Acl(
        ResourceType.CLUSTER,
        "kafka-cluster",
        PatternType.LITERAL,
        "User:*",
        "10.0.0.1",
        Operation.ALTER,
        Permission.DENY,
    ),
]


def acls_file(folder: Path) -> AclsFile:
    return AclsFile(FolderStore(folder).document("acls"))


async def test_rules_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = acls_file(tmp_path)
    assert file.load() == []
    await file.save(RULES)
    assert acls_file(tmp_path).load() == RULES


@pytest.mark.parametrize(("field", "value"), [("operation", "FLY"), ("resource_type", "X"), ("name", None)])
async def test_a_rule_that_cannot_be_read_stops_the_start(
    tmp_path: Path, field: str, value: str | None
) -> None:
    await acls_file(tmp_path).save(RULES)
    (path,) = tmp_path.glob("*.json")
    content = json.loads(path.read_text())
    if value is None:
        del content["acls"][0][field]
    else:
        content["acls"][0][field] = value
    path.write_text(json.dumps(content))
    without = "there are no access rules, and only super users may do anything"
    with pytest.raises(StateFileError, match=rf"restore it from a copy; without it {without}$"):
        acls_file(tmp_path).load()
