"""What the operator remembers of one party: its public keys, and the private ones where the operator made them.

It lies beside the kits, not in them: a kit is handed over, and holds nothing that the party is not meant to read.
"""

from __future__ import annotations

import json
from pathlib import Path

from fedsynth.provision import kits
from fedsynth.provision.party_keys import IDENTITY_KEY, NODE_KEY, PrivateKeys, PublicKeys

PUBLIC = "public.json"


class Memory:
    """One party's folder under `members`."""

    def __init__(self, federation: Path, party: str) -> None:
        self.folder = federation / "members" / party
        self._take_over(federation / "parties" / party)

    def public(self) -> PublicKeys | None:
        path = self.folder / PUBLIC
        return PublicKeys(**json.loads(path.read_text())) if path.exists() else None

    def private(self) -> PrivateKeys | None:
        """Keys that the operator made; those that a party brought are not here."""
        public, node, identity = self.public(), self.folder / NODE_KEY, self.folder / IDENTITY_KEY
        if public is None or not (node.exists() and identity.exists()):
            return None
        return PrivateKeys(node.read_bytes(), identity.read_bytes(), public)

    def keep(self, public: PublicKeys, private: PrivateKeys | None = None) -> None:
        """These keys and no others: what the operator made before is forgotten."""
        for name in (NODE_KEY, IDENTITY_KEY):
            (self.folder / name).unlink(missing_ok=True)
        if private is not None:
            kits.write(self.folder / NODE_KEY, private.node_key)
            kits.write(self.folder / IDENTITY_KEY, private.identity)
        kits.write(self.folder / PUBLIC, json.dumps(vars(public), indent=2) + "\n")

    def _take_over(self, kit: Path) -> None:
        """Versions before 0.3 kept this in the kit's own folder."""
        for name in (NODE_KEY, IDENTITY_KEY, PUBLIC):
            if (kit / name).exists():
                kits.write(self.folder / name, (kit / name).read_bytes())
                (kit / name).unlink()
