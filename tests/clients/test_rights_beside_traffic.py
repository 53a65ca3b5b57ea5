"""Rights come and go, and the topic with them, while the one they are about commits, produces and waits.

Each round sends a change of alice's rights, sometimes a deletion and remaking of the topic too, together with
requests of hers, each on a connection of its own and in an order drawn by chance. What was under way may be
let through or not; what comes afterwards goes by the rights that she has then, and nothing that she was
refused is found.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.metadata.topic_requests import commit_fields, committed
from tests.broker.security.logins import log_in_scram
from tests.broker.wire import Wire, batch, create_topic, fetch_fields, part, produce_fields
from tests.secured import Secured

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

ROUNDS = 15
SETTLED_S = 10.0
TOPIC, GROUP = 2, 3
READ, WRITE = 3, 4
LITERAL, ALLOW = 3, 3
NONE = -1
GONE = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
DENIED = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED}


class World:
    """One topic and one group, what alice may do with them, and what must be found."""

    def __init__(self, broker: Secured, random: Random) -> None:
        self.random = random
        unique = uuid.uuid4().hex[:8]
        self.topic, self.group = f"rights-{unique}", f"rights-{unique}"
        # a user of its own: other tests give rights to alice
        self.user = f"alice-{unique}"
        broker.create_user(self.user)
        self.rules = {
            "read": (TOPIC, self.topic, READ),
            "write": (TOPIC, self.topic, WRITE),
            "group": (GROUP, self.group, READ),
        }
        self.rights: set[str] = set()
        self.told: list[str] = []
        self.admins = [Wire(broker.plain, timeout_s=30) for _ in range(2)]
        self.hers = [Wire(broker.sasl, timeout_s=30) for _ in range(5)]
        for wire in self.hers:
            self.log_in(wire)
        self.offsets = {NONE}
        self.make_topic()
        self.until(self.has_coordinator)

    def has_coordinator(self) -> bool:
        """Whether it is there and has loaded the group."""
        if self.admins[0].call(ApiKey.FIND_COORDINATOR, 3, key=self.group, key_type=0).error_code:
            return False
        return not self.admins[0].call(ApiKey.DESCRIBE_GROUPS, 0, groups=[self.group]).groups[0].error_code

    def log_in(self, wire: Wire) -> None:
        # an Apache Kafka may not have heard of the user yet
        self.until(lambda: log_in_scram(wire, self.user).error_code == 0)

    def close(self) -> None:
        for wire in (*self.admins, *self.hers):
            wire.close()

    def make_topic(self) -> None:
        assert create_topic(self.admins[1], self.topic).error_code == 0

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SETTLED_S
        while not holds():
            assert time.monotonic() < deadline, "\n".join(self.told)
            time.sleep(0.02)

    # what is sent

    def change(self) -> tuple[ApiKey, int, dict[str, Any]]:
        """A right is given or taken."""
        right = self.random.choice(list(self.rules))
        kind, name, operation = self.rules[right]
        if right in self.rights:
            self.rights.remove(right)
            wanted = part(
                ApiKey.DELETE_ACLS,
                3,
                "DeleteAclsFilter",
                resource_type_filter=kind,
                resource_name_filter=name,
                pattern_type_filter=LITERAL,
                principal_filter=f"User:{self.user}",
                host_filter="*",
                operation=operation,
                permission_type=ALLOW,
            )
            return ApiKey.DELETE_ACLS, 3, {"filters": [wanted]}
        self.rights.add(right)
        made = part(
            ApiKey.CREATE_ACLS,
            3,
            "AclCreation",
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=LITERAL,
            principal=f"User:{self.user}",
            host="*",
            operation=operation,
            permission_type=ALLOW,
        )
        return ApiKey.CREATE_ACLS, 3, {"creations": [made]}

    def hers_now(self) -> tuple[ApiKey, int, dict[str, Any]]:
        """A request of alice's."""
        kind = self.random.choice([ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_COMMIT, ApiKey.PRODUCE, ApiKey.FETCH])
        if kind == ApiKey.OFFSET_COMMIT:
            return kind, 5, commit_fields(self.group, self.topic, self.random.randrange(1_000))
        if kind == ApiKey.PRODUCE:
            return kind, 9, produce_fields(self.topic, batch(1, timestamp_ms=int(time.time() * 1_000)))
        return kind, 12, fetch_fields(self.topic, 0, max_wait_ms=200, min_bytes=1 << 20)

    # a round

    def round(self) -> None:
        remaking = self.random.random() < 0.3
        requests = [self.hers_now() for _ in range(self.random.randint(1, len(self.hers)))]
        volley = [(wire, *request) for wire, request in zip(self.hers, requests, strict=False)]
        volley.append((self.admins[0], *self.change()))
        if remaking:
            gone = {"topic_names": [self.topic], "timeout_ms": 5_000}
            volley.append((self.admins[1], ApiKey.DELETE_TOPICS, 5, gone))
        self.random.shuffle(volley)
        sent = [
            (wire, key, version, fields, wire.send(key, version, **fields))
            for wire, key, version, fields in volley
        ]
        taken: set[int] = set()
        for wire, key, version, fields, number in sent:
            answer = wire.receive(key, version, number)
            self.told.append(f"{key.name} {fields}: {answer}")
            if key == ApiKey.OFFSET_COMMIT:
                error = answer.topics[0].partitions[0].error_code
                assert error in {0, *DENIED, *(GONE if remaking else ())}, "\n".join(self.told)
                if not error:
                    taken.add(fields["topics"][0].partitions[0].committed_offset)
        if remaking:
            self.make_topic()
            self.offsets = {NONE}
        elif taken:
            self.offsets = taken
        self.check()

    def check(self) -> None:
        """What she may do now, and what is found of what she did."""
        self.told.append(f"rights {self.rights}, offsets {self.offsets}")
        self.until(lambda: committed(self.admins[0], self.group, self.topic) in self.offsets)
        self.offsets = {committed(self.admins[0], self.group, self.topic)}
        self.until(lambda: self.commits() == self.expected_of_commit())
        if self.expected_of_commit() == ErrorCode.NONE:
            self.offsets = {7_777}
        produced = ErrorCode.NONE if "write" in self.rights else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self.until(lambda: self.produces() == produced)
        assert committed(self.admins[0], self.group, self.topic) in self.offsets, "\n".join(self.told)

    def expected_of_commit(self) -> ErrorCode:
        if "group" not in self.rights:
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return ErrorCode.NONE if "read" in self.rights else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def commits(self) -> int:
        fields = commit_fields(self.group, self.topic, 7_777)
        answer = self.hers[0].call(ApiKey.OFFSET_COMMIT, 5, **fields)
        error = int(answer.topics[0].partitions[0].error_code)
        if not error:
            # an Apache Kafka that has not heard of the change yet has let it through
            self.offsets.add(7_777)
        return error

    def produces(self) -> int:
        fields = produce_fields(self.topic, batch(1, timestamp_ms=int(time.time() * 1_000)))
        answer = self.hers[1].call(ApiKey.PRODUCE, 9, **fields)
        return int(answer.responses[0].partition_responses[0].error_code)


@pytest.fixture(params=range(4))
def world(secured: Secured, request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(secured, Random(request.param))
    yield made
    made.close()


def test_rights_decide_what_comes_after_them_and_what_was_refused_is_not_found(world: World) -> None:
    for _ in range(ROUNDS):
        world.round()
