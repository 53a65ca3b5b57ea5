"""Regular expressions that members subscribe to: checked, resolved to topics, refused without RE2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...offsets_topic import GroupRecordType, ResolvedRegex
from ...protocol import CauseKind, ErrorCode, KafkaError, RequestContext
from ..engine.timers import TimerKey
from ..groups.events import Cause, JoinRefused, quote_text
from ..groups.groups import GroupShard
from ..re2_expressions import MOST_REGEX_BYTES, compile_regex
from .changes import Changes
from .group import REGEX, ConsumerGroup, ConsumerGroupMember, Resolution, live_consumer_group

#: Most regular expressions of one group.
MOST_REGEXES: Final = 100

#: Most bytes of the record with the topics that an expression matches.
MOST_RECORD_BYTES: Final = 1_000_000

#: Most work of one step, and of one millisecond of the pause after it, which leaves others half of the time.
#: A match takes up to 10 ns for each instruction of the expression's program and each character of the name.
_STEP_WORK: Final = 300_000
_PAUSE_WORK: Final = 100_000
#: Work of any match.
_MATCH_WORK: Final = 100

#: Time in ms between two resolutions of a group: a constant in Kafka too.
RESOLUTION_PAUSE_MS: Final = 10_000


def check_regex(group: ConsumerGroup, known: ConsumerGroupMember | None, regex: str) -> None:
    """Raises KafkaError (INVALID_REGULAR_EXPRESSION) for an expression that cannot be parsed, or that is too
    large.
    """
    old = "" if known is None else known.metadata.regex
    patterns = len(group.patterns) - (group.patterns[old] == 1)
    if len(regex.encode(errors="replace")) > MOST_REGEX_BYTES:
        raise _invalid_regex(
            f"a SubscribedTopicRegex of {len(regex)} characters is too long: name the topics."
        )
    if regex not in group.patterns and patterns >= MOST_REGEXES:
        raise _invalid_regex(
            f"The group has {MOST_REGEXES} regular expressions: let members subscribe to the same."
        )
    if regex in group.too_broad:
        raise _invalid_regex(group.too_broad[regex])
    why = compile_regex(regex)[1]
    if why:
        raise _invalid_regex(f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}.")


def _invalid_regex(text: str) -> KafkaError:
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
    group = live_consumer_group(shard, key[1])
    assert group is not None, "timers of a group stop when it goes"
    task = group.resolving
    if task is None:
        group.topics_resolved, group.resolved_ms = group.topics.version(), now_ms
        names, regexes = sorted(group.topics.names()), sorted(group.patterns)
        task = group.resolving = Resolution(names, regexes[::-1], {regex: [] for regex in regexes})
    work = 0
    while work < _STEP_WORK and task.left and group.patterns:
        work += _match_some(group, task, _STEP_WORK - work)
    if task.left and group.patterns:
        shard.timers.start(key, now_ms + 1 + work // _PAUSE_WORK)
    else:
        group.resolving = None
        _on_resolved(Changes(shard, group, now_ms), task.found)


def _match_some(group: ConsumerGroup, task: Resolution, most_work: int) -> int:
    """Match topics with the next expression until that has taken so much work; returns how much it took."""
    regex = task.left[-1]
    expression = compile_regex(regex)[0]
    work = 0
    # an expression in the log may come from a broker with another syntax
    if expression is not None:
        size, topics = expression.programsize, task.found[regex]
        while task.at < len(task.names) and work < most_work:
            name = task.names[task.at]
            task.at += 1
            work += _MATCH_WORK + size * len(name)
            if expression.fullmatch(name) and group.topics.shows(group.resolver, name):
                topics.append(name)
        if task.at < len(task.names):
            return work
    task.left.pop()
    task.at = 0
    return work


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
        changes.put_record(GroupRecordType.REGEX, regex, ResolvedRegex(topics, 0, changes.now_ms))
        if topics != (() if known is None else known.topics):
            changed = changed or regex
    if changed:
        changes.bump_epoch(
            Cause(f"{quote_text(changed)} stands for other topics", CauseKind.CHANGED_SUBSCRIPTION)
        )
    changes.commit()


def _too_broad(changes: Changes, regex: str, count: int) -> tuple[str, ...]:
    """Resolve an expression that matches too many topics to no topics."""
    group = changes.group
    text = (
        f"SubscribedTopicRegex `{quote_text(regex)}` stands for {count} topics, "
        "for which a record has no room."
    )
    group.too_broad[regex] = text
    error = ErrorCode.INVALID_REGULAR_EXPRESSION
    changes.shard.tell(JoinRefused(group.group_id, generation=group.epoch, cause=text, error_code=error))
    return ()
