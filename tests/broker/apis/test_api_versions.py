"""ApiVersions: the offer, in every version and for those we do not know."""

from __future__ import annotations

import struct

import pytest

from kohort.broker.apis import served_apis
from kohort.protocol import ApiKey, decode_response
from tests.broker.wire import Wire


def ask(wire: Wire, version: int, body: bytes = b"") -> bytes:
    head = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, 1) + b"x"
    if version >= 3:
        head += b"\x00"
    wire.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
    return wire.frame()


SOFTWARE = b"\x05name\x061.2.3\x00"


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_lists_what_is_served(wire: Wire, version: int) -> None:
    number, answer = decode_response(
        ApiKey.API_VERSIONS, version, ask(wire, version, SOFTWARE if version >= 3 else b"")
    )
    assert number == 7
    assert answer.error_code == 0
    offered = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    alone = {key: api for key, api in served_apis().items() if not (api.private or api.cluster_only)}
    expected = {key: api.versions for key, api in alone.items()}
    assert expected[ApiKey.API_VERSIONS] == (0, 4)
    expected[ApiKey.PRODUCE] = (0, 13)
    assert offered == expected
    assert offered[ApiKey.SASL_HANDSHAKE] == (0, 1)


@pytest.mark.row("3.0/version")
@pytest.mark.parametrize("version", [5, 99, -1])
def test_an_unknown_version_is_answered_in_v0_with_our_range(wire: Wire, version: int) -> None:
    """franz-go opens with v5, and reads a closed connection as a broker of 2015."""
    frame = ask(wire, version, SOFTWARE)
    assert frame == struct.pack(">ihihhh", 7, 35, 1, ApiKey.API_VERSIONS, 0, 4)
    assert ask(wire, 0)[4:6] == b"\x00\x00"


@pytest.mark.parametrize("name", [b"", b"-name", b"na me"])
def test_software_names_are_checked(wire: Wire, name: bytes) -> None:
    body = bytes([len(name) + 1]) + name + b"\x02v\x00"
    assert ask(wire, 3, body) == struct.pack(">ihbib", 7, 42, 1, 0, 0)
