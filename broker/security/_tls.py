"""TLS of a listener: contexts from PEM files, created again when the files change.

While a file cannot be used (half written, a key that does not match) the last good context stays in force.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ...client.certificates import first_end
from ...settings import SettingsError
from ._settings import ClientAuth, SecuritySettings

log = logging.getLogger("kohort.broker")

#: Least time between two checks of the files, in seconds. New connections cause the checks.
LOOK_S = 1.0

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

#: Identity of a file's content when it was read: modification time, size, inode.
_Stamp = tuple[tuple[int, int, int], ...]


class TlsContexts:
    """The context for new connections, and when its certificate expires. Raises SettingsError if the files
    cannot be used at first.
    """

    def __init__(
        self,
        settings: SecuritySettings,
        listener: str,
        client_auth: ClientAuth,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._client_auth: ClientAuth = client_auth
        self._now = now
        self._looked = now()
        self._stamp = self._file_stamps()
        self._complained: str | None = None
        #: When the first certificate of its own chain expires, in seconds since 1970; None: not known.
        self.end: float | None = None
        self._context = self._make_context()

    def __repr__(self) -> str:
        return f"TlsContexts({self._listener}, client certificates {self._client_auth})"

    def current(self) -> ssl.SSLContext:
        """The context from the present files, or from the last ones that could be used."""
        now = self._now()
        if now - self._looked >= LOOK_S:
            self._looked = now
            stamp = self._file_stamps()
            if stamp != self._stamp:
                self._renew_context(stamp)
        return self._context

    def _renew_context(self, stamp: _Stamp) -> None:
        try:
            self._context = self._make_context()
        except SettingsError as error:
            if str(error) != self._complained:
                self._complained = str(error)
                log.error("the certificates of before stay in use: %s", error)
            return
        self._stamp, self._complained = stamp, None
        log.info("listener %s: certificates reloaded", self._listener)

    def _file_stamps(self) -> _Stamp:
        settings = self._settings
        return tuple(
            _stamp_of(path)
            for path in (settings.ssl_keystore_location, settings.ssl_truststore_location)
            if path
        )

    def _make_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._set_versions(context)
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        self._load_key(context)
        self.end = self._first_end()
        context.verify_mode = _VERIFY[self._client_auth]
        if self._client_auth != "none":
            self._load_authorities(context)
        return context

    def _set_versions(self, context: ssl.SSLContext) -> None:
        text = self._settings.ssl_enabled_protocols
        names = [name.strip() for name in text.split(",") if name.strip()]
        if not names or not _VERSIONS.keys() >= set(names):
            raise self._wrong_setting(
                f"ssl.enabled.protocols={text} is not allowed: TLSv1.2 and TLSv1.3 are offered"
            )
        versions = sorted(_VERSIONS[name] for name in names)
        context.minimum_version, context.maximum_version = versions[0], versions[-1]

    def _load_key(self, context: ssl.SSLContext) -> None:
        settings = self._settings
        password = settings.ssl_key_password or None
        if settings.ssl_keystore_location:
            path = settings.ssl_keystore_location
            self._load_file(context, path, path, password)
            return
        if not (settings.ssl_keystore_key and settings.ssl_keystore_certificate_chain):
            raise self._wrong_setting(
                "it has no certificate: set ssl.keystore.location to a PEM file with the private key and the "
                "certificate chain"
            )
        # the ssl module reads keys only from files
        with tempfile.TemporaryDirectory(prefix="kohort-key-") as folder:
            path = str(Path(folder) / "key.pem")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{settings.ssl_keystore_key}\n{settings.ssl_keystore_certificate_chain}\n")
            self._load_file(context, path, "ssl.keystore.key", password)

    def _first_end(self) -> float | None:
        settings = self._settings
        path = settings.ssl_keystore_location
        try:
            pem = Path(path).read_text() if path else settings.ssl_keystore_certificate_chain
        except (OSError, ValueError):
            return None  # OpenSSL takes it
        return first_end(pem)

    def _load_file(self, context: ssl.SSLContext, path: str, shown: str, password: str | None) -> None:
        try:
            # without a password OpenSSL would ask for one on the terminal
            context.load_cert_chain(path, password=password or "")
        except OSError as error:
            raise self._wrong_setting(
                f"{shown} cannot be used ({_reason_of(error)}): it must hold a private key in PEM form and "
                "the certificates that belong to it, and ssl.key.password open it"
            ) from None

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        settings = self._settings
        path, text = settings.ssl_truststore_location, settings.ssl_truststore_certificates
        if not path and not text:
            raise self._wrong_setting(
                f"ssl.client.auth={self._client_auth} needs the authorities of client certificates: set "
                "ssl.truststore.location to a PEM file with them"
            )
        try:
            context.load_verify_locations(path or None, cadata=None if path else text)
        except OSError as error:
            shown = path or "ssl.truststore.certificates"
            raise self._wrong_setting(
                f"{shown} cannot be used ({_reason_of(error)}): it must hold PEM certificates"
            ) from None

    def _wrong_setting(self, text: str) -> SettingsError:
        return SettingsError(f"listener {self._listener}: {text}")


def _stamp_of(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


def _reason_of(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)
