"""Times, durations and topics with partitions as people type them. Each reader raises ValueError."""

from __future__ import annotations

import base64
import csv
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SHORT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_ISO: Final = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def duration_ms(text: str) -> int:
    """``2h``, ``1h30m``, ``90s`` or ISO 8601 (``P1DT2H``); months and years have no length."""
    wanted = text.strip()
    total = _parse_short_span(wanted)
    if total is None and (match := _ISO.fullmatch(wanted)) and wanted[-1] not in "PTpt":
        total = sum(float(value) * _UNITS_MS[unit] for unit, value in match.groupdict().items() if value)
    # a few hundred digits are more than any number
    if total is None or total >= 2**63:
        raise ValueError(f"{text!r} is no duration: write 90s, 2h, 1h30m or ISO 8601 such as P1DT2H")
    return round(total)


def _parse_short_span(text: str) -> float | None:
    total, at = 0.0, 0
    while at < len(text):
        # not searched for: that takes the square of the length of a long number
        part = _SHORT.match(text, at)
        if part is None:
            return None
        total += float(part[1]) * _UNITS_MS[part[2]]
        at = part.end()
    return total if text else None


def datetime_ms(text: str) -> int:
    """ISO 8601, such as ``2026-02-03T04:05:06.789+01:00``; without an offset it is UTC."""
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no time: write ISO 8601, such as 2026-02-03T04:05:06Z") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    since_ms = round(when.timestamp() * 1_000)
    if since_ms < 0:
        raise ValueError(f"{text!r} is before 1970: no record is that old")
    return since_ms


def moment_ms(text: str, now_ms: int, *, is_end: bool = False) -> int:
    """A time in the past: ``yesterday`` and ``today`` (their end in UTC with ``is_end``, else their
    beginning), so long ago (``24h``), or ISO 8601.
    """
    word, day = text.strip().lower(), _UNITS_MS["d"]
    if word in ("today", "yesterday"):
        midnight = now_ms // day * day - (day if word == "yesterday" else 0)
        return midnight + day - 1 if is_end else midnight
    try:
        return max(0, now_ms - duration_ms(text))
    except ValueError:
        pass
    try:
        return datetime_ms(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time: write yesterday, 24h, or ISO 8601 such as 2026-02-03T04:05:06Z"
        ) from None


def topic_partitions(texts: list[str]) -> dict[str, list[int]]:
    """``orders`` (all partitions) or ``orders:0,3``. An empty list means all; all wins over numbers."""
    topics: dict[str, list[int]] = {}
    for text in texts:
        topic, numbers = _parse_topic(text)
        if not numbers:
            topics[topic] = []
        elif topics.get(topic) != []:
            topics.setdefault(topic, []).extend(numbers)
    return topics


def offset_lines(lines: Iterable[str]) -> dict[tuple[str, int], int]:
    """Lines of ``orders,0,1200``: topic, partition and offset, each partition once. Raises ValueError."""
    found: dict[tuple[str, int], int] = {}
    try:
        rows = list(csv.reader(lines))
    except csv.Error as error:
        raise ValueError(f"the file is no CSV: {error}") from None
    for number, row in enumerate(rows, 1):
        if not row:
            continue
        words = [word.strip() for word in row]
        if len(words) != 3 or not words[0] or not all(map(_is_number, words[1:])):
            raise ValueError(f"line {number}: {','.join(row)!r} is not TOPIC,PARTITION,OFFSET")
        place = words[0], int(words[1])
        if place in found:
            raise ValueError(f"line {number}: partition {place[1]} of topic {place[0]!r} is there twice")
        found[place] = int(words[2])
    if not found:
        raise ValueError("the file has no offsets: write lines of TOPIC,PARTITION,OFFSET")
    return found


def _is_number(word: str) -> bool:
    # int() takes thousands of digits, and none of other scripts is meant
    return word.isascii() and word.isdigit() and len(word) < 20


def _parse_topic(text: str) -> tuple[str, list[int]]:
    topic, colon, rest = text.partition(":")
    numbers = [part.strip() for part in rest.split(",")] if colon else []
    if not topic or not all(map(_is_number, numbers)):
        raise ValueError(f"{text!r} is no topic: write orders, or orders:0,3 for partitions 0 and 3")
    return topic, [int(number) for number in numbers]


def config_pair(text: str) -> tuple[str, str]:
    """``retention.ms=3600000``: the name of a config and its value."""
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise ValueError(f"{text!r} is no config: give KEY=VALUE, such as cleanup.policy=compact")
    return name.strip(), value.strip()


def utc(timestamp_ms: int) -> str:
    """A time as people read it: ``2026-02-03 04:05:06.789`` (UTC); one that no calendar has, as a number.

    A record may have any, where its topic's configs let it.
    """
    try:
        when = datetime.fromtimestamp(timestamp_ms // 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return f"{when:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1_000:03d}"


def span(duration: int) -> str:
    """Milliseconds as people read them: ``12 ms``, ``3.4 s``, ``2 min 5 s``, ``3 h 4 min``, ``2 d 5 h``."""
    if duration < 1_000:
        return f"{duration} ms"
    if duration < 60_000:
        return f"{duration / 1_000:.1f} s"
    if duration < _UNITS_MS["h"]:
        return f"{duration // 60_000} min {duration % 60_000 // 1_000} s"
    if duration < _UNITS_MS["d"]:
        return f"{duration // _UNITS_MS['h']} h {duration % _UNITS_MS['h'] // 60_000} min"
    return f"{duration // _UNITS_MS['d']} d {duration % _UNITS_MS['d'] // _UNITS_MS['h']} h"


def byte_text(size: int) -> str:
    """A number of bytes as people read it: ``512 B``, ``1.4 KiB``, ``20.0 GiB``."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:,.1f} {unit}"


def bytes_as_json(given: bytes | None) -> object:
    """Bytes as JSON: a string if they are UTF-8, else ``{"base64": "..."}``."""
    if given is None:
        return None
    try:
        return given.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(given).decode()}


def to_sentence(words: str) -> str:
    """Words as a sentence of its own."""
    return f"{words[:1].upper()}{words[1:]}."
