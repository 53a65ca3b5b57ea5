"""The options of a secured connection: Python's names, as kohort's consumer has them, and Java's by alias."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ._security import OptionsError, Security

_PEM = "-----BEGIN "

Secret = Annotated[str | None, Field(repr=False)]


class SecurityOptions(BaseModel):
    """The base of all options. Files are read where a job is planned; PEM text may stand for a file."""

    # a validation error must not quote what it has looked at
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    #: Authorities to trust; the system's unless given.
    ssl_cafile: Secret = None
    #: The client's certificate, with the key or with ``ssl_keyfile`` beside it.
    ssl_certfile: Secret = None
    ssl_keyfile: Secret = None
    ssl_password: Secret = None
    ssl_check_hostname: bool = True
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_plain_username: Secret = None
    sasl_plain_password: Secret = None

    @model_validator(mode="after")
    def _secured(self) -> Self:
        tls = self.ssl_cafile or self.ssl_certfile or self.ssl_keyfile
        if tls and "SSL" not in self.security_protocol:
            raise ValueError("the ssl options need security_protocol SSL or SASL_SSL")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ValueError("ssl_keyfile needs ssl_certfile, the certificate that the key is for")
        named = self.sasl_plain_username is not None and self.sasl_plain_password is not None
        if self.security_protocol.startswith("SASL"):
            if self.sasl_mechanism is None or not named:
                raise ValueError(
                    f"security_protocol {self.security_protocol} needs sasl_mechanism, sasl_plain_username "
                    "and sasl_plain_password"
                )
        elif self.sasl_mechanism or self.sasl_plain_username or self.sasl_plain_password:
            raise ValueError("the sasl options need security_protocol SASL_PLAINTEXT or SASL_SSL")
        return self

    @property
    def security(self) -> Security:
        """With what the files hold now. Raises OptionsError for one that cannot be read."""
        return Security(
            protocol=self.security_protocol,
            mechanism=self.sasl_mechanism or "",
            username=self.sasl_plain_username or "",
            password=self.sasl_plain_password or "",
            authorities=_pem("ssl_cafile", self.ssl_cafile),
            certificate="\n".join(
                part
                for part in (
                    _pem("ssl_keyfile", self.ssl_keyfile),
                    _pem("ssl_certfile", self.ssl_certfile),
                )
                if part
            ),
            key_password=self.ssl_password or "",
            check_hostname=self.ssl_check_hostname,
        )


def _pem(name: str, given: str | None) -> str:
    if not given:
        return ""
    if _PEM in given:
        return given
    try:
        text = Path(given).read_text(errors="replace")
    except OSError as error:
        raise OptionsError(f"{name}: {error}") from None
    if _PEM not in text:
        raise OptionsError(f"{name}={given!r} is no PEM file: Java's key stores must be converted to PEM")
    return text


#: Java's names, which Spark's users know, by ours.
SPARK_NAMES = {
    "kafka.security.protocol": "security_protocol",
    "kafka.ssl.truststore.location": "ssl_cafile",
    "kafka.ssl.truststore.certificates": "ssl_cafile",
    "kafka.ssl.keystore.location": "ssl_certfile",
    "kafka.ssl.keystore.certificate.chain": "ssl_certfile",
    "kafka.ssl.keystore.key": "ssl_keyfile",
    "kafka.ssl.key.password": "ssl_password",
    "kafka.ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "kafka.sasl.mechanism": "sasl_mechanism",
    "kafka.sasl.username": "sasl_plain_username",
    "kafka.sasl.password": "sasl_plain_password",
}
#: Ours by Java's; where two are one of ours, the one that takes a file.
SPARK_NAME_OF = {ours: theirs for theirs, ours in reversed(SPARK_NAMES.items())}

_JAAS = "kafka.sasl.jaas.config"
_STORE_TYPES = ("kafka.ssl.truststore.type", "kafka.ssl.keystore.type")
_JAAS_OPTION = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_JAAS_MODULES = ("PlainLoginModule", "ScramLoginModule")

_SECRETS = {name for name, field in SecurityOptions.model_fields.items() if not field.repr}

#: All of Java's names that are taken.
ALL_SPARK_NAMES = (*SPARK_NAMES, _JAAS, *_STORE_TYPES)


def described(problem: Mapping[str, Any]) -> str:
    """What a validation error says of an option and its value, which is left out where it is a secret."""
    key = ".".join(str(part) for part in problem["loc"])
    text = str(problem["msg"]).removeprefix("Value error, ")
    if not key:
        return text
    secret = problem["loc"][0] in _SECRETS
    return f"{key}: {text}" if secret else f"{key}={problem['input']!r}: {text}"


def from_spark(given: Mapping[str, str]) -> dict[str, Any]:
    """Options with Java's names of security put into ours; the others as they are. Raises OptionsError."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = key.lower()
        if name == _JAAS:
            found |= _from_jaas(value)
        elif name in _STORE_TYPES:
            if value.upper() != "PEM":
                raise OptionsError(f"{key}={value!r}: only PEM; convert Java's key stores to PEM")
        elif name in SPARK_NAMES:
            ours = SPARK_NAMES[name]
            found[ours] = value.strip() != "" if ours == "ssl_check_hostname" else value
        else:
            found[key] = value
    return found


def to_spark(name: str, value: str) -> str:
    """The text of a Java option that stands for ours ``name`` with the text ``value``."""
    return ("https" if value == "true" else "") if name == "ssl_check_hostname" else value


def _from_jaas(text: str) -> dict[str, str]:
    named = {key: re.sub(r"\\(.)", r"\1", value) for key, value in _JAAS_OPTION.findall(text)}
    if len(named) != 2 or not any(module in text for module in _JAAS_MODULES):
        raise OptionsError(
            f"{_JAAS}: name PlainLoginModule or ScramLoginModule with username and password in quotes, or "
            "use kafka.sasl.username and kafka.sasl.password"
        )
    return {"sasl_plain_username": named["username"], "sasl_plain_password": named["password"]}
