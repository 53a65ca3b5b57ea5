"""An API as this broker serves it, and a request of it with its sender's rights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from ...protocol import (
    APIS,
    ApiKey,
    ErrorCode,
    KafkaError,
    RequestContext,
    UnsupportedVersionError,
    operation_bits,
    response_type,
)
from ..authorizer import CLUSTER_NAME, OPERATIONS, Access, Authorizer, ResourceType
from ..clients.client_state import Peer
from ..clients.retriable_batches import RefusedBatches
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._errors import AT_TOP, ErrorShape

_ALL_OPERATIONS = {kind: operation_bits(operations) for kind, operations in OPERATIONS.items()}

T = TypeVar("T")
#: The generated classes of an API's request and response.
BodyT = TypeVar("BodyT")
AnswerT = TypeVar("AnswerT")
#: Elements of its outermost array, and of the array in these.
TopicT = TypeVar("TopicT")
PartitionT = TypeVar("PartitionT")


def replaced(body: T, **fields: object) -> T:
    """The same message, or reply of the coordinator, with other values in these fields."""
    message: Any = body
    changed: T = message._replace(**fields) if hasattr(body, "_replace") else replace(message, **fields)
    return changed


def always(_node: Node, _body: object) -> bool:
    """The controller carries out every request."""
    return True


def make_result(struct: Callable[..., T], error: KafkaError | None = None, /, **fields: object) -> T:
    """A struct of a response, with an error and its message, or without."""
    code, message = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
    return struct(error_code=code, error_message=message, **fields)


def refusal_error(access: Access) -> KafkaError:
    """Return the error for a missing right."""
    assert access.error is not None, "what is only left out is never refused"
    return KafkaError(access.error, f"{access.operation.name} on {access.resource.name} is not allowed")


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks requests before their handler, if there are access rules.

    ``access`` are the rights that ``admit`` checks, in order; docs/acls.md shows them. Where a handler looks
    up what the request does not name, it asks ``Request.allows`` itself.
    """

    access: tuple[Access, ...]
    admit: Callable[[Node, AnyRequest], Awaitable[object]]


async def hand_over(node: Node, request: AnyRequest) -> Any:
    """Handler of the group APIs: the coordinator answers them."""
    return await node.coordinator.handle(request.api.key, request.version, request.body, request.context)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApi(Generic[BodyT, AnswerT]):
    """Everything that the broker knows of one API, with the generated classes of its messages."""

    key: ApiKey
    #: First and last version that is served.
    versions: tuple[int, int]
    #: First version in the response to ApiVersions; None: the first that is served.
    told_from: int | None = None
    guard: Guard
    #: Returns the response body, None for no response. May raise KafkaError.
    handler: Callable[[Node, Request[BodyT]], Awaitable[AnswerT]] = hand_over
    errors: ErrorShape = AT_TOP
    #: Whether this request is answered at all: a Produce with acks=0 is not.
    is_answered: Callable[[BodyT], bool] = lambda _body: True
    #: The response may take minutes.
    parks: bool = False
    #: The coordinator answers it without a task: for the requests that members send most.
    without_task: bool = False
    #: Feature that has to be at level 1 or above; else every version is unsupported.
    feature: str | None = None
    #: It changes nothing, and is not carried out for a client that has disconnected.
    reads_only: bool = False
    #: It is completed even if its client has disconnected: it may take many turns of the loop, and a producer
    #: with acks=0 sends and closes.
    carried_out: bool = False
    #: Its bytes count towards the quota of producers.
    produces: bool = False
    #: Its response's bytes count towards the quota of consumers; records are sent from their files.
    fetches: bool = False
    #: What its response gives is taken from others by then: it is sent over a quota, too.
    acquires: bool = False
    #: Version from which clients know THROTTLING_QUOTA_EXCEEDED; older ones are delayed (KIP-599). None: it
    #: creates and deletes no partitions.
    refused_over_quota_from: int | None = None
    #: Tells by a request's body whether a cluster's controller carries it out, whichever broker receives it.
    by_controller: Callable[[Node, BodyT], bool] | None = None
    #: Tells by a request's body whether a broker of the cluster sent it, as a follower or to forward another
    #: request: brokers have no quotas.
    is_of_broker: Callable[[BodyT], bool] = lambda _body: False
    #: It works new metadata out from the present ones, as a change of one config does: one such request is
    #: carried out after the other, so that none undoes what another has changed.
    one_at_a_time: bool = False
    #: A single broker does not serve it.
    cluster_only: bool = False

    @property
    def name(self) -> str:
        """Kafka's name of the API."""
        return APIS[self.key].name

    @property
    def access(self) -> tuple[Access, ...]:
        """The rights that its guard asks for."""
        return self.guard.access

    @property
    def private(self) -> bool:
        """Return whether it is kohort's own: advertised as a feature, not by its number."""
        return APIS[self.key].private

    def serves(self, version: int) -> bool:
        """Return whether this version is served."""
        return self.versions[0] <= version <= self.versions[1]

    def require(self, version: int) -> None:
        """Raise UnsupportedVersionError unless this version is served."""
        if not self.serves(version):
            first, last = self.versions
            raise UnsupportedVersionError(
                f"{self.name} v{version} is not spoken here: v{first} to v{last} are"
            )


@dataclass(slots=True)
class Request(Generic[BodyT]):
    """One decoded request. ``endpoint`` is the host and port of this broker for this client."""

    api: ServedApi[BodyT, Any]
    version: int
    body: BodyT
    context: RequestContext
    endpoint: tuple[str, int]
    #: The APIs that the broker serves, by number.
    apis: Mapping[int, AnyApi] = field(default_factory=dict)
    #: Batches of its connection that were refused for now.
    refused: RefusedBatches = field(default_factory=RefusedBatches)
    #: What the broker remembers of its connection.
    peer: Peer = field(default_factory=lambda: Peer("", ("", 0)))
    #: Decides what its sender may do; None without access rules: everything.
    authorizer: Authorizer | None = None
    #: Throttle time in seconds for what this request did; delays for time and bytes are added later.
    delay_s: float = 0.0

    @property
    def produces(self) -> bool:
        """Whether its bytes count towards the quota of producers."""
        return self.api.produces

    @property
    def knows_quota_error(self) -> bool:
        """Return whether its client knows THROTTLING_QUOTA_EXCEEDED; others are delayed instead (KIP-599)."""
        known_from = self.api.refused_over_quota_from
        return known_from is not None and self.version >= known_from

    def allows(self, access: Access, name: str = CLUSTER_NAME) -> bool:
        """Return whether the sender has this right; a denial is logged if it is answered with an error."""
        if self.authorizer is None:
            return True
        ask = self.authorizer.shows if access.error is None else self.authorizer.allows
        return ask(self.context, access.operation, access.resource, name)

    def shows(self, access: Access, name: str = CLUSTER_NAME) -> bool:
        """Return whether the sender has this right, without logging: what it lacks is only left out."""
        return self.authorizer is None or self.authorizer.shows(
            self.context, access.operation, access.resource, name
        )

    def allows_some(self, access: Access) -> bool:
        """Return whether there may be a resource on which the sender has this right."""
        return self.authorizer is None or self.authorizer.allows_some(
            self.context, access.operation, access.resource
        )

    def require(self, access: Access, name: str = CLUSTER_NAME) -> None:
        """Raise the KafkaError of this right unless the sender has it."""
        if not self.allows(access, name):
            raise refusal_error(access)

    def operations(self, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
        """All operations on a resource that the sender may do, as the bits of a response (KIP-430)."""
        if self.authorizer is None:
            return _ALL_OPERATIONS[kind]
        return operation_bits(self.authorizer.operations(self.context, kind, name))

    def narrow(self, **fields: object) -> None:
        """Replace fields of the body: the handler gets what is allowed."""
        self.body = replaced(self.body, **fields)

    async def proceed(self, node: Node) -> Any:
        """Call the handler with the request as it is now; return its answer."""
        return await self.api.handler(node, self)

    def answer(self, **fields: object) -> Any:
        """A response body of this request's API; fields not named have the schema's defaults."""
        return response_type(self.api.key)(**fields)

    async def each_partition(
        self,
        response: Callable[..., T],
        work: Callable[[TopicT, PartitionT], Awaitable[Mapping[str, object]]],
    ) -> T:
        """The ``response`` with the fields that ``work`` returns, or the KafkaError that it raises, for each
        partition. Other work runs between the partitions.
        """
        outer, inner = self.api.errors.levels[0]
        topics = getattr(self.body, outer.request)
        blanks = self.element_errors(topics, ErrorCode.NONE)
        answered = [blank._replace(**{inner.response: []}) for blank in blanks]
        places = (
            (topic, wanted, partition, getattr(answer, inner.response))
            for topic, blank, answer in zip(topics, blanks, answered, strict=True)
            for wanted, partition in zip(
                getattr(topic, inner.request), getattr(blank, inner.response), strict=True
            )
        )
        async for topic, wanted, partition, partitions in in_slices(places):
            try:
                partitions.append(partition._replace(**await work(topic, wanted)))
            except KafkaError as error:
                words = {"error_message": error.message} if hasattr(partition, "error_message") else {}
                partitions.append(partition._replace(error_code=error.code, **words))
        return response(**{outer.response: answered})

    def error_answer(self, code: ErrorCode) -> Any:
        """The response body with ``code`` for all of it; None if it is not answered."""
        if not self.api.is_answered(self.body):
            return None
        return self.api.errors.answer(self.api.key, self.version, self.body, code)

    def element_errors(self, items: Iterable[object], code: ErrorCode) -> list[Any]:
        """Elements of the response's outermost array, with ``code`` for these elements of the request."""
        return self.api.errors.elements(self.api.key, self.version, items, code)


#: An API and a request, of which the code that has them all knows no more.
AnyApi: TypeAlias = ServedApi[Any, Any]
AnyRequest: TypeAlias = Request[Any]
