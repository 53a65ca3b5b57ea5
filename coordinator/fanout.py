"""Requests about many groups: asked one by one where each group lives, answered together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ..protocol import ApiKey
from . import admin
from .offsets import fetch
from .replies import GroupsReply
from .topics import TopicDirectory


@dataclass(frozen=True, slots=True)
class FanOut:
    """How the request of an API is taken apart, and how the answers of its groups become one."""

    split: Callable[[int, Any, TopicDirectory], list[Any]]
    join: Callable[[int, list[Any], TopicDirectory], Any]


#: The APIs that name many groups.
FAN_OUT: Final[dict[int, FanOut]] = {
    ApiKey.OFFSET_FETCH: FanOut(fetch.split_fetch, fetch.join_fetches),
    ApiKey.DESCRIBE_GROUPS: FanOut(
        lambda _version, body, _directory: admin.split_describe(body),
        lambda _version, groups, _directory: GroupsReply(groups=groups),
    ),
    ApiKey.DELETE_GROUPS: FanOut(
        lambda _version, body, _directory: admin.split_delete(body),
        lambda _version, results, _directory: GroupsReply(results=results),
    ),
}
