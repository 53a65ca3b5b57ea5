"""Selects what a consumer reads: topics or a pattern, in a group, or manually assigned partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from ..client.errors import ConfigError
from ..protocol import TopicPartition

_HOW = {
    "topics": "subscribes to topics",
    "pattern": "subscribes to a pattern",
    "partitions": "reads partitions that it was assigned by hand",
}
#: Internal topics of brokers.
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
_CALLS = {"topics": "subscribe", "pattern": "subscribe_pattern", "partitions": "assign"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Topics, a pattern or partitions: one is set, or none after ``unsubscribe``.

    ``manual``: partitions are assigned manually, without group membership.
    """

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] = frozenset()
    manual: bool = False

    @classmethod
    def of(
        cls,
        topics: Iterable[Any],
        pattern: str | re.Pattern[str] | None,
        partitions: Iterable[TopicPartition] | None,
    ) -> Self:
        """Check the user's arguments. Raises ConfigError unless exactly one is given, and well formed."""
        names = tuple(topics)
        given = [bool(names), pattern is not None, partitions is not None]
        if sum(given) > 1:
            raise ConfigError("topics, pattern and partitions cannot be mixed: give one of them")
        if pattern is not None:
            return cls(pattern=_compile_pattern(pattern))
        if partitions is not None:
            return cls(partitions=_check_partitions(partitions), manual=True)
        if not names or not all(isinstance(topic, str) and topic for topic in names):
            raise ConfigError(
                f"topics are {names!r}: give the names of one or more, or a pattern, or partitions"
            )
        return cls(topics=frozenset(names))

    @property
    def kind(self) -> str:
        """What was given: "topics", "pattern" or "partitions"."""
        if self.manual:
            return "partitions"
        return "topics" if self.pattern is None else "pattern"

    @property
    def nothing(self) -> Selection:
        """The selection after ``unsubscribe``: a member of a group remains one."""
        return Selection(manual=self.manual)

    def change_to(self, new: Selection) -> Selection:
        """Return ``new``, if it may replace this selection. Raises ConfigError if it is of another kind."""
        may_change = self == self.nothing and new.manual == self.manual
        if new.kind != self.kind and not may_change:
            raise ConfigError(
                f"this consumer {_HOW[self.kind]}: {_CALLS[new.kind]} cannot be mixed with that, "
                f"use {_CALLS[self.kind]}, or make another consumer"
            )
        return replace(new)

    @property
    def regex(self) -> str | None:
        """The pattern, if brokers match the same topics with it: it has no flags or POSIX classes, and does
        not match internal topics, which brokers include. They use RE2J and refuse Python syntax that they
        lack.
        """
        pattern = self.pattern
        if pattern is None or pattern.flags != re.UNICODE or "[[" in pattern.pattern:
            return None
        return None if any(map(pattern.fullmatch, INTERNAL_TOPICS)) else pattern.pattern

    def matching(self, topics: Iterable[tuple[str, bool]]) -> frozenset[str]:
        """The topics, given as (name, internal), whose whole name matches the pattern; no internal ones."""
        assert self.pattern is not None, "asked of patterns only"
        matches = self.pattern.fullmatch
        return frozenset(name for name, internal in topics if not internal and matches(name))


def _compile_pattern(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ConfigError(f"pattern {pattern!r} is no regular expression: {error}") from error
    if not isinstance(compiled.pattern, str) or not compiled.pattern:
        raise ConfigError(f"pattern {pattern!r}: give a regular expression as a string that is not empty")
    return compiled


def _check_partitions(partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
    given = list(partitions)
    for each in given:
        fits = isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) and each[0]
        if not fits or not isinstance(each[1], int) or isinstance(each[1], bool) or each[1] < 0:
            raise ConfigError(f"partition {each!r}: give TopicPartition(topic, number)")
    if not given:
        raise ConfigError("partitions are empty: give one or more")
    return frozenset(TopicPartition(*each) for each in given)
