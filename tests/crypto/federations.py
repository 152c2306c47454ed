"""A small federation with fixed keys, so that every failure repeats exactly."""

from dataclasses import dataclass

from crypto.announcement import Announcement, admit, announce
from crypto.derive import digest
from crypto.keys import Identity, IdentityKey, SessionKey
from crypto.pairing import PairSecret, pair_secrets
from crypto.rounds import KeyPeriod, Round

PLAN = "plan-1"
QUESTION = "question-1"
NAMES = ("berlin", "lyon", "oslo")


def period(run: str = "run-1", epoch: int = 0, plan: str = PLAN) -> KeyPeriod:
    return KeyPeriod(run, plan, epoch)


def moment_of(
    number: int = 0,
    *,
    run: str = "run-1",
    plan: str = PLAN,
    epoch: int = 0,
    parties: tuple[str, ...] = NAMES,
    question: str = QUESTION,
) -> Round:
    return Round(KeyPeriod(run, plan, epoch), tuple(sorted(parties)), number, question)


# Rounds that differ from the first in exactly one thing: no two share a key stream, a seed or a signature.
EVERY_DIFFERENCE = (
    moment_of(3),
    moment_of(4),
    moment_of(3, run="run-2"),
    moment_of(3, plan="plan-2"),
    moment_of(3, epoch=1),
    moment_of(3, parties=NAMES[:2]),
    moment_of(3, question="question-2"),
)


@dataclass(frozen=True)
class Federation:
    period: KeyPeriod
    names: tuple[str, ...]
    identities: dict[str, IdentityKey]
    sessions: dict[str, SessionKey]
    roster: dict[str, Identity]
    messages: dict[str, bytes]
    admitted: dict[str, Announcement]
    secrets: dict[str, dict[str, PairSecret]]


def build_federation(names: tuple[str, ...], run: str = "run-1", epoch: int = 0, plan: str = PLAN) -> Federation:
    when = KeyPeriod(run, plan, epoch)
    identities = {name: IdentityKey.from_bytes(digest(f"identity {name}".encode())) for name in names}
    sessions = {name: SessionKey.from_bytes(digest(f"session {run} {epoch} {name}".encode())) for name in names}
    roster = {name: key.identity for name, key in identities.items()}
    messages = {name: announce(identities[name], sessions[name], period=when, party=name) for name in names}
    admitted = admit(messages.values(), roster, period=when, declared=names)
    secrets = {name: pair_secrets(sessions[name], name, admitted) for name in names}
    return Federation(when, names, identities, sessions, roster, messages, admitted, secrets)
