"""Keys and certificates of one control plane: an authority of its own, and whatever it signs.

They are made in memory by the `cryptography` package instead of the openssl command, because a credential per role and
test is a millisecond here and several processes there, and because nothing needs to be installed.
"""

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

LIFETIME = timedelta(days=30)
CLOCK_SKEW = timedelta(minutes=5)


class KeyPair(Struct, frozen=True):
    """A certificate and its private key, as PEM."""

    certificate: str
    key: str


class CertificateAuthority:
    """Signs for one control plane, which trusts nobody else."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "podtide test authority")])
        own = (
            self._template(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = _pem(own)

    def server(self, *addresses: str) -> KeyPair:
        """For a server that is reached under these IP addresses."""
        names = x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        )
        return self._sign("server", (), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """For a user: Kubernetes reads the name from the subject's CN, the groups from its Os."""
        return self._sign(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(
        self,
        common_name: str,
        organizations: Iterable[str],
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations),
                x509.NameAttribute(NameOID.COMMON_NAME, common_name),
            ]
        )
        template = self._template(subject, key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            template = template.add_extension(names, critical=False)
        return KeyPair(_pem(template.sign(self._key, hashes.SHA256())), _private_pem(key))

    def _template(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .issuer_name(self._name)
            .subject_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + LIFETIME)
        )


def signing_key() -> str:
    """A private key to sign service accounts' tokens with, as PEM."""
    return _private_pem(ec.generate_private_key(ec.SECP256R1()))


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private_pem(key: ec.EllipticCurvePrivateKey) -> str:
    encoded = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return encoded.decode()
