"""Headers and bodies: what goes in comes out, and broken bytes are told apart."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import (
    APIS,
    Api,
    ApiKey,
    FrameReader,
    MalformedFrameError,
    MalformedMessageError,
    UnsupportedVersionError,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    request_class,
    response_class,
)

VERSIONS = [
    pytest.param(api, version, id=f"{api.name}-v{version}")
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
]


def one_frame(data: bytes | bytearray) -> bytes:
    (frame,) = FrameReader().feed(data)
    return frame


def heartbeat(version: int) -> Any:
    return request_class(ApiKey.HEARTBEAT)(
        version=version, group_id="g", generation_id=3, member_id="m", group_instance_id=None
    )


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_request_survives_the_wire(api: Api, version: int) -> None:
    body = request_class(api.key)(version=version)
    frame = one_frame(encode_request(version, 77, "client", body))
    header = decode_request_header(frame)
    assert (header.api_key, header.api_version) == (api.key, version)
    assert (header.correlation_id, header.client_id) == (77, "client")
    assert decode_request(frame, header).to_dict() == body.to_dict()


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_a_response_survives_the_wire(api: Api, version: int) -> None:
    body = response_class(api.key)(version=version)
    frame = one_frame(encode_response(api.key, version, 78, body))
    correlation_id, decoded = decode_response(api.key, version, frame)
    assert correlation_id == 78
    assert decoded.to_dict() == body.to_dict()


def test_the_library_reads_our_frames_and_we_read_its() -> None:
    theirs = heartbeat(4)
    theirs.with_header(correlation_id=5, client_id="me")
    assert bytes(encode_request(4, 5, "me", heartbeat(4))) == theirs.encode(header=True, framed=True)


def test_a_plain_object_with_the_schemas_names_is_encoded_too() -> None:
    class Answer:
        throttle_time_ms = 0
        error_code = 27

    frame = one_frame(encode_response(ApiKey.HEARTBEAT, 4, 1, Answer()))
    assert decode_response(ApiKey.HEARTBEAT, 4, frame)[1].error_code == 27


def test_the_answer_to_api_versions_has_the_old_header_at_every_version() -> None:
    answer = response_class(ApiKey.API_VERSIONS)(version=4, error_code=0, api_keys=[])
    frame = one_frame(encode_response(ApiKey.API_VERSIONS, 4, 9, answer))
    assert frame[:6] == struct.pack(">ih", 9, 0)


def test_an_api_versions_error_is_read_as_version_0_whatever_was_asked() -> None:
    answer = response_class(ApiKey.API_VERSIONS)(version=0, error_code=35, api_keys=[])
    frame = one_frame(encode_response(ApiKey.API_VERSIONS, 0, 9, answer))
    assert decode_response(ApiKey.API_VERSIONS, 4, frame)[1].error_code == 35


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_cut_short_anywhere_is_refused(version: int) -> None:
    frame = one_frame(encode_request(version, 1, "me", heartbeat(version)))
    for size in range(len(frame)):
        cut = frame[:size]
        with pytest.raises((MalformedFrameError, MalformedMessageError)):
            decode_request(cut, decode_request_header(cut))


def test_a_string_that_is_not_utf_8_is_refused() -> None:
    frame = one_frame(encode_request(0, 1, "me", heartbeat(0))).replace(b"\x00\x01g", b"\x00\x01\xff")
    with pytest.raises(MalformedMessageError, match="HeartbeatRequest v0 cannot be decoded"):
        decode_request(frame, decode_request_header(frame))


def test_a_version_that_is_not_spoken_has_a_readable_header() -> None:
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 4, 2) + b"me" + b"\x00\x00"
    header = decode_request_header(frame)
    assert (header.api_version, header.correlation_id, header.client_id) == (99, 4, "me")
    with pytest.raises(UnsupportedVersionError):
        decode_request(frame, header)


def test_no_client_id_is_none() -> None:
    frame = struct.pack(">hhih", ApiKey.HEARTBEAT, 0, 4, -1)
    assert decode_request_header(frame).client_id is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_protocol_error(frame: bytes) -> None:
    with contextlib.suppress(MalformedFrameError, MalformedMessageError, UnsupportedVersionError):
        decode_request(frame, decode_request_header(frame))


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_counts_and_lengths_beyond_the_bytes_are_at_worst_a_malformed_message(api: Api, version: int) -> None:
    frame = struct.pack(">hhih", api.key, version, 1, -1) + b"\x00" * api.flexible(version) + b"\x7f" * 64
    with contextlib.suppress(MalformedMessageError):
        decode_request(frame, decode_request_header(frame))


def test_message_classes_can_be_loaded_from_several_threads_at_once() -> None:
    """kafka-python's modules import each other in circles; a broker loads them beside its first requests."""
    code = """
import sys, threading
sys.setswitchinterval(1e-6)
from kohort.protocol import ApiKey, request_class
threads = [
    threading.Thread(target=request_class, args=(key,))
    for key in (ApiKey.METADATA, ApiKey.FETCH, ApiKey.PRODUCE, ApiKey.CREATE_TOPICS)
]
failed = []
threading.excepthook = lambda args: failed.append(args.exc_value)
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(repr(failed) if failed else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
