"""Keys, values and headers of records as people read them, whatever is in them: JSON, text, or bytes in
hexadecimal; and what a schema registry decodes.
"""

from __future__ import annotations

import codecs
import json
import threading
import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...admin.notation import bytes_as_json
from ...client import ConfigError
from ...client.schema_registry import RegistryDecoder, RegistryError, SchemaRegistry

#: Bytes that are shown in a list, and on a record's own page; JSON of more bytes is shown as text.
BRIEF: Final = 400
WHOLE: Final = 65_536
_MOST_JSON: Final = 4 * 1024 * 1024
#: Bytes in a row of hexadecimal.
_HEX_ROW: Final = 16
_NUMBER_BYTES: Final = (4, 8)
#: A registry that did not answer is not asked again for this long; nor is it for a schema it does not have.
_PAUSE_S: Final = 30.0
_MOST_SCHEMAS: Final = 1_000
#: A zero byte and the schema's id.
_HEAD_BYTES: Final = 5
_WHITE: Final = frozenset("\n\r\t")


class ShownBytes(NamedTuple):
    """Bytes as they are shown. ``kind``: null, empty, json, text, number or hex, or the format that the
    schema registry has decoded. ``size`` is that of all bytes, ``is_cut`` if not all are shown, and ``note``
    says why they are not decoded.
    """

    kind: str
    text: str
    size: int
    is_cut: bool = False
    note: str = ""


class DecodedBytes(NamedTuple):
    """What a registry makes of bytes: the format and id of the schema, and a value of JSON."""

    kind: str
    schema_id: int
    value: object


class RegistryValues:
    """Decodes what is written with schemas of a registry, whatever their format, in any thread.

    Avro and JSON are decoded; Protobuf needs classes that only its owners have.
    """

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._decoders: dict[str, RegistryDecoder] = {}
        self._kinds: dict[int, str] = {}
        self._refused: dict[int, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def decode(self, data: bytes | None) -> DecodedBytes | str:
        """The decoded value; a text if there is none: why, or "" for bytes without a schema's id."""
        if data is None or len(data) <= _HEAD_BYTES or data[0] != 0:
            return ""
        schema_id = int.from_bytes(data[1:_HEAD_BYTES], "big")
        with self._lock:
            for key in (schema_id, -1):
                until, reason = self._refused.get(key, (0.0, ""))
                if time.monotonic() < until:
                    return reason
            try:
                return self._decode_by(schema_id, data)
            except RegistryError as error:
                return self._refuse(-1, f"the schema registry does not answer: {error}")
            except ConfigError as error:
                return self._refuse(schema_id, str(error))
            except Exception as error:
                if type(error) is LookupError:
                    return self._refuse(schema_id, str(error))
                # of the libraries, IndexError among them: the bytes are not what the schema says
                return f"it cannot be decoded by schema {schema_id}: {type(error).__name__}: {error}"

    def _decode_by(self, schema_id: int, data: bytes) -> DecodedBytes | str:
        kind = self._kinds.get(schema_id)
        if kind is None:
            if len(self._kinds) >= _MOST_SCHEMAS:
                self._kinds.clear()
            kind = self._kinds[schema_id] = self._registry.kind_of(schema_id)
        if kind not in ("avro", "json"):
            return f"{kind.capitalize()} of schema {schema_id} is not decoded"
        if kind not in self._decoders:
            self._decoders[kind] = self._registry.avro() if kind == "avro" else self._registry.json()
        return DecodedBytes(kind, schema_id, _plain(self._decoders[kind](data)))

    def _refuse(self, key: int, reason: str) -> str:
        if len(self._refused) >= _MOST_SCHEMAS:
            self._refused.clear()
        self._refused[key] = (time.monotonic() + _PAUSE_S, reason)
        return reason


def _plain(value: object) -> object:
    """A decoded value as JSON has it: bytes as texts or base64, times and the like as their texts."""
    return json.loads(json.dumps(value, default=_as_plain, ensure_ascii=False))


def _as_plain(value: object) -> object:
    return bytes_as_json(value) if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Shows bytes, decoded by the registry if there is one."""

    registry: RegistryValues | None = None

    def show(self, data: bytes | None, most: int = BRIEF, *, indent: int | None = None) -> ShownBytes:
        """Bytes as text of about ``most`` bytes; JSON is indented if ``indent`` says how far."""
        decoded = self.decoded(data)
        if isinstance(decoded, DecodedBytes):
            text = _json_text(decoded.value, most, indent)
            shown = _cut_text(f"{decoded.kind} {decoded.schema_id}", text, len(data or b""), most)
        else:
            shown = show_bytes(data, most, indent=indent)._replace(note=decoded)
        return shown

    def decoded(self, data: bytes | None) -> DecodedBytes | str:
        """What the registry makes of it, or why nothing."""
        return "" if self.registry is None else self.registry.decode(data)

    def equals(self, data: bytes | None, wanted: str) -> bool:
        """Whether bytes are this text, this number, these bytes in hexadecimal, or are decoded to it."""
        if data is None:
            return False
        if data == wanted.encode() or data.hex() == wanted.replace(" ", "").lower():
            return True
        if len(data) in _NUMBER_BYTES and str(_number_of(data)) == wanted:
            return True
        decoded = self.decoded(data)
        if not isinstance(decoded, DecodedBytes):
            return False
        return wanted in (decoded.value, json.dumps(decoded.value, ensure_ascii=False))

    def contains(self, data: bytes | None, wanted: str) -> bool:
        """Whether bytes, or what they are decoded to, contain a text, which is in lower case."""
        if data is None:
            return False
        if wanted.encode() in data.lower():
            return True
        if not (wanted.isascii() and data.isascii()) or b"\\u" in data:
            # letters beyond ASCII: bytes have no upper and lower case of them; JSON may have them escaped
            text = show_bytes(data, len(data)).text if b"\\u" in data else data.decode(errors="replace")
            if wanted in text.casefold():
                return True
        decoded = self.decoded(data)
        if not isinstance(decoded, DecodedBytes):
            return False
        return wanted in json.dumps(decoded.value, ensure_ascii=False).casefold()


def show_bytes(data: bytes | None, most: int = BRIEF, *, indent: int | None = None) -> ShownBytes:
    """Bytes as JSON, text, a number of 4 or 8 bytes, or hexadecimal."""
    if data is None:
        return ShownBytes("null", "null", 0)
    if not data:
        return ShownBytes("empty", "", 0)
    if data.lstrip()[:1] in (b"{", b"[") and len(data) <= _MOST_JSON:
        try:
            text = _json_text(json.loads(data), most, indent)
            return _cut_text("json", text, len(data), most)
        except (ValueError, RecursionError):
            pass
    head = data[: 4 * most]
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) == len(data))
    except UnicodeDecodeError:
        return _show_hex(data, most, indent)
    if all(char.isprintable() or char in _WHITE for char in text[:most]):
        return _cut_text("text", text, len(data), most, is_part=len(head) < len(data))
    return _show_hex(data, most, indent)


def _json_text(value: object, most: int, indent: int | None) -> str:
    """A value as JSON, as much of it as it takes for more than ``most`` characters: the indents of what is
    nested deeply are a thousand times as long as the value.
    """
    parts, length = list[str](), 0
    for part in json.JSONEncoder(ensure_ascii=False, indent=indent).iterencode(value):
        parts.append(part)
        length += len(part)
        if length > most:
            break
    return "".join(parts)


def _cut_text(kind: str, text: str, size: int, most: int, *, is_part: bool = False) -> ShownBytes:
    # lone surrogates, which JSON may have, cannot be sent
    shown = text[:most].encode(errors="replace").decode()
    return ShownBytes(kind, shown, size, is_part or len(text) > most)


def _show_hex(data: bytes, most: int, indent: int | None) -> ShownBytes:
    if len(data) in _NUMBER_BYTES:
        return ShownBytes("number", f"{_number_of(data)} ({data.hex(' ')})", len(data))
    part = data[: most // 3]
    if indent is None:
        return ShownBytes("hex", part.hex(" "), len(data), len(part) < len(data))
    rows = (part[at : at + _HEX_ROW] for at in range(0, len(part), _HEX_ROW))
    lines = (
        f"{at * _HEX_ROW:08x}  {row.hex(' '):<{3 * _HEX_ROW}} {''.join(map(_printable, row))}"
        for at, row in enumerate(rows)
    )
    return ShownBytes("hex", "\n".join(lines), len(data), len(part) < len(data))


def _number_of(data: bytes) -> int:
    """The number that Kafka's serializers of Integer and Long write so."""
    return int.from_bytes(data, "big", signed=True)


def _printable(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else "."
