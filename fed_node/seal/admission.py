"""Keys for an epoch: this party announces its own, checks everybody's, and begins.

The aggregator only carries the announcements. A key counts if a pinned identity signed it for this run, plan and epoch,
so an aggregator that invents, swaps or leaves out a party is found out here, by every party for itself. Where the plan
sums under CKKS, the first party by name makes that key and the aggregator carries it to the others in sealed letters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crypto import sealed
from crypto.announcement import admit, announce
from crypto.ckks import PartyContext
from crypto.keys import IdentityKey
from crypto.rounds import KeyPeriod
from fed_node.seal.credentials import Credentials
from fed_node.seal.session import Session, SessionStore
from fed_node.witnesses import Witnesses
from synth.messages.fields import as_array, as_arrays, blob, blobs, number
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.programme import only_plain, programme

KEY_LETTER = "ckks key"


@dataclass(frozen=True)
class Admission:
    """One party's way into the epochs of one run."""

    plan: Plan
    credentials: Credentials
    sessions: SessionStore
    witnesses: Witnesses | None = None  # of ledgers; none where there is nobody to meet

    @property
    def party(self) -> str:
        return self.credentials.party

    def check_hello(self, envelope: Envelope) -> None:
        """Everybody of the plan is pinned here, and the message names an epoch."""
        _ = self.credentials.roster
        number(envelope, "epoch")

    def hello(self, envelope: Envelope) -> Envelope:
        """Announce a new session key, for the epoch asked for or the next one that is still unused here."""
        identity = self.credentials.roster[self.party]
        epoch = max(number(envelope, "epoch"), self.sessions.next_epoch)
        key = self.sessions.offer(epoch)
        period, signer = self.sessions.period(epoch), self.credentials.identity
        attached = self._attached(signer, period)
        message = announce(signer, key, period=period, party=self.party, attached=attached)
        return Envelope(
            {"announcement": as_array(message)},
            {"party": self.party, "identity": identity.to_text(), "epoch": epoch},
        )

    def keys(self, envelope: Envelope) -> Envelope:
        """Check everybody's session keys and begin the epoch."""
        session = self._admitted(envelope)
        reply = Envelope()
        if "ckks" in programme(self.plan).modes:
            leads = self.party == session.parties[0]
            context = PartyContext.make() if leads else PartyContext(self._from_letter(session, blob(envelope, "box")))
            session = replace(session, context=context)
            letters = self._letters(session, context) | {"public": context.public.data} if leads else {}
            reply = Envelope(as_arrays("key", letters), {"context": context.public.digest.hex()})
        self.sessions.begin(session)
        return reply

    def _attached(self, signer: IdentityKey, period: KeyPeriod) -> bytes:
        if self.witnesses is None or only_plain(self.plan):
            return b""
        return self.witnesses.attached(signer, period.run, period.plan, self.credentials.roster)

    def _admitted(self, envelope: Envelope) -> Session:
        epoch = number(envelope, "epoch")
        key, period = self.sessions.offered(epoch), self.sessions.period(epoch)
        if only_plain(self.plan):
            return Session(period, self.party, key, {}, None)
        messages = blobs(envelope, "announcement")
        admitted = admit(
            messages.values(),
            self.credentials.roster,
            period=period,
            declared=list(messages),
            minimum=self.plan.minimum_parties,
        )
        public_keys = {party: each.session_public for party, each in admitted.items()}
        session = Session(period, self.party, key, public_keys, None)
        _ = session.secrets  # refuses a list without this party, or with another key in its name
        if self.witnesses is not None:
            self.witnesses.meet(admitted, self.credentials.roster)
        return session

    def _letters(self, session: Session, context: PartyContext) -> dict[str, bytes]:
        """The CKKS key for each of the others, as 'for/<party>'."""
        return {
            f"for/{name}": sealed.seal(
                context.secret_bytes(),
                key=self.credentials.identity,
                sender=self.party,
                recipient=theirs,
                purpose=KEY_LETTER,
            )
            for name, theirs in session.admitted.items()
            if name != self.party
        }

    def _from_letter(self, session: Session, box: bytes) -> bytes:
        return sealed.unseal(
            box,
            session=session.key,
            recipient=session.admitted[self.party],
            sender=session.parties[0],
            roster=self.credentials.roster,
            purpose=KEY_LETTER,
        )
