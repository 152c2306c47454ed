"""What others may know of a ledger's history: a chain of its own, over plans and charges alone.

The hashes of the ledger itself cover the digests of answers. Under a secure sum nobody outside sees one party's
answer, which may carry a share of the noise only; a digest of it would confirm a guess at the answer. So what leaves
the party leaves these digests out, and the clock with them: the same asks under the same plans give the same head,
whatever the rows are.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from synth.privacy.events import as_records

if TYPE_CHECKING:
    from fed_node.ledger.book import Entry

FRAMES = ("reserve", "release", "finish", "restore")  # entries whose heads are shown to others


def first_head(entry: Entry) -> str:
    """Begins with the hash of the first entry, which tells one ledger from another that was begun anew."""
    return _hash("fedsynth ledger", entry.hash)


def next_head(head: str, entry: Entry) -> str:
    shown = {
        "kind": entry.kind,
        "run": entry.run,
        "plan_digest": entry.plan_digest,
        "sequence": entry.sequence,
        "ask_digest": entry.ask_digest,
        "parties": entry.parties,
        "events": as_records(entry.events),
        "witnessed": entry.witnessed,
    }
    return _hash(head, json.dumps(shown, sort_keys=True, separators=(",", ":"), allow_nan=False))


def _hash(head: str, text: str) -> str:
    return hashlib.sha256(f"{head}\n{text}".encode()).hexdigest()
