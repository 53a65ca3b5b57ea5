"""The controller of a cluster: one broker at a time, which decides for all of them.

It is the broker that created ``/controller`` in its session, in one step with raising the controller's
epoch. All its writes are conditional on that epoch: a controller that was replaced cannot write. It handles
one event after another, decides on the current image, and writes; brokers see the result in their images.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar
from uuid import UUID

from ...protocol import ErrorCode, KafkaError
from ...statemachine import PartitionLife
from .._image import ClusterImage, TopicImage
from .._store import Change, Check, ConflictError, Create, Delete, MetadataStore, Put, SessionState
from .._view import ClusterView
from ..layout import (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    deleted_topic_path,
    stored_cluster_id,
    stored_controller,
)
from .decisions import Decision, Rules, balance_leaders, tidy_partitions
from .partitions import moved_replicas, transition_of
from .writes import MAX_TOPICS, steps_to_restore, steps_to_write

log = logging.getLogger("kohort.cluster")

A = TypeVar("A")

#: Pause before a failed write is retried.
_AGAIN_SECONDS = 0.1

#: How long the note of a deletion outlives its end, in seconds.
DELETIONS_KEPT_S: Final = 86_400.0

#: Topics named in a line of the log.
_MAX_NAMED = 20


class Controller:
    """A broker's part in controlling its cluster: it stands for election, and decides while it is elected.

    ``view`` is the broker's own image; its owner calls ``wake`` when it has changed. ``rules`` gives the
    settings that are in force, ``now_ms`` the wall clock. ``unreachable`` are the epochs of brokers
    that the controller cannot reach, by node id: they lead only what no other broker can lead. ``yields_s``
    returns for how long, in seconds, the controller is to leave the election to others, because it is cut off
    itself; 0: it is not. ``session_s`` is how long a session lasts, in seconds.

    Where all sessions have ended together, as the store was out of reach, the first broker back becomes
    controller and sees no other. So a controller with a new session waits for those that were there before as
    long as a session lasts, and decides nothing meanwhile: if they had died, they would be missed so late.
    """

    def __init__(
        self,
        store: MetadataStore,
        view: ClusterView,
        node_id: int,
        now_ms: Callable[[], int],
        rules: Callable[[], Rules] = Rules,
        unreachable: Mapping[int, int] = MappingProxyType({}),
        yields_s: Callable[[], float] = lambda: 0.0,
        session_s: float = 0.0,
    ) -> None:
        self._store = store
        self._view = view
        self._node_id = node_id
        self._now_ms = now_ms
        self._rules = rules
        self._unreachable = unreachable
        self._yields_s = yields_s
        self._session_s = session_s
        # until when it leaves the election to others, on the loop's clock
        self._yields_until = 0.0
        # brokers that were there when the session ended, and until when the next one waits for them
        self._awaited: frozenset[int] = frozenset()
        self._awaits_until = 0.0
        # the image that decisions are based on, and the image of the view that it was made from
        self._seen = self._seen_of = view.image
        self._seen_unreachable: dict[int, int] = {}
        self._wake = asyncio.Event()
        self._asked: list[tuple[Callable[[ClusterImage, Rules], Decision[Any]], asyncio.Future[Any]]] = []
        # the value of this broker's entry in this session, and the version of the epoch raised with it; None:
        # not elected
        self._value: dict[str, object] = {}
        self._epoch_version: int | None = None
        # the image in which every partition is known to be settled, and the rules that settled it
        self._tidied: ClusterImage | None = None
        self._tidied_by = Rules()
        # deletions that all brokers have finished, and since when that is known here
        self._finished: dict[UUID, float] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"Controller({self._node_id}, {'active' if self.is_active else 'not active'})"

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller."""
        return self._epoch_version is not None

    def start(self) -> None:
        """Stand for election from now on."""
        self._store.on_session(self._session_changed)
        self._watch_controller(CONTROLLER)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run()), loop.create_task(self._balance_leaders())]

    def close(self) -> None:
        """Stop deciding; pending requests fail."""
        for task in self._tasks:
            task.cancel()
        self._resign_control("the broker stops")

    def wake(self) -> None:
        """Called when the image or the rules have changed."""
        self._wake.set()

    async def ask(self, decide: Callable[[ClusterImage, Rules], Decision[A]]) -> A:
        """Decide something, write it, and return the answer once it is durable.

        Raises KafkaError NOT_CONTROLLER if another broker is controller, or if the write failed: then
        nothing, a part or all of the decision may be written. Also raises what ``decide`` raises.
        """
        if not self.is_active:
            raise _not_controller("another broker is controller")
        answered: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._asked.append((decide, answered))
        self._wake.set()
        return await answered

    # -- election --------------------------------------------------------------------------------------------

    def _watch_controller(self, path: str) -> None:
        self._store.watch(path, self._watch_controller)
        self._wake.set()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self._resign_control("its session is over")
            # an entry of this broker that can still be read is an old one
            self._value = {}
            there = self._view.image.brokers.items()
            self._awaited = frozenset(node_id for node_id, broker in there if not broker.shutting_down)
            self._awaits_until = math.inf
        elif state is SessionState.CONNECTED and self._awaits_until == math.inf:
            loop = asyncio.get_running_loop()
            self._awaits_until = loop.time() + self._session_s
            loop.call_later(self._session_s, self._wake.set)
        self._wake.set()

    def _resign_control(self, why: str) -> None:
        if self._epoch_version is not None:
            log.warning("broker %d is not controller any more: %s", self._node_id, why)
        self._epoch_version = None
        self._tidied = None
        self._give_up_asked(why)

    async def _stand_for_control(self) -> None:
        """Become controller, if there is none, and no other broker is to be."""
        if asyncio.get_running_loop().time() < self._yields_until:
            return
        controller, epoch = self._store.get(CONTROLLER), self._store.get(CONTROLLER_EPOCH)
        raised = (
            Create(CONTROLLER_EPOCH, 1)
            if epoch is None
            else Put(CONTROLLER_EPOCH, int(epoch.value) + 1, epoch.version)
        )
        if controller is None:
            self._value = stored_controller(self._node_id, self._now_ms())
            await self._store.commit(Create(CONTROLLER, self._value, ephemeral=True), raised)
        elif self._is_named():
            # no other broker is: somebody has removed or replaced the epoch by hand
            await self._store.commit(Check(CONTROLLER, controller.version), raised)
        # also true if an earlier attempt was carried out, but its response was lost
        epoch = self._store.get(CONTROLLER_EPOCH)
        if self._is_named() and epoch is not None:
            self._epoch_version = epoch.version
            log.info("broker %d is controller, epoch %s", self._node_id, epoch.value)

    def _is_named(self) -> bool:
        """Return whether the entry of the controller is the one of this broker, of this session."""
        controller = self._store.get(CONTROLLER)
        return controller is not None and controller.value == self._value

    async def _yield_control(self, seconds: float) -> None:
        """Let another broker be controller, and stand again only later."""
        loop = asyncio.get_running_loop()
        self._yields_until = loop.time() + seconds
        loop.call_later(seconds, self._wake.set)
        await self._write_step([Delete(CONTROLLER)])
        self._resign_control("most other brokers do not answer it")

    # -- decisions -------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._store.session is not SessionState.CONNECTED:
                continue
            if self._view.is_foreign:
                self._resign_control("the metadata store is of another cluster")
                continue
            if self.is_active and not self._is_named():
                self._resign_control("its entry was removed")
            try:
                if self.is_active and (yields_s := self._yields_s()):
                    await self._yield_control(yields_s)
                if not self.is_active:
                    await self._stand_for_control()
                if self.is_active:
                    await self._work_off()
            except ConflictError as error:
                is_replaced = error.change.path == CONTROLLER_EPOCH
                if not self.is_active or is_replaced:
                    self._resign_control(f"another broker is ({error})")
                else:
                    log.warning("the controller could not write: %s", error)
                if self.is_active or is_replaced:
                    await asyncio.sleep(_AGAIN_SECONDS)
                # the image has changed meanwhile
                self._wake.set()
            except OSError as error:
                log.warning("broker %d cannot write to the metadata store: %s", self._node_id, error)
                self._give_up_asked("the metadata store is out of reach")
                await asyncio.sleep(_AGAIN_SECONDS)
                self._wake.set()
            except Exception:
                log.exception("the controller failed")
                await asyncio.sleep(_AGAIN_SECONDS)
                self._wake.set()

    async def _balance_leaders(self) -> None:
        """Return leadership to preferred leaders, at intervals."""
        while True:
            await asyncio.sleep(self._rules().balance_interval_s)
            if self.is_active:
                await self._forget_deletions()
            if self.is_active and self._rules().balance:
                try:
                    moved = await self.ask(balance_leaders)
                    if moved:
                        log.info("leaders balanced: %d partitions have their first replicas", len(moved))
                except KafkaError as error:
                    log.info("leaders were not balanced: %s", error)

    async def _forget_deletions(self) -> None:
        """Remove the notes of deletions that all brokers have finished, a day later: until then a broker that
        was out of reach sees that its topic was deleted, not lost.
        """
        now = asyncio.get_running_loop().time()
        finished = [each for each, brokers in self._view.image.deletions.items() if not brokers]
        self._finished = {each: self._finished.get(each, now) for each in finished}
        old = [each for each, since in self._finished.items() if now - since >= DELETIONS_KEPT_S]
        try:
            for start in range(0, len(old), MAX_TOPICS):
                step = [Delete(deleted_topic_path(each)) for each in old[start : start + MAX_TOPICS]]
                await self._write_step([*step])
        except (ConflictError, OSError) as error:
            log.info("finished deletions are not forgotten yet: %s", error)

    def _give_up_asked(self, why: str) -> None:
        asked, self._asked = self._asked, []
        for _, answered in asked:
            if not answered.done():
                answered.set_exception(_not_controller(why))

    async def _work_off(self) -> None:
        """Decide pending requests and adapt partitions to the image, until neither is left."""
        while self.is_active:
            image, rules = self._usable_image(), self._rules()
            if unstored := self._view.unstored():
                await self._restore_topics(unstored)
            elif image.cluster_id and self._store.get(CLUSTER_ID) is None:
                await self._write_step([Create(CLUSTER_ID, stored_cluster_id(image.cluster_id))])
            elif self._is_waiting(image):
                return
            elif image is not self._tidied or rules != self._tidied_by:
                seen = self._without_returned(image)
                decision = tidy_partitions(seen, self._untidy_topics(seen, rules), rules)
                await self._carry_out(image, decision)
                if seen is not image or not decision.topics:
                    self._tidied, self._tidied_by = seen, rules
            elif self._asked:
                decide, answered = self._asked[0]
                await self._answer_request(image, decide, answered)
                self._asked = [each for each in self._asked if each[1] is not answered]
            else:
                return

    def _is_waiting(self, image: ClusterImage) -> bool:
        """Return whether brokers may come back that were there when the last session ended."""
        if asyncio.get_running_loop().time() >= self._awaits_until or self._awaited <= image.brokers.keys():
            self._awaited = frozenset()
        return bool(self._awaited)

    async def _restore_topics(self, topics: Collection[TopicImage]) -> None:
        """Write topics again whose entries are missing, or older than what is known."""
        names = sorted(topic.name for topic in topics)
        log.error(
            "the metadata store has lost entries of %d topics that nobody has deleted, or has older ones: "
            "the controller writes them again; to delete a topic, use DeleteTopics: %s",
            len(names),
            ", ".join(names[:_MAX_NAMED]),
        )
        for step in steps_to_restore(topics, self._view.entries(), self._store.get):
            await self._write_step(step)

    def _usable_image(self) -> ClusterImage:
        """The image, in which brokers that cannot be reached count as about to stop."""
        image = self._view.image
        if image is not self._seen_of or self._unreachable != self._seen_unreachable:
            self._seen_of, self._seen_unreachable = image, dict(self._unreachable)
            stopping = {
                node_id: broker._replace(shutting_down=True)
                for node_id, broker in image.brokers.items()
                if self._unreachable.get(node_id) == broker.epoch
            }
            self._seen = image.with_changes(brokers={**image.brokers, **stopping}) if stopping else image
        return self._seen

    async def _answer_request(
        self,
        image: ClusterImage,
        decide: Callable[[ClusterImage, Rules], Decision[Any]],
        answered: asyncio.Future[Any],
    ) -> None:
        try:
            decision = decide(image, self._rules())
            await self._carry_out(image, decision)
        except OSError:
            raise
        except Exception as error:
            if isinstance(error, ConflictError) and error.change.path == CONTROLLER_EPOCH:
                raise
            failed = error
            if not isinstance(error, KafkaError):
                log.exception("the controller failed to decide, or to write, what was asked")
                failed = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller failed: {error}")
            if not answered.done():
                answered.set_exception(failed)
        else:
            if not answered.done():
                answered.set_result(decision.answer)

    def _without_returned(self, image: ClusterImage) -> ClusterImage:
        """The image without brokers that restarted between two looks: their partitions get new leaders, and
        they have to prove that they are in sync.
        """
        before = {} if self._tidied is None else self._tidied.brokers
        staying = {
            node_id: broker
            for node_id, broker in image.brokers.items()
            if node_id not in before or before[node_id].epoch == broker.epoch
        }
        return image if len(staying) == len(image.brokers) else image.with_changes(brokers=staying)

    def _untidy_topics(self, image: ClusterImage, rules: Rules) -> Iterable[TopicImage]:
        """Topics that have changed since all partitions were settled."""
        before = self._tidied
        if before is None or before.brokers != image.brokers or rules != self._tidied_by:
            return image.topics()
        return [topic for topic in image.topics() if before.topic(topic.name) is not topic]

    async def _carry_out(self, image: ClusterImage, decision: Decision[Any]) -> None:
        if not (decision.topics or decision.deleted):
            return
        for step in steps_to_write(image, self._view.entries(), self._store.get, decision):
            await self._write_step(step)
        _log_changes(self._tidied or image, image, decision)

    async def _write_step(self, step: list[Change]) -> None:
        assert self._epoch_version is not None, "only the controller decides"
        await self._store.commit(Check(CONTROLLER_EPOCH, self._epoch_version), *step)


def _not_controller(why: str) -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, f"this broker is not the controller: {why}")


def _log_changes(before: ClusterImage, image: ClusterImage, decision: Decision[object]) -> None:
    """Log the changes of partitions: those without a leader, and unclean elections, one by one."""
    elected = replicas = 0
    for topic in decision.topics:
        there = image.topic(topic.name)
        known = there.partitions if there else ()
        for number, (was, now) in enumerate(zip(known, topic.partitions, strict=False)):
            life = transition_of(was, now)
            elected += life is PartitionLife.ONLINE
            replicas += sum(1 for _ in moved_replicas(was, now, before.brokers, image.brokers))
            if life is PartitionLife.OFFLINE:
                log.error(
                    "%s-%d is offline: none of its in-sync replicas %s can be used",
                    topic.name,
                    number,
                    now.isr,
                )
            elif now.recovering and now.leader != was.leader:
                log.error(
                    "%s-%d: unclean election of broker %d: records that were acknowledged may be lost",
                    topic.name,
                    number,
                    now.leader,
                )
    if elected or replicas:
        log.info("leaders elected for %d partitions; %d replicas have come or gone", elected, replicas)
