"""A certificate for 127.0.0.1 and the authority that signed it, made for one test run."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    authority: str  # PEM
    certificate: Path
    key: Path


def make_certificates(folder: Path, name: str | None = None) -> Certificates:
    """`name`: another one than this machine's."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _sign("refill tests", authority_key, "refill tests", authority_key, ca=True)
    certificate = _sign(
        name or "localhost", key, "refill tests", authority_key, ca=False, here=name is None
    )
    pem = serialization.Encoding.PEM
    (folder / "server.crt").write_bytes(certificate.public_bytes(pem))
    (folder / "server.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    text = authority.public_bytes(pem).decode()
    return Certificates(text, folder / "server.crt", folder / "server.key")


def _sign(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    ca: bool,
    here: bool = True,
) -> x509.Certificate:
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.DNSName(name.replace(" ", "-"))]
    if here:
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
