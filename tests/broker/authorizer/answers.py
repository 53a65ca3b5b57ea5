"""The answers to all cases as text, as they stand in ``answers.txt``: Apache Kafka's own, which ours must be.

``python -m tests.broker.authorizer.answers ADMIN SASL`` prints them anew from a broker whose address ADMIN gives
all rights to everyone and whose address SASL asks for SASL PLAIN.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.broker.authorizer.cases import CASES, Case
from tests.broker.authorizer.world import Right, World
from tests.broker.wire import Wire

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
    told = world.told(world.alice.call(case.api, case.version, **case.fields(world)))
    if case.done is None:
        return told
    done = case.done
    return f"{told} -> {'done' if world.settled(lambda: done(world)) else 'not done'}"


def recorded() -> dict[str, list[str]]:
    """The lines of every case by its name."""
    blocks: dict[str, list[str]] = {}
    for line in RECORDED.read_text().splitlines():
        if line.startswith("  "):
            blocks[name].append(line)
        elif line and not line.startswith("#"):
            name = line
            blocks[name] = []
    return blocks


def authenticated(address: str, user: str = "alice", password: str = "secret") -> Wire:
    """A connection of a user by SASL PLAIN."""
    from kohort.protocol import ApiKey

    wire = Wire(address)
    assert wire.call(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == 0
    answer = wire.call(
        ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"\0{user}\0{password}".encode()
    )
    assert answer.error_code == 0, answer.error_message
    return wire


def main() -> None:
    admin, sasl = sys.argv[1:]
    with Wire(admin) as wire:
        for case in CASES:
            world = World(wire, lambda: authenticated(sasl), settle_s=1.0)
            print(case, *lines(world, case), "", sep="\n", flush=True)
            world.close()


if __name__ == "__main__":
    main()
