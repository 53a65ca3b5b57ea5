"""A broker's part in controlling its cluster, and its way to the controller, whichever broker that is.

The controller decides all changes of the cluster. Clients' requests for them are forwarded as they are, with
the client's identity (Envelope, KIP-590), and the controller checks rights and quotas; brokers themselves ask
for in-sync replicas (AlterPartition, KIP-497), and for topics that they need (CreateTopics).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from ...client import BrokerConnectionError, Channel
from ...client.connection import Connection
from ...cluster import (
    ClusterImage,
    ClusterView,
    ConflictError,
    MetadataStore,
    PartitionState,
    Put,
    Registration,
    TopicDeletion,
    deleted_topic_path,
)
from ...cluster.controller import (
    Controller,
    Decision,
    IsrChange,
    NewTopic,
    Refusals,
    Rules,
    alter_isr,
    create_topics,
    leaders_to_move,
)
from ...protocol import ErrorCode, KafkaError
from ...protocol.messages.envelope import EnvelopeRequest
from ...settings import as_text
from ..clients.client_state import Peer
from ..security._between_brokers import broker_refusal
from ..settings import BrokerSettings
from .broker_watch import BrokerWatch
from .controller_requests import ControllerRequests, refusals_in

if TYPE_CHECKING:
    from ...protocol.messages.alter_partition import AlterPartitionRequest, ResponsePartitionData
    from ...protocol.messages.create_topics import CreateTopicsRequest

log = logging.getLogger("kohort.broker")

A = TypeVar("A")

#: How long a request looks for a controller that accepts it, and the pause between two looks, in seconds.
_FIND_S: Final = 10.0
_AGAIN_S: Final = 0.05
#: Longest time for which a response waits until this broker has seen the change that it reports, in seconds.
_SEEN_S: Final = 1.0

#: Errors of a broker that is no longer controller, or cannot be reached: another one will be elected.
_MOVED: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE)


class Control(ControllerRequests):
    """This broker's controller, and requests to the controller. ``connect`` opens a connection to a broker of
    the image. ``answer`` answers a client's frame as this broker's router does; the router's creator sets it.
    """

    answer: Callable[[bytes, Peer], Awaitable[Any]]

    def __init__(
        self,
        store: MetadataStore,
        view: ClusterView,
        registration: Registration,
        settings: BrokerSettings,
        now_ms: Callable[[], int],
        connect: Callable[[int], Awaitable[Connection]],
    ) -> None:
        super().__init__(settings)
        # only the controller watches
        session_s = settings.zookeeper_session_timeout_ms / 1_000
        self._watch = BrokerWatch(connect, lambda: self.controller.wake(), session_s)
        self.controller = Controller(
            store,
            view,
            settings.node_id,
            now_ms,
            lambda: _rules_of(settings),
            self._watch.unreachable,
            lambda: session_s if self._watch.is_cut_off else 0.0,
            session_s,
        )
        self._store = store
        self._view = view
        self._registration = registration
        self._connect = connect
        self._connecting = asyncio.Lock()
        # to the controller: clients' requests may take long, and changes of in-sync replicas must not wait
        # for them
        self._connections: dict[Channel, Connection] = {}
        self._connected_to = -1
        # the image that this broker follows, and an event that is set when it follows another
        self._followed = view.image
        self._next_image = asyncio.Event()

    def __repr__(self) -> str:
        return f"Control({self.controller})"

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller."""
        return self.controller.is_active

    @property
    def image(self) -> ClusterImage:
        """The newest image that this broker has seen."""
        return self._view.image

    def stored_configs(self, configs: Mapping[str, object]) -> Mapping[str, object]:
        """Return a topic's configs as the store has them: as text, like Apache Kafka."""
        return config_texts(configs)

    async def decide(self, decision: Callable[[ClusterImage, Rules], Decision[A]]) -> A:
        """Have this broker's own controller decide; return its answer once the change is seen here."""
        answer = await self.controller.ask(decision)
        await self._catch_up()
        return answer

    def start(self) -> None:
        """Stand for election."""
        self.controller.start()

    async def stop(self) -> None:
        """Stop being controller and asking others."""
        self.controller.close()
        self._watch.follow({})
        self._close_connection()

    def image_changed(self) -> None:
        """Called when this broker follows a new image."""
        self._followed = self._view.image
        self._next_image.set()
        self._next_image = asyncio.Event()
        here, image = self._settings.node_id, self._followed
        brokers = image.brokers if image.controller_id == here else {}
        # a broker that is stopping refuses connections in the end, and leads nothing by then
        self._watch.follow(
            {node_id: each for node_id, each in brokers.items() if node_id != here and not each.shutting_down}
        )
        self.controller.wake()

    async def next_image(self) -> None:
        """Wait until this broker follows another image."""
        await self._next_image.wait()

    def settings_changed(self) -> None:
        """Called when settings have changed, on which the controller's rules depend."""
        self.controller.wake()

    async def leave(self, timeout_s: float) -> None:
        """Hand leadership to other brokers, as far as they can take it; wait for that for at most
        ``timeout_s``.
        """
        if not self._settings.controlled_shutdown_enable or self._view.is_foreign:
            return
        if self._store.refusal is not None:
            # nothing is heard of the metadata any more: others lead as its session is over
            return
        left = 0
        try:
            async with asyncio.timeout(timeout_s):
                await self._registration.shut_down()
                while left := leaders_to_move(self._view.image, self._settings.node_id):
                    await self._next_image.wait()
        except TimeoutError:
            log.warning(
                "broker %d stops although it leads %d partitions yet that others could lead: the controller "
                "has not taken them away in time",
                self._settings.node_id,
                left,
            )
        except (OSError, ConflictError) as error:
            log.warning("broker %d stops without telling: %s", self._settings.node_id, error)

    # -- for clients -----------------------------------------------------------------------------------------

    async def forward(self, frame: bytes, peer: Peer) -> Any:
        """The controller's response to a client's request, as a frame. By then this broker has seen the
        changes. Raises KafkaError NOT_CONTROLLER if there is no controller.
        """
        body = EnvelopeRequest(frame, peer.principal.encode(), peer.host.encode())

        async def there(connection: Connection, timeout_ms: float) -> bytes:
            answer = await connection.request(body, timeout_ms=timeout_ms)
            if answer.error_code:
                raise broker_refusal(answer.error_code, "the controller refused to answer a client")
            return bytes(answer.response_data or b"")

        answer = await self._at_controller(lambda: self.answer(frame, peer), there, Channel.DATA)
        await self._catch_up()
        return answer

    # -- for this broker -------------------------------------------------------------------------------------

    async def alter_isr(self, changes: Sequence[IsrChange]) -> list[PartitionState | KafkaError]:
        """Ask for in-sync replicas of partitions that this broker leads. Returns the new states, without
        replicas, or the errors. Raises KafkaError if the outcome is unknown.
        """
        node_id, epoch = self._settings.node_id, self._registration.epoch
        body = _isr_request(node_id, epoch, changes)

        async def there(connection: Connection, timeout_ms: float) -> list[PartitionState | KafkaError]:
            answer = await connection.request(body, timeout_ms=timeout_ms)
            if answer.error_code:
                raise broker_refusal(answer.error_code, "the controller refused to change replicas")
            found = {
                (topic.topic_id, each.partition_index): each
                for topic in answer.topics
                for each in topic.partitions
            }
            return [_decision_in(found.get((change.topic_id, change.partition))) for change in changes]

        return await self._at_controller(lambda: self.decide_isr(node_id, epoch, changes), there)

    async def create_topics(self, wanted: Sequence[NewTopic]) -> dict[str, KafkaError]:
        """See ``ControllerRequests``; also for a broker that is not the controller."""
        topics = self._with_configs(wanted)

        async def there(connection: Connection, timeout_ms: float) -> Refusals[str]:
            answer = await connection.request(_topics_request(topics), timeout_ms=timeout_ms)
            return {
                each.name: KafkaError(ErrorCode(each.error_code), each.error_message or "")
                for each in answer.topics
                if each.error_code
            }

        async def here() -> Refusals[str]:
            return await self.controller.ask(lambda image, _: create_topics(image, topics))

        answer = await self._at_controller(here, there)
        await self._catch_up()
        return refusals_in(answer)

    # -- as the controller: these raise NOT_CONTROLLER on other brokers -------------------------------------

    async def decide_isr(
        self, node_id: int, epoch: int, changes: Sequence[IsrChange]
    ) -> list[PartitionState | KafkaError]:
        """Decide on the in-sync replicas that a leader asks for."""
        return await self.controller.ask(
            lambda image, rules: alter_isr(image, node_id, epoch, changes, rules)
        )

    async def report_removed(self, topic_ids: Collection[UUID]) -> None:
        """Note in the store that this broker has removed its replicas of deleted topics."""
        for topic_id in topic_ids:
            path = deleted_topic_path(topic_id)
            entry = self._store.get(path)
            if entry is None:
                continue
            left = TopicDeletion.parse(entry.value).without(self._settings.node_id)
            try:
                await self._store.commit(Put(path, left.to_document(), entry.version))
            except (ConflictError, OSError) as error:
                log.info("the removal of files of %s is not noted yet: %s", left.name, error)

    # -- inside ----------------------------------------------------------------------------------------------

    async def _at_controller(
        self,
        here: Callable[[], Awaitable[A]],
        there: Callable[[Connection, float], Awaitable[A]],
        channel: Channel = Channel.CONTROL,
    ) -> A:
        """Call the controller, wherever it is; retry while it moves or cannot be reached. Raises KafkaError:
        NOT_CONTROLLER in the end, and the controller's errors.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FIND_S
        while True:
            try:
                if self.is_active:
                    return await here()
                return await there(
                    await self._controller_connection(channel), (deadline - loop.time()) * 1_000
                )
            except KafkaError as error:
                if error.code not in _MOVED:
                    raise
                why: Exception = error
            except (BrokerConnectionError, OSError) as error:
                why = error
            if loop.time() + _AGAIN_S >= deadline:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, f"no controller is in reach: {why}") from why
            await asyncio.sleep(_AGAIN_S)

    async def _controller_connection(self, channel: Channel) -> Connection:
        async with self._connecting:
            node_id = self._view.image.controller_id
            if self._connected_to != node_id:
                self._close_connection()
            connection = self._connections.get(channel)
            if connection is None or not connection.is_usable():
                if node_id in (-1, self._settings.node_id):
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, "no broker is controller yet")
                connection = self._connections[channel] = await self._connect(node_id)
                self._connected_to = node_id
            return connection

    def _close_connection(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _catch_up(self) -> None:
        """Wait until this broker follows everything that is durable by now."""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(_SEEN_S):
                await self._store.sync()
                while self._followed is not self._view.image:
                    await self._next_image.wait()


def config_texts(configs: Mapping[str, object]) -> dict[str, str]:
    """Configs of a topic as the store has them: text, by Kafka's names."""
    return {name.replace("_", "."): as_text(value) or "" for name, value in configs.items()}


def _rules_of(settings: BrokerSettings) -> Rules:
    return Rules(
        settings.unclean_leader_election_enable,
        settings.auto_leader_rebalance_enable,
        float(settings.leader_imbalance_check_interval_seconds),
        settings.leader_imbalance_per_broker_percentage,
    )


def _topics_request(topics: Sequence[NewTopic]) -> CreateTopicsRequest:
    from ...protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                topic.name,
                topic.partitions,
                topic.replication_factor,
                configs=[CreatableTopicConfig(*item) for item in topic.configs.items()],
            )
            for topic in topics
        ],
        timeout_ms=int(_FIND_S * 1_000),
    )


def _isr_request(node_id: int, epoch: int, changes: Sequence[IsrChange]) -> AlterPartitionRequest:
    from ...protocol.messages.alter_partition import (
        AlterPartitionRequest,
        BrokerState,
        RequestPartitionData,
        RequestTopicData,
    )

    by_topic: dict[UUID | None, list[RequestPartitionData]] = {}
    for change in changes:
        by_topic.setdefault(change.topic_id, []).append(
            RequestPartitionData(
                change.partition,
                change.leader_epoch,
                new_isr_with_epochs=[BrokerState(*each) for each in change.isr],
                leader_recovery_state=int(change.recovering),
                partition_epoch=change.partition_epoch,
            )
        )
    topics = [RequestTopicData(*item) for item in by_topic.items()]
    return AlterPartitionRequest(node_id, epoch, topics)


def _decision_in(told: ResponsePartitionData | None) -> PartitionState | KafkaError:
    if told is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller said nothing of the partition")
    if told.error_code:
        return KafkaError(ErrorCode(told.error_code), "the controller refuses the in-sync replicas")
    return PartitionState(
        told.leader_id,
        told.leader_epoch,
        tuple(told.isr),
        (),
        partition_epoch=told.partition_epoch,
        recovering=bool(told.leader_recovery_state),
    )
