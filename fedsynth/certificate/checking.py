"""A certificate held against what lies beside it and what the reader brought, and the pages made of it."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from crypto.errors import CryptoError
from crypto.keys import Identity
from fedsynth.certificate.content import Page, fingerprint, page_of
from fedsynth.documents import read_plan
from synth.certificate.certificate import LARGEST_CERTIFICATE_BYTES, Certificate, Signature, parse_certificate
from synth.certificate.evidence import Keys
from synth.certificate.verification import Evidence, Finding, check_certificate
from synth.errors import InputError
from synth.messages.archive import write_durably
from synth.plan import Plan

HTML, PDF = "certificate.html", "certificate.pdf"


@dataclass(frozen=True)
class Checked:
    """A certificate and what was found."""

    certificate: Certificate
    findings: list[Finding]
    plan: Plan | None

    @property
    def failed(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.holds is False]

    @property
    def page(self) -> Page:
        return page_of(self.certificate, self.findings, self.plan)

    def write_pages(self, folder: Path) -> list[Path]:
        """certificate.html, and certificate.pdf unless the light installation cannot write one."""
        from fedsynth.certificate.html import as_html

        pages = {HTML: as_html(self.page).encode()}
        if find_spec("reportlab"):
            from fedsynth.certificate.pdf import as_pdf

            pages[PDF] = as_pdf(self.page)
        for name, content in pages.items():
            write_durably(folder / name, content)
            (folder / name).chmod(0o644)  # for whoever is handed the release
        return [folder / name for name in pages]


def checked(
    path: Path,
    plan: Plan | None,
    *,
    tables: list[Path] | None = None,
    keys: Keys | None = None,
    unsigned: bool = False,
) -> Checked:
    """Tables that are not given are those beside the certificate, and so is the model."""
    document, beside = read_certificate(path), path.parent
    evidence = Evidence(
        is_signed=is_signed,
        keys=keys,
        plan=plan,
        tables={each.name: sha256_of(each) for each in tables or _beside(beside, document.table_sha256)},
        models={each.name: sha256_of(each) for each in _beside(beside, document.model_sha256 or {"model.npz": ""})},
        unsigned=unsigned,
        now=dt.datetime.now(dt.UTC),
        fingerprint=fingerprint,
    )
    return Checked(document, check_certificate(document, evidence), plan)


def read_certificate(path: Path) -> Certificate:
    try:
        if path.stat().st_size > LARGEST_CERTIFICATE_BYTES:
            raise InputError(f"{path} is larger than any certificate.")
        return parse_certificate(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"the certificate {path} cannot be read: {error.strerror}.") from None


def is_signed(signature: Signature, message: bytes) -> bool:
    try:
        Identity(bytes.fromhex(signature.public_key)).verify(bytes.fromhex(signature.signature), message)
    except (CryptoError, ValueError):
        return False
    return True


def sha256_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def write_beside(path: Path) -> list[Path]:
    """The pages of a release, made where no key was compared: they say so."""
    plan = path.parent / "plan.json"
    return checked(path, read_plan(plan) if plan.is_file() else None, unsigned=True).write_pages(path.parent)


def _beside(folder: Path, digests: dict[str, str]) -> list[Path]:
    paths = [folder / Path(name).name for name in digests]
    return [path for path in paths if path.is_file()]
