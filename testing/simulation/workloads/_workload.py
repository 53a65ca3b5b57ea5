"""A workload: what some clients of a schedule do, and what must come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine._network import SimulatedCall
from ..engine._phases import Left
from ..engine._plan import Incident

if TYPE_CHECKING:
    from ....broker.partitions.partition import Partition
    from ..brokers._process import BrokerProcess


class Workload:
    """Subclasses override what concerns them."""

    def start(self) -> None:
        """Start its processes: there are topics by now, and the faults begin."""

    def meet(self, incident: Incident) -> bool:  # noqa: ARG002
        """Carry out an incident; return whether it is one of this workload."""
        return False

    def heal(self) -> None:
        """Called when the faults are over."""

    def unsettled(self) -> Left:
        """What is not settled yet of this workload."""
        return None

    def check(self) -> None:
        """Check what has come of it, once all is settled. Raises Violation."""

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:
        """Called with each request that a broker begins with."""

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: object) -> None:
        """Called with each answer before it is sent."""

    def on_led(self, broker: BrokerProcess, partition: Partition) -> None:
        """Called while a broker leads a partition, whenever it has done something."""
