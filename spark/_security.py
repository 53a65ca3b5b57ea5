"""How to reach a secured cluster, as plain data: executors need no file that only the driver has.

Secrets are in no ``repr`` and no error, and so in no log.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..protocol import KohortError

if TYPE_CHECKING:
    from ..client.sasl import Sasl


class OptionsError(KohortError, ValueError):
    """Options that cannot be used; the text names each one."""


@dataclass(frozen=True, slots=True)
class Security:
    """What TLS and SASL need. Certificates and keys are PEM text, empty where there are none."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    #: The client's certificate and those it hangs on, and its key.
    certificate: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    check_hostname: bool = True

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for plain text. Raises OptionsError for certificates and keys that are none."""
        if "SSL" not in self.protocol:
            return None
        try:
            context = ssl.create_default_context(cadata=self.authorities or None)
            if self.certificate:
                # Python takes them from a file only; this one can be read by nobody else
                with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                    file.write(self.certificate)
                    file.flush()
                    # a key that needs a password and has none must not ask for it at the terminal
                    context.load_cert_chain(file.name, password=lambda: self.key_password)
        except (OSError, ssl.SSLError) as error:
            raise OptionsError(
                f"the certificates or the key cannot be used: {error}; see ssl_cafile, ssl_certfile, "
                "ssl_keyfile and ssl_password"
            ) from None
        context.check_hostname = self.check_hostname
        return context

    def sasl(self) -> Sasl | None:
        """Who to say we are; None where nobody asks."""
        if not self.mechanism:
            return None
        from ..client.sasl import Sasl

        return Sasl(self.mechanism, self.username, self.password)
