"""Inputs that are kept: ``tests/data/corpus/TARGET.txt`` has one a line, in hexadecimal, ``#`` before words.

Right inputs come first; each that once crashed a target is added at the end, and stays.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "data" / "corpus"


def read(target: str) -> list[bytes]:
    """The inputs of a target."""
    lines = (FOLDER / f"{target}.txt").read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if not line.startswith("#")]


def write(target: str, inputs: list[bytes], words: str) -> None:
    """Put inputs behind those that are there."""
    path = FOLDER / f"{target}.txt"
    old = path.read_text() if path.exists() else ""
    path.write_text(f"{old}# {words}\n" + "".join(f"{data.hex()}\n" for data in inputs))
