"""Who this party is, and whom it knows: its own identity key and the identities it pinned after a telephone call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crypto.announcement import Roster
from crypto.errors import CryptoError
from crypto.keys import Identity, IdentityKey
from crypto.rounds import Round
from crypto.vouchers import vouch
from fed_node.errors import PeerNotPinned, StoreDamaged
from synth.interface import Array
from synth.messages.fields import as_array
from synth.plan import Plan
from synth.programme import only_plain


@dataclass(frozen=True)
class Credentials:
    """One party's keys and pins for one plan."""

    plan: Plan
    party: str
    home: Path  # holds identity.key
    peers: Mapping[str, str]  # name → public identity as text, from party.yaml

    @cached_property
    def identity(self) -> IdentityKey:
        path = self.home / "identity.key"
        try:
            return IdentityKey.from_pem(path.read_bytes())
        except (OSError, CryptoError) as error:
            raise StoreDamaged(
                f"the identity key {path} cannot be used ({error}); restore it from its backup"
            ) from error

    @cached_property
    def roster(self) -> Roster:
        """Every party of the plan by its identity. Without all pins there is no telling who is in a sum."""
        others = [] if only_plain(self.plan) else [p.name for p in self.plan.parties if p.name != self.party]
        if missing := [name for name in others if name not in self.peers]:
            raise PeerNotPinned(
                f"no identity is pinned for {', '.join(missing)}. Compare fingerprints with them by telephone and add "
                "their public keys under 'peers' in party.yaml."
            )
        return {name: Identity.from_text(self.peers[name]) for name in others} | {self.party: self.identity.identity}

    def vouch(self, payload: bytes, moment: Round, purpose: str) -> Array:
        return as_array(vouch(self.identity, payload, party=self.party, moment=moment, purpose=purpose))
