"""Several services side by side in one process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..client.errors import ConfigError
from ._service import ConsumerService
from .reporting.probes import Probes
from .run.keeping import serving_again
from .run.signals import run_with_signals

log = logging.getLogger("kohort.service")


class Services:
    """Runs services of different groups together: one event loop, one signal handler, one health port.

    A stop stops all of them. If one fails, the others stop in good order and its error is raised.
    ``health_port`` and ``health_host`` are as for a service; the probes cover all. Raises ConfigError.
    """

    def __init__(
        self, *services: ConsumerService, health_host: str = "127.0.0.1", health_port: int | None = None
    ) -> None:
        from ._options import check_own  # it imports pydantic

        if not services or not all(isinstance(service, ConsumerService) for service in services):
            raise ConfigError(f"Services: {services!r}, but it takes one or more ConsumerServices")
        groups = [service.group for service in services]
        if twice := {group for group in groups if groups.count(group) > 1}:
            raise ConfigError(
                f"Services: two of them are of group {min(twice)!r}: give one service the handlers of both"
            )
        own = check_own({"health_host": health_host, "health_port": health_port})
        self.services = services
        self._address = None if own.health_port is None else (own.health_host, own.health_port)
        #: Port of the health listener while it listens.
        self.health_port: int | None = None
        self._stop_reason: str | None = None

    def run(self) -> None:
        """As ConsumerService.run, for all of them."""
        run_with_signals(self.serve, self.stop)

    async def serve(self) -> None:
        """Run all until ``stop``; return when the last one has ended. Raises the first error."""
        self._stop_reason = None
        for service in self.services:
            service.checked_handlers()
        probes = Probes(
            lambda: [run for service in self.services if (run := service.probed) is not None],
            self._address,
            expected=len(self.services),
        )
        async with probes:
            self.health_port = probes.port
            if probes.port is not None:
                log.info("%d services: %s", len(self.services), probes.addresses())
            try:
                await self._serve_all()
            finally:
                self.health_port = None

    @asynccontextmanager
    async def keep_serving(self) -> AsyncIterator[None]:
        """As ConsumerService.keep_serving, for all of them."""
        for service in self.services:
            service.checked_handlers()
        async with serving_again(self.serve, self.stop):
            yield

    def complaint(self) -> str | None:
        """As ConsumerService.complaint, of the first service that has one."""
        found = ((each.group, each.complaint()) for each in self.services)
        return next((f"group {group}: {complaint}" for group, complaint in found if complaint), None)

    async def _serve_all(self) -> None:
        tasks = [asyncio.create_task(each.serve(), name=f"kohort {each.group}") for each in self.services]
        try:
            await asyncio.sleep(0)
            if self._stop_reason is not None:
                # asked for before they had begun, which each takes as meant for its last run
                self.stop(self._stop_reason)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                if task.done() and not task.cancelled() and task.exception() is not None:
                    self.stop(f"{task.get_name()} has failed")
                    await asyncio.wait(tasks)
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self, reason: str = "stop() was called") -> None:
        """Ask all of them to stop in good order, from any thread."""
        self._stop_reason = reason
        for service in self.services:
            service.stop(reason)

    def reconfigure(self, **config: object) -> None:
        """Change settings of all consumers before they run. Raises ConfigError."""
        for service in self.services:
            service.reconfigure(**config)

    def as_worker(self, index: int, *, instance_id: str | None = None) -> None:
        """As ConsumerService.as_worker."""
        for service in self.services:
            service.as_worker(index, instance_id=instance_id)
        if self._address is not None and self._address[1]:
            self._address = (self._address[0], self._address[1] + index)

    @property
    def ready(self) -> bool:
        """Return whether all services are ready."""
        return all(service.ready for service in self.services)
