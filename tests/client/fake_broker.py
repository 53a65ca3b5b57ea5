"""A broker of a few lines that answers as the test says: for what real brokers do only rarely."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from kohort.protocol import (
    APIS,
    ApiKey,
    ErrorCode,
    FrameReader,
    decode_request,
    decode_request_header,
    encode_response,
)
from tests.messages import response_of
from tests.ports import free_port

#: Gets the request's body; gives the response's, bytes to send as they are, or None for no answer.
Answer = Callable[[Any], Any]


class FakeBroker:
    """``answers`` by API number. ApiVersions and Metadata (itself as the only node) need none."""

    def __init__(self, versions: Mapping[ApiKey, tuple[int, int]] | None = None) -> None:
        self.answers: dict[int, Answer] = {ApiKey.METADATA: self._metadata}
        self.asked: list[ApiKey] = []
        self.connections = 0
        self.topics: dict[str, int] = {}
        self.port = 0
        self._versions = versions or {row.key: (row.min_version, row.max_version) for row in APIS.values()}
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        # kept while it is stopped: another test's server may answer otherwise
        self.port = self.port or free_port()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.drop_connections()
        await self._server.wait_closed()

    def drop_connections(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        frames = FrameReader()
        try:
            while data := await reader.read(65_536):
                for frame in frames.feed(data):
                    await self._answer(frame, writer)
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        header = decode_request_header(frame)
        key, version = header.api_key, header.api_version
        self.asked.append(ApiKey(key))
        if key == ApiKey.API_VERSIONS and ApiKey.API_VERSIONS not in self.answers:
            body, version = self._api_versions(version)
        else:
            answer = self.answers[key](decode_request(frame, header))
            body = await answer if isinstance(answer, Awaitable) else answer
        if isinstance(body, bytes):
            writer.write(body)
        elif body is not None:
            writer.write(encode_response(key, version, header.correlation_id, body))

    def _api_versions(self, version: int) -> tuple[Any, int]:
        make = response_of(ApiKey.API_VERSIONS)
        rows = [
            make.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self._versions.items()
        ]
        low, high = self._versions[ApiKey.API_VERSIONS]
        known = low <= version <= high
        code = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION
        return make(error_code=code, api_keys=rows, throttle_time_ms=0), version if known else 0

    def _metadata(self, request: Any) -> Any:
        make = response_of(ApiKey.METADATA)
        topic, partition = make.MetadataResponseTopic, make.MetadataResponseTopic.MetadataResponsePartition
        asked = [row.name for row in request.topics or ()]
        return make(
            throttle_time_ms=0,
            cluster_id="fake",
            controller_id=0,
            error_code=0,
            brokers=[make.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=self.port, rack=None)],
            topics=[
                topic(
                    error_code=0 if name in self.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    name=name,
                    topic_id=None,
                    is_internal=False,
                    partitions=[
                        partition(
                            error_code=0,
                            partition_index=number,
                            leader_id=0,
                            leader_epoch=0,
                            replica_nodes=[0],
                            isr_nodes=[0],
                            offline_replicas=[],
                        )
                        for number in range(self.topics.get(name, 0))
                    ],
                )
                for name in asked
            ],
        )

    def authenticates(self, server: Callable[[], Any], *, lifetime_ms: int = 0) -> None:
        """Let in whom ``server()`` lets in: it has a ``mechanism``, and ``step(bytes)`` raises to refuse."""
        exchange = server()

        def handshake(request: Any) -> Any:
            nonlocal exchange
            exchange = server()
            known = request.mechanism == exchange.mechanism
            code = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return response_of(ApiKey.SASL_HANDSHAKE)(error_code=code, mechanisms=[exchange.mechanism])

        def step(request: Any) -> Any:
            make = response_of(ApiKey.SASL_AUTHENTICATE)
            try:
                data = exchange.step(bytes(request.auth_bytes))
            except ValueError as error:
                code = ErrorCode.SASL_AUTHENTICATION_FAILED
                return make(error_code=code, error_message=str(error), auth_bytes=b"", session_lifetime_ms=0)
            return make(error_code=0, error_message=None, auth_bytes=data, session_lifetime_ms=lifetime_ms)

        self.answers[ApiKey.SASL_HANDSHAKE] = handshake
        self.answers[ApiKey.SASL_AUTHENTICATE] = step

    def coordinator_is_here(self) -> None:
        """Answer FindCoordinator with itself."""

        def answer(request: Any) -> Any:
            make = response_of(ApiKey.FIND_COORDINATOR)
            row = {
                "error_code": 0,
                "error_message": None,
                "node_id": 0,
                "host": "127.0.0.1",
                "port": self.port,
            }
            keys = request.coordinator_keys or []
            return make(
                **row, throttle_time_ms=0, coordinators=[make.Coordinator(key=key, **row) for key in keys]
            )

        self.answers[ApiKey.FIND_COORDINATOR] = answer
