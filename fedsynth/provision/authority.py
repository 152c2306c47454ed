"""Certificates: an authority for the federation's endpoint, and one that signs a single certificate for the operator.

The second authority's key is never stored: nobody, not even the operator, can sign another one that the Control door
accepts. To replace the certificate, the authority is replaced with it.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3650
CLOCKS_DIFFER = dt.timedelta(minutes=10)  # a certificate is valid a little before it is made


@dataclass(frozen=True)
class Certified:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


def new_authority(common_name: str) -> Certified:
    key = ec.generate_private_key(ec.SECP384R1())
    name = _name(common_name)
    builder = (
        _builder(name, name, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
    )
    return Certified(_pem(builder.sign(key, hashes.SHA384())), _key_pem(key))


def server_certificate(authority: Certified, names: list[str], days: int) -> Certified:
    """For the door that parties knock at."""
    return _signed(authority, names, days, [ExtendedKeyUsageOID.SERVER_AUTH])


def control_certificate(federation: str, days: int) -> tuple[bytes, Certified]:
    """The operator's authority (its certificate alone) and the one certificate it ever signs."""
    authority = new_authority(f"{federation} control")
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return authority.certificate, _signed(authority, ["control"], days, purposes)


def names_of(certificate: bytes) -> list[str]:
    names = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(name.value) for name in names.value]


def days_left(certificate: bytes) -> int:
    return (x509.load_pem_x509_certificate(certificate).not_valid_after_utc - dt.datetime.now(dt.UTC)).days


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    try:
        x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def fingerprints(bundle: bytes) -> list[str]:
    """SHA-256 of each certificate, as `openssl x509 -fingerprint -sha256` prints it."""
    return [each.fingerprint(hashes.SHA256()).hex(":").upper() for each in x509.load_pem_x509_certificates(bundle)]


def _signed(authority: Certified, names: list[str], days: int, purposes: list[x509.ObjectIdentifier]) -> Certified:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP384R1())
    builder = (
        _builder(_name(names[0]), issuer.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return Certified(_pem(builder.sign(signer, hashes.SHA384())), _key_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
