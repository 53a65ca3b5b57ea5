"""The answers to all cases as text, as they stand in ``answers.txt``: Apache Kafka's own, which ours must be.

``python -m tests.broker.authorizer.answers [API ...]`` prints them anew, by an Apache Kafka that it starts:
all, or those of the APIs that are named (``CREATE_ACLS``).
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kohort.protocol import ApiKey
from tests.broker.authorizer.cases import CASES, Case
from tests.broker.authorizer.place import apache_place
from tests.broker.authorizer.world import Right, World
from tests.broker.security.certificates import Certificates

RECORDED = Path(__file__).with_name("answers.txt")


def lines(world: World, case: Case) -> list[str]:
    """What Alice is told with all rights that the case takes, without each, and without any."""
    return [
        f"  {words}: {_answer(world, case, rights)}"
        for words, rights in (
            ("with all" if case.rights else "with none", case.rights),
            *(
                (f"without {right}", tuple(other for other in case.rights if other is not right))
                for right in case.rights
            ),
            *([("with none", ())] if len(case.rights) > 1 else []),
        )
    ]


def _answer(world: World, case: Case, rights: tuple[Right, ...]) -> str:
    case.before(world)
    world.allow(rights)
    told = world.told(case.api, case.version, world.alice.call(case.api, case.version, **case.fields(world)))
    if case.done is None:
        return told
    done = case.done
    return f"{told} -> {'done' if world.settled(lambda: done(world)) else 'not done'}"


def recorded() -> dict[str, list[str]]:
    """The lines of every case by its name."""
    blocks: dict[str, list[str]] = {}
    block: list[str] = []
    for line in RECORDED.read_text().splitlines():
        if line.startswith("  "):
            block.append(line)
        elif line and not line.startswith("#"):
            block = blocks[line] = []
    return blocks


def main() -> None:
    print("# What Alice is told in each case, as Apache Kafka 4.3.1 answers.")
    with (
        TemporaryDirectory() as folder,
        apache_place(Certificates(Path(folder))) as place,
        place.world() as world,
    ):
        for case in (case for case in CASES if case.api.name in (sys.argv[1:] or ApiKey.__members__)):
            print("", case, *lines(world, case), sep="\n", flush=True)


if __name__ == "__main__":
    main()
