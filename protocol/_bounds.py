"""Bounds on kafka-python's generated decoders: what a frame costs to read follows its length.

As they come, three things let a short frame hold a process up:

* a varint is read for as long as the bytes say "more follows", shifting an ever larger number: a frame of
  0xff takes time by the square of its length, a minute for one megabyte. Five bytes hold any number that may
  stand there;
* the rest of the frame is copied for every struct that has a tagged field: by the square again;
* an element of two bytes becomes an object of a hundred, and a frame may hold fifty million of them.

And a compact string may say any length, while everywhere else in Kafka, records of groups included, a string
has at most 32,767 bytes: a longer one could be taken in and never be written. Apache Kafka refuses it too.
"""

from __future__ import annotations

import threading
from io import BytesIO
from typing import Any

from ._errors import MalformedMessageError
from ._kafka_python import kafka_module

_MAX_SHIFT = 28
_MAX_STRING_BYTES = 0x7FFF


class _Budget(threading.local):
    """Array elements that the message being decoded may still have; None without a limit."""

    left: int | None = None


_budget = _Budget()


def allow_elements(count: int | None) -> None:
    """Let messages decoded by this thread have ``count`` array elements in all, nested ones and tagged fields
    included; None for no limit.
    """
    _budget.left = count


def bound_decoders() -> None:
    """Let the decoders that are generated from now on keep the bounds; they raise MalformedMessageError."""
    fields = kafka_module("kafka.protocol.schemas.fields")
    codecs = kafka_module("kafka.protocol.schemas.fields.codecs")
    codecs.UnsignedVarInt32.emit_decode_from = staticmethod(_emit_varint)
    codecs.String.emit_decode_from = _emit_string
    fields.ArrayField.emit_decode_from = _emit_array
    fields.StructArrayField.emit_decode_from = _emit_array
    fields.StructField._emit_tagged_decode = _emit_tags


def unsigned_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The number at ``position`` and the position behind it. Raises IndexError past the end."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > _MAX_SHIFT:
            raise MalformedMessageError("a varint of more than five bytes")


def _emit_varint(ctx: Any, var_name: str, indent: str) -> None:
    """Code that reads an unsigned varint at ``pos`` into ``var_name``, for kafka-python's generator."""
    byte, shift = ctx.next_var("b"), ctx.next_var("sh")
    for line in (
        f"{var_name} = data[pos]",
        "pos += 1",
        f"if {var_name} > 0x7f:",
        f"    {var_name} &= 0x7f",
        f"    {shift} = 7",
        "    while True:",
        f"        {byte} = data[pos]",
        "        pos += 1",
        f"        {var_name} |= ({byte} & 0x7f) << {shift}",
        f"        if not ({byte} & 0x80): break",
        f"        {shift} += 7",
        f'        if {shift} > {_MAX_SHIFT}: raise ValueError("a varint of more than five bytes")',
    ):
        ctx.emit(indent, line)


def _emit_string(_codec: Any, ctx: Any, var_name: str, indent: str, compact: bool = False) -> None:
    """Code that reads a string at ``pos`` into ``var_name``, None for null."""
    size = ctx.next_var("ln")
    if compact:
        _emit_varint(ctx, size, indent)
        too_long = f"a string of {{{size}}} bytes, {_MAX_STRING_BYTES} is the most"
        ctx.emit(indent, f"{size} -= 1")
        ctx.emit(indent, f'if {size} > {_MAX_STRING_BYTES}: raise ValueError(f"{too_long}")')
    else:
        ctx.emit(indent, f'{size} = unpack_from(">h", data, pos)[0]')
        ctx.emit(indent, "pos += 2")
    ctx.emit(indent, f"if {size} < 0:")
    ctx.emit(indent, f"    {var_name} = None")
    ctx.emit(indent, "else:")
    ctx.emit(indent, f'    {var_name} = str(data[pos:pos+{size}], "utf-8")')
    ctx.emit(indent, f"    pos += {size}")


def _emit_array(
    field: Any,
    ctx: Any,
    var_name: str,
    indent: str,
    version: int | None = None,
    compact: bool = False,
    tagged: bool | None = False,
) -> None:
    """Code that reads an array at ``pos`` into ``var_name``: None or a list."""
    count, item, inner = ctx.next_var("n"), ctx.next_var("item"), indent + "    "
    if compact:
        _emit_varint(ctx, count, indent)
        ctx.emit(indent, f"{count} -= 1")
    else:
        ctx.emit(indent, f'{count} = unpack_from(">i", data, pos)[0]')
        ctx.emit(indent, "pos += 4")
    ctx.globs["_spend"] = _spend
    least = _smallest(field.array_of, version, compact=compact, tagged=tagged)
    ctx.emit(indent, f"{var_name} = None if {count} == -1 else []")
    ctx.emit(indent, f"if {count} > 0:")
    ctx.emit(inner, f"_spend({count}, len(data) - pos, {least})")
    ctx.emit(inner, f"for {ctx.next_var('at')} in range({count}):")
    field.array_of.emit_decode_from(
        ctx, item, inner + "    ", version=version, compact=compact, tagged=tagged
    )
    ctx.emit(inner, f"    {var_name}.append({item})")


def _smallest(field: Any, version: int | None, *, compact: bool, tagged: bool | None) -> int:
    """Bytes that an element of this kind has at least; 1 where it may be null."""
    if field.is_struct():
        if field.nullable_for_version_q(version):
            return 1
        inner = field.untagged_fields(version)
        least = sum(_smallest(each, version, compact=compact, tagged=tagged) for each in inner)
        return max(1, least + bool(tagged))
    if field.is_array():
        return 1 if compact else 4
    size = field._type.size
    if isinstance(size, int):
        return size
    # a length: of a string two bytes, of bytes four, one where it is a varint
    return 1 if compact else 2 if field._type_str == "string" else 4


def _spend(count: int, bytes_left: int, least: int = 1) -> None:
    """Refuse an array before it is built: ``count`` elements of ``least`` bytes or more have to fit."""
    if count * least > bytes_left:
        raise MalformedMessageError(f"an array of {count} elements where {bytes_left} bytes are left")
    if _budget.left is not None:
        _budget.left -= count
        if _budget.left < 0:
            raise MalformedMessageError("more array elements than a request may have")


def _emit_tags(struct: Any, ctx: Any, var_name: str, indent: str, version: int) -> None:
    """Code that reads the tagged fields at ``pos`` into the object ``var_name``."""
    fields = ctx.next_var("tf")
    ctx.globs[fields] = struct.tagged_fields(version)
    ctx.globs["_read_tags"] = _read_tags
    ctx.emit(indent, f"pos = _read_tags({fields}, {var_name}, data, pos, {version})")


def _read_tags(fields: Any, target: Any, data: memoryview, position: int, version: int) -> int:
    """Set the tagged fields that are known and keep the others as bytes; the position behind them."""
    count, position = unsigned_varint(data, position)
    _spend(count, len(data) - position)
    for _ in range(count):
        tag, position = unsigned_varint(data, position)
        size, position = unsigned_varint(data, position)
        end = position + size
        if end > len(data):
            raise MalformedMessageError(
                f"a tagged field of {size} bytes where {len(data) - position} are left"
            )
        content, position = bytes(data[position:end]), end
        field = fields._tags.get(tag)
        if field is None:
            target.unknown_tags = target.unknown_tags or {}
            target.unknown_tags[f"_{tag}"] = content
        else:
            value = field.decode(BytesIO(content), version=version, compact=True, tagged=None)
            setattr(target, field.name, value)
            target.tags = target.tags or set()
            target.tags.add(field.name)
    return position
