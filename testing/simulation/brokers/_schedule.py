"""A schedule as its brokers and clients know it."""

from __future__ import annotations

from abc import abstractmethod
from random import Random
from typing import Any, Final, Protocol, TypeVar

from ....broker.apis import served_apis
from ....client.metadata import Address
from ....protocol import TopicPartition
from ...memory_store import MemoryHome
from ..engine._network import Receiver, SimulatedCall
from ..engine._phases import Phases
from ._links import Links
from ._plan import BrokerPlan

HOST: Final = "simulated"
#: The port of broker 0, which there is not; the others follow.
PORT: Final = 9092

B = TypeVar("B", bound=BrokerPlan, covariant=True)


class Machine(Receiver, Protocol):
    """A broker as others reach it."""

    number: int

    @property
    def run(self) -> object:
        """Its present process."""


class BrokerSchedule(Phases[B]):
    """The schedule as its brokers and clients see it; ``versions`` has the newest that are served, by API."""

    def __init__(self, plan: B, *, checked: bool, traced: bool) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        self.versions: dict[int, int] = {int(key): api.versions[1] for key, api in served_apis().items()}
        self.metadata = MemoryHome(self.metadata_changed)
        self.links = Links(self.heap, Random(f"late {plan.run_seed}"), plan.late)
        #: Partitions that may have lost records: an unclean election was allowed, and took place.
        self.lossy: set[TopicPartition] = set()

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers, as clients are given them."""
        return ",".join(f"{HOST}:{PORT + number}" for number in range(1, self.plan.brokers + 1))

    @abstractmethod
    def broker_at(self, address: Address) -> Machine:
        """The broker of an address."""

    @abstractmethod
    def connections_to(self, broker: Any) -> None:
        """Called when a broker is gone: each connection to it is found broken a little later."""

    @abstractmethod
    def on_request(self, broker: Any, call: SimulatedCall) -> None:
        """Called with each request that a broker begins with."""

    @abstractmethod
    def on_answer(self, broker: Any, call: SimulatedCall, body: object) -> None:
        """Called with each answer before it is sent."""

    @abstractmethod
    def ran(self, broker: Any) -> None:
        """Called when a broker has done something."""

    def lost_disk(self) -> None:
        """Called when a broker loses what its disk has, or a part of it."""

    def metadata_changed(self) -> None:
        """Called after each step of the metadata."""
