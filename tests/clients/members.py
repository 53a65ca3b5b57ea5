"""Members of a group, each polled by a thread of its own, as each would be in a process of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire
from tests.clients.drivers import CALL_TIMEOUT_S, DEFAULTS, Choice, Consumer, Driver, Got

POLL_S = 0.1
PATIENCE_S = 40.0


class Member:
    """A consumer that polls in its own thread until it is closed.

    An exception of the client comes out of the next call here. ``with`` closes it (bounded).
    """

    def __init__(
        self, driver: Driver, bootstrap: str, group: str, topic: str, choice: Choice = DEFAULTS
    ) -> None:
        self.name = driver.name
        self._open = partial(driver.consumer, bootstrap, group, topic, choice)
        self._got: list[Got] = []
        self._held: frozenset[int] = frozenset()
        self._calls: list[tuple[Callable[[Consumer], None], Future[None]]] = []
        self._closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"member {driver.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{self.name} {sorted(self._held)} got {len(self._got)}"

    def _run(self) -> None:
        try:
            consumer = self._open()
            while not self._closing:
                self._got += consumer.poll(POLL_S)
                self._held = frozenset(consumer.assignment())
                while self._calls:
                    self._answer(consumer, *self._calls.pop(0))
            consumer.close()
        except BaseException as error:
            self._failure = error
        for _, answer in self._calls:
            answer.cancel()

    @staticmethod
    def _answer(consumer: Consumer, call: Callable[[Consumer], None], answer: Future[None]) -> None:
        try:
            call(consumer)
            answer.set_result(None)
        except Exception as error:
            answer.set_exception(error)

    def _check(self) -> None:
        if self._failure is not None:
            raise AssertionError(f"the {self.name} member failed: {self._failure!r}") from self._failure

    @property
    def got(self) -> list[Got]:
        """Everything consumed so far, in the order it came."""
        self._check()
        return list(self._got)

    @property
    def held(self) -> frozenset[int]:
        """The partitions held after the last poll."""
        self._check()
        return self._held

    def commit(self) -> None:
        """Commit what was polled; raises what the client raises."""
        self._check()
        answer: Future[None] = Future()
        self._calls.append((lambda consumer: consumer.commit(), answer))
        answer.result(CALL_TIMEOUT_S)

    def close(self) -> None:
        """Leave the group; a second call does nothing."""
        self._closing = True
        self._thread.join(CALL_TIMEOUT_S)
        assert not self._thread.is_alive(), f"the {self.name} member did not close in {CALL_TIMEOUT_S:g} s"
        self._check()


class Holder(Protocol):
    """A member of any kind: in a thread, a process or a JVM."""

    @property
    def held(self) -> Collection[int]: ...


def wait_until(done: Callable[[], bool], what: str, members: Sequence[Holder] = ()) -> None:
    """Return when ``done()``; AssertionError, with what the members hold, when it takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}; {list(members)}"
        time.sleep(0.02)


def wait_for_records(members: Sequence[Member], count: int) -> list[Got]:
    """What the members got, once it is ``count`` records or more."""

    def total() -> list[Got]:
        return [record for member in members for record in member.got]

    wait_until(lambda: len(total()) >= count, f"{count} records", members)
    return total()


def shared_out(members: Sequence[Holder], partitions: int) -> bool:
    """Whether each partition has exactly one owner and each member has its even share."""
    held = sorted(partition for member in members for partition in member.held)
    sizes = [len(member.held) for member in members]
    return held == list(range(partitions)) and max(sizes) - min(sizes) <= 1


class Group:
    """What a broker tells of a group to anybody who asks."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._bootstrap = bootstrap
        self._group = group

    def describe(self) -> Any:
        """The answer of DescribeGroups v5."""
        with Wire(self._bootstrap) as wire:
            answer = wire.call(
                ApiKey.DESCRIBE_GROUPS, 5, groups=[self._group], include_authorized_operations=False
            )
        [described] = answer.groups
        assert described.error_code == ErrorCode.NONE
        return described

    def state(self) -> str:
        state: str = self.describe().group_state
        return state

    def protocol_type(self) -> str:
        kind: str = self.describe().protocol_type
        return kind

    def members(self) -> dict[str, str]:
        """Member ids by instance id, and by member id where there is none."""
        return {
            member.group_instance_id or member.member_id: member.member_id
            for member in self.describe().members
        }

    def generation(self) -> int:
        """Found by heartbeats in the name of a member: only the current generation is not refused."""
        member = self.describe().members[0].member_id
        with Wire(self._bootstrap) as wire:
            for generation in range(1, 200):
                answer = wire.call(
                    ApiKey.HEARTBEAT,
                    4,
                    group_id=self._group,
                    generation_id=generation,
                    member_id=member,
                    group_instance_id=None,
                )
                if answer.error_code != ErrorCode.ILLEGAL_GENERATION:
                    return generation
        raise AssertionError(f"no generation of {self._group} up to 200")
