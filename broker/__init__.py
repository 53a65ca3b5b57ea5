"""The broker: sockets, request routing, topics, produce and fetch; hosts the group coordinator."""

from ..settings import SettingsError
from ._broker import Broker
from ._log_handler import LogHandler
from ._process import allow_open_files, loop_factory, settle_collector
from ._settings import BrokerSettings
from .metrics import BrokerSnapshot

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
