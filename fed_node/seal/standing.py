"""How far a party's ledger has come, signed by the party itself and kept by the others.

A ledger that is replaced by an older copy, or by one that was chained anew, is sound in itself; only somebody else can
know that there was more. So every party attaches to the session key that it announces: the head of its ledger, signed;
the heads it had before; and of each other party the head that it saw last, with that party's own signature. Whoever
finds that it once signed a head that its ledger lacks closes itself. Whoever finds that another one no longer shows the
head that it showed before refuses to go on with it.

Heads depend on plans and charges only (fed_node/ledger/heads.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field, ValidationError

from crypto.errors import CryptoError
from crypto.framing import number_bytes, pack
from crypto.keys import Identity, IdentityKey
from fed_node.ledger.view import LedgerView
from synth.errors import InputError, ProtocolError
from synth.messages import strict_json
from synth.schema import Strict

MOST_HEADS = 128  # of its own that a party shows
LARGEST_BYTES = 1 << 20
Head = tuple[int, str]  # number of an entry, and the head after it


class Seen(Strict):
    """The head of a party's ledger, as that party signed it, and the run in which it was seen."""

    dataset: str = Field(description="Digest of the dataset's name: another dataset has another ledger.")
    number: int = Field(ge=1, lt=2**53, description="Entries in the ledger.")
    head: str = Field(description="The head after the last of them.")
    signature: str = Field(description="The owner's signature, hexadecimal.")
    run: str = Field("", description="The run in which it was seen,")
    plan: str = Field("", description="and the digest of its plan.")

    def is_signed_by(self, party: str, identity: Identity) -> bool:
        try:
            identity.verify(bytes.fromhex(self.signature), _signed(party, self.dataset, self.number, self.head))
        except (CryptoError, ValueError):
            return False
        return True


class Standing(Strict):
    """What a party attaches to its session key."""

    own: Seen = Field(description="Its own ledger.")
    before: list[Head] = Field(max_length=2 * MOST_HEADS, description="Heads that it showed before.")
    others: dict[str, Seen] = Field({}, description="What it saw last of the others.")

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Standing:
        try:
            return cls.model_validate(strict_json.parse(data, "what a party attached", LARGEST_BYTES))
        except (ValidationError, InputError):
            raise ProtocolError("what a party says of its ledger cannot be read; it runs another version") from None

    def contradicts(self, seen: Seen) -> bool:
        """Whether a head that was seen before is gone. One from before all that is shown cannot be compared."""
        if self.own.dataset != seen.dataset:
            return False
        if (seen.number, seen.head) in {(self.own.number, self.own.head), *map(tuple, self.before)}:
            return False
        oldest = min((number for number, _ in self.before), default=self.own.number)
        return seen.number >= oldest or len(self.before) < MOST_HEADS


@dataclass(frozen=True)
class Owner:
    """Whose ledger it is."""

    party: str
    dataset: str
    identity: IdentityKey

    def standing(self, ledger: LedgerView, others: Mapping[str, Seen]) -> Standing:
        """As of the last entry that began or ended a run."""
        heads = [(entry.number, str(ledger.head_at(entry.number))) for entry in ledger.frames()]
        number, head = heads[-1]
        dataset = dataset_digest(self.party, self.dataset)
        signature = self.identity.sign(_signed(self.party, dataset, number, head)).hex()
        own = Seen(dataset=dataset, number=number, head=head, signature=signature)
        return Standing(own=own, before=[*heads[-MOST_HEADS:], *ledger.lost()[-MOST_HEADS:]], others=dict(others))


def dataset_digest(party: str, dataset: str) -> str:
    return hashlib.sha256(pack("dataset", party.encode(), dataset.encode())).hexdigest()


def _signed(party: str, dataset: str, number: int, head: str) -> bytes:
    return pack("ledger head", party.encode(), dataset.encode(), number_bytes(number), head.encode())
