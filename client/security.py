"""TLS and SASL settings of a connection as plain data, which can be pickled for other processes."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .certificates import EndReminder, first_end
from .errors import ConfigError
from .sasl import ClientCredentials, Sasl

_PEM: Final = "-----BEGIN "
_LONGEST_PATH: Final = 255


@dataclass(frozen=True, slots=True)
class Security:
    """TLS and SASL settings of a connection. Certificates and keys are PEM text, empty if there are none."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    #: The client's certificate with its chain, and its key.
    certificate: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    check_hostname: bool = True
    credentials: ClientCredentials | None = None
    #: ``module:name`` of what gives tokens.
    provider: str = ""
    tokenauth: bool = False
    service: str = ""

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context; None without TLS. Raises ConfigError for invalid certificates and keys."""
        if "SSL" not in self.protocol:
            return None
        try:
            # PEM files may have comments in any alphabet between the certificates
            authorities = self.authorities.encode("ascii", "replace").decode()
            context = ssl.create_default_context(cadata=authorities or None)
            if self.certificate:
                import tempfile

                # Python reads certificates only from a file; no other user can read this one
                with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                    file.write(self.certificate)
                    file.flush()
                    # without this function OpenSSL would ask for a missing password at the terminal
                    context.load_cert_chain(file.name, password=lambda: self.key_password)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"the certificates or the key cannot be used: {error}; see ssl_cafile, ssl_certfile, "
                "ssl_keyfile and ssl_password"
            ) from None
        context.check_hostname = self.check_hostname
        self.certificate_reminder().remind()
        return context

    def certificate_reminder(self, first_after_s: float = 0.0) -> EndReminder:
        """What tells of the end of the client's own certificate."""
        return EndReminder("ssl_certfile", first_end(self.certificate), first_after_s=first_after_s)

    def sasl(self) -> Sasl | None:
        """Return the SASL credentials; None without SASL. Raises ConfigError for a token provider that is not
        there.
        """
        if not self.mechanism:
            return None
        provider = None
        if self.provider:
            provider = _load_object(self.provider)
        elif self.credentials is not None:
            from .oauth import TokenSource  # an HTTP client comes with it

            provider = TokenSource(self.credentials)
        return Sasl(self.mechanism, self.username, self.password, provider, self.tokenauth, self.service)


def _load_object(path: str) -> Any:
    """Return what ``module:name`` stands for. Raises ConfigError."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"sasl_oauth_token_provider={path!r}: {error}") from error


def security_of(settings: Any) -> Security:
    """Make Security from settings that have the fields of ``SecurityRows``; reads the files.

    Raises ConfigError for a file that cannot be read or is not PEM.
    """
    credentials = None
    if settings.sasl_oauth_token_url:
        credentials = ClientCredentials(
            settings.sasl_oauth_token_url,
            settings.sasl_oauth_client_id,
            settings.sasl_oauth_client_secret,
            settings.sasl_oauth_scope or "",
        )
    provider = settings.sasl_oauth_token_provider
    pieces = (
        _pem_text("ssl_keyfile", settings.ssl_keyfile),
        _pem_text("ssl_certfile", settings.ssl_certfile),
    )
    return Security(
        protocol=settings.security_protocol,
        mechanism=settings.sasl_mechanism or "",
        username=settings.sasl_plain_username or "",
        password=settings.sasl_plain_password or "",
        authorities=_pem_text("ssl_cafile", settings.ssl_cafile),
        certificate="\n".join(filter(None, pieces)),
        key_password=settings.ssl_password or "",
        check_hostname=settings.ssl_check_hostname,
        credentials=credentials,
        provider=provider if isinstance(provider, str) else "",
        tokenauth=settings.sasl_tokenauth,
        service=settings.sasl_kerberos_service_name or "",
    )


def context_and_login(settings: Any) -> tuple[ssl.SSLContext | None, Sasl | None]:
    """Return TLS context and SASL credentials (None without) from settings with the fields of ``ClientRows``.

    Raises ConfigError.
    """
    security = security_of(settings)
    sasl = security.sasl()
    provider = settings.sasl_oauth_token_provider
    if sasl is not None and provider is not None and not isinstance(provider, str):
        sasl = replace(sasl, token_provider=provider)
    return settings.ssl_context or security.ssl_context(), sasl


def _pem_text(name: str, given: str | None) -> str:
    if not given:
        return ""
    if _PEM in given:
        return given
    try:
        text = Path(given).read_text(errors="replace")
    except (OSError, ValueError) as error:
        # a value that is not a path may be a key, and must not be shown
        shown = (
            repr(given) if len(given) < _LONGEST_PATH and "\n" not in given else "neither PEM text nor a path"
        )
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{name}: {shown}: {reason}") from None
    if _PEM not in text:
        raise ConfigError(f"{name}={given!r} is no PEM file: Java's key stores must be converted to PEM")
    return text
