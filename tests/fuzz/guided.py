"""``python -m tests.fuzz.guided TARGET FOLDER [libFuzzer's options]``: one target under atheris."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["kohort", "kafka.protocol"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
