"""Every way a secure sum can refuse, as a type.

A refusal is an ordinary event here: the aggregator, the network and the other parties are all outside the
party's control. Each leaf therefore has its own type and a stable ``code`` that may travel between institutions,
while the text stays at home and still never contains an entry of a vector or a key.

    CryptoError
    ├── Malformed            bytes that do not parse: truncated, padded, of another kind
    ├── Forged               a signature or an authentication tag that does not verify, or a sum that cannot be one
    ├── ParticipationError   who takes part
    │   ├── UnknownIdentity      a party nobody pinned or declared
    │   ├── DuplicateParty       a party, or its key, that appears twice
    │   └── TooFewParties        a declared party is missing, or fewer are declared than the minimum
    ├── VectorError          what is to be added
    │   ├── WrongShape           length, dimensions or number type
    │   ├── OutOfRange           beyond the stated range, so the sum could wrap around
    │   └── NotFinite            NaN or infinity
    └── MisplacedError       authentic, but it belongs somewhere else
        ├── WrongContext         a ciphertext under another key, or a weak or private context
        ├── WrongRun             a message of another run
        ├── WrongPlan            a message of the same run under another plan
        ├── WrongEpoch           a message of an epoch before or after a change of keys
        ├── WrongParties         a message for a sum over other parties
        ├── WrongRound           a replayed or reordered round
        └── WrongQuestion        an answer to something else than was asked here
"""

from typing import ClassVar


class CryptoError(Exception):
    """Nothing was opened; the run can continue once the fault is gone."""

    code: ClassVar[str] = "crypto"


class Malformed(CryptoError):
    code = "crypto.malformed"


class Forged(CryptoError):
    code = "crypto.forged"


class ParticipationError(CryptoError):
    code = "crypto.participation"


class UnknownIdentity(ParticipationError):
    code = "crypto.participation.unknown-identity"


class DuplicateParty(ParticipationError):
    code = "crypto.participation.duplicate-party"


class TooFewParties(ParticipationError):
    code = "crypto.participation.too-few-parties"


class VectorError(CryptoError):
    code = "crypto.vector"


class WrongShape(VectorError):
    code = "crypto.vector.wrong-shape"


class OutOfRange(VectorError):
    code = "crypto.vector.out-of-range"


class NotFinite(VectorError):
    code = "crypto.vector.not-finite"


class MisplacedError(CryptoError):
    code = "crypto.misplaced"


class WrongContext(MisplacedError):
    code = "crypto.misplaced.wrong-context"


class WrongRun(MisplacedError):
    code = "crypto.misplaced.wrong-run"


class WrongPlan(MisplacedError):
    code = "crypto.misplaced.wrong-plan"


class WrongEpoch(MisplacedError):
    code = "crypto.misplaced.wrong-epoch"


class WrongParties(MisplacedError):
    code = "crypto.misplaced.wrong-parties"


class WrongRound(MisplacedError):
    code = "crypto.misplaced.wrong-round"


class WrongQuestion(MisplacedError):
    code = "crypto.misplaced.wrong-question"
