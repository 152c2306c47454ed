"""What can go wrong, as one tree.

    FedsynthError                 `code` is fixed text that may cross to the aggregator; the message may not
    ├── InputError                something the user gave: a file, an option
    │   ├── SchemaError           the schema does not describe a table
    │   ├── PlanError             the plan contradicts itself, the schema or soundness
    │   └── DataError             rows that do not fit the schema (stays with the party that holds them)
    ├── PrivacyError              an event nobody can account, or noise that cannot be made
    │   └── BudgetError           the answer would cost more than was approved
    ├── ProtocolError             a message that should not have come, or did not
    │   ├── Refusal               a party said no; only its code is known here
    │   └── MissingParties        fewer answers than the plan demands
    ├── OutputError               the result could not be written
    ├── NotVerified               a certificate that does not hold
    └── Withheld                  a table that its plan's gate did not let through

Every message says what is wrong, where, and what to do. The command line prints it as one paragraph and exits
with `exit_code`.
"""

from __future__ import annotations


class FedsynthError(Exception):
    code = "internal"
    exit_code = 1


class InputError(FedsynthError):
    code = "bad-input"
    exit_code = 2


class SchemaError(InputError):
    code = "bad-schema"


class PlanError(InputError):
    code = "bad-plan"


class DataError(InputError):
    code = "data-does-not-fit-schema"


class PrivacyError(FedsynthError):
    code = "not-accountable"
    exit_code = 3


class BudgetError(PrivacyError):
    code = "budget-exceeded"


class ProtocolError(FedsynthError):
    code = "protocol"
    exit_code = 4


class Refusal(ProtocolError):
    """A party refused an ask. Its reason in words is in that party's own log; here there is only the code."""

    def __init__(self, party: str, code: str) -> None:
        super().__init__(
            f"party '{party}' refused with code '{code}'; its own log says why. "
            "Ask its administrator, then resume the run."
        )
        self.party = party
        self.code = code


class MissingParties(ProtocolError):
    code = "missing-parties"


class OutputError(FedsynthError):
    code = "cannot-write"
    exit_code = 5


class NotVerified(FedsynthError):
    code = "not-verified"
    exit_code = 7


class Withheld(FedsynthError):
    code = "withheld"
    exit_code = 10
