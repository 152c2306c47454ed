"""What this party knows of ledgers beside its own file: of the others', and of its own by others and by its own volume.

<home>/witnessed.json     the head of each peer's ledger that was seen last, with that peer's signature
<home>/standing.json      the head of the own ledger that was shown last
<home>/rolled-back.json   heads that this party signed and its ledger lacks: until an administrator has made up for
                          them (`fedsynth node ledger --restored`) nothing is answered
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from crypto.announcement import Announcement, Roster
from crypto.keys import IdentityKey
from fed_node.answers import ENDED
from fed_node.errors import PeerRolledBack, RolledBack, StoreDamaged
from fed_node.ledger.view import LedgerView
from fed_node.seal.standing import Owner, Seen, Standing, dataset_digest
from synth.messages.archive import write_durably

log = logging.getLogger("fed_node")

WITNESSED, STANDING, MISSING = "witnessed.json", "standing.json", "rolled-back.json"
DRILL = "Nothing is answered until `fedsynth node ledger --restored` made up for what it lacks; see the party guide."
_FORM = TypeAdapter(dict[str, Seen])


class Witnesses:
    """The three files of one home, and the ledger they are held against."""

    def __init__(self, home: Path, party: str, dataset: str, ledger: LedgerView) -> None:
        self.home, self.party, self.dataset, self.ledger = home, party, dataset, ledger

    def require_whole(self) -> None:
        """Refuse a ledger that is older than what lies beside it."""
        if lacking := self.lacking():
            runs = ", ".join(sorted({each.run or "unnamed" for each in lacking}))
            raise RolledBack(f"the ledger in {self.home} lacks entries that it had before (runs: {runs}). {DRILL}")

    def require_open(self) -> None:
        """The same for every message, at the price of looking for a file."""
        if (self.home / MISSING).exists():
            self.require_whole()

    def lacking(self) -> list[Seen]:
        """Of what was shown, witnessed, or left on the volume, that which the ledger does not know."""
        noted = [*self.read(STANDING).values(), *self.read(MISSING).values()]
        ours = dataset_digest(self.party, self.dataset)
        lost = [each for each in noted if each.dataset == ours and not self.ledger.knows(each.number, each.head)]
        told = {each.run for each in lost}
        return lost + [each for each in self._orphans(ours) if each.run not in told]

    def _orphans(self, dataset: str) -> Iterator[Seen]:
        """Runs that left folders or marks here and are not in the ledger, which is always written first."""
        folders = [*(self.home / "sessions").glob("[!.]*"), *(self.home / "answers").glob("*")]
        for run in sorted({path.name.removeprefix(ENDED) for path in folders}):
            if self.ledger.plan_of(run) is None:
                note = self.home / "sessions" / run / "plan"
                plan = note.read_text() if note.exists() else ""
                yield Seen(dataset=dataset, number=1, head="", signature="", run=run, plan=plan)

    def attached(self, identity: IdentityKey, run: str, plan: str, peers: Roster) -> bytes:
        """What goes out with a session key; what is shown is kept first."""
        others = {name: seen for name, seen in self.read(WITNESSED).items() if name in peers}
        standing = Owner(self.party, self.dataset, identity).standing(self.ledger, others)
        self._write(STANDING, {self.party: standing.own.model_copy(update={"run": run, "plan": plan})})
        return standing.to_bytes()

    def meet(self, admitted: Mapping[str, Announcement], roster: Roster) -> None:
        """Hold what the others attached against what was seen before, and the own ledger against what they saw."""
        shown = {
            name: Standing.from_bytes(each.attached)
            for name, each in admitted.items()
            if name != self.party and each.attached
        }
        self._look_for_own(shown, roster)
        seen, latest = self.read(WITNESSED), dict[str, Seen]()
        period = next(iter(admitted.values())).period
        for name, standing in shown.items():
            if not standing.own.is_signed_by(name, roster[name]):
                raise PeerRolledBack(f"'{name}' did not sign the head of its ledger; ask its administrator.")
            if name not in seen or not standing.contradicts(seen[name]):
                latest[name] = standing.own.model_copy(update={"run": period.run, "plan": period.plan})
            elif not self.ledger.is_open(seen[name].run):  # else both runs are under way, and messages may cross
                raise PeerRolledBack(
                    f"'{name}' shows a ledger that lacks entry {seen[name].number}, which it showed in run "
                    f"{seen[name].run}: an older copy was put back there. Tell its administrator; nothing is answered "
                    "to runs with it until it made up for that."
                )
        if {**seen, **latest} != seen:
            self._write(WITNESSED, {**seen, **latest})

    def _look_for_own(self, shown: Mapping[str, Standing], roster: Roster) -> None:
        """Close, for good, if somebody shows a head with this party's own signature that its ledger lacks."""
        ours, found = dataset_digest(self.party, self.dataset), dict[str, Seen]()
        for peer, standing in shown.items():
            seen = standing.others.get(self.party)
            if seen is None or seen.dataset != ours or self.ledger.knows(seen.number, seen.head):
                continue
            if seen.is_signed_by(self.party, roster[self.party]):
                found[peer] = seen
            else:
                log.warning("party %s shows a head of this ledger that this party never signed; passed over", peer)
        if found:
            self._write(MISSING, {**self.read(MISSING), **found})
            self.require_whole()

    def settle(self) -> None:
        """After an administrator made up for what was lacking."""
        (self.home / MISSING).unlink(missing_ok=True)

    def read(self, name: str) -> dict[str, Seen]:
        path = self.home / name
        try:
            return _FORM.validate_json(path.read_bytes()) if path.exists() else {}
        except (OSError, ValidationError):
            raise StoreDamaged(f"{path} cannot be read; restore it from a backup, or ask the other parties.") from None

    def _write(self, name: str, content: Mapping[str, Seen]) -> None:
        write_durably(self.home / name, _FORM.dump_json(dict(content), indent=1))
