"""The document an operator writes: who takes part and where they meet. Everything else is made from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from pydantic import Field, ValidationError, field_validator, model_validator

from crypto.errors import CryptoError
from crypto.keys import Identity
from fedsynth.documents import read_document
from synth.errors import InputError
from synth.schema import Strict

ENDPOINT = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}")
NAME_OF_PARTY, NAME_OF_FEDERATION = r"^[a-z][a-z0-9-]{0,30}$", r"^[a-z0-9][a-z0-9-]{0,40}$"


T = TypeVar("T", bound=Strict)


class Member(Strict):
    """A party of the federation."""

    name: str = Field(pattern=NAME_OF_PARTY, description="Short lower-case name, as in plans.")
    node_key: str | None = Field(
        None, description="Public key its node connects with, from its join file, if --join does not give that."
    )
    identity: str | None = Field(None, description="Public identity it signs with, made together with node_key.")

    @property
    def brings_keys(self) -> bool:
        return self.node_key is not None

    @field_validator("node_key")
    @classmethod
    def _elliptic(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            key = load_ssh_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, EllipticCurvePublicKey):
            raise ValueError("not a public key of the form 'ecdsa-sha2-nistp384 AAAA…'; copy the whole line")
        return " ".join(text.split()[:2])

    @field_validator("identity")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        if text is not None:
            try:
                Identity.from_text(text)
            except CryptoError as error:
                raise ValueError(str(error)) from None
        return text

    @model_validator(mode="after")
    def _both_or_none(self) -> Member:
        if (self.node_key is None) != (self.identity is None):
            raise ValueError(f"party '{self.name}' gives one of node_key and identity; give both or neither")
        return self


class Federation(Strict):
    """A consortium and its meeting place."""

    name: str = Field(pattern=NAME_OF_FEDERATION, description="Name of the federation, in certificates.")
    endpoint: str = Field(description="HOST:PORT that parties dial; the certificate is made out to HOST.")
    server_names: list[str] = Field(
        default_factory=list, description="Further names of the same server, e.g. the Service's name in the cluster."
    )
    certificate_days: int = Field(365, ge=1, le=3650, description="How long the server's certificate is valid.")
    parties: list[Member] = Field(min_length=1, description="Everybody who may connect.")

    @field_validator("endpoint")
    @classmethod
    def _dialable(cls, text: str) -> str:
        if not ENDPOINT.fullmatch(text):
            raise ValueError("must be HOST:PORT without a scheme, e.g. fed.example.org:443")
        return text

    @model_validator(mode="after")
    def _distinct(self) -> Federation:
        names = [party.name for party in self.parties]
        if len(set(names)) != len(names):
            raise ValueError("party names must be distinct; rename the repeated one")
        if "aggregator" in names:
            raise ValueError("'aggregator' is the operator's own name; call the party otherwise")
        return self

    @property
    def host(self) -> str:
        return self.endpoint.rpartition(":")[0]


def read_federation(path: Path, joins: Sequence[Path] = ()) -> Federation:
    """The document, with the keys that parties sent in their join files."""
    federation = _read(path, Federation, "federation")
    for join in joins:
        member = _read(join, Member, "join file")
        if not member.brings_keys:
            raise InputError(f"the join file {join} holds no keys; ask '{member.name}' for `fedsynth node keygen`'s.")
        federation = _joined(federation, member, join)
    return federation


def _joined(federation: Federation, member: Member, path: Path) -> Federation:
    parties = {party.name: party for party in federation.parties}
    if member.name not in parties:
        raise InputError(
            f"{path} is of '{member.name}', which the federation does not list; add it, or ask who sent it."
        )
    if parties[member.name].brings_keys and parties[member.name] != member:
        raise InputError(f"{path} gives other keys for '{member.name}' than the federation's document; remove one.")
    return federation.model_copy(update={"parties": list((parties | {member.name: member}).values())})


def _read(path: Path, kind: type[T], what: str) -> T:
    try:
        return kind.model_validate(read_document(path))
    except ValidationError as error:
        mistakes = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'whole document'}: {item['msg'].removeprefix('Value error, ')}"
            for item in error.errors(include_url=False, include_context=False, include_input=False)
        )
        raise InputError(f"the {what} {path} does not hold: {mistakes}. Correct these keys.") from None
