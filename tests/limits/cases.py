"""Requests of every API and version with one of their arrays full, and which of them a normal run tries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from kohort.broker.apis import AnyApi, served_apis
from kohort.protocol import ApiKey
from tests.limits.full_requests import (
    KNOWN,
    KNOWN_NEXT,
    Naming,
    Path,
    array_paths,
    choices,
    request_frame,
)

LARGE_TEXT: Final = "x" * 30_000

#: One in so many cases of an older version is tried.
SHARE: Final = 6

KINDS: Final = (
    Naming("repeats", lambda _number: KNOWN, distinct=False),
    Naming("missing", lambda number: f"{KNOWN}-{number}", distinct=True),
    Naming("not allowed", lambda number: f"unknown-{number}", distinct=True),
    Naming("largest", lambda number: f"{number:06}{LARGE_TEXT}", distinct=False, largest=True),
    Naming("a consumer group", lambda _number: KNOWN_NEXT, distinct=False, outside=KNOWN_NEXT),
)

APIS: Final = sorted(served_apis().values(), key=lambda api: api.name)


@dataclass(frozen=True, slots=True)
class Case:
    """A request of an API with one array full of something."""

    key: ApiKey
    version: int
    path: Path
    chosen: dict[str, Any]
    naming: Naming

    def __str__(self) -> str:
        return f"v{self.version} {'.'.join(self.path)} {self.chosen or ''} {self.naming}"

    def frame(self, count: int, topic_id: Any = None) -> bytes:
        naming = replace(self.naming, topic_id=topic_id)
        return request_frame(self.key, self.version, self.path, count, naming, **self.chosen)


def every_case(api: AnyApi, *kinds: Naming) -> Iterator[Case]:
    first, last = api.versions
    for version in range(first, last + 1):
        # one without arrays has texts and numbers
        for path in array_paths(api.key, version) or [()]:
            for chosen in choices(api.key, version):
                for naming in kinds:
                    if naming.outside != KNOWN_NEXT or "ConsumerGroup" in api.name:
                        yield Case(api.key, version, path, chosen, naming)


def chosen_cases(api: AnyApi, *kinds: Naming, soaks: bool) -> list[Case]:
    """All cases of the newest version, and a share of each other one; with ``soaks`` all of them.

    Versions are mostly read by the same code. What one version leaves out the next one tries: neighbouring
    versions together try every array and kind.
    """
    chosen: list[Case] = []
    first, last = api.versions
    every = list(every_case(api, *kinds))
    for version in range(first, last + 1):
        own = [case for case in every if case.version == version]
        if soaks or version == last:
            chosen += own
        else:
            chosen += own[version % min(SHARE, len(own)) :: SHARE]
    return chosen
