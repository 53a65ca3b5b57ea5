"""Requirements of a listener for its clients: TLS and authentication."""

from __future__ import annotations

import ssl
from asyncio import BaseTransport
from typing import TYPE_CHECKING

from ...protocol import ANONYMOUS
from ._listeners import Listener, is_own, settings_for
from ._scram_users import ScramUsers
from ._settings import SecuritySettings

if TYPE_CHECKING:
    from ._distinguished_names import PrincipalRules
    from ._sasl import SaslMechanisms
    from ._tls import TlsContexts


class ListenerSecurity:
    """TLS and SASL of one listener. Raises SettingsError if settings are missing or wrong."""

    def __init__(self, settings: SecuritySettings, listener: Listener, users: ScramUsers) -> None:
        self.settings = settings_for(settings, listener.name)
        self.listener = listener
        #: None without SASL.
        self.sasl: SaslMechanisms | None = None
        if listener.sasl:
            from ._sasl import SaslMechanisms

            self.sasl = SaslMechanisms(settings, listener, users)
        self._contexts: TlsContexts | None = None
        self._rules: PrincipalRules | None = None
        if listener.tls:
            from ._distinguished_names import PrincipalRules
            from ._tls import TlsContexts

            # with SASL the certificate does not name the client: request one only if this listener's setting
            # does
            asks = not listener.sasl or is_own(settings, listener.name, "ssl_client_auth")
            self._contexts = TlsContexts(
                self.settings, listener.name, self.settings.ssl_client_auth if asks else "none"
            )
            self._rules = PrincipalRules(self.settings.ssl_principal_mapping_rules)

    def __repr__(self) -> str:
        return f"ListenerSecurity({self.listener})"

    def tls_context(self) -> ssl.SSLContext | None:
        """The context for a new connection; None without TLS."""
        return None if self._contexts is None else self._contexts.current()

    def certificate_end(self) -> float | None:
        """When this listener's certificate expires, in seconds since 1970; None without TLS."""
        if self._contexts is None:
            return None
        self._contexts.current()
        return self._contexts.end

    def principal(self, transport: BaseTransport) -> str:
        """The principal of the client, from its certificate. Raises CertificateError."""
        secured = transport.get_extra_info("ssl_object")
        if self._rules is None or self.listener.sasl or secured is None:
            return ANONYMOUS
        certificate = secured.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        from ._distinguished_names import subject_name

        return f"User:{self._rules.user(subject_name(certificate))}"
