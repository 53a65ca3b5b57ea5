"""Regular expressions that members subscribe to, in the syntax of RE2: checked, and resolved to topics.

RE2's time is linear in the text, whatever the expression, so any client may send one. It comes with
google-re2, which ``kohort[regex]`` installs; without it subscriptions by expression are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from ...offsets_topic import GroupRecordType, ResolvedRegex
from ...protocol import CauseKind, ErrorCode, KafkaError, RequestContext
from ..engine.timers import TimerKey
from ..groups.events import Cause, JoinRefused, quoted
from ..groups.groups import GroupShard
from .changes import Changes
from .group import REGEX, ConsumerGroup, Member, Resolution, live

#: Most regular expressions of one group, and the longest one. A record's key has room for 32,767 bytes.
MOST_REGEXES: Final = 100
MOST_REGEX_BYTES: Final = 10_000

#: Most bytes of the record with the topics that an expression matches.
MOST_RECORD_BYTES: Final = 1_000_000

#: Most names matched in one step, over all expressions: a few milliseconds.
_MATCHES: Final = 3_000

#: Time in ms between two resolutions of a group: a constant in Kafka too.
RESOLUTION_PAUSE_MS: Final = 10_000

#: Error texts of RE2 in C++, and the same in Java.
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
#: Parts of a valid expression: escaped characters, a character class, and the start of a named group.
_LITERAL: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\[^C]", re.DOTALL)
_CLASS: Final = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|[^\]])*\]")
_NAMED_GROUP: Final = re.compile(r"\(\?P?<")
#: Number of compiled expressions that are kept, and the most bytes that one may take.
_REMEMBERED: Final = 128
_MOST_BYTES: Final = 1 << 20


def check_regex(group: ConsumerGroup, known: Member | None, regex: str) -> None:
    """Raises KafkaError (INVALID_REGULAR_EXPRESSION) for an expression that cannot be parsed, or that is too
    large.
    """
    old = "" if known is None else known.metadata.regex
    patterns = len(group.patterns) - (group.patterns[old] == 1)
    if len(regex.encode(errors="replace")) > MOST_REGEX_BYTES:
        raise _invalid(f"a SubscribedTopicRegex of {len(regex)} characters is too long: name the topics.")
    if regex not in group.patterns and patterns >= MOST_REGEXES:
        raise _invalid(
            f"The group has {MOST_REGEXES} regular expressions: let members subscribe to the same."
        )
    if regex in group.too_broad:
        raise _invalid(group.too_broad[regex])
    why = compiled_regex(regex)[1]
    if why:
        raise _invalid(f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}.")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)


def maybe_resolve(shard: GroupShard, group: ConsumerGroup, context: RequestContext, now_ms: int) -> None:
    """Resolve the expressions of a group in the background, but not too often: if one is new, topics have
    changed, or the last time is long ago. They match topics that the request's sender may describe.
    """
    if not group.patterns or group.resolving is not None:
        return
    last_ms = group.resolved_ms
    if last_ms is None:
        last_ms = max(
            (each.timestamp_ms for each in group.regexes.values()), default=-RESOLUTION_PAUSE_MS - 1
        )
    # the time may come from a clock that was ahead, as with targets
    if not 0 <= now_ms - last_ms <= RESOLUTION_PAUSE_MS and (
        any(each not in group.regexes for each in group.patterns)
        or group.topics_resolved is not group.topics.version()
        or now_ms > last_ms + shard.state.settings.group_consumer_regex_refresh_interval_ms
    ):
        group.resolver = context
        shard.timers.start((REGEX, group.group_id), now_ms)


def on_regex_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Match some topics with every expression of a group; the rest follow a moment later, so that other
    requests are served in between.
    """
    group = live(shard, key[1])
    assert group is not None, "timers of a group stop when it goes"
    task = group.resolving
    if task is None:
        group.topics_resolved, group.resolved_ms = group.topics.version(), now_ms
        task = group.resolving = Resolution(
            sorted(group.topics.names()), {regex: [] for regex in sorted(group.patterns)}
        )
    end = task.at + max(1, _MATCHES // max(1, len(task.found)))
    for regex, topics in task.found.items():
        expression = compiled_regex(regex)[0]
        # an expression in the log may come from a broker with another syntax
        if expression is not None:
            matching = filter(expression.fullmatch, task.names[task.at : end])
            topics += [name for name in matching if group.topics.shows(group.resolver, name)]
    task.at = end
    if end < len(task.names) and group.patterns:
        shard.timers.start(key, now_ms + 1)
    else:
        group.resolving = None
        _on_resolved(Changes(shard, group, now_ms), task.found)


def _on_resolved(changes: Changes, found: Mapping[str, list[str]]) -> None:
    group, size, changed = changes.group, 0, ""
    for regex, names in found.items():
        topics, known = tuple(names), group.regexes.get(regex)
        bytes_ = sum(len(name) + 3 for name in names)
        group.too_broad.pop(regex, None)
        if regex not in group.patterns:
            continue
        if bytes_ > MOST_RECORD_BYTES:
            topics = _too_broad(changes, regex, len(names))
        if size and size + bytes_ > MOST_RECORD_BYTES:
            # records that are written together have to fit in a batch
            changes.commit()
            changes, size = Changes(changes.shard, group, changes.now_ms), 0
        size += bytes_
        # written though the topics stay, as by Apache Kafka: the time counts after a restart. There is no log
        # of metadata; a version of 0 makes an Apache Kafka that takes over the folder resolve it again
        changes.put(GroupRecordType.REGEX, regex, ResolvedRegex(topics, 0, changes.now_ms))
        if topics != (() if known is None else known.topics):
            changed = changed or regex
    if changed:
        changes.bump(Cause(f"{quoted(changed)} stands for other topics", CauseKind.CHANGED_SUBSCRIPTION))
    changes.commit()


def _too_broad(changes: Changes, regex: str, count: int) -> tuple[str, ...]:
    """Resolve an expression that matches too many topics to no topics."""
    group = changes.group
    text = (
        f"SubscribedTopicRegex `{quoted(regex)}` stands for {count} topics, for which a record has no room."
    )
    group.too_broad[regex] = text
    error = ErrorCode.INVALID_REGULAR_EXPRESSION
    changes.shard.tell(JoinRefused(group.group_id, generation=group.epoch, cause=text, error_code=error))
    return ()


@lru_cache(maxsize=_REMEMBERED)
def compiled_regex(regex: str) -> tuple[Any, str]:
    """Compile an expression in the syntax of RE2; None and the reason if it is invalid."""
    try:
        import re2
    except ImportError:
        return None, "this broker has no RE2: install google-re2 (kohort[regex])"
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        compiled = re2.compile(regex, options)
        why = _refused_by_java(regex, compiled.groupindex)
        return None if why else compiled, why
    except re2.error as error:
        text = error.args[0]
        what, _, where = (text.decode() if isinstance(text, bytes) else str(text)).partition(": ")
        # a look behind, too, begins as a named group does in Java
        return None, "invalid named capture" if where.startswith("(?<") else _IN_JAVA.get(what, what)


def _refused_by_java(regex: str, names: Collection[str]) -> str:
    """The reason why RE2J refuses an expression that RE2 accepts, with these group names; "" if it does
    not.
    """
    syntax = _LITERAL.sub("x", regex)
    if r"\C" in syntax:
        return "invalid escape sequence"
    if len(_NAMED_GROUP.findall(_CLASS.sub("x", syntax))) > len(names):
        return "duplicate capture group name"
    if not "".join(names).isascii():
        return "invalid named capture"
    return ""
