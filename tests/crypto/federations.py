"""A small federation with fixed keys, so that every failure repeats exactly."""

from dataclasses import dataclass

from crypto.announcement import Announcement, admit, announce
from crypto.derive import digest
from crypto.keys import Identity, IdentityKey, SessionKey
from crypto.pairing import PairSecret, pair_secrets


@dataclass(frozen=True)
class Federation:
    run: str
    epoch: int
    names: tuple[str, ...]
    identities: dict[str, IdentityKey]
    sessions: dict[str, SessionKey]
    roster: dict[str, Identity]
    messages: dict[str, bytes]
    admitted: dict[str, Announcement]
    secrets: dict[str, dict[str, PairSecret]]


def build_federation(names: tuple[str, ...], run: str = "run-1", epoch: int = 0) -> Federation:
    identities = {name: IdentityKey.from_bytes(digest(f"identity {name}".encode())) for name in names}
    sessions = {name: SessionKey.from_bytes(digest(f"session {run} {epoch} {name}".encode())) for name in names}
    roster = {name: key.identity for name, key in identities.items()}
    messages = {name: announce(identities[name], sessions[name], run=run, epoch=epoch, party=name) for name in names}
    admitted = admit(messages.values(), roster, run=run, epoch=epoch, declared=names)
    secrets = {name: pair_secrets(sessions[name], name, admitted) for name in names}
    return Federation(run, epoch, names, identities, sessions, roster, messages, admitted, secrets)
