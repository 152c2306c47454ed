"""Refusal codes in words, for the people whose party refused. docs/refusals.md has all of them, with reasons."""

from __future__ import annotations

WORDS = {
    "plan-not-approved": "Nobody here approved this plan, or not for another run. Look at it, and decide.",
    "policy-refused": "The plan asks for more than policy.yaml allows.",
    "budget-exceeded": "The answer would cost more than is left of the budget.",
    "not-reserved": "A message of a run that never began here, or whose approval was taken back.",
    "data-does-not-fit-schema": "The table's header is not the schema's. `fedsynth node check-data` shows it.",
    "bad-input": "The table, its database, the settings or the policy cannot be read.",
    "peer-not-pinned": "The plan names a party whose key is not pinned here. Install the newest kit.",
    "run-of-another-plan": "A message of a run that began here under another plan.",
    "run-finished": "A question of a run that has ended here.",
    "ask-outside-plan": "A question that the approved plan does not consist of.",
    "ask-changed": "The same question came again with other content.",
    "store-unwritable": "The party's volume is full or cannot be written.",
    "store-damaged": "What is on the party's volume is not what was written there.",
    "ledger-rolled-back": "The ledger is older than what others have seen; the party guide has the drill.",
    "protocol": "A message of another kind, form or run than is allowed.",
}


def in_words(code: object) -> str:
    return WORDS.get(str(code), "See the page on refusals in the documentation; the reason is in party.log.")
