"""Why a party says no, as one tree. The code may cross to the aggregator; the message stays in the party's log.

ProtocolError
├── NotApproved            the party never approved this plan, or not as it now stands
├── PolicyRefused          the plan asks for more than the party's own policy allows
├── AskOutsidePlan         the ask is none of those the approved plan consists of
├── AskChanged             the same run and number came again with other content
└── NotReserved            a charge or release for a run whose cost was never reserved
FedsynthError
└── StoreError             the party's own volume fails; nothing is released until it works again
    ├── StoreInUse         another process already writes to it
    ├── StoreUnwritable    full, read-only or failing
    └── StoreDamaged       what is on it is not what was written
"""

from __future__ import annotations

from synth.errors import FedsynthError, ProtocolError


class NotApproved(ProtocolError):
    code = "plan-not-approved"


class PolicyRefused(ProtocolError):
    code = "policy-refused"


class AskOutsidePlan(ProtocolError):
    code = "ask-outside-plan"


class AskChanged(ProtocolError):
    code = "ask-changed"


class NotReserved(ProtocolError):
    code = "not-reserved"


class StoreError(FedsynthError):
    code = "store-failed"
    exit_code = 6


class StoreInUse(StoreError):
    code = "store-in-use"


class StoreUnwritable(StoreError):
    code = "store-unwritable"


class StoreDamaged(StoreError):
    code = "store-damaged"
