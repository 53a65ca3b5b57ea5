"""Settings of connections to a cluster, and their sources: arguments, the environment, a file.

Arguments take precedence over ``KOHORT_*`` variables, these over the file that ``config`` or
``KOHORT_CONFIG`` names. The file has Java's names, so that one written for Kafka's tools will do, or
kohort's. It is a properties file, or TOML if its name ends with ``.toml``.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from ._file import read_settings_file
from ._reading import Fallback, SettingsError, not_overridden
from ._table import Row, Setting, settings_of

log = logging.getLogger(__name__)

#: Prefix of environment variables.
VARIABLE: Final = "KOHORT_"
#: Java's name of the setting that the certificate must be for the host name: ``https``, or empty.
CHECK_HOSTNAME: Final = "ssl.endpoint.identification.algorithm"
JAAS: Final = "sasl.jaas.config"
_STORE_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
_REFUSED: Final = {
    "ssl.truststore.password": "certificates are PEM, without a password",
    "ssl.keystore.password": "certificates are PEM; the key's own is ssl.key.password",
}
_JAAS_OPTION: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_JAAS_LOGINS: Final = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {
        "username": "sasl.username",
        "password": "sasl.password",
        "tokenauth": "sasl.tokenauth",
    },
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.credentials.client.id",
        "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}
#: Names that a login may leave out.
_JAAS_OPTIONAL: Final = ("sasl.oauthbearer.scope", "sasl.tokenauth")
#: Similarity (0 to 1) from which an unknown name in a file is taken for a misspelled one. Less similar names
#: are taken for settings of other clients.
_SLIP: Final = 0.88

BOOTSTRAP: Final = Row(
    "brokers to ask for the cluster",
    kafka="bootstrap.servers",
    client=True,
    also=("bootstrap_servers",),
    allowed="HOST:PORT, several with commas or as a list",
)

OAUTH: Final = "OAUTHBEARER"
KERBEROS: Final = "GSSAPI"
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


def _is_provider(value: object) -> bool:
    return not isinstance(value, str) or all(value.partition(":"))


@dataclass(kw_only=True, repr=False, eq=False)
class SecurityRows:
    """TLS and SASL of a connection: part of the tables of consumers, producers, Spark jobs and commands."""

    config: Annotated[
        str | None,
        Row("file with settings that are set neither here nor by a KOHORT_* variable"),
    ] = None
    security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        Row("encryption and authentication of connections", client=True),
    ] = "PLAINTEXT"
    ssl_cafile: Annotated[
        str | None,
        Row(
            "authorities to trust, a file or PEM text; by default the system's",
            kafka="ssl.truststore.location",
            client=True,
            also=("ssl.truststore.certificates",),
            sensitive=True,
        ),
    ] = None
    ssl_certfile: Annotated[
        str | None,
        Row(
            "the client's certificate, and its key unless ssl_keyfile has it: a file or PEM text",
            kafka="ssl.keystore.location",
            client=True,
            also=("ssl.keystore.certificate.chain",),
            sensitive=True,
        ),
    ] = None
    ssl_keyfile: Annotated[
        str | None,
        Row("key of ssl_certfile, a file or PEM text", kafka="ssl.keystore.key", client=True, sensitive=True),
    ] = None
    ssl_password: Annotated[
        str | None, Row("password of the key", kafka="ssl.key.password", client=True, sensitive=True)
    ] = None
    ssl_check_hostname: Annotated[
        bool, Row("the broker's certificate must be for its host name", kafka=CHECK_HOSTNAME, client=True)
    ] = True
    sasl_mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"] | None,
        Row("SASL mechanism, for SASL_PLAINTEXT and SASL_SSL", client=True),
    ] = None
    sasl_plain_username: Annotated[
        str | None,
        Row("user of PLAIN and SCRAM", kafka="sasl.username", client=True, shortest=1, longest=32_767),
    ] = None
    sasl_plain_password: Annotated[
        str | None, Row("password of PLAIN and SCRAM", kafka="sasl.password", client=True, sensitive=True)
    ] = None
    sasl_tokenauth: Annotated[
        bool,
        Row("log in by SCRAM with a delegation token: user is its id, password its HMAC", client=True),
    ] = False
    sasl_kerberos_service_name: Annotated[
        str | None,
        Row("name of the brokers' service in Kerberos (GSSAPI), often kafka", client=True, shortest=1),
    ] = None
    sasl_oauth_token_url: Annotated[
        str | None,
        Row(
            "URL where OAUTHBEARER gets tokens for client credentials (RFC 6749, 4.4)",
            kafka="sasl.oauthbearer.token.endpoint.url",
            client=True,
            shortest=1,
        ),
    ] = None
    sasl_oauth_client_id: Annotated[
        str | None,
        Row(
            "client id for sasl_oauth_token_url",
            kafka="sasl.oauthbearer.client.credentials.client.id",
            client=True,
            shortest=1,
        ),
    ] = None
    sasl_oauth_client_secret: Annotated[
        str | None,
        Row(
            "client secret for sasl_oauth_token_url",
            kafka="sasl.oauthbearer.client.credentials.client.secret",
            client=True,
            sensitive=True,
        ),
    ] = None
    sasl_oauth_scope: Annotated[
        str | None, Row("scope of the token to request", kafka="sasl.oauthbearer.scope", client=True)
    ] = None
    sasl_oauth_token_provider: Annotated[
        Any,
        Row(
            "what gives tokens: MODULE:NAME of a function, or in Python the function itself or an object "
            "with a method token",
            client=True,
            check=_is_provider,
            allowed="MODULE:NAME, a function or an object with a method token",
            sensitive=True,
        ),
    ] = None


def _is_context(value: object) -> bool:
    # imported here because the help of commands needs these rows, but no TLS
    import ssl

    return value is None or isinstance(value, ssl.SSLContext)


@dataclass(kw_only=True, repr=False, eq=False)
class ClientRows(SecurityRows):
    """The same with a TLS context, for clients whose settings stay in their process."""

    ssl_context: Annotated[
        Any,
        Row(
            "TLS context of your own, in place of the other ssl settings",
            check=_is_context,
            allowed="an ssl.SSLContext",
        ),
    ] = None


def check_security(settings: Any) -> None:
    """Check that the TLS and SASL settings are compatible. Raises ValueError."""
    if getattr(settings, "ssl_context", None) is not None:
        if "SSL" not in settings.security_protocol:
            raise ValueError("ssl_context needs security_protocol='SSL' or 'SASL_SSL'")
        if settings.ssl_cafile or settings.ssl_certfile or not settings.ssl_check_hostname:
            raise ValueError("ssl_context goes with no other ssl setting: set them in the context")
    tls = settings.ssl_cafile or settings.ssl_certfile or settings.ssl_keyfile
    if tls and "SSL" not in settings.security_protocol:
        raise ValueError("the ssl settings need security_protocol='SSL' or 'SASL_SSL'")
    if settings.ssl_keyfile and not settings.ssl_certfile:
        raise ValueError("ssl_keyfile needs ssl_certfile, the certificate that the key is for")
    mechanism = settings.sasl_mechanism
    if not settings.security_protocol.startswith("SASL"):
        for name in (row.name for row in fields(ClientRows)):
            if name.startswith("sasl_") and getattr(settings, name, None) not in (None, False):
                raise ValueError(f"{name} needs security_protocol='SASL_PLAINTEXT' or 'SASL_SSL'")
    elif mechanism is None:
        raise ValueError(f"security_protocol={settings.security_protocol!r} needs a sasl_mechanism")
    elif settings.sasl_tokenauth and not mechanism.startswith("SCRAM"):
        raise ValueError("sasl_tokenauth needs sasl_mechanism='SCRAM-SHA-256' or 'SCRAM-SHA-512'")
    elif mechanism == OAUTH:
        _check_oauth(settings)
    elif mechanism == KERBEROS:
        if not settings.sasl_kerberos_service_name:
            raise ValueError("sasl_mechanism='GSSAPI' needs sasl_kerberos_service_name, such as 'kafka'")
    elif settings.sasl_plain_username is None or settings.sasl_plain_password is None:
        raise ValueError(f"sasl_mechanism={mechanism!r} needs sasl_plain_username and sasl_plain_password")


def _check_oauth(settings: Any) -> None:
    provider = settings.sasl_oauth_token_provider
    names = ("sasl_oauth_token_url", "sasl_oauth_client_id", "sasl_oauth_client_secret")
    own = [name for name in names if getattr(settings, name)]
    if provider is not None:
        known = isinstance(provider, str) or callable(provider) or callable(getattr(provider, "token", None))
        if not known:
            raise ValueError("sasl_oauth_token_provider must be a function, or an object with a method token")
        if own:
            raise ValueError(f"sasl_oauth_token_provider and {own[0]}: give one of them")
    elif len(own) < len(names):
        needed = "sasl_oauth_token_url, sasl_oauth_client_id and sasl_oauth_client_secret"
        needed += ", or sasl_oauth_token_provider, a function"
        raise ValueError(f"sasl_mechanism='OAUTHBEARER' needs {needed}")
    else:
        url = urlsplit(settings.sasl_oauth_token_url)
        if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _THIS_MACHINE):
            raise ValueError("sasl_oauth_token_url must begin with https://: the secret is sent there")


def fallback_settings(
    cls: type[object], config: object = None, environ: Mapping[str, str] | None = None
) -> Fallback:
    """Return the settings of a table from the environment and a file. Raises SettingsError.

    ``config`` is the file's path; "" reads no file, None the one of ``KOHORT_CONFIG``. Variables set those of
    connections (``Row.client``), a file sets all. A file may contain settings of other clients.
    """
    environ = os.environ if environ is None else environ
    known = settings_of(cls)
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    path = environ.get(f"{VARIABLE}CONFIG") if config is None else config
    variables = {
        f"{VARIABLE}{name.upper()}": field
        for field, setting in known.items()
        if setting.row.client
        for name in _keys_of(setting)
    }
    for variable, field in variables.items():
        if variable in environ:
            values[field], origins[field] = _to_type(known[field], environ[variable]), variable
    _check_variables(environ, {*variables, f"{VARIABLE}CONFIG"})
    if isinstance(path, str) and path:
        filed = not_overridden(values, settings_of_file(cls, path))
        values |= filed
        origins |= dict.fromkeys(filed, path)
    return Fallback(values, origins)


def _check_variables(environ: Mapping[str, str], known: Set[str]) -> None:
    """Refuse misspelled variables. Others of the prefix are somebody else's."""
    words = [variable.removeprefix(VARIABLE) for variable in known]
    for variable in environ:
        if variable.startswith(VARIABLE) and variable not in known:
            near = difflib.get_close_matches(variable.removeprefix(VARIABLE), words, n=1, cutoff=_SLIP)
            if near:
                raise SettingsError(f"{variable} is no setting: did you mean {VARIABLE}{near[0]}?")


def names_in_files(cls: type[object]) -> dict[str, str]:
    """Return the fields of a table by every name that a file may have for them, with underscores."""
    return {name: field for field, setting in settings_of(cls).items() for name in _keys_of(setting)}


def settings_of_file(cls: type[object], path: str) -> dict[str, object]:
    """Return the settings of a table in a file: of properties, or TOML. Raises SettingsError."""
    return settings_in(cls, _read_toml(path) if path.endswith(".toml") else read_settings_file(path), path)


def settings_in(cls: type[object], given: Mapping[str, object], where: str) -> dict[str, object]:
    """Return the settings of a table among others, by field. ``where`` they stand is for errors and the log.

    Raises SettingsError.
    """
    return dict(_translate_settings(cls, given, where))


def _translate_settings(cls: type[Any], given: Mapping[str, object], where: str) -> Iterator[tuple[str, Any]]:
    known, names = settings_of(cls), names_in_files(cls)
    for name, value in given.items():
        try:
            translated = from_java(name, value)
        except SettingsError as error:
            raise SettingsError(f"{where}: {error}") from None
        for ours, typed in ({name: value} if translated is None else translated).items():
            key = ours.replace(".", "_")
            if key in names:
                yield names[key], _to_type(known[names[key]], typed)
            elif near := difflib.get_close_matches(key, names, n=1, cutoff=_SLIP):
                right = known[names[near[0]]]
                raise SettingsError(f"{where}: {name} is no setting: did you mean {right.kafka_name}?")
            else:
                log.info("%s: %s is no setting of a %s, and is left unused", where, name, cls.SCOPE.name)


def _keys_of(setting: Setting) -> Iterator[str]:
    """Yield the names of a setting in files and variables, with underscores."""
    for name in (setting.name, setting.kafka_name.removeprefix("kafka."), *setting.row.also):
        yield name.removeprefix("kafka.").replace(".", "_")


def _to_type(setting: Setting, value: object) -> object:
    """Convert a text to the setting's type; returns it unchanged, to be refused later, if it does not fit."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if setting.type is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if setting.type in (int, float):
        try:
            return setting.type(text)
        except ValueError:
            return value
    return value


def _read_toml(path: str) -> dict[str, object]:
    try:
        with Path(path).open("rb") as file:
            found = tomllib.load(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"{path} cannot be read: {reason}") from None
    return dict(_flatten_table(found))


def _flatten_table(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten_table(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def from_java(name: str, value: Any) -> dict[str, Any] | None:
    """Translate a setting of Java's whose values differ from kohort's; None for other settings.

    Raises SettingsError for settings and values that have no counterpart.
    """
    if name in _REFUSED:
        raise SettingsError(f"{name} is not taken: {_REFUSED[name]}")
    if name not in (JAAS, CHECK_HOSTNAME, *_STORE_TYPES):
        return None
    if not isinstance(value, str):
        raise SettingsError(f"{name} must be text")
    if name == JAAS:
        return _from_jaas(value)
    if name in _STORE_TYPES:
        if value.upper() != "PEM":
            raise SettingsError(f"{name}={value!r}: only PEM; convert Java's key stores to PEM")
        return {}
    return {"ssl_check_hostname": value.strip() != ""}


def _from_jaas(text: str) -> dict[str, str]:
    login = next((login for login in _JAAS_LOGINS if login in text), "")
    names = _JAAS_LOGINS.get(login, {})
    given = {key: re.sub(r"\\(.)", r"\1", value) for key, value in _JAAS_OPTION.findall(text)}
    found = {names[key]: value for key, value in given.items() if key in names}
    if "Krb5LoginModule" in text:
        raise SettingsError(
            f"{JAAS}: leave it out for Kerberos: tickets come from the cache of kinit, or by the key table "
            "that the variable KRB5_CLIENT_KTNAME names"
        )
    if not names or not {*names.values()} - {*_JAAS_OPTIONAL} <= found.keys():
        raise SettingsError(
            f"{JAAS}: name PlainLoginModule or ScramLoginModule with username and password in quotes, or "
            "OAuthBearerLoginModule with clientId and clientSecret"
        )
    return found
