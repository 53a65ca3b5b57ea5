"""The path of a request from its frame to its response: header, version, gate, body, handler."""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ...cluster import ConflictError
from ...coordinator.engine.runner import Writes
from ...log import Steps
from ...protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    Part,
    ProtocolError,
    RequestContext,
    RequestHeader,
    UnsupportedVersionError,
    codec_of,
    decode_request,
    decode_request_header,
    decode_response,
    encode_response,
    encode_response_parts,
    encode_response_steps,
)
from ..apis._api import AnyApi, AnyRequest, Request, replaced
from ..apis._gate import Gate
from ..clients.client_state import Peer
from ..event_loop.stopwatch import Stopwatch, clock
from ..metrics import SAMPLED
from ..node import Node
from ..quotas import Gauge, told_ms
from ..reporting.log_lines import RateLimitedLog
from .pending_response import Caller, KnownResponse, MeteredResponse, PendingResponse, Route, TimedResponse

if TYPE_CHECKING:
    from ..metadata.controller_client import Control

log = logging.getLogger("kohort.broker")

_COMMIT, _MEMBERSHIP = ApiKey.OFFSET_COMMIT, ApiKey.CONSUMER_GROUP_HEARTBEAT
_HEARTBEAT = ApiKey.HEARTBEAT
#: Longest frame that a connection remembers.
_SMALL_FRAME = 1_024
#: A frame begins with its size.
_SIZE_BYTES = 4
_CORRELATION_ID = struct.Struct(">i").unpack_from

_Frame: TypeAlias = "bytes | bytearray | Sequence[Part] | None"


class Router:
    """Answers frames. ``apis`` returns the served APIs by number; it is called at the first frame."""

    __slots__ = ("_apis", "_failures", "_gate", "_load", "_node", "_without_task")

    def __init__(self, node: Node, apis: Callable[[], Mapping[int, AnyApi]]) -> None:
        self._node = node
        self._load = apis
        self._failures = RateLimitedLog(logging.ERROR)
        self._apis: Mapping[int, AnyApi] = {}
        self._gate = None if node.authorizer is None else Gate(node.authorizer)
        # by API number and version; None: those requests have a task
        self._without_task: dict[bytes, Route | None] = {}
        node.features.on_change.append(self._without_task.clear)

    @property
    def metered(self) -> bool:
        """Return whether the time spent on requests has to be measured, because there are quotas."""
        return self._node.quotas.active

    @property
    def writes(self) -> Writes:
        """The object to notify when a read of a socket begins and ends."""
        return self._node.coordinator.writes

    def api_of(self, frame: bytes) -> AnyApi | None:
        """The API that a request frame is for; None for one that is not served."""
        return self._served_apis().get(int.from_bytes(frame[:2], "big"))

    def _served_apis(self) -> Mapping[int, AnyApi]:
        if not self._apis:
            found, alone = self._load(), self._node.cluster is None
            self._apis = {key: api for key, api in found.items() if not (alone and api.cluster_only)}
        return self._apis

    def charge(self, peer: Peer, spent_s: float, now: float) -> None:
        """Count time that was spent on reading from and writing to a connection; it is charged to the next
        request.
        """
        if peer.header is not None and (gauge := self._gauge_of(peer, peer.header.context)) is not None:
            gauge.record(spent_s * 100.0, now)

    def take(self, frame: bytes, peer: Peer, connection: Caller, calls: deque[PendingResponse]) -> bool:
        """Pass a request that needs no task to the coordinator; ``calls`` holds its call until the response.

        Returns False for any other request, and for one that is malformed or not fully allowed: pass those to
        ``answer``.
        """
        try:
            route = self._without_task[frame[:4]]
        except KeyError:
            route = self._learn(frame[:4])
        if route is None:
            return False
        codec, meter, api = route
        if calls and api.parks:
            return False
        timed = not meter.count & SAMPLED
        begun_s = clock() if timed else 0.0
        known_commit = None
        node, header, key = self._node, peer.header, codec.key
        try:
            (correlation_id,) = _CORRELATION_ID(frame, 4)
            if header is None or header[0] is not codec.flexible or not frame.startswith(header[1], 8):
                header = peer.read_header(frame, flexible=codec.flexible)
            _, _, at, context = header
            if key is _HEARTBEAT:
                # a member sends the same bytes as long as its generation lasts
                known, rest, body = peer.heartbeat
                if known is not codec or frame[at:] != rest:
                    body = codec.request(frame, at)
                    if len(frame) <= _SMALL_FRAME:
                        peer.heartbeat = codec, frame[at:], body
            elif key is _COMMIT:
                body, known_commit = peer.commits.read_commit(
                    codec, frame, at, node.topics.image, node.coordinator
                )
            else:
                body = codec.request(frame, at)
        except ProtocolError:
            return False
        gate = self._gate
        if gate is not None:
            readable = peer.readable
            # inlined: a call costs more than the check, and this runs for every heartbeat
            if (
                key is _COMMIT
                or key is _MEMBERSHIP
                or readable is None
                or readable[0] is not gate.authorizer.remembered
                or not readable[1].get(body.group_id)
            ) and not gate.is_open(key, body, peer, context, node.topics):
                return False
        meter.count += 1
        call: PendingResponse
        if connection.unmetered and (gauge := self._gauge_of(peer, context)) is not None:
            connection.unmetered = False
            call = MeteredResponse(connection, route, correlation_id, node.throttle, gauge)
        elif timed:
            call = TimedResponse(connection, route, correlation_id, begun_s, peer.queue_s)
        elif known_commit is not None:
            call = KnownResponse(connection, route, correlation_id, known_commit)
        else:
            call = PendingResponse(connection, route, correlation_id)
        calls.append(call)
        try:
            node.coordinator.submit(key, codec.version, body, context, call)
        except Exception:
            self._on_failed(Request(api, codec.version, body, context, peer.endpoint), call)
        if timed and type(call) is TimedResponse:
            call.on_submitted()
        return True

    def _on_failed(self, request: AnyRequest, call: PendingResponse) -> None:
        self._failures.fail("%s v%d failed: answered UNKNOWN_SERVER_ERROR", request.api.name, request.version)
        if call.response is None:
            call.set(request.error_answer(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _learn(self, start: bytes) -> Route | None:
        """The route of requests that begin with an API number and version."""
        api = self.api_of(start)
        version = int.from_bytes(start[2:], "big")
        if api is None or not api.serves(version) or not self._is_on(api):
            return None
        route = self._without_task[start] = (
            Route(codec_of(api.key, version), self._node.metrics.requests.of(api.key), api)
            if api.without_task
            else None
        )
        return route

    async def answer(self, frame: bytes, peer: Peer) -> _Frame:
        """Return the response frame to a request frame, maybe in parts; None if the request has no response.

        Raises ProtocolError if the connection has to be closed.
        """
        begun_s = clock()
        api = self.api_of(frame)
        if api is None:
            number = int.from_bytes(frame[:2], "big", signed=True)
            raise UnsupportedVersionError(f"API number {number} is not offered")
        header = decode_request_header(frame)
        if api.key is ApiKey.API_VERSIONS and not api.serves(header.api_version):
            from ..apis.api_versions import unknown_version

            return encode_response(api.key, 0, header.correlation_id, unknown_version())
        api.require(header.api_version)
        body = decode_request(frame, header)
        cluster = self._node.cluster
        if (
            cluster is not None
            and api.by_controller is not None
            and not cluster.control.is_active
            and api.by_controller(self._node, body)
        ):
            return await self._forward(cluster.control, bytes(frame), header, body, peer)
        context = peer.context(header.client_id)
        request = Request(
            api, header.api_version, body, context, peer.endpoint, self._apis, peer.refused, peer
        )
        meter = peer.meter = self._node.metrics.requests.of(header.api_key)
        meter.count += 1
        peer.traffic.requests += 1
        size = len(frame)
        # a waiting request does not keep its bytes
        del frame
        stopwatch = Stopwatch(self._handle(request))
        read_s = clock() - begun_s
        response = await stopwatch
        handled_s = clock()
        if response is not None:
            meter.see_all(response)
        if self._node.quotas.active and not (cluster is not None and api.is_of_broker(body)):
            spent_s = read_s + stopwatch.running_s
            answer = self._within_quotas(header, request, response, peer, size, spent_s)
            meter.throttle.record(peer.delay_ms / 1000)
        else:
            answer = _encoding(api, header, response)
        now = clock()
        local_s = read_s + stopwatch.running_s + now - handled_s
        if isinstance(answer, Generator):
            stopwatch = Stopwatch(self._node.long_work.run(answer))
            answer = await stopwatch
            now = clock()
            local_s += stopwatch.running_s
            self._node.throttle.charge(context, stopwatch.running_s, now)
        meter.record_phases(peer.queue_s, local_s, now - begun_s - local_s)
        if api.produces:
            peer.traffic.produced_bytes += size
        elif api.fetches:
            peer.traffic.fetched_bytes += _size(answer)
        return answer

    async def _forward(
        self, control: Control, frame: bytes, header: RequestHeader, body: object, peer: Peer
    ) -> _Frame:
        """The controller's response to a request frame."""
        meter = self._node.metrics.requests.of(header.api_key)
        meter.count += 1
        try:
            answer: _Frame = await control.forward(frame, peer)
            if isinstance(answer, bytes):
                # the controller delays a client whose connection is here
                _, told = decode_response(header.api_key, header.api_version, answer[_SIZE_BYTES:])
                peer.delay_ms = told.throttle_time_ms
        except KafkaError as error:
            api = self._apis[header.api_key]
            log.warning("%s of %s was not forwarded: %s", api.name, peer.principal, error)
            context = peer.context(header.client_id)
            request = Request(api, header.api_version, body, context, peer.endpoint, self._apis)
            answer = _encode_answer(api, header, request.error_answer(error.code))
        return answer

    def _within_quotas(
        self, header: RequestHeader, request: AnyRequest, response: Any, peer: Peer, size: int, spent_s: float
    ) -> _Frame | Steps[bytearray]:
        """Return the response frame, or the steps that write it, with the delay that the quotas of its client
        demand.
        """
        throttle, now = self._node.throttle, clock()
        if request.api.fetches:
            answer = _encode_answer(request.api, header, response)
            delay_s = throttle.fetch_delay_s(
                request, answer_bytes=_size(answer), sent=request.api.acquires, spent_s=spent_s, now=now
            )
            if not told_ms(delay_s):
                return answer
            if not request.api.acquires:
                # this response does not reach its session, which has to begin again
                self._node.fetch_sessions.drop(response.session_id)
                response = request.answer()
        else:
            delay_s = throttle.delay_s(request, request_bytes=size, spent_s=spent_s, now=now)
        peer.delay_ms = told_ms(delay_s)
        if response is None:
            return None
        if hasattr(response, "throttle_time_ms"):
            # those of logins and of brokers have no such field
            response = replaced(response, throttle_time_ms=peer.delay_ms)
        written = _encoding(request.api, header, response)
        throttle.charge(request.context, clock() - now, now)
        return written

    def _gauge_of(self, peer: Peer, context: RequestContext) -> Gauge | None:
        """The gauge of a client's time; None if it is not limited."""
        quotas = self._node.quotas
        if peer.gauge_context is not context or peer.gauge_epoch != quotas.epoch:
            peer.gauge = self._node.throttle.use_of(context, clock()).request
            # the lookup itself may have changed the epoch
            peer.gauge_context, peer.gauge_epoch = context, quotas.epoch
        return peer.gauge

    def _is_on(self, api: AnyApi) -> bool:
        """Return whether the level of an API's feature enables the API."""
        return api.feature is None or self._node.features.levels[api.feature] > 0

    async def _admit(self, request: AnyRequest) -> Any:
        if self._gate is None:
            return await request.api.handler(self._node, request)
        return await self._gate.admit(self._node, request)

    async def _handle(self, request: AnyRequest) -> Any:
        try:
            if not self._is_on(request.api):
                return request.error_answer(ErrorCode.UNSUPPORTED_VERSION)
            if request.api.one_at_a_time:
                async with self._node.metadata_change:
                    return await self._admit(request)
            return await self._admit(request)
        except ProtocolError:
            raise
        except KafkaError as error:
            return request.error_answer(error.code)
        except ConflictError as error:
            # another broker has become controller
            log.warning("%s v%d: nothing is changed: %s", request.api.name, request.version, error)
            return request.error_answer(ErrorCode.NOT_CONTROLLER)
        except OSError as error:
            # metadata could not be saved: the old state stays in force, and clients may retry
            self._node.logs.disk.on_refused(error)
            log.error(
                "%s v%d: nothing is changed, the disk fails: %s", request.api.name, request.version, error
            )
            return request.error_answer(ErrorCode.KAFKA_STORAGE_ERROR)
        except Exception:
            self._failures.fail(
                "%s v%d failed: answered UNKNOWN_SERVER_ERROR", request.api.name, request.version
            )
            return request.error_answer(ErrorCode.UNKNOWN_SERVER_ERROR)


def _encoding(api: AnyApi, header: RequestHeader, response: object) -> _Frame | Steps[bytearray]:
    """The response frame, or the steps that write it: it may be very large."""
    if response is None or codec_of(header.api_key, header.api_version).write_response_steps is None:
        return _encode_answer(api, header, response)
    return encode_response_steps(header.api_key, header.api_version, header.correlation_id, response)


def _encode_answer(api: AnyApi, header: RequestHeader, response: object) -> _Frame:
    """The response frame, maybe in parts; None for no response."""
    if response is None:
        return None
    if api.fetches:
        parts = encode_response_parts(header.api_key, header.api_version, header.correlation_id, response)
        # a small response is one part, and may be sent together with others
        return parts[0] if len(parts) == 1 and isinstance(parts[0], bytearray) else parts
    return encode_response(header.api_key, header.api_version, header.correlation_id, response)


def _size(answer: _Frame) -> int:
    if answer is None or isinstance(answer, (bytes, bytearray)):
        return len(answer or b"")
    return sum(len(part) for part in answer)
