"""What was spent, on which plan, by which code: the document an auditor checks after the run.

Every party states its own events, read from its ledger, and signs the statement; the aggregator collects the
statements and signs the whole. ε is recomputed from the events by whoever verifies; nobody's arithmetic is believed.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, ValidationError

from synth.assessment.record import AssessmentRecord
from synth.certificate.linkage import LinkageRecord
from synth.certificate.participation import Absent, Participation
from synth.errors import InputError
from synth.messages import strict_json
from synth.plan import Plan
from synth.privacy.claims import Claim, claim_of, worst
from synth.privacy.events import Event, from_dict
from synth.strict import Strict
from synth.units import NOUNS, PLURALS

LARGEST_STATEMENT_BYTES = 1 << 20
LARGEST_CERTIFICATE_BYTES = 16 << 20
MOST_PLACES = 5  # that an error names
MOST_STATEMENTS = 1000  # parties of a plan; see synth/privacy/losses.py
MOST_SPANS = 4096  # of neighbouring asks; a new one begins where a party is lost or comes back


class Signature(Strict):
    """Ed25519 over the exact UTF-8 text of a statement."""

    public_key: str = Field(description="The signer's Ed25519 public key, hexadecimal.")
    signature: str = Field(description="The signature, hexadecimal.")


class Statement(Strict):
    """One party's own account of one run."""

    party: str = Field(description="Who states this.")
    run: str = Field(description="The run's identifier.")
    plan_digest: str = Field(description="The plan the party approved.")
    schema_digest: str = Field(description="The schema the rows were checked against.")
    code_version: str = Field(description="Version of fedsynth that ran at the party.")
    image_digest: str | None = Field(None, description="Digest of the container image, when there was one.")
    events: list[dict[str, Any]] = Field(description="Everything charged to the ledger for this run, in order.")
    asks: list[tuple[int, int]] = Field(
        [],
        max_length=MOST_SPANS,
        description="The asks that were charged, as first and last of neighbouring ones, counted from 0.",
    )
    asked: str | None = Field(
        None, description="Digest over the numbers and contents of these asks; alike at parties that were asked alike."
    )
    opened: dict[int, str] = Field(
        {}, description="Digests of the sums that the party opened itself, by the number of their ask."
    )
    ledger_head: str = Field(
        description="Head of the party's ledger at the end of the run: pins its whole history of plans and charges."
    )
    ledger_entries: int | None = Field(
        None,
        description="How many entries it had then. Absent in statements of version 0.2 and before, whose head also "
        "covered digests of answers.",
    )
    seeded: bool = Field(description="True if randomness was fixed by a seed: then the noise protects nobody.")
    keys_made_by: Literal["operator"] | None = Field(
        None,
        exclude_if=lambda maker: maker is None,
        description="Who made the party's keys, if not the party: whoever did could have signed this.",
    )


class SignedStatement(Strict):
    """The statement as the text that was signed."""

    text: str = Field(description="The statement's JSON text, exactly as signed.")
    signature: Signature | None = Field(None, description="The party's signature; absent only in plain simulations.")

    @property
    def statement(self) -> Statement:
        return Statement.model_validate(strict_json.parse(self.text, "a party's statement", LARGEST_STATEMENT_BYTES))


def read(signed: SignedStatement) -> Statement | None:
    """The statement; None if it cannot be read as one."""
    try:
        return signed.statement
    except (ValidationError, InputError):
        return None


class Certificate(Strict):
    """The release, in full."""

    format: Literal["fedsynth-certificate-1"] = "fedsynth-certificate-1"
    run: str = Field(description="The run's identifier.")
    issued: str | None = Field(
        None, description="When the aggregator signed, UTC, ISO 8601; absent in certificates of version 0.2 and before."
    )
    plan_name: str | None = Field(None, description="What the plan is called; absent in version 0.2 and before.")
    plan_digest: str = Field(description="SHA-256 of the canonical plan.")
    schema_digest: str = Field(description="SHA-256 of the canonical schema.")
    profile: Literal["rigorous", "faithful"] = Field(description="Whether the protocol is sound or a reproduction.")
    code_version: str = Field(description="Version of fedsynth at the aggregator.")
    secure_sum: dict[str, Any] = Field(description="Modes, minimum and tolerated colluders, from the plan.")
    noise: str = Field(description="Who must be honest for the noise to protect, in words.")
    sampling: str = Field(description="How rows are sampled for training, in words.")
    claim: Claim = Field(description="The largest claim of any party: rows are disjoint, so claims do not add up.")
    simulated: bool = Field(description="True if all parties ran on one machine, under one user.")
    table_sha256: dict[str, str] = Field(description="Digest of each synthetic table file.")
    model_sha256: dict[str, str] = Field(
        {}, max_length=1, description="Digest of the model's file; absent in version 0.2 and before."
    )
    statements: list[SignedStatement] = Field(
        max_length=MOST_STATEMENTS, description="The own account of every party that was not lost."
    )
    participation: list[Participation] = Field(
        [], max_length=MOST_SPANS, description="Whose answers are in which sums, ask by ask."
    )
    absent: list[Absent] = Field(
        [], max_length=MOST_STATEMENTS, description="Parties that were lost and made no statement."
    )
    assessment: AssessmentRecord | None = Field(
        None, description="What the table scored on the parties' rows, what that cost, and what the gate said."
    )
    linkage: LinkageRecord | None = Field(
        None,
        exclude_if=lambda record: record is None,
        description="Where parties hold different columns of the same people: unit, alignment, dealers, and ε towards "
        "a party.",
    )
    signature: Signature | None = Field(None, description="The aggregator's signature over all of the above.")

    def signed_text(self) -> str:
        """What a certificate does not have is not in the text, so older ones still hold."""
        optional = ("assessment", "participation", "absent", "issued", "linkage", "plan_name", "model_sha256")
        left_out = {"signature", *(name for name in optional if not getattr(self, name))}
        return json.dumps(self.model_dump(mode="json", exclude=left_out), separators=(",", ":"), allow_nan=False)


def parse_certificate(content: bytes, what: str) -> Certificate:
    """A certificate from a file that anybody may have written; `InputError` says in a sentence why it is none."""
    found = strict_json.parse(content, what, LARGEST_CERTIFICATE_BYTES)
    try:
        return Certificate.model_validate(found)
    except ValidationError as error:
        places = sorted({".".join(map(str, item["loc"])) or "whole file" for item in error.errors()})
        told = ", ".join(places[:MOST_PLACES]) + (", …" if len(places) > MOST_PLACES else "")
        raise InputError(f"{what} is not a certificate of this version (look at: {told}).") from None


def claim_over(statements: list[Statement], absent: list[Absent], delta: float) -> Claim:
    """The release's claim: the lost are taken to have spent all that they may have."""
    spent = [*map(events_of, statements), *([from_dict(record) for record in each.at_most] for each in absent)]
    return worst([claim_of(events, delta) for events in spent])


def events_of(statement: Statement) -> list[Event]:
    return [from_dict(record) for record in statement.events]


UPDATES = " Model updates: every party added all the noise itself."
VOTES = " Votes: every one was randomised by its own party, and nothing rests on the others."


def noise_in_words(plan: Plan) -> str:
    if plan.privacy == "none":
        return "No noise: the plan says privacy 'none'."
    if not plan.shares_noise:
        return "Every party added all the noise itself; nobody else needs to be honest."
    counts = "Counts and sums of gradients" if plan.family.answers == "gradients" else "Counts"
    dropouts = len(plan.parties) - plan.minimum_parties
    alone = "Counts of one party's columns: it added all the noise. " if plan.partition == "columns" else ""
    return alone + (
        f"{counts}{' across parties' if alone else ''}: each of {len(plan.parties)} parties added "
        f"1/{plan.noisy_parties} of the noise variance, so the "
        f"promise holds if at most {plan.secure_sum.colluders} of them pool what they know with the aggregator"
        + (f" and at most {dropouts} are lost" if dropouts else "")
        + "."
        + {"updates": UPDATES, "votes": VOTES}.get(plan.family.answers, "")
    )


def sampling_in_words(plan: Plan) -> str:
    units, counted = PLURALS[plan.unit], plan.family.counted_share > 0
    first = f" Counts that training starts from use all {units}." if counted else ""
    return plan.family.sampling.in_words(units, NOUNS[plan.unit]) + first + _bounding(plan)


def _bounding(plan: Plan) -> str:
    """What is used of a person or a series; plans about rows say nothing, as before there were others."""
    if plan.layout is None:
        return ""
    if plan.layout.is_series:
        return " A step is counted with the one before and the one after it; the times of a series are public."
    rows, windows = plan.layout.steps, plan.layout.records_per_unit
    kept = f"{rows} row" + "s" * (rows > 1) + (f", {windows} times" if windows > 1 else "")
    return f" Of every person at most {kept} are used, chosen by the party's own coin before anything is computed."
