"""An authority, and PEM files of what it signed."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


def ending_keystore(folder: Path, *days: float) -> str:
    """A key, and certificates that end so many days from now."""
    authority = trustme.CA()
    path = folder / "keys.pem"
    parts = []
    for end in days:
        until = datetime.now(UTC) + timedelta(days=end)
        issued = authority.issue_cert("127.0.0.1", not_before=until - timedelta(days=400), not_after=until)
        parts.append(issued.cert_chain_pems[0].bytes())
        if len(parts) == 1:
            parts.insert(0, issued.private_key_pem.bytes())
    path.write_bytes(b"".join(parts))
    return str(path)


class Certificates:
    """Files in ``folder``: ``cafile``, and a key with its chain for each name asked for."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self._folder = folder
        self.cafile = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.cafile)

    def server(self, name: str = "server.pem", *hosts: str) -> str:
        """A keystore for ``hosts`` (127.0.0.1 where none are named), in the form Java reads too."""
        return self._write(name, self._authority.issue_cert(*(hosts or ("127.0.0.1", "localhost"))))

    def client(self, user: str, unit: str = "billing") -> str:
        """A keystore of a client whose subject is ``CN=user,OU=unit,...``."""
        issued = self._authority.issue_cert(
            f"{user}@example.org", common_name=user, organization_unit_name=unit
        )
        return self._write(f"{user}.pem", issued)

    def trusting(self, client: str | None = None) -> ssl.SSLContext:
        """What a client needs to trust the server, and to show its own certificate."""
        context = ssl.create_default_context(cafile=self.cafile)
        if client is not None:
            context.load_cert_chain(client)
        return context

    def _write(self, name: str, issued: trustme.LeafCert) -> str:
        from cryptography.hazmat.primitives import serialization as forms

        key = forms.load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
        path = self._folder / name
        path.write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        return str(path)
