"""Generates ``protocol/messages/``: a module for each API with its messages, their readers and writers, and the
table of all APIs.

The schemas are Apache Kafka's, which kafka-python ships, and kohort's own in ``protocol/*.json``. The generated code
is plain Python without reflection: named tuples, a reader and a writer for the classic versions of a message, and
the same for the flexible versions (KIP-482). ``--check`` writes nothing and exits 1 if a module differs from what
its schema gives, as after an update of kafka-python with other schemas.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OURS = ROOT / "protocol"
TARGET = OURS / "messages"

#: Types of fixed size: struct format, size in bytes, Python's type, default.
FIXED = {
    "bool": ("?", 1, "bool", "False"),
    "int8": ("b", 1, "int", "0"),
    "int16": ("h", 2, "int", "0"),
    "uint16": ("H", 2, "int", "0"),
    "int32": ("i", 4, "int", "0"),
    "uint32": ("I", 4, "int", "0"),
    "int64": ("q", 8, "int", "0"),
    "float64": ("d", 8, "float", "0.0"),
}
_WRITTEN = "Written by scripts/generate_messages.py: do not edit."
#: Letters for struct formats in names of constants, in upper case, where unsigned types need letters of their own.
_LETTERS = str.maketrans("?bhHiIqdx", "TBHUIWQDX")
PYTHON = {
    "string": "str",
    "bytes": "bytes",
    "records": "bytes | memoryview",
    "uuid": "UUID | None",
}
ANY = 32_767
#: By API, the array of the response that is encoded once and then copied (see ``PreparedArray``).
PREPARED = {"CreateTopics": "configs", "DescribeConfigs": "configs", "Metadata": "partitions"}
#: By API, the array of the response that may be so large that a broker does other work between its elements.
IN_STEPS = {"ConsumerGroupDescribe": "members", "DescribeGroups": "members", "ShareGroupDescribe": "members"}
#: The most frequent APIs. Their functions contain the code of helpers instead of calls, which takes a third less time.
INLINE = {
    "Fetch",
    "Heartbeat",
    "JoinGroup",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "Produce",
    "ShareAcknowledge",
    "ShareFetch",
    "SyncGroup",
}


# --- schemas ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """Versions from ``low`` to ``high``."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Range:
        if text is None or text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), ANY)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def cut(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))

    @property
    def empty(self) -> bool:
        return self.low > self.high

    def condition(self, within: Range) -> str | None:
        """Return the condition that a version of ``within`` is in this range; None if it always is."""
        low, high = self.low > within.low, self.high < within.high
        if low and high:
            return (
                f"{self.low} <= version <= {self.high}" if self.low < self.high else f"version == {self.low}"
            )
        if low:
            return f"version >= {self.low}"
        return f"version <= {self.high}" if high else None


@dataclass
class Field:
    """A field of a message or struct. ``kind`` is a simple type, or the name of a struct with ``fields``."""

    name: str
    kind: str
    array: bool
    versions: Range
    nullable: Range
    tag: int | None
    tagged: Range
    default: str
    fields: list[Field] = field(default_factory=list)

    @property
    def is_struct(self) -> bool:
        return bool(self.fields)

    @property
    def fixed(self) -> bool:
        return not self.array and self.kind in FIXED

    @property
    def type(self) -> str:
        inner = self.kind if self.is_struct else PYTHON.get(self.kind) or FIXED[self.kind][2]
        name = f"Sequence[{inner}]" if self.array else inner
        return f"{name} | None" if self.may_be_none and not name.endswith("None") else name

    @property
    def may_be_none(self) -> bool:
        return not self.nullable.empty or self.default == "None"


@dataclass
class Message:
    """One side of an API."""

    name: str
    key: int
    versions: Range
    flexible: Range
    fields: list[Field]


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def load(path: Path) -> Message:
    schema = json.loads(re.sub(r"(?m)^\s*//.*$|(?<=[,{\[\s])//.*$", "", path.read_text()))
    common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    versions = Range.parse(schema["validVersions"])
    fields = [_field(each, common, versions) for each in schema["fields"]]
    return Message(
        schema["name"], schema["apiKey"], versions, Range.parse(schema["flexibleVersions"]), fields
    )


def _field(schema: dict[str, Any], common: dict[str, Any], within: Range) -> Field:
    kind = schema["type"]
    array = kind.startswith("[]")
    kind = kind.removeprefix("[]")
    versions = Range.parse(schema.get("versions")).cut(within)
    tag = schema.get("tag")
    made = Field(
        name=snake(schema["name"]),
        kind=kind,
        array=array,
        versions=versions,
        nullable=Range.parse(schema.get("nullableVersions")),
        tag=tag,
        tagged=Range.parse(schema.get("taggedVersions")) if tag is not None else Range(1, 0),
        default="",
        fields=[_field(each, common, versions) for each in schema.get("fields") or common.get(kind, ())],
    )
    made.default = _default(made, schema.get("default", ""))
    return made


def _default(made: Field, given: Any) -> str:
    if given == "null":
        return "None"
    if made.array:
        return "()"
    if made.is_struct:
        return "None" if made.tag is not None else f"{made.kind}()"
    if made.kind == "bool":
        return "True" if str(given).lower() == "true" else "False"
    if made.kind in FIXED:
        number = int(str(given), 0) if given != "" and made.kind != "float64" else given
        return str(number) if given != "" else FIXED[made.kind][3]
    if made.kind == "uuid":
        return "None"
    return repr(given) if made.kind == "string" else 'b""'


# --- code ---------------------------------------------------------------------------------------------------


class Code:
    """The lines of a function that is being generated, and names for its variables."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self._names = 0

    def add(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line for line in lines]

    def name(self, hint: str) -> str:
        self._names += 1
        return f"{hint}{self._names}"

    def block(self, head: str) -> Block:
        return Block(self, head)


class Block:
    """Context manager that indents the lines added in ``with code.block("if ...:")``."""

    def __init__(self, code: Code, head: str) -> None:
        self._code, self._head = code, head

    def __enter__(self) -> None:
        self._code.add(self._head)
        self._code.depth += 1

    def __exit__(self, *_: object) -> None:
        self._code.depth -= 1


class Module:
    """The module of an API."""

    def __init__(self, api: str, messages: list[Message]) -> None:
        self.api = api
        self.messages = messages
        _name_apart(messages)
        self.structs: dict[str, str] = {}
        self.formats: dict[str, str] = {}
        self.helpers: set[str] = set()

    def format(self, text: str) -> str:
        """Return the name of the constant ``struct.Struct`` with a format."""
        return self.formats.setdefault(text, "_" + text.translate(_LETTERS))

    def text(self) -> str:
        functions = [text for message in self.messages for text in self._functions(message)]
        for message in self.messages:
            self._class(message.name, message.fields, f"{_title(message)}.", message.key)
        low, high = self.messages[0].versions.low, self.messages[0].versions.high
        head = [
            f'"""{self.api} ({self.messages[0].key}), versions {low} to {high}. {_WRITTEN}"""',
            "",
            "from __future__ import annotations",
            "",
            *self._imports(functions),
            "",
            *(f'{name} = Struct(">{text}")' for text, name in sorted(self.formats.items())),
            "",
        ]
        return "\n".join(head) + "\n" + "\n".join([*self.structs.values(), *functions]) + "\n"

    def _imports(self, functions: list[str]) -> Iterator[str]:
        every = "\n".join([*self.structs.values(), *functions])
        abstract = [name for name in ("Iterator", "Sequence") if f"{name}[" in every]
        if abstract:
            yield f"from collections.abc import {', '.join(abstract)}"
        if self.formats:
            yield "from struct import Struct"
        yield "from typing import Any"
        if "UUID" in every:
            yield "from uuid import UUID"
        yield ""
        yield f"from .wire import {', '.join(sorted(self.helpers | {'NamedTuple'}, key=str.lower))}"

    def _class(self, name: str, fields: list[Field], words: str, key: int | None = None) -> None:
        for each in fields:
            if each.is_struct and each.kind not in self.structs:
                self._class(each.kind, each.fields, f"{each.kind} of {self.api}.")
        lines = [f"class {name}(NamedTuple):", f'    """{words}"""', ""]
        for each in _present(fields):
            clash = "  # type: ignore[assignment]" if each.name in ("count", "index") else ""
            lines.append(f"    {each.name}: {each.type} = {each.default}{clash}")
        if not lines[-1]:
            lines.pop()
        if name == f"{self.api}Request":
            lines += [
                "",
                "    @staticmethod",
                f"    def response_type() -> type[{self.api}Response]:",
                f"        return {self.api}Response",
            ]
        if key is not None:
            # within the class it would be a field
            lines += ["", "", f"{name}.API_KEY = {key}  # type: ignore[attr-defined]"]
        self.structs[name] = "\n" + "\n".join(lines) + "\n"

    def _functions(self, message: Message) -> Iterator[str]:
        side = "request" if message.name.endswith("Request") else "response"
        classic = message.versions.cut(
            Range(0, message.flexible.low - 1 if not message.flexible.empty else ANY)
        )
        flexible = message.versions.cut(message.flexible)
        readers, writers = [], []
        for kind, versions in (("classic", classic), ("flexible", flexible)):
            if versions.empty:
                continue
            name = f"{side}_{kind}"
            yield Reader(self, message, versions, flexible=kind == "flexible").function(f"_read_{name}")
            yield Writer(self, message, versions, flexible=kind == "flexible").function(f"_write_{name}")
            readers.append((f"_read_{name}", versions))
            writers.append((f"_write_{name}", versions))
        yield self._choice(f"read_{side}", readers)
        if side == "response" and self.api in IN_STEPS:
            yield self._choice("write_response_steps", writers)
            self.helpers.add("all_steps")
            yield (
                "\ndef write_response(version: int) -> Any:\n"
                "    return all_steps(write_response_steps(version))\n"
            )
        else:
            yield self._choice(f"write_{side}", writers)
        if side == "response" and self.api in INLINE and all(each.fixed for each in message.fields):
            yield self._frame(message)

    def _frame(self, message: Message) -> str:
        """Return a function that packs a whole response frame, all of whose fields are numbers, in one call."""
        shapes: dict[str, int] = {}
        for version in range(message.versions.low, message.versions.high + 1):
            fields = [each for each in message.fields if version in each.versions]
            tags = "x" * (version in message.flexible)
            text = f"ii{tags}{''.join(FIXED[each.kind][0] for each in fields)}{tags}"
            values = "".join(f", body.{each.name}" for each in fields)
            size = struct.calcsize(f">{text}") - 4
            made = f"lambda correlation_id, body: {self.format(text)}.pack({size}, correlation_id{values})"
            shapes.setdefault(made, version)
        code = Code()
        for made, version in reversed(shapes.items()):
            code.add(f"if version >= {version}:", f"    return {made}")
        code.lines[-2:] = [f"    return {made}"]
        return "\n".join(["", "def frame_response(version: int) -> Any:", *code.lines, ""])

    def _choice(self, name: str, functions: list[tuple[str, Range]]) -> str:
        """Return a public function that returns the right one of ``functions`` for a version."""
        if len(functions) == 1:
            return f"\ndef {name}(version: int) -> Any:\n    return {functions[0][0]}\n"
        (classic, _), (flexible, versions) = functions
        return f"\ndef {name}(version: int) -> Any:\n    return {flexible} if version >= {versions.low} else {classic}\n"


def _present(fields: list[Field]) -> list[Field]:
    """Return the fields that some known version has."""
    return [each for each in fields if not each.versions.empty]


def _structs(fields: list[Field]) -> Iterator[Field]:
    for each in fields:
        if each.is_struct:
            yield each
            yield from _structs(each.fields)


def _shape(struct: Field) -> list[Any]:
    return [(each.name, each.type, each.default, _shape(each)) for each in struct.fields]


def _name_apart(messages: list[Message]) -> None:
    """Rename structs of the request and the response that have the same name, but not the same fields."""
    shapes: dict[str, set[str]] = {}
    for message in messages:
        for each in _structs(message.fields):
            shapes.setdefault(each.kind, set()).add(repr(_shape(each)))
    for message in messages:
        side = "Request" if message.name.endswith("Request") else "Response"
        for each in _structs(message.fields):
            if len(shapes.get(each.kind, ())) > 1:
                each.kind = f"{side}{each.kind}"


def _title(message: Message) -> str:
    side = "request" if message.name.endswith("Request") else "response"
    return f"{message.name.removesuffix('Request').removesuffix('Response')} {side}, v{message.versions.low}-{message.versions.high}"


class Side:
    """Common part of :class:`Reader` and :class:`Writer`, for the classic or for the flexible versions."""

    def __init__(self, module: Module, message: Message, versions: Range, *, flexible: bool) -> None:
        self.module, self.message, self.versions, self.flexible = module, message, versions, flexible
        self.code = Code()
        self.inline = module.api in INLINE

    def helper(self, name: str) -> str:
        self.module.helpers.add(name)
        return name

    def split(self, fields: list[Field], within: Range) -> tuple[list[Field], list[Field]]:
        """Return the fields that some version of ``within`` has: those in the body, and the tagged ones."""
        body, tagged = [], []
        for each in fields:
            there = each.versions.cut(within)
            if there.empty:
                continue
            if each.tag is not None and self.flexible and not each.tagged.cut(there).empty:
                tagged.append(each)
            else:
                body.append(each)
        return body, tagged

    def runs(self, fields: list[Field], within: Range) -> Iterator[list[Field]]:
        """Yield the fields in runs: adjacent fields of fixed size that the same versions have are one run."""
        run: list[Field] = []
        for each in fields:
            same = run and run[0].versions.cut(within) == each.versions.cut(within)
            if each.fixed and same and run[0].fixed:
                run.append(each)
                continue
            if run:
                yield run
            run = [each]
        if run:
            yield run


class Reader(Side):
    """Generates a reader, ``(data, at, version, left) -> (message, at)``.

    ``at`` is the position in ``data``, ``left`` the number of array elements that the message may still have.
    """

    def function(self, name: str) -> str:
        code = self.code
        values = self.struct(self.message.fields, self.versions)
        code.add(f"return _new({self.message.name}, ({_tuple(values)})), at")
        head = (
            f"\ndef {name}(data: Any, at: int, version: int, left: int) -> tuple[{self.message.name}, int]:"
        )
        self.helper("_new")
        body = "\n".join(code.lines)
        unused = "" if re.search(r"\bversion\b", body) else "    del version\n"
        unused += "" if re.search(r"\bleft\b", body) else "    del left\n"
        return f"{head}\n{unused}{body}\n"

    def struct(self, fields: list[Field], within: Range) -> list[str]:
        """Generate the reading of a struct's fields; returns the expressions of their values, in schema order."""
        names: dict[str, str] = {}
        body, tagged = self.split(fields, within)
        for run in self.runs(body, within):
            targets = []
            condition = run[0].versions.condition(within)
            for each in run:
                names[each.name] = self.code.name(f"{each.name}_")
                targets.append(names[each.name])
                if condition:
                    self.code.add(f"{names[each.name]}: Any = {each.default}")
            if condition:
                with self.code.block(f"if {condition}:"):
                    self.run(run, targets, run[0].versions.cut(within))
            else:
                self.run(run, targets, within)
        for each in tagged:
            names[each.name] = self.code.name(f"{each.name}_")
            self.code.add(f"{names[each.name]}: Any = {each.default}")
        if self.flexible:
            self.tags(tagged, names, within)
        return [names.get(each.name, each.default) for each in _present(fields)]

    def run(self, run: list[Field], targets: list[str], within: Range) -> None:
        code = self.code
        if run[0].fixed:
            text = "".join(FIXED[each.kind][0] for each in run)
            size = sum(FIXED[each.kind][1] for each in run)
            code.add(
                f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {self.module.format(text)}.unpack_from(data, at)"
            )
            code.add(f"at += {size}")
            return
        (each,), (target,) = run, targets
        if each.array:
            self.array(each, target, within)
        else:
            self.one(each, target, within)

    def one(self, each: Field, target: str, within: Range) -> None:
        """Generate the reading of a value that is neither an array nor of fixed size."""
        code = self.code
        if each.is_struct:
            nullable = each.nullable.cut(within)
            if nullable.empty:
                values = self.struct(each.fields, within)
                code.add(f"{target} = _new({each.kind}, ({_tuple(values)}))")
                return
            code.add("present = data[at]", "at += 1")
            with code.block("if present > 127:"):
                code.add(f"{target} = None")
            with code.block("else:"):
                values = self.struct(each.fields, within)
                code.add(f"{target} = _new({each.kind}, ({_tuple(values)}))")
        elif each.kind == "uuid":
            code.add(f"{target} = {self.helper('read_uuid')}(data[at : at + 16])", "at += 16")
        else:
            self.sized(each, target, within)

    def sized(self, each: Field, target: str, within: Range) -> None:
        """Generate the reading of a string, bytes or records."""
        code = self.code
        wide = each.kind != "string"
        if not self.inline:
            helper = f"read_{'compact_' if self.flexible else ''}{each.kind}"
            code.add(f"{target}, at = {self.helper(helper)}(data, at)")
            self.refuse_null(each, target, within)
            return
        if self.flexible and each.kind != "records":
            self.short(each, target, within)
            return
        if self.flexible:
            self.varint("size")
            code.add("size -= 1")
        elif wide:
            code.add(f"(size,) = {self.module.format('i')}.unpack_from(data, at)", "at += 4")
        else:
            code.add(f"(size,) = {self.module.format('h')}.unpack_from(data, at)", "at += 2")
        value = {
            "string": 'str(data[at:end], "utf-8")',
            "bytes": "bytes(data[at:end])",
            "records": "data[at:end]",
        }[each.kind]
        with code.block("if size >= 0:"):
            code.add("end = at + size", f"{target} = {value}", "at = end")
        self.null(each, target, within)

    def short(self, each: Field, target: str, within: Range) -> None:
        """The same for a string or bytes of a flexible version, with a fast path for lengths of one byte."""
        code = self.code
        nullable = each.nullable.cut(within)
        code.add("size = data[at]")
        with code.block("if 0 < size < 128:"):
            part = "data[at + 1 : end]"
            # a response may be a view of a larger buffer
            text = f"{part}.decode()" if self.message.name.endswith("Request") else f'str({part}, "utf-8")'
            value = text if each.kind == "string" else f"bytes({part})"
            code.add("end = at + size", f"{target} = {value}", "at = end")
        if nullable == within:
            with code.block("elif not size:"):
                code.add(f"{target} = None", "at += 1")
        with code.block("else:"):
            code.add(f"{target}, at = {self.helper(f'read_compact_{each.kind}')}(data, at)")
            self.refuse_null(each, target, within)

    def null(self, each: Field, target: str, within: Range) -> None:
        """Generate what follows ``if size >= 0``: any negative length is null, if null is allowed, or an error."""
        code = self.code
        nullable = each.nullable.cut(within)
        condition = None if nullable.empty else nullable.condition(within)
        refuse = f'raise {self.helper("null_in")}("{self.message.name}.{each.name}")'
        if condition:
            with code.block(f"elif {condition}:"):
                code.add(f"{target} = None")
        with code.block("else:"):
            code.add(refuse if nullable.empty or condition else f"{target} = None")

    def refuse_null(self, each: Field, target: str, within: Range) -> None:
        """Generate a check for null after a value that was read by a helper, which allows null."""
        nullable = each.nullable.cut(within)
        condition = None if nullable.empty else nullable.condition(within)
        if nullable.empty or condition:
            words = f"{target} is None" + (f" and not ({condition})" if condition else "")
            with self.code.block(f"if {words}:"):
                self.code.add(f'raise {self.helper("null_in")}("{self.message.name}.{each.name}")')

    def varint(self, name: str) -> None:
        self.code.add(f"{name} = data[at]", "at += 1")
        with self.code.block(f"if {name} > 127:"):
            self.code.add(f"{name}, at = {self.helper('long_varint')}(data, at - 1)")

    def array(self, each: Field, target: str, within: Range) -> None:
        code = self.code
        least = self.smallest(each, within)
        if not self.inline:
            helper = f"read_{'compact_' if self.flexible else ''}count"
            code.add(
                f'size, at, left = {self.helper(helper)}(data, at, left, {least}, "{self.message.name}.{each.name}")'
            )
            self.elements(each, target, within, "if size < 0:")
            self.refuse_null(each, target, within)
            return
        if self.flexible:
            self.varint("size")
            code.add("size -= 1")
        else:
            code.add(f"(size,) = {self.module.format('i')}.unpack_from(data, at)", "at += 4")
        with code.block("if size >= 0:"):
            room = "len(data) - at" if least == 1 else f"(len(data) - at) // {least}"
            code.add("left -= size")
            with code.block(f"if size > {room} or left < 0:"):
                code.add(f'raise {self.helper("too_many")}("{self.message.name}.{each.name}", size, left)')
            self.elements(each, target, within)
        self.null(each, target, within)

    def elements(self, each: Field, target: str, within: Range, null: str = "") -> None:
        """Generate the reading of ``size`` elements; ``null`` is the condition for a null array, if any."""
        code = self.code
        if each.kind in FIXED and not each.is_struct:
            letter, width = FIXED[each.kind][0], FIXED[each.kind][1]
            if null:
                code.add(
                    f'{target} = None if size < 0 else list({self.helper("unpack_from")}(f">{{size}}{letter}", data, at))'
                )
                code.add(f"at += {width} * max(size, 0)")
            else:
                code.add(
                    f'{target} = list({self.helper("unpack_from")}(f">{{size}}{letter}", data, at))',
                    f"at += {width} * size",
                )
            return
        declared = any(f" {target}: Any" in line for line in code.lines)
        name = target if declared else f"{target}: Any"
        bare = None if null else self.bare(each, within)
        if bare is not None:
            text, width, checks, numbers = bare
            values = [
                f"{inner.name}_" if inner in numbers else inner.default for inner in _present(each.fields)
            ]
            items = "".join(f"{inner.name}_, " for inner in numbers)
            code.add(f"end = at + {width} * size")
            with code.block(f"if {' and '.join(['size > 1', *checks])}:"):
                code.add(
                    f"{name} = [_new({each.kind}, ({_tuple(values)})) "
                    f"for {items} in {self.module.format(text)}.iter_unpack(data[at:end])]",
                    "at = end",
                )
            with code.block("else:"):
                code.add(f"{target} = []")
                self.one_by_one(each, target, within)
            return
        start = "None if size < 0 else []" if null else "[]"
        code.add(f"{name} = {start}")
        self.one_by_one(each, target, within)

    def one_by_one(self, each: Field, target: str, within: Range) -> None:
        code = self.code
        with code.block("for _ in range(size):"):
            item = code.name("item")
            inner = Field(
                each.name, each.kind, False, within, Range(1, 0), None, Range(1, 0), "", each.fields
            )
            self.one(inner, item, within)
            code.add(f"{target}.append({item})")

    def bare(self, each: Field, within: Range) -> tuple[str, int, list[str], list[Field]] | None:
        """Return how to read all elements in one call, for elements whose fields are numbers, and strings and tagged
        fields that mostly have their defaults.

        That is their struct format, their size in bytes, the conditions to check first, and the number fields; None
        if elements have other fields, too.
        """
        text, width = "", 0
        empty: dict[int, bytes] = {}
        numbers = []
        for inner in self.split(each.fields, within)[0]:
            if inner.versions.cut(within) != within:
                return None
            if inner.fixed:
                text += FIXED[inner.kind][0]
                width += FIXED[inner.kind][1]
                numbers.append(inner)
            elif self.flexible and inner.kind == "string" and not inner.array and inner.may_be_none:
                empty[width] = b"\0" if inner.default == "None" else b"\1"
                text, width = text + "x", width + 1
            else:
                return None
        if self.flexible:
            empty[width] = b"\0"
            text, width = text + "x", width + 1
        checks = [f"data[at + {at} : end : {width}] == {byte!r} * size" for at, byte in empty.items()]
        return (text, width, checks, numbers) if numbers else None

    def smallest(self, each: Field, within: Range) -> int:
        """Return the smallest size of an element in bytes, over all versions of ``within``."""
        if not each.is_struct:
            return self._least(each.kind)
        body, _ = self.split(each.fields, within)
        total = int(self.flexible)
        for inner in body:
            if inner.versions.cut(within) != within:
                continue
            if inner.array:
                total += 1 if self.flexible else 4
            elif inner.is_struct:
                total += 1 if not inner.nullable.empty else self.smallest(inner, within)
            else:
                total += self._least(inner.kind)
        return max(1, total)

    def _least(self, kind: str) -> int:
        if kind in FIXED:
            return FIXED[kind][1]
        if kind == "uuid":
            return 16
        return 1 if self.flexible else 2 if kind == "string" else 4

    def tags(self, tagged: list[Field], names: dict[str, str], within: Range) -> None:
        """Generate the reading of the tagged fields at the end of a struct; skips unknown ones."""
        code = self.code
        with code.block("if data[at]:"):
            if tagged:
                self.known_tags(tagged, names, within)
            else:
                code.add(f"at = {self.helper('skip_tags')}(data, at)")
        with code.block("else:"):
            code.add("at += 1")

    def known_tags(self, tagged: list[Field], names: dict[str, str], within: Range) -> None:
        code = self.code
        tag = code.name("tag")
        code.add(f"tags, at = {self.helper('read_tags')}(data, at)")
        with code.block(f"for {tag}, start, stop in tags:"):
            for number, each in enumerate(sorted(tagged, key=lambda each: each.tag or 0)):
                condition = each.tagged.cut(each.versions).condition(within)
                words = f"{tag} == {each.tag}" + (f" and {condition}" if condition else "")
                with code.block(f"{'if' if number == 0 else 'elif'} {words}:"):
                    code.add("at = start")
                    self.tag_value(each, names[each.name], each.versions.cut(within))
                    with code.block("if at != stop:"):
                        code.add(
                            f'raise {self.helper("malformed")}("a tagged field of another length than it says")'
                        )
            code.add("at = stop")

    def tag_value(self, each: Field, target: str, within: Range) -> None:
        if each.fixed:
            self.run([each], [target], within)
        elif each.array:
            self.array(each, target, within)
        else:
            self.one(each, target, within)


class Writer(Side):
    """Generates a writer, ``(out, body, version)``, for any object with the fields of that version."""

    name = ""
    #: Text of the functions that the writer calls.
    others = ""
    #: It yields after each element of an array.
    in_steps = False

    def function(self, name: str) -> str:
        self.name = name
        self.struct("body", self.message.fields, self.versions)
        return self.others + self.text(name, "body")

    def text(self, name: str, given: str) -> str:
        if not self.code.lines:
            self.code.add(f"del out, {given}, version")
        body = "\n".join(self.code.lines)
        result = "Iterator[None]" if self.in_steps else "None"
        head = f"\ndef {name}(out: bytearray, {given}: Any, version: int) -> {result}:"
        unused = [
            word for word in (given, "version") if self.code.lines and not re.search(rf"\b{word}\b", body)
        ]
        lines = f"    del {', '.join(unused)}\n" if unused else ""
        return f"{head}\n{lines}{body}\n"

    def prepared(self, expression: str, each: Field, within: Range) -> None:
        """Generate the writing of an array that may be a ``PreparedArray``, as a function of its own."""
        writer = Writer(self.module, self.message, within, flexible=self.flexible)
        writer.plain_array("items", each, within)
        name = f"{self.name}_{each.name}"
        self.others += writer.text(name, "items")
        self.code.add(f"{self.helper('write_array')}(out, {expression}, version, {name})")

    def struct(self, item: str, fields: list[Field], within: Range) -> None:
        body, tagged = self.split(fields, within)
        runs = list(self.runs(body, within))
        for run in runs:
            condition = run[0].versions.condition(within)
            if condition:
                with self.code.block(f"if {condition}:"):
                    self.run(item, run, run[0].versions.cut(within))
            elif run is runs[-1] and run[0].fixed and self.flexible and not tagged:
                self.code.add(f"out += {self.packed(item, run)}")
                return
            else:
                self.run(item, run, within)
        if self.flexible:
            self.tags(item, tagged, within)

    def packed(self, item: str, run: list[Field], *, last: bool = True) -> str:
        """Return an expression that packs numbers; if they end a flexible struct, with its empty tagged fields."""
        text = "".join(FIXED[each.kind][0] for each in run) + "x" * (last and self.flexible)
        return f"{self.module.format(text)}.pack({', '.join(f'{item}.{each.name}' for each in run)})"

    def run(self, item: str, run: list[Field], within: Range) -> None:
        if run[0].fixed:
            self.code.add(f"out += {self.packed(item, run, last=False)}")
            return
        (each,) = run
        if each.array:
            self.array(f"{item}.{each.name}", each, within)
        else:
            self.one(f"{item}.{each.name}", each, within)

    def one(self, expression: str, each: Field, within: Range) -> None:
        code = self.code
        if each.is_struct:
            if each.nullable.cut(within).empty:
                name = code.name(f"{each.name}_")
                code.add(f"{name} = {expression}")
                self.struct(name, each.fields, within)
                return
            name = code.name(f"{each.name}_")
            code.add(f"{name} = {expression}")
            with code.block(f"if {name} is None:"):
                code.add("out.append(255)")
            with code.block("else:"):
                code.add("out.append(1)")
                self.struct(name, each.fields, within)
        elif each.kind == "uuid":
            code.add(
                f"uuid = {expression}", f"out += {self.helper('NO_UUID')} if uuid is None else uuid.bytes"
            )
        else:
            self.sized(expression, each)

    def sized(self, expression: str, each: Field) -> None:
        code = self.code
        if not self.inline:
            kind = "string" if each.kind == "string" else "bytes"
            code.add(
                f"{self.helper('write_' + ('compact_' if self.flexible else '') + kind)}(out, {expression})"
            )
            return
        code.add(f"value = {expression}")
        null = b"\0" if self.flexible else b"\xff\xff" if each.kind == "string" else b"\xff\xff\xff\xff"
        with code.block("if value is None:"):
            code.add(f"out += {null!r}")
        with code.block("else:"):
            if each.kind == "string":
                code.add("data = value.encode()")
            else:
                code.add("data = value")
            if self.flexible:
                code.add("size = len(data) + 1")
                code.add(
                    f"out += {self.helper('varint')}(size) if size > 127 else {self.helper('BYTES')}[size]"
                )
            else:
                code.add(
                    f"out += {self.module.format('h' if each.kind == 'string' else 'i')}.pack(len(data))"
                )
            code.add(f"{self.helper('add_records')}(out, data)" if each.kind == "records" else "out += data")

    def array(self, expression: str, each: Field, within: Range) -> None:
        if PREPARED.get(self.module.api) == each.name and self.message.name.endswith("Response"):
            self.prepared(expression, each, within)
        else:
            self.plain_array(expression, each, within)

    def plain_array(self, expression: str, each: Field, within: Range) -> None:
        code = self.code
        items, item = code.name(f"{each.name}_"), code.name("item")
        code.add(f"{items} = {expression}")
        if not self.inline:
            code.add(
                f"{self.helper('write_compact_count' if self.flexible else 'write_count')}(out, {items})"
            )
            if each.kind in FIXED and not each.is_struct:
                code.add(
                    f'out += {self.helper("pack")}(f">{{len({items} or ())}}{FIXED[each.kind][0]}", *({items} or ()))'
                )
                return
            with code.block(f"for {item} in {items} or ():"):
                self.element(item, each, within)
                if IN_STEPS.get(self.module.api) == each.name and self.message.name.endswith("Response"):
                    self.in_steps = True
                    code.add("yield")
            return
        with code.block(f"if {items} is None:"):
            code.add(f"out += {(b'' + bytes([0]) if self.flexible else bytes([255] * 4))!r}")
        with code.block("else:"):
            if self.flexible:
                code.add(f"size = len({items}) + 1")
                code.add(
                    f"out += {self.helper('varint')}(size) if size > 127 else {self.helper('BYTES')}[size]"
                )
            else:
                code.add(f"out += {self.module.format('i')}.pack(len({items}))")
            if each.kind in FIXED and not each.is_struct:
                code.add(f'out += {self.helper("pack")}(f">{{len({items})}}{FIXED[each.kind][0]}", *{items})')
                return
            body, tagged = self.split(each.fields, within)
            runs = list(self.runs(body, within))
            if (
                len(runs) == 1
                and not tagged
                and runs[0][0].fixed
                and not runs[0][0].versions.condition(within)
            ):
                code.add(f'out += b"".join([{self.packed(item, runs[0])} for {item} in {items}])')
                return
            with code.block(f"for {item} in {items}:"):
                self.element(item, each, within)

    def element(self, item: str, each: Field, within: Range) -> None:
        if each.is_struct:
            self.struct(item, each.fields, within)
        else:
            self.one(
                item, Field(each.name, each.kind, False, within, Range(1, 0), None, Range(1, 0), ""), within
            )

    def tags(self, item: str, tagged: list[Field], within: Range) -> None:
        code = self.code
        if not tagged:
            code.add("out.append(0)")
            return
        tags = code.name("tags")
        code.add(f"{tags} = []")
        for each in sorted(tagged, key=lambda each: each.tag or 0):
            value = code.name(f"{each.name}_")
            condition = each.tagged.cut(each.versions).condition(within)
            code.add(f"{value} = getattr({item}, {each.name!r}, {each.default})")
            words = _differs(value, each) + (f" and ({condition})" if condition else "")
            with code.block(f"if {words}:"):
                whole = code.name("whole")
                code.add(f"{whole}, out = out, bytearray()")
                # a struct in a tag has (empty) tagged fields of its own, a plain value has none
                holder = Field(
                    each.name,
                    each.kind,
                    each.array,
                    within,
                    each.nullable,
                    None,
                    Range(1, 0),
                    each.default,
                    each.fields,
                )
                self.value(value, holder, each.versions.cut(within))
                code.add(f"{tags}.append(({each.tag}, out))", f"out = {whole}")
        code.add(f"{self.helper('write_tags')}(out, {tags})")

    def value(self, expression: str, each: Field, within: Range) -> None:
        if each.fixed:
            self.code.add(f"out += {self.module.format(FIXED[each.kind][0])}.pack({expression})")
        elif each.array:
            self.array(expression, each, within)
        else:
            self.one(expression, each, within)


def _differs(value: str, each: Field) -> str:
    """Return the condition for writing a tagged field: that its value is not the default."""
    if each.default == "None":
        return f"{value} is not None"
    if each.default in ("()", "False"):
        return value
    return f"not {value}" if each.default == "True" else f"{value} != {each.default}"


def _tuple(values: list[str]) -> str:
    return f"{', '.join(values)}," if len(values) == 1 else ", ".join(values)


# --- files --------------------------------------------------------------------------------------------------


def schemas() -> dict[str, list[Path]]:
    """Return the schema files (request, response) of each API that has both."""
    import kafka.protocol.schemas.resources as shipped

    found: dict[str, list[Path]] = {}
    for folder in (Path(next(iter(shipped.__path__))), OURS):
        for path in sorted(folder.glob("*Request.json")):
            api = path.name.removesuffix("Request.json")
            response = folder / f"{api}Response.json"
            if response.exists():
                found[api] = [path, response]
    return found


def modules() -> dict[str, str]:
    """Return the text of each module by its file name."""
    made = {}
    found = []
    for api, paths in schemas().items():
        messages = [load(path) for path in paths]
        made[f"{snake(api)}.py"] = Module(api, messages).text()
        found.append(messages[0])
    made["_apis.py"] = _table(sorted(found, key=lambda request: request.key))
    return _formatted(made)


def _table(requests: list[Message]) -> str:
    """Return the module with the numbers and versions of all APIs."""
    names = [(request, request.name.removesuffix("Request")) for request in requests]
    rows = []
    for request, name in names:
        flexible = request.flexible.cut(request.versions)
        first = None if flexible.empty else flexible.low
        versions = f"{request.versions.low}, {request.versions.high}, {first}"
        rows.append(f'    (ApiKey.{snake(name).upper()}, "{name}", {versions}),')
    return "\n".join(
        (
            f'"""The APIs whose messages are here: numbers, names and versions. {_WRITTEN}"""',
            "",
            "from enum import IntEnum",
            "from typing import Final",
            "",
            "",
            "class ApiKey(IntEnum):",
            '    """Kafka\'s API numbers, and kohort\'s own."""',
            "",
            *(f"    {snake(name).upper()} = {request.key}" for request, name in names),
            "",
            "",
            "#: Key, name, first and last version, and the first that is flexible (KIP-482); None where none is.",
            "ROWS: Final = (",
            *rows,
            ")",
            "",
        )
    )


def _formatted(texts: dict[str, str]) -> dict[str, str]:
    """Return modules with sorted imports, formatted by ``ruff``."""
    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text)
        for words in (["check", "--quiet", "--no-cache", "--select", "I", "--fix"], ["format", "--no-cache"]):
            command = [sys.executable, "-m", "ruff", *words, "--config", str(ROOT / "pyproject.toml"), folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)
        return {name: (Path(folder) / name).read_text() for name in texts}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write protocol/messages/ from the schemas of messages.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a module is stale")
    check = parser.parse_args().check
    stale = []
    for name, text in modules().items():
        path = TARGET / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                path.write_text(text)
    if stale:
        print(("not what the schemas say: " if check else "written: ") + ", ".join(stale))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
