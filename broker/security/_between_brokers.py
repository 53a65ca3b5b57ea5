"""Connections between brokers of a cluster: their listener, TLS and login."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from ...client.sasl import Sasl
from ...client.security import Security
from ...protocol import ErrorCode, KafkaError, KohortError
from ...settings import SettingsError
from ._listeners import Listener, listeners_of, parse_list, settings_for
from ._sasl import jaas_options
from ._scram_users import HASHES
from ._settings import SecuritySettings

#: Mechanisms by which brokers log in to each other.
_MECHANISMS: Final = ("PLAIN", *HASHES)

_UNAUTHORIZED: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def broker_refusal(code: int, text: str) -> KafkaError:
    """The error for another broker's refusal, with advice if this broker lacks rights there."""
    if code in _UNAUTHORIZED:
        text += ": brokers need the right ClusterAction on the cluster, name their principals in super.users"
    return KafkaError(code, text)


class BetweenBrokers:
    """The listener of brokers, and this broker's credentials for it. Raises SettingsError if settings are
    missing.
    """

    def __init__(self, settings: SecuritySettings) -> None:
        self.listener = _broker_listener(settings)
        self._settings = settings_for(settings, self.listener.name)
        self._prefix = f"listener.name.{self.listener.name.lower()}."
        #: The credentials; None without SASL.
        self.sasl = self._login_of(settings) if self.listener.sasl else None
        self.tls_context()

    def __repr__(self) -> str:
        return f"BetweenBrokers({self.listener})"

    def tls_context(self) -> ssl.SSLContext | None:
        """The context from the present files; None without TLS. Raises SettingsError."""
        if not self.listener.tls:
            return None
        own = self._settings
        try:
            certificate = _read_text(own.ssl_keystore_location) or (
                f"{own.ssl_keystore_key}\n{own.ssl_keystore_certificate_chain}".strip()
            )
            return Security(
                protocol=self.listener.protocol,
                authorities=_read_text(own.ssl_truststore_location) or own.ssl_truststore_certificates,
                certificate=certificate,
                key_password=own.ssl_key_password,
                check_hostname=own.ssl_endpoint_identification_algorithm == "https",
            ).ssl_context()
        except (KohortError, OSError) as error:
            raise SettingsError(
                f"listener {self.listener.name}: brokers cannot use TLS to each other ({error}): "
                f"{self._prefix}ssl.truststore.location is a PEM file with the authorities of brokers' "
                f"certificates, {self._prefix}ssl.keystore.location one with a key and its certificate"
            ) from None

    def advice(self) -> str:
        """Advice for the case that one of two brokers refuses the other."""
        words = []
        if self.listener.tls:
            words.append(
                f"{self._prefix}ssl.truststore.location must have the authority of the other's certificate, "
                f"and the certificate the address of its advertised.listeners; with "
                f"ssl.client.auth=required {self._prefix}ssl.keystore.location is shown to it"
            )
        if self.sasl is not None:
            words.append(
                f"the user and the password of {self._prefix}{self.sasl.mechanism.lower()}.sasl.jaas.config "
                f"must be known to the cluster"
            )
        return "; ".join(words)

    def _login_of(self, settings: SecuritySettings) -> Sasl:
        mechanism = self._settings.sasl_mechanism_inter_broker_protocol.upper()
        offered = parse_list(self._settings.sasl_enabled_mechanisms)
        if mechanism not in _MECHANISMS or mechanism not in offered:
            raise SettingsError(
                f"sasl.mechanism.inter.broker.protocol={mechanism} is not allowed: brokers log in to each "
                f"other on the listener {self.listener.name}, by {' or '.join(_MECHANISMS)}, which must be "
                f"in its sasl.enabled.mechanisms ({', '.join(offered)})"
            )
        options = jaas_options(settings_for(settings, self.listener.name, mechanism).sasl_jaas_config)
        username, password = options.get("username", ""), options.get("password", "")
        if not username or not password:
            raise SettingsError(
                f"listener {self.listener.name}: brokers have no login for each other: set "
                f"{self._prefix}{mechanism.lower()}.sasl.jaas.config to the module's name, the word "
                'required, and username="..." password="...";'
            )
        return Sasl(mechanism, username, password)


def _broker_listener(settings: SecuritySettings) -> Listener:
    listeners = listeners_of(settings)
    wanted, protocol = settings.inter_broker_listener_name.upper(), settings.security_inter_broker_protocol
    for each in listeners:
        if each.name == wanted or (not wanted and each.protocol == protocol):
            return each
    raise SettingsError(
        f"brokers of a cluster have no listener for each other: none is {protocol} "
        "(security.inter.broker.protocol); set inter.broker.listener.name to one of "
        f"{', '.join(each.name for each in listeners)}"
    )


def _read_text(path: str) -> str:
    return Path(path).read_text() if path else ""
