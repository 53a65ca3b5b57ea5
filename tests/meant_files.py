"""Which test files ``-m`` cannot mean: they need not be imported to find that out.

Each of the processes that run tests side by side collects all of them, and some load Spark and all clients.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product

from _pytest.mark.expression import Expression

#: A file's marks for all of its tests, over one line or several.
_OF_ALL = re.compile(r"^pytestmark = .*(?:\n[ \])].*)*", re.MULTILINE)
#: Stands where its tests are; all other marks may come from elsewhere, with a decorator.
WRITTEN_OUT = "check"


def means_none_of(expression: str, text: str) -> bool:
    """Whether ``-m expression`` leaves out each test of the file with this text, whatever their own marks."""
    of_all = _OF_ALL.search(text)
    if not expression or of_all is None:
        return False
    marks = frozenset(re.findall(r"\bmark\.(\w+)", of_all[0]))
    return _is_always_false(expression, marks, may_be_written_out=f"mark.{WRITTEN_OUT}" in text)


@cache
def _is_always_false(expression: str, marks: frozenset[str], *, may_be_written_out: bool) -> bool:
    """Whether it is false of every test with the ``marks``, whichever others it has."""
    names = set(re.findall(r"[a-z_]\w*", expression)) - {"and", "or", "not"} - marks
    if not may_be_written_out:
        names.discard(WRITTEN_OUT)
    compiled = Expression.compile(expression)
    several = (
        marks.union(name for name, there in zip(names, has, strict=True) if there)
        for has in product((False, True), repeat=len(names))
    )
    return not any(_is_true(compiled, present) for present in several)


def _is_true(expression: Expression, present: frozenset[str]) -> bool:
    def has(name: str, /, **_: str | int | bool | None) -> bool:
        return name in present

    return expression.evaluate(has)
