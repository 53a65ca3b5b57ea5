"""The SASL mechanisms of a listener, and how an exchange of each begins."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...settings import SettingsError
from ._exchange import Exchange, PlainExchange
from ._listeners import MECHANISMS, Listener, parse_list, settings_for
from ._scram import ScramExchange
from ._scram_users import HASHES, ScramUsers
from ._settings import SecuritySettings

_OPTION = re.compile(r'(?P<name>[\w.]+)\s*=\s*(?:"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<plain>[^\s;"]+))')
_USER = "user_"


class SaslMechanisms:
    """SASL of one listener. Raises SettingsError if its settings are missing or wrong."""

    def __init__(self, settings: SecuritySettings, listener: Listener, users: ScramUsers) -> None:
        own = settings_for(settings, listener.name)
        self.listener_name = listener.name
        #: Names of the mechanisms, as clients see them.
        self.mechanisms = parse_list(own.sasl_enabled_mechanisms)
        self.max_frame_bytes = own.sasl_server_max_receive_size
        self.delay_s = own.connection_failed_authentication_delay_ms / 1000
        self._users = users
        self._believed_ms: dict[str, int] = {}
        self._begin: dict[str, Callable[[], Exchange]] = {}
        if not self.mechanisms:
            raise SettingsError(f"listener {listener.name}: sasl.enabled.mechanisms is empty: name some")
        for mechanism in self.mechanisms:
            if mechanism not in MECHANISMS:
                raise SettingsError(
                    f"listener {listener.name}: sasl.enabled.mechanisms: {mechanism} is not offered, "
                    f"{', '.join(MECHANISMS)} are"
                )
            special = settings_for(settings, listener.name, mechanism)
            self._believed_ms[mechanism] = special.connections_max_reauth_ms
            self._begin[mechanism] = self._exchange_maker(mechanism, listener, special)

    def __repr__(self) -> str:
        return f"Sasl({', '.join(self.mechanisms)})"

    def begin(self, mechanism: str) -> Exchange | None:
        """A new exchange; None for a mechanism that is not offered."""
        begin = self._begin.get(mechanism)
        return None if begin is None else begin()

    def believed_ms(self, mechanism: str, expires_ms: int | None, now_ms: int) -> int:
        """Time in ms until a client has to reauthenticate (KIP-368); 0: never."""
        limits = [self._believed_ms[mechanism]] if self._believed_ms[mechanism] else []
        if expires_ms is not None:
            limits.append(max(1, expires_ms - now_ms))
        return min(limits, default=0)

    def _exchange_maker(
        self, mechanism: str, listener: Listener, settings: SecuritySettings
    ) -> Callable[[], Exchange]:
        if mechanism in HASHES:
            return lambda: ScramExchange(mechanism, self._users)
        if mechanism == "PLAIN":
            if not listener.tls and listener.name not in parse_list(settings.kohort_sasl_plain_without_tls):
                raise SettingsError(
                    f"listener {listener.name}: PLAIN would send passwords in the clear: use SASL_SSL, or "
                    f"listener.name.{listener.name.lower()}.sasl.enabled.mechanisms without PLAIN, or name "
                    "the listener in kohort.sasl.plain.without.tls"
                )
            passwords = plain_users(settings.sasl_jaas_config)
            return lambda: PlainExchange(passwords)
        from ._oauth import OauthExchange
        from ._tokens import TokenVerifier

        tokens = TokenVerifier(settings)
        return lambda: OauthExchange(tokens)


def plain_users(jaas: str) -> dict[str, str]:
    """Passwords by user, of ``... required user_alice="secret" user_bob="...";``. Raises SettingsError."""
    return {
        name.removeprefix(_USER): value
        for name, value in jaas_options(jaas).items()
        if name.startswith(_USER)
    }


def jaas_options(jaas: str) -> dict[str, str]:
    """Options by name, of ``MODULE required name="value";``. Raises SettingsError."""
    text = jaas.strip()
    if not text:
        return {}
    module, _, rest = text.partition(" ")
    rest = rest.strip()
    if not module.endswith("Module") or not rest.startswith(
        ("required", "requisite", "sufficient", "optional")
    ):
        raise SettingsError(
            "sasl.jaas.config=(hidden) is not allowed: it must be a module's name, the word required, and "
            'user_NAME="PASSWORD" for each user'
        )
    return {
        match["name"]: re.sub(r"\\(.)", r"\1", match["quoted"])
        if match["quoted"] is not None
        else match["plain"]
        for match in _OPTION.finditer(rest)
    }
