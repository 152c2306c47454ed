"""Why a party says no, as one tree. The code may cross to the aggregator; the message stays in the party's log.

ProtocolError
├── NotApproved            the party never approved this plan, or not as it now stands
├── PolicyRefused          the plan asks for more than the party's own policy allows
├── AskOutsidePlan         the ask is none of those the approved plan consists of
├── AskChanged             the same run and number came again with other content
├── RunOfAnotherPlan       a message of a run that was begun here under another plan
├── RunFinished            an ask of a run that has ended here; its answers are gone and are never made again
├── NotReserved            a message of a run that never began here, or whose reservation was given back
├── PeerNotPinned          the plan names a party whose identity was never compared
├── NoSession              no keys for this run, or they are retired; a new epoch makes new ones
├── NotSealed              asked to stand by or open a sum that this party did not contribute to
├── AnswerOutOfRange       a real too large for the sum, or none at all
├── SecondVector           another vector for a round whose masks are used
├── AlreadyConfirmed       another list of parties for numbers that are bound to one: confirmed, or sealed unmasked
├── AlreadyOpened          other ciphertexts for a round that was opened
├── RowsMisaligned         parties that hold columns of the same people do not have them in the same order
├── SharesMissing          asked for tables across parties before their shares were made
├── PeerRolledBack         another party shows a ledger without the entries that it showed here before
└── SumRefused             a message that crypto/ refuses; its code says which way
FedsynthError
└── StoreError             the party's own volume fails; nothing is released until it works again
    ├── StoreInUse         another process already writes to it
    ├── StoreUnwritable    full, read-only or failing
    └── StoreDamaged       what is on it is not what was written
        └── RolledBack     the ledger is an older one than others, or the volume beside it, have seen
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crypto.errors import CryptoError
from synth.errors import FedsynthError, ProtocolError


class NotApproved(ProtocolError):
    code = "plan-not-approved"


class PolicyRefused(ProtocolError):
    code = "policy-refused"


class AskOutsidePlan(ProtocolError):
    code = "ask-outside-plan"


class AskChanged(ProtocolError):
    code = "ask-changed"


class RunOfAnotherPlan(ProtocolError):
    code = "run-of-another-plan"


class RunFinished(ProtocolError):
    code = "run-finished"


class NotReserved(ProtocolError):
    code = "not-reserved"


class PeerNotPinned(ProtocolError):
    code = "peer-not-pinned"


class NoSession(ProtocolError):
    code = "no-session"


class NotSealed(ProtocolError):
    code = "not-sealed"


class AnswerOutOfRange(ProtocolError):
    code = "answer-out-of-range"


class SecondVector(ProtocolError):
    code = "second-vector"


class AlreadyConfirmed(ProtocolError):
    code = "already-confirmed"


class AlreadyOpened(ProtocolError):
    code = "already-opened"


class RowsMisaligned(ProtocolError):
    code = "rows-misaligned"


class SharesMissing(ProtocolError):
    code = "shares-missing"


class PeerRolledBack(ProtocolError):
    code = "peer-rolled-back"


class SumRefused(ProtocolError):
    def __init__(self, error: CryptoError) -> None:
        super().__init__(str(error))
        self.code = error.code


@contextmanager
def sum_refusals() -> Iterator[None]:
    """The one place where refusals of crypto/ become refusals of this party."""
    try:
        yield
    except CryptoError as error:
        raise SumRefused(error) from error


class StoreError(FedsynthError):
    code = "store-failed"
    exit_code = 6


class StoreInUse(StoreError):
    code = "store-in-use"


class StoreUnwritable(StoreError):
    code = "store-unwritable"


class StoreDamaged(StoreError):
    code = "store-damaged"


class RolledBack(StoreDamaged):
    code = "ledger-rolled-back"
