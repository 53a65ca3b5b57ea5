"""``kohort log``: shows what the files of a data folder contain, checks them, removes strays on demand."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from ..protocol import JsonObject
from .commands import run_program
from .screen import OK, WRONG_USE, document

if TYPE_CHECKING:
    from ..log.tools.dump import Dumped
    from ..log.tools.verify import Finding, VerifiedFolder

#: Exit code: something is damaged.
DAMAGE: Final = 1

_OFFSETS_FOLDER: Final = "__consumer_offsets-"
_SHARE_STATE_FOLDER: Final = "__share_group_state-"
#: Returns the kind of a record, and its fields by name, from its key and value.
_Reader: TypeAlias = "Callable[[bytes | None, bytes | None], tuple[str, JsonObject]]"
_INDENTED: Final = {"record", "marker"}
#: Fields of a partition in the JSON document.
_TOLD: Final = ("topic", "partition", "segments", "batches", "records", "bytes", "start_offset", "end_offset")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort log`` its commands."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "read everything in a data folder, also one in use or of Apache Kafka, and tell what is damaged"
    verify = commands.add_parser("verify", help=words, description=f"{words[0].upper()}{words[1:]}.")
    verify.add_argument("folder", metavar="DIR", help="the data folder")
    verify.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    words = "show what is in *.log, *.index, *.timeindex, *.txnindex and *.snapshot files, and in checkpoints"
    dump = commands.add_parser("dump", help=words, description=f"{words[0].upper()}{words[1:]}.")
    dump.add_argument("files", metavar="FILE", nargs="+")
    dump.add_argument("--records", action="store_true", help="the records of each batch too")
    dump.add_argument(
        "--offsets",
        action="store_true",
        help="read records as those of __consumer_offsets (by itself for files in its folders)",
    )
    dump.add_argument("--json", action="store_true", help="one JSON object a line")
    words = "list the partitions that a broker of a cluster keeps and does not serve, or remove some"
    strays = commands.add_parser("strays", help=words, description=f"{words[0].upper()}{words[1:]}.")
    strays.add_argument("folder", metavar="DIR", help="the data folder, also one in use")
    strays.add_argument(
        "--remove",
        metavar="STRAY",
        nargs="+",
        default=(),
        help="folders from the list, or 'all': they are gone",
    )
    strays.add_argument("--json", action="store_true", help="one JSON document instead of a table")


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code. Errors are one line on standard error."""
    action = {"verify": _verify_logs, "dump": _dump_file, "strays": _list_strays}[options.action]
    return run_program("kohort log", lambda: action(options), refused=WRONG_USE)


# --- verify -------------------------------------------------------------------------------------------------


def _verify_logs(options: argparse.Namespace) -> int:
    from ..log.tools.verify import verify_folder

    found = verify_folder(options.folder)
    damaged = _damage_among(found.all_findings())
    if options.json:
        print(document({"damaged": bool(damaged), **_fields_of(found)}))
    else:
        _show_verified(found, len(damaged))
    return DAMAGE if damaged else OK


def _damage_among(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level != "note"]


def _fields_of(found: VerifiedFolder) -> dict[str, object]:
    return {
        "folder": found.path,
        "in_use": found.in_use,
        "clean_stop": found.clean_stop,
        "findings": list(found.all_findings()),
        "partitions": [
            {name: getattr(partition, name) for name in _TOLD}
            | {"damaged": bool(_damage_among(partition.findings))}
            for partition in found.partitions
        ],
    }


def _show_verified(found: VerifiedFolder, damaged: int) -> None:
    from rich.console import Console

    from .tables import clean, table

    console = Console(highlight=False, markup=False)
    headings = ["LOG", "START", "END", "RECORDS", "BATCHES", "SEGMENTS", "BYTES", ""]
    rows = []
    for p in found.partitions:
        sizes = (p.records, p.batches, p.segments, p.bytes)
        state = "damaged" if _damage_among(p.findings) else "ok"
        rows.append((f"{p.topic}-{p.partition}", p.start_offset, p.end_offset, *sizes, state))
    console.print(table(headings, rows))
    for finding in found.all_findings():
        where = finding.file + (f", byte {finding.position}" if finding.position >= 0 else "")
        label = "note" if finding.level == "note" else "DAMAGE"
        console.print(
            f"\n{label}: {clean(where)}\n  {clean(finding.what)}\n  {finding.advice}", soft_wrap=True
        )
    state = "in use" if found.in_use else "stopped cleanly" if found.clean_stop else "not stopped cleanly"
    verdict = f"{damaged} damaged places" if damaged else "nothing is damaged"
    console.print(f"\n{clean(found.path)}: {state}, {len(rows)} partitions, {verdict}", soft_wrap=True)


# --- strays -------------------------------------------------------------------------------------------------


def _list_strays(options: argparse.Namespace) -> int:
    from ..log import remove_stray, strays_of
    from ..protocol import KohortError

    if not os.path.isdir(options.folder):
        raise KohortError(f"there is no folder {options.folder}: give the data folder of a broker")
    found = strays_of(options.folder)
    unknown = set(options.remove) - {"all"} - {each.folder for each in found}
    if unknown:
        raise KohortError(f"no strays: {', '.join(sorted(unknown))}; 'kohort log strays DIR' lists them")
    rows = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "topic_id": None if each.topic_id is None else str(each.topic_id),
            "bytes": _folder_bytes(os.path.join(options.folder, each.folder)),
            "folder": each.folder,
            "removed": bool({"all", each.folder} & set(options.remove)),
        }
        for each in found
    ]
    for each, row in zip(found, rows, strict=True):
        if row["removed"]:
            remove_stray(options.folder, each)
    if options.json:
        print(document({"folder": options.folder, "strays": rows}))
    else:
        _show_strays(rows)
    return OK


def _show_strays(rows: list[JsonObject]) -> None:
    from rich.console import Console

    from .tables import clean, table

    if not rows:
        print("no strays")
        return
    headings = ["TOPIC", "PARTITION", "BYTES", "FOLDER", ""]
    cells = [
        (
            clean(row["topic"]),
            row["partition"],
            row["bytes"],
            clean(row["folder"]),
            "removed" if row["removed"] else "",
        )
        for row in rows
    ]
    Console(highlight=False, markup=False, width=400).print(table(headings, cells))


def _folder_bytes(folder: str) -> int:
    """Bytes of the files right in a folder; 0 where a link leads to nothing."""
    if not os.path.exists(folder):
        return 0
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())


# --- dump ---------------------------------------------------------------------------------------------------


def _dump_file(options: argparse.Namespace) -> int:
    from ..log.tools.dump import dump_file

    code = OK
    for path in options.files:
        folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
        reader = _reader_of(folder, offsets=options.offsets)
        if not options.json and len(options.files) > 1:
            print(f"{_quote_text(path)}:")
        for entry in _decode_entries(dump_file(path, records=options.records), reader):
            if entry.kind == "damage":
                code = DAMAGE
            print(_json_line(path, entry) if options.json else _text_line(entry))
    return code


def _reader_of(folder: str, *, offsets: bool) -> _Reader | None:
    """What reads the records of a folder's topic; None where they are a client's."""
    if _SHARE_STATE_FOLDER in folder and not offsets:
        from ..share_state.readable import readable_state

        return readable_state
    if offsets or _OFFSETS_FOLDER in folder:
        from ..offsets_topic.readable import readable

        return readable
    return None


def _decode_entries(entries: Iterable[Dumped], reader: _Reader | None) -> Iterable[Dumped]:
    """The entries, with records of coordinators' topics decoded."""
    for entry in entries:
        if reader is not None and entry.kind == "record":
            key, value = entry.fields.pop("key"), entry.fields.pop("value")
            what, fields = reader(key, value)
            entry.fields.update({"is": what} | fields)
            if what in ("unreadable", "other"):
                entry.fields.update({"key": key, "value": value})
        yield entry


def _json_line(path: str, entry: Dumped) -> str:
    fields = {"file": path, "kind": entry.kind, **entry.fields}
    return json.dumps(fields, ensure_ascii=False, default=_encodable_value)


def _encodable_value(value: object) -> object:
    """Bytes as a string if they are UTF-8, otherwise as {"hex": ...}."""
    assert isinstance(value, bytes)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def _text_line(entry: Dumped) -> str:
    words = [f"{name}={_word_of(value)}" for name, value in entry.fields.items() if value is not False]
    kind = "DAMAGE" if entry.kind == "damage" else entry.kind
    return " ".join(["  " * (entry.kind in _INDENTED) + kind, *words])


def _word_of(value: object) -> str:
    if isinstance(value, bytes):
        try:
            return _quote_text(value.decode())
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, str):
        return _quote_text(value)
    if isinstance(value, dict):
        return "{" + " ".join(f"{name}={_word_of(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_word_of, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _quote_text(text: str) -> str:
    """The text, quoted and escaped unless it is a plain word: names come from clients."""
    plain = text and text.isprintable() and not set(text) & set(" \"'=[]{},")
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
