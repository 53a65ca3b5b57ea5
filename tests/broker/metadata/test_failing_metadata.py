"""A disk that is full or broken while metadata is written: the answer says so, nothing of the old content is
lost, and the same request is carried out once the disk is well again.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.authorizer import STANDARD_AUTHORIZER
from kohort.cluster import _files
from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.apis import test_client_quotas as quotas
from tests.broker.apis import test_scram_credentials as scram
from tests.broker.apis.test_alter_configs import BROKER, SET, change
from tests.broker.apis.test_describe_configs import ask as describe_configs
from tests.broker.apis.test_init_producer_id import ask as new_producer
from tests.broker.authorizer.other_requests import acl_filter
from tests.broker.metadata.test_features import told, update
from tests.broker.metadata.topic_requests import create_topics, delete_topics, grow
from tests.broker.wire import Wire, create_topic, part


class FailingOs:
    """The module ``os``, one of whose steps of a change fails."""

    def __init__(self, step: str, number: int) -> None:
        self._step = step
        self._error = OSError(number, os.strerror(number))
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _fail(self) -> None:
        self.failed += 1
        raise self._error

    def open(self, path: Any, flags: int, *mode: int) -> int:
        if self._step == "open" and flags & os.O_CREAT:
            self._fail()
        return os.open(path, flags, *mode)

    def fdopen(self, descriptor: int, mode: str) -> Any:
        file: Any = os.fdopen(descriptor, mode)
        if self._step == "write":
            whole = file.write

            def half(text: str) -> None:
                whole(text[: len(text) // 2])
                self._fail()

            file.write = half
        return file

    def write(self, descriptor: int, data: bytes) -> int:
        if self._step == "write":
            os.write(descriptor, data[: len(data) // 2])
            self._fail()
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        if self._step == "fsync":
            self._fail()
        os.fsync(descriptor)

    def replace(self, old: Any, new: Any) -> None:
        if self._step == "replace":
            self._fail()
        os.replace(old, new)


def acl(wire: Wire) -> int:
    creation = part(
        ApiKey.CREATE_ACLS,
        3,
        "AclCreation",
        resource_type=2,
        resource_name="orders",
        resource_pattern_type=3,
        principal="User:ann",
        host="*",
        operation=3,
        permission_type=3,
    )
    return int(wire.call(ApiKey.CREATE_ACLS, 3, creations=[creation]).results[0].error_code)


CHANGES: dict[str, Callable[[Wire], int]] = {
    "CreateTopics": lambda wire: next(iter(create_topics(wire, ["new"]))),
    "CreatePartitions": lambda wire: grow(wire, "orders", 3).error_code,
    "DeleteTopics": lambda wire: delete_topics(wire, "old")[0],
    "configs of a topic": lambda wire: change(wire, "orders", ("retention.ms", SET, "1000")),
    "configs of a broker": lambda wire: change(wire, "1", ("log.retention.ms", SET, "1000"), kind=BROKER),
    "AlterClientQuotas": lambda wire: quotas.alter(
        wire, ([("user", "ann")], {"producer_byte_rate": 1_000.0})
    )[0][0],
    "AlterUserScramCredentials": lambda wire: scram.alter(wire, scram.upsertion("ann"))["ann"],
    "InitProducerId": lambda wire: new_producer(wire).error_code,
    "CreateAcls": acl,
    "UpdateFeatures": lambda wire: update(wire, ("group.version", 0, 2)).error_code,
}

#: Producers try again after no other.
REFUSALS = {"InitProducerId": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def seen(wire: Wire) -> list[Any]:
    """All metadata, as the broker tells it."""
    answer = wire.call(ApiKey.METADATA, 9, topics=None, allow_auto_topic_creation=False)
    topics = {topic.name: len(topic.partitions) for topic in answer.topics}
    topics.pop("__consumer_offsets", None)
    retentions = [
        describe_configs(wire, kind, name, [config]).configs[0].value
        for kind, name, config in ((2, "orders", "retention.ms"), (BROKER, "1", "log.retention.ms"))
    ]
    rules = wire.call(ApiKey.DESCRIBE_ACLS, 3, **acl_filter(resource_name_filter=None, pattern_type_filter=1))
    return [
        topics,
        retentions,
        quotas.describe(wire, ("user", quotas.ANY, None)),
        scram.described(wire),
        [rule.resource_name for rule in rules.resources],
        told(wire),
    ]


@contextmanager
def serving(data: Path) -> Iterator[Wire]:
    rights: dict[str, Any] = {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": "User:ANONYMOUS"}
    with running_broker(data=data, **rights) as broker, Wire(broker.bootstrap) as wire:
        yield wire


@pytest.mark.parametrize("asked", CHANGES)
def test_a_change_that_cannot_be_kept_is_not_made_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, asked: str
) -> None:
    with serving(tmp_path / "data") as wire:
        create_topic(wire, "orders", 2)
        create_topic(wire, "old")
        before = seen(wire)
        # those of topics are a step first; once that was refused, everything is written
        for step in ("write", "open", "fsync", "replace"):
            for number in (errno.ENOSPC, errno.EIO):
                failing = FailingOs(step, number)
                with monkeypatch.context() as patch:
                    patch.setattr(_files, "os", failing)
                    assert CHANGES[asked](wire) == REFUSALS.get(asked, ErrorCode.KAFKA_STORAGE_ERROR)
                assert failing.failed == 1
                assert seen(wire) == before
        assert "Traceback" not in caplog.text
        # the recorder writes its file meanwhile
        without = shutil.ignore_patterns("recording.db*")
        left = shutil.copytree(tmp_path / "data", tmp_path / "left", ignore=without)
        assert CHANGES[asked](wire) == ErrorCode.NONE
        after = seen(wire)
        assert (after != before) == (asked != "InitProducerId")
        died = shutil.copytree(tmp_path / "data", tmp_path / "died", ignore=without)
    for folder, expected in ((left, before), (died, after)):
        with serving(folder) as wire:
            assert seen(wire) == expected


def test_producer_ids_that_cannot_be_kept_are_one_line_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path / "data") as wire, monkeypatch.context() as patch:
        patch.setattr(_files, "os", FailingOs("write", errno.ENOSPC))
        for _ in range(5):
            assert new_producer(wire).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    [line] = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert "refuses writes, 1 so far" in line
