"""The keys of one epoch, on the party's volume.

They are kept on disk because a restart must not cost the federation an epoch, and because every message may be handled
by a new process. A stolen volume then opens recorded messages of the present epoch; but it holds the rows themselves.
Files are readable by their owner alone; an epoch's keys are overwritten by the next one's and removed at the end.
Keys that are lost all the same are no loss: the party says so, and everybody moves to a new epoch.

    <folder>/offer      the session key announced last; not yet agreed on
    <folder>/session    the agreed epoch: own key, everybody's public keys, the CKKS key

The folder belongs to one plan (fed_node/seal/run_folder.py).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crypto.announcement import Announcement
from crypto.ckks import PartyContext
from crypto.errors import CryptoError
from crypto.keys import SessionKey
from crypto.pairing import PairSecret, pair_secrets
from crypto.rounds import KeyPeriod, Round
from fed_node.errors import NoSession
from fed_node.seal.run_folder import RunFolder
from synth.errors import InputError
from synth.interface import Arrays
from synth.messages import archive
from synth.messages.fields import as_array

log = logging.getLogger("fed_node")


@dataclass(frozen=True)
class Session:
    """One epoch as this party agreed to it."""

    period: KeyPeriod
    party: str
    key: SessionKey
    public_keys: dict[str, bytes]  # of every party of the epoch, this one included; empty if sums are plain
    context: PartyContext | None  # only where the plan sums under CKKS

    @property
    def epoch(self) -> int:
        return self.period.epoch

    @property
    def parties(self) -> list[str]:
        return sorted(self.public_keys)

    @property
    def admitted(self) -> dict[str, Announcement]:
        return {party: Announcement(self.period, party, key) for party, key in self.public_keys.items()}

    def round(self, number: int, question: str) -> Round:
        """The sum of everybody's answers to this ask, as it is named in all that is signed, derived and journaled."""
        return Round(self.period, tuple(self.parties), number, question)

    @cached_property
    def secrets(self) -> dict[str, PairSecret]:
        return pair_secrets(self.key, self.party, self.admitted)


class SessionStore:
    """The session of one run at one party."""

    def __init__(self, folder: RunFolder, run: str, party: str) -> None:
        self.folder, self.run, self.party = folder, run, party
        self._last_epoch, self._session = self._load()

    def period(self, epoch: int) -> KeyPeriod:
        return KeyPeriod(self.run, self.folder.plan_digest, epoch)

    @property
    def next_epoch(self) -> int:
        """Epochs never repeat within a run: the one after the last that was agreed on."""
        return self._last_epoch + 1

    @property
    def current(self) -> Session:
        if self._session is None:
            raise NoSession("there are no keys for this run here; the aggregator must say hello again")
        return self._session

    def offer(self, epoch: int) -> SessionKey:
        """A new session key for an epoch to come; an offer before it is forgotten."""
        key = SessionKey.generate()
        self._write("offer", {"epoch": epoch, "key": key.to_bytes().hex()})
        return key

    def offered(self, epoch: int) -> SessionKey:
        found = self._read("offer")
        if found is None or found[0]["epoch"] != epoch or epoch < self.next_epoch:
            raise NoSession(f"no session key was offered for epoch {epoch}; the aggregator must say hello again")
        return SessionKey.from_bytes(bytes.fromhex(found[0]["key"]))

    def begin(self, session: Session) -> None:
        """From now on only messages of this epoch are answered."""
        public_keys = {party: key.hex() for party, key in session.public_keys.items()}
        meta = {"epoch": session.epoch, "key": session.key.to_bytes().hex(), "public_keys": public_keys}
        arrays = {"ckks": as_array(session.context.secret_bytes())} if session.context else {}
        self._write("session", meta, arrays)
        self.folder.remove("offer")
        self._last_epoch, self._session = session.epoch, session

    def retire(self) -> None:
        """Forget the keys, remember the epoch."""
        self._session = None
        self._write("session", {"epoch": self._last_epoch})
        self.folder.remove("offer")

    def _load(self) -> tuple[int, Session | None]:
        found = self._read("session")
        if found is None:
            return -1, None
        meta, arrays = found
        if "key" not in meta:
            return meta["epoch"], None
        try:
            context = PartyContext(arrays["ckks"].tobytes()) if "ckks" in arrays else None
        except CryptoError as error:
            log.warning("the keys of run %s cannot be used (%s); a new epoch is needed", self.run, error)
            return meta["epoch"], None
        key = SessionKey.from_bytes(bytes.fromhex(meta["key"]))
        public_keys = {party: bytes.fromhex(text) for party, text in meta["public_keys"].items()}
        return meta["epoch"], Session(self.period(meta["epoch"]), self.party, key, public_keys, context)

    def _write(self, name: str, meta: dict[str, Any], arrays: Arrays | None = None) -> None:
        self.folder.write(name, archive.pack(arrays or {}, meta))

    def _read(self, name: str) -> tuple[dict[str, Any], Arrays] | None:
        content = self.folder.read(name)
        if content is None:
            return None
        try:
            arrays, meta = archive.unpack(content, str(self.folder.path / name))
        except InputError as error:
            log.warning("%s; a new epoch is needed", error)
            return None
        return meta, arrays
