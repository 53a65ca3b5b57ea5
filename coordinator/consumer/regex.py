"""Regular expressions that members subscribe to, in the syntax of RE2: checked, and resolved to topics.

RE2 takes time in proportion to the text, whatever the expression: anybody may send one. It comes with
google-re2, which is installed with ``kohort[regex]``; without it subscriptions by expression are refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from ...offsets_topic import GroupRecordType, ResolvedRegex
from ...protocol import ErrorCode, KafkaError, RequestContext
from ..engine.timers import TimerKey
from ..events import Cause, CauseKind, quoted
from ..groups import GroupShard
from .changes import Changes
from .group import REGEX, ConsumerGroup, live

#: Time in ms between two resolutions of a group: a constant in Kafka too.
RESOLUTION_PAUSE_MS: Final = 10_000

#: What RE2 says in C++, and in Java.
_IN_JAVA: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
}
#: Expressions that are kept compiled, and the most bytes that one may take.
_REMEMBERED: Final = 128
_MOST_BYTES: Final = 1 << 20


def check_regex(regex: str) -> None:
    """Raises KafkaError (INVALID_REGULAR_EXPRESSION) for one that cannot be read."""
    why = compiled_regex(regex)[1]
    if why:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}.",
        )


def maybe_resolve(shard: GroupShard, group: ConsumerGroup, context: RequestContext, now_ms: int) -> None:
    """Resolve the expressions of a group beside the request, if one is new, topics have changed, or it is
    long ago; but not again a moment after the last time. They stand for topics that its sender may describe.
    """
    if not group.patterns:
        return
    last_ms = group.resolved_ms
    if last_ms is None:
        last_ms = max(
            (each.timestamp_ms for each in group.regexes.values()), default=-RESOLUTION_PAUSE_MS - 1
        )
    if now_ms > last_ms + RESOLUTION_PAUSE_MS and (
        any(each not in group.regexes for each in group.patterns)
        or group.topics_resolved is not group.topics.version()
        or now_ms > last_ms + shard.state.settings.group_consumer_regex_refresh_interval_ms
    ):
        group.resolver = context
        shard.timers.start((REGEX, group.group_id), now_ms)


def on_regex_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Look up the topics of every expression of a group."""
    group = live(shard, key[1])
    assert group is not None, "timers of a group stop when it goes"
    changes, group.topics_resolved = Changes(shard, group, now_ms), group.topics.version()
    group.resolved_ms = now_ms
    names = sorted(group.topics.names())
    changed = []
    for regex in sorted(group.patterns):
        expression = compiled_regex(regex)[0]
        # one from the log of a broker that could read it may be unreadable here
        topics = tuple(
            name
            for name in names
            if expression is not None
            and expression.fullmatch(name)
            and group.topics.shows(group.resolver, name)
        )
        known = group.regexes.get(regex)
        if known is None or known.topics != topics:
            changes.put(GroupRecordType.REGEX, regex, ResolvedRegex(topics, 0, now_ms))
            if topics != (() if known is None else known.topics):
                changed.append(regex)
    if changed:
        text = f"{quoted(changed[0])} stands for other topics"
        changes.bump(Cause(text, CauseKind.CHANGED_SUBSCRIPTION))
    changes.commit()


@lru_cache(maxsize=_REMEMBERED)
def compiled_regex(regex: str) -> tuple[Any, str]:
    """An expression in the syntax of RE2, or None and why it is none."""
    try:
        import re2
    except ImportError:
        return None, "this broker has no RE2: install google-re2 (kohort[regex])"
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        return re2.compile(regex, options), ""
    except re2.error as error:
        text = error.args[0]
        what = (text.decode() if isinstance(text, bytes) else str(text)).split(": ")[0]
        return None, _IN_JAVA.get(what, what)
