"""One of two brokers that are sent the same: its connections, the names that its answers make known."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from kohort.protocol import ApiKey, ErrorCode, decode_response, encode_request
from tests.messages import request_of

#: After the last answer nothing more may come for so long; an answer that has not come by then is parked.
QUIET_S, PARKED_S = 0.04, 0.25
#: A side that has answered less than the other gets so much longer, before they count as different.
LATE_S = 1.5


class Sent(NamedTuple):
    """A request on its way: the number of its step, and who sent it."""

    step: int
    client: int
    key: ApiKey
    version: int


class Answer(NamedTuple):
    sent: Sent
    #: None: the broker has closed the connection.
    body: Any


class Connection:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.waiting: dict[int, Sent] = {}
        self.closed = False
        self._received = b""
        self._number = 0

    def send(self, sent: Sent, fields: dict[str, Any]) -> None:
        self._number += 1
        self.waiting[self._number] = sent
        body = request_of(sent.key)(version=sent.version, **fields)
        self.socket.sendall(encode_request(sent.version, self._number, "alike", body))

    def read(self) -> list[Answer]:
        """What has come; call it when there is something."""
        try:
            received = self.socket.recv(1 << 16)
        except ConnectionResetError:
            received = b""
        if not received:
            self.closed = True
            return [Answer(sent, None) for sent in self.waiting.values()]
        self._received += received
        answers: list[Answer] = []
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                break
            frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            sent = self.waiting.pop(struct.unpack_from(">i", frame)[0])
            answers.append(Answer(sent, decode_response(sent.key, sent.version, frame)[1]))
        return answers


@dataclass(slots=True)
class Client:
    """What a client knows from its last answers."""

    id: str = ""
    former_id: str = ""
    generation: int = -1
    protocol: str | None = None
    #: In the order in which ids became known, on both sides the same; of leaders only.
    members: list[str] = field(default_factory=list)
    #: Its id as an idempotent producer, and epoch.
    producer: tuple[int, int] | None = None
    connections: list[Connection] = field(default_factory=list)


class Side:
    """``topics`` has the real name and id of each topic by the name that steps use."""

    def __init__(
        self, bootstrap: str, clients: int, groups: Sequence[str], topics: dict[str, tuple[str, UUID]]
    ) -> None:
        self.bootstrap = bootstrap
        self.groups = list(groups)
        self.topics = topics
        self.clients = [Client() for _ in range(clients)]
        #: What ids of members, topics and producers are called, in the order in which they became known.
        self.names = {str(topic_id): f"topic {name}" for name, (_, topic_id) in topics.items()}

    def send(self, sent: Sent, fields: dict[str, Any]) -> None:
        """On a connection of the client that waits for nothing."""
        self.free_connection(sent.client).send(sent, fields)

    def free_connection(self, client: int) -> Connection:
        """A connection of the client that waits for nothing."""
        own = self.clients[client].connections
        free = next((each for each in own if not each.waiting and not each.closed), None)
        if free is None:
            free = Connection(self.connect(client))
            own.append(free)
        return free

    def connect(self, _client: int) -> socket.socket:
        """For this client; may log in."""
        host, _, port = self.bootstrap.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=20)

    def connections(self) -> list[Connection]:
        return [each for client in self.clients for each in client.connections if not each.closed]

    def learn(self, answer: Answer) -> None:
        """What an answer makes known: who the client now is, which topics there are."""
        body, client = answer.body, self.clients[answer.sent.client]
        if body is None:
            return
        if answer.sent.key == ApiKey.JOIN_GROUP and body.member_id:
            self._learn_member(client, body)
        elif answer.sent.key == ApiKey.INIT_PRODUCER_ID and body.error_code == ErrorCode.NONE:
            client.producer = body.producer_id, body.producer_epoch
            self.names.setdefault(str(body.producer_id), f"producer {len(self.names)}")
        elif answer.sent.key in (ApiKey.METADATA, ApiKey.CREATE_TOPICS):
            self._learn_topics(body.topics)

    def _learn_member(self, client: Client, body: Any) -> None:
        client.former_id, client.id = client.id or client.former_id, body.member_id
        if body.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            client.generation = -1
        if body.error_code == ErrorCode.NONE:
            client.generation, client.protocol = body.generation_id, body.protocol_name
            members = sorted((m.member_id for m in body.members), key=self.name_of)
            client.members = members if body.leader == body.member_id else []

    def _learn_topics(self, topics: Iterable[Any]) -> None:
        names = {real: name for name, (real, _) in self.topics.items()}
        for topic in topics:
            topic_id = getattr(topic, "topic_id", None)
            if topic.name in names and topic_id and topic_id.int and topic.error_code == ErrorCode.NONE:
                self.topics[names[topic.name]] = topic.name, topic_id
                self.names.setdefault(str(topic_id), f"topic {len(self.names)}")

    def name_of(self, member_id: str) -> str:
        if not member_id:
            return member_id
        return self.names.setdefault(member_id, f"member {len(self.names)}")

    def close(self) -> None:
        for each in self.connections():
            each.socket.close()


def answers_of(sides: Sequence[Side], *sent: Sent) -> list[list[Answer]]:
    """What each side answers to these requests, and to those that were parked before."""
    got: list[list[Answer]] = [[] for _ in sides]
    _collect(sides, got, PARKED_S, lambda: all({a.sent for a in side}.issuperset(sent) for side in got))
    if len({tuple(sorted(a.sent for a in side)) for side in got}) > 1:
        _collect(sides, got, LATE_S, lambda: False)
    for side in got:
        side.sort(key=lambda answer: answer.sent)
    return got


def _collect(sides: Iterable[Side], got: list[list[Answer]], limit_s: float, complete: Any) -> None:
    with selectors.DefaultSelector() as selector:
        for number, side in enumerate(sides):
            for connection in side.connections():
                selector.register(connection.socket, selectors.EVENT_READ, (number, connection))
        last = time.monotonic()
        end = last + limit_s
        while (now := time.monotonic()) < end and not (complete() and now - last > QUIET_S):
            for key, _ in selector.select(QUIET_S / 2):
                number, connection = key.data
                got[number] += connection.read()
                last = time.monotonic()
                if connection.closed:
                    selector.unregister(connection.socket)
