"""The entries of a ZooKeeper in memory, for tests of what a member reads and writes there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from kohort.client.zookeeper import ZooKeeperSettings
from kohort.protocol import TopicPartition

MINE, OTHERS = 7, 8
PARTITION = TopicPartition("orders", 0)
OWNER, OFFSET = "/consumers/billing/owners/orders/0", "/consumers/billing/offsets/orders/0"
ID = "/consumers/billing/ids/me"
REQUESTS = ("create", "delete", "ensure_path", "exists", "get", "get_children", "set")


class Entries(dict[str, list[Any]]):
    """Path: data, version and the session it goes with. ``before`` and ``after`` meet each request once."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}
        self.asked: list[tuple[str, str]] = []
        self.watches: list[tuple[str, Callable[[Any], None]]] = []

    async def call(self, request: str, path: str, *arguments: Any) -> Any:
        await asyncio.sleep(0)
        self.asked.append((request, path))
        self.before.pop(f"{request} {path}", lambda: None)()
        result = getattr(self, f"_{request}")(path, *arguments)
        self.after.pop(f"{request} {path}", lambda: None)()
        return result

    def _stat(self, path: str) -> SimpleNamespace:
        _, version, owner = self[path]
        return SimpleNamespace(version=version, ephemeralOwner=owner)

    def _need(self, path: str) -> None:
        if path not in self:
            raise NoNodeError

    def _exists(self, path: str, watch: Any = None) -> Any:
        if watch is not None:
            self.watches.append((path, watch))
        return self._stat(path) if path in self else None

    def _get(self, path: str) -> Any:
        self._need(path)
        return self[path][0], self._stat(path)

    def _set(self, path: str, data: bytes, version: int = -1) -> Any:
        self._need(path)
        if version not in (-1, self[path][1]):
            raise BadVersionError
        self[path][:2] = [data, self[path][1] + 1]
        return self._stat(path)

    def _create(
        self,
        path: str,
        data: bytes,
        acl: Any = None,
        ephemeral: bool = False,
        sequence: bool = False,
        makepath: bool = False,
        include_data: bool = False,
    ) -> Any:
        """Has the arguments of kazoo's, which takes nothing else for a bool."""
        assert acl is None
        assert all(isinstance(each, bool) for each in (ephemeral, sequence, makepath, include_data))
        if path in self:
            raise NodeExistsError
        parent = path.rpartition("/")[0]
        if not makepath and not any(f"{each}/".startswith(f"{parent}/") for each in self):
            raise NoNodeError
        path = f"{path}{len(self):010}" if sequence else path
        self[path] = [data, 0, MINE if ephemeral else 0]
        return (path, self._stat(path)) if include_data else path

    def _get_children(self, path: str, watch: Any = None) -> list[str]:
        below = {
            each.removeprefix(f"{path}/").partition("/")[0] for each in self if each.startswith(f"{path}/")
        }
        if not below:
            self._need(path)
        if watch is not None:
            self.watches.append((path, watch))
        return sorted(below)

    def fire(self, how: str) -> list[str]:
        """Something of this kind happens to all that is watched; the paths."""
        watches, self.watches = self.watches, []
        for path, watch in watches:
            watch(SimpleNamespace(type=how, path=path))
        return [path for path, _ in watches]

    def _ensure_path(self, path: str) -> None:
        self.setdefault(path, [b"", 0, 0])

    def _delete(self, path: str) -> None:
        self._need(path)
        del self[path]


def fails(error: type[Exception]) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


class Session:
    """What a member uses of a ``ZooKeeperSession``: its client's methods are the names of requests.

    ``states``: what comes of the attempt to begin it.
    """

    def __init__(self, entries: Entries, settings: ZooKeeperSettings, states: tuple[str, ...] = ()) -> None:
        self.entries = entries
        self.settings = settings
        self.client: Any = SimpleNamespace(
            client_id=(MINE, b""),
            last_zxid=5,
            **{f"{each}_async": each for each in REQUESTS},
        )
        self.states = states
        self.state_changed: Callable[[str], None]
        self.closed = 0

    async def begin(self, state_changed: Callable[[str], None]) -> None:
        self.state_changed = state_changed
        for state in self.states:
            state_changed(state)

    def call(self, request: str, path: str, *arguments: Any) -> Awaitable[Any]:
        return asyncio.ensure_future(self.entries.call(request, path, *arguments))

    def hand_over(self, call: Callable[..., None], *arguments: Any) -> None:
        call(*arguments)

    def close(self) -> None:
        self.closed += 1
