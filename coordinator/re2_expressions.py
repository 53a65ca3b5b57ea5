"""Regular expressions of clients, in the syntax of RE2 in Java, which Apache Kafka uses.

RE2's time is linear in the text, whatever the expression, so any client may send one. It comes with
google-re2, which ``kohort[regex]`` installs.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

#: The longest expression. A record's key has room for 32,767 bytes.
MOST_REGEX_BYTES: Final = 10_000

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
#: Number of compiled expressions that are kept, the most bytes that one may take, and the most instructions
#: of its program: as many as a name of the most bytes has.
_REMEMBERED: Final = 128
_MOST_BYTES: Final = 1 << 20
_MOST_INSTRUCTIONS: Final = MOST_REGEX_BYTES + 100
#: Parts of an expression that RE2 makes larger before it looks at any limit: classes of Unicode, with
#: hundreds of ranges each, and numbers of repetitions.
_GROWING: Final = re.compile(r"\\[pP]|\{(\d+)(?:,(\d*))?\}")
_UNICODE_SIZE: Final = 500
_MOST_GROWTH: Final = 20_000
_TOO_LARGE: Final = "pattern too large - compile failed"


@lru_cache(maxsize=_REMEMBERED)
def compile_regex(regex: str) -> tuple[Any, str]:
    """Compile an expression in the syntax of RE2, to match whole texts; None and the reason if it is invalid
    or too large.
    """
    try:
        import re2
    except ImportError:
        return None, "this broker has no RE2: install google-re2 (kohort[regex])"
    if _is_large(regex):
        return None, _TOO_LARGE
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        compiled = re2.compile(regex, options)
        if why := _refused_by_java(regex, compiled.groupindex):
            return None, why
        if compiled.programsize > _MOST_INSTRUCTIONS:
            return None, _TOO_LARGE
        # what groups have captured is not asked for, and takes a hundred times as long
        options.never_capture = True
        return re2.compile(regex, options), ""
    except re2.error as error:
        text = error.args[0]
        what, _, where = (text.decode() if isinstance(text, bytes) else str(text)).partition(": ")
        # a look behind, too, begins as a named group does in Java
        return None, "invalid named capture" if where.startswith("(?<") else _IN_JAVA.get(what, what)


def _is_large(regex: str) -> bool:
    """Return whether to read an expression would take too long."""
    if len(regex.encode(errors="replace")) > MOST_REGEX_BYTES:
        return True
    grown = sum(
        int((most or least)[:9]) if least else _UNICODE_SIZE for least, most in _GROWING.findall(regex)
    )
    return grown > _MOST_GROWTH


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
