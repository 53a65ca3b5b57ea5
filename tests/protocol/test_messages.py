"""Headers and bodies: what goes in comes out, and broken bytes are told apart."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, cast

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
    PreparedArray,
    UnsupportedVersionError,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_response_parts,
    encode_response_steps,
)
from tests.messages import kafka_class, request_of, response_of

each_api = pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)


def versions(api: Api) -> range:
    return range(api.min_version, api.max_version + 1)


def one_frame(data: bytes | bytearray) -> bytes:
    (frame,) = FrameReader().feed(data)
    return frame


def heartbeat(version: int) -> Any:
    return request_of(ApiKey.HEARTBEAT)(
        version=version, group_id="g", generation_id=3, member_id="m", group_instance_id=None
    )


@each_api
def test_a_request_survives_the_wire(api: Api) -> None:
    body = request_of(api.key)()
    for version in versions(api):
        frame = one_frame(encode_request(version, 77, "client", body))
        header = decode_request_header(frame)
        assert (header.api_key, header.api_version) == (api.key, version)
        assert (header.correlation_id, header.client_id) == (77, "client")
        again = encode_request(version, 77, "client", decode_request(frame, header))
        assert one_frame(again) == frame, f"v{version}"


@each_api
def test_a_response_survives_the_wire(api: Api) -> None:
    body = response_of(api.key)()
    for version in versions(api):
        frame = one_frame(encode_response(api.key, version, 78, body))
        correlation_id, decoded = decode_response(api.key, version, frame)
        assert correlation_id == 78
        assert type(decoded) is type(body)
        assert one_frame(encode_response(api.key, version, 78, decoded)) == frame, f"v{version}"


def test_the_library_reads_our_frames_and_we_read_its() -> None:
    fields = {"group_id": "g", "generation_id": 3, "member_id": "m", "group_instance_id": None}
    theirs = kafka_class("HeartbeatRequest")(version=4, **fields)
    theirs.with_header(correlation_id=5, client_id="me")
    assert bytes(encode_request(4, 5, "me", heartbeat(4))) == theirs.encode(header=True, framed=True)


def test_a_plain_object_with_the_schemas_names_is_encoded_too() -> None:
    class Answer:
        throttle_time_ms = 0
        error_code = 27

    frame = one_frame(encode_response(ApiKey.HEARTBEAT, 4, 1, Answer()))
    assert decode_response(ApiKey.HEARTBEAT, 4, frame)[1].error_code == 27


def test_the_answer_to_api_versions_has_the_old_header_at_every_version() -> None:
    answer = response_of(ApiKey.API_VERSIONS)(version=4, error_code=0, api_keys=[])
    frame = one_frame(encode_response(ApiKey.API_VERSIONS, 4, 9, answer))
    assert frame[:6] == struct.pack(">ih", 9, 0)


@pytest.mark.parametrize("asked", [1, 3, 4])
@pytest.mark.parametrize("keys", [[], [(18, 0, 2)]])
def test_an_api_versions_answer_of_version_0_is_read_whatever_was_asked(asked: int, keys: list[Any]) -> None:
    answer = response_of(ApiKey.API_VERSIONS)(error_code=35, api_keys=keys)
    frame = one_frame(encode_response(ApiKey.API_VERSIONS, 0, 9, answer))
    assert decode_response(ApiKey.API_VERSIONS, asked, frame) == (9, answer)


@pytest.mark.parametrize("version", range(5))
def test_an_error_of_api_versions_in_the_version_that_was_asked_for_is_read(version: int) -> None:
    """Apache Kafka answers a bad name of a client's software so."""
    answer = response_of(ApiKey.API_VERSIONS)(error_code=42, api_keys=[])
    frame = one_frame(encode_response(ApiKey.API_VERSIONS, version, 9, answer))
    assert decode_response(ApiKey.API_VERSIONS, version, frame) == (9, answer)


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


@each_api
def test_counts_and_lengths_beyond_the_bytes_are_at_worst_a_malformed_message(api: Api) -> None:
    for version in versions(api):
        frame = struct.pack(">hhih", api.key, version, 1, -1) + b"\x00" * api.flexible(version) + b"\x7f" * 64
        with contextlib.suppress(MalformedMessageError):
            decode_request(frame, decode_request_header(frame))


def test_an_api_is_imported_at_its_first_message() -> None:
    code = """
import sys
from kohort.protocol import ApiKey, codec_of
assert not any(name.startswith("kafka") for name in sys.modules)
assert "kohort.protocol.messages.heartbeat" not in sys.modules
codec_of(ApiKey.HEARTBEAT, 4)
assert "kohort.protocol.messages.heartbeat" in sys.modules
assert "kohort.protocol.messages.fetch" not in sys.modules
assert not any(name.startswith("kafka") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def fetched(records: Any) -> Any:
    partition = {"partition_index": 3, "high_watermark": 8, "records": records}
    return response_of(ApiKey.FETCH)(responses=[{"topic": "t", "partitions": [partition, partition]}])


@pytest.mark.parametrize("version", [4, 11, 12, 18])
@pytest.mark.parametrize("size", [0, 4_095, 4_096, 100_000])
def test_the_parts_of_an_answer_together_are_its_frame(version: int, size: int) -> None:
    body = fetched(b"r" * size)
    parts = encode_response_parts(ApiKey.FETCH, version, 9, body)
    assert b"".join(cast("list[bytes]", parts)) == encode_response(ApiKey.FETCH, version, 9, body)


def test_many_records_are_passed_on_as_they_are() -> None:
    records = b"r" * 100_000
    parts = encode_response_parts(ApiKey.FETCH, 12, 9, fetched(records))
    assert [part is records for part in parts] == [False, True, False, True, False]


def test_records_that_lie_elsewhere_are_passed_on_however_short() -> None:
    class Lying:
        def __len__(self) -> int:
            return 3

    records = Lying()
    head, first, between, second, end = encode_response_parts(ApiKey.FETCH, 12, 9, fetched(records))
    assert (first, second) == (records, records)
    written = b"".join(cast("list[bytes]", [head, b"abc", between, b"abc", end]))
    assert written == encode_response(ApiKey.FETCH, 12, 9, fetched(b"abc"))


@pytest.mark.parametrize("version", [4, 11, 12, 16])
def test_records_of_an_answer_are_a_part_of_its_frame(version: int) -> None:
    frame = bytearray(encode_response(ApiKey.FETCH, version, 9, fetched(b"some records"))[4:])
    _, body = decode_response(ApiKey.FETCH, version, memoryview(frame))
    frame[frame.index(b"some")] = ord("S")
    assert body.responses[0].partitions[0].records == b"Some records"


def described(count: int, errors: Sequence[int] = ()) -> list[Any]:
    make = response_of(ApiKey.METADATA).MetadataResponsePartition
    codes = [*errors, *[0] * (count - len(errors))]
    return [
        make(error_code=code, partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        for index, code in enumerate(codes)
    ]


@pytest.mark.parametrize("version", range(14))
def test_a_prepared_array_is_written_as_its_elements_are(version: int) -> None:
    make = response_of(ApiKey.METADATA)
    plain = make(topics=[make.MetadataResponseTopic(name="t", partitions=described(3))])
    prepared = PreparedArray(plain.topics[0].partitions)
    body = plain._replace(topics=[plain.topics[0]._replace(partitions=prepared)] * 2)
    expected = encode_response(ApiKey.METADATA, version, 9, plain._replace(topics=[*plain.topics] * 2))
    for _ in range(2):
        assert encode_response(ApiKey.METADATA, version, 9, body) == expected


@pytest.mark.parametrize(
    ("key", "version"),
    [*((ApiKey.DESCRIBE_GROUPS, version) for version in range(7)), (ApiKey.CONSUMER_GROUP_DESCRIBE, 1)],
)
def test_a_response_in_steps_yields_at_each_member(key: ApiKey, version: int) -> None:
    make = response_of(key)
    member = make.DescribedGroupMember if key is ApiKey.DESCRIBE_GROUPS else make.Member
    groups = [make.DescribedGroup(members=[member(member_id="m")] * count) for count in (0, 3, 2)]
    steps = encode_response_steps(key, version, 9, make(groups=groups))
    assert [next(steps) for _ in range(5)] == [None] * 5
    with pytest.raises(StopIteration) as done:
        next(steps)
    assert done.value.value == encode_response(key, version, 9, make(groups=groups))


@pytest.mark.parametrize("errors", [[], [0, 0], [5, 0, 3]])
def test_a_prepared_array_gives_the_elements_that_have_an_error(errors: list[int]) -> None:
    found = PreparedArray(described(len(errors), errors))
    assert [row.error_code for row in found] == [error for error in errors if error]
