"""The broker: sockets, request routing, topics, produce and fetch; hosts the group coordinator."""

from ..settings import SettingsError
from .broker import Broker
from .event_loop.process import allow_open_files, loop_factory, settle_collector
from .metrics import BrokerSnapshot
from .reporting.log_handler import LogHandler
from .settings import BrokerSettings

__all__ = [
    "Broker",
    "BrokerSettings",
    "BrokerSnapshot",
    "LogHandler",
    "SettingsError",
    "allow_open_files",
    "loop_factory",
    "settle_collector",
]
