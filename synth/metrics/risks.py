"""All attacks on one table, each as a risk with its interval, its null value and its baseline, or an omission.

Attacks need people who were in the data and people who were not. Without holdout rows the three Anonymeter attacks give
plain success rates (overestimates: some guesses are right about anybody) and membership cannot be measured at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth.errors import InputError
from synth.metrics.attacks.attribute import Accuracy, AttributeDisclosure, attribute_disclosure, check
from synth.metrics.attacks.copies import closeness, copies
from synth.metrics.attacks.inference import inference
from synth.metrics.attacks.linkability import linkability
from synth.metrics.attacks.membership import Membership, membership_by_density_ratio, membership_by_distance
from synth.metrics.attacks.risk import Attempts, Interval, wilson
from synth.metrics.attacks.singling_out import singling_out
from synth.metrics.evaluation import Risk
from synth.metrics.findiff import pi, pi_without_control
from synth.metrics.tables import Table
from synth.schema import Schema

ATTACKED_ROWS = 50_000
"""Rows of each table the attacks look at, beyond which they would take hours on large tables."""
NEAREST_ROWS = 5_000
"""Rows of each table for DCR and NNDR, which repeat the search ten times."""
QUASI_IDENTIFIERS = 4
"""Columns the attribute attacker may know when nobody names them: the first four that are not the secret."""
KNOWN_AT_ONCE = 3
"""Of these, every combination of so many is tried."""

ONE_COLUMN = "there is only one column"
NOT_UNIQUE = "no description taken from the synthetic table fits exactly one of its rows"
NO_HOLDOUT = "needs holdout rows, which the synthesizer never saw"
Step = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Target:
    """The tables under attack."""

    real: Table
    synthetic: Table
    holdout: Table | None
    seed: int

    def limited(self) -> Target:
        """At most `ATTACKED_ROWS` of each."""
        rng = np.random.default_rng(self.seed)
        real, synthetic = self.real.sample(ATTACKED_ROWS, rng), self.synthetic.sample(ATTACKED_ROWS, rng)
        return Target(
            real, synthetic, None if self.holdout is None else self.holdout.sample(ATTACKED_ROWS, rng), self.seed
        )


def risks(
    target: Target, step: Step, *, keys: Sequence[str] | None = None, secret: str | None = None
) -> tuple[list[Risk], dict[str, Risk]]:
    """Every risk in the registry's order, and inference per secret column."""
    whole, target = target, target.limited()
    single, link, infer = _anonymeter(target, step)
    secrets = {name: risk_of("inference", replace(attempts, among=len(infer))) for name, attempts in infer.items()}
    found = [
        _counted("singling_out", single, NOT_UNIQUE if infer else ONE_COLUMN),
        _counted("linkability", link, ONE_COLUMN),
        _all_inference(infer),
    ]
    step("membership")
    found.append(_membership("membership_distance", membership_by_distance, target))
    found.append(_membership("membership_density_ratio", membership_by_density_ratio, target))
    step("copies")
    found.append(_copies(whole))
    step("attribute disclosure")
    found.append(_attribute(target, keys, secret))
    found.append(_pi(single, link, infer))
    step("closeness")
    found.append(_closeness(target))
    return found, secrets


def risk_of(metric: str, attempts: Attempts) -> Risk:
    counts = {"attacks": float(attempts.attacks), "successes": float(attempts.successes)}
    null = None
    if attempts.control_attacks is not None and attempts.control_successes is not None:
        counts["control_successes"] = float(attempts.control_successes)
        null = wilson(attempts.control_successes, attempts.control_attacks)
    return Risk(
        metric=metric,
        value=attempts.risk,
        null=null,
        baseline=wilson(attempts.baseline_successes, attempts.attacks),
        flagged=attempts.flagged,
        details=counts | {"attack_rate": attempts.successes / attempts.attacks},
    )


def _anonymeter(target: Target, step: Step) -> tuple[Attempts | None, Attempts | None, dict[str, Attempts]]:
    real, synthetic, schema = target.real, target.synthetic, target.real.schema
    if len(real.columns) < 2:
        return None, None, {}
    step("singling out")
    single = singling_out(real, synthetic, schema, holdout=target.holdout, seed=target.seed)
    step("linkability")
    link = linkability(real, synthetic, schema, holdout=target.holdout, seed=target.seed)
    step("inference")
    return single, link, inference(real, synthetic, schema, holdout=target.holdout, seed=target.seed)


def _counted(metric: str, attempts: Attempts | None, why_not: str) -> Risk:
    return Risk(metric=metric, value=None, omitted=why_not) if attempts is None else risk_of(metric, attempts)


def _all_inference(secrets: dict[str, Attempts]) -> Risk:
    """All secrets together: guesses about every column of the same targets against the same about the control set. The
    mean of the secrets' risks, which the FinDiff paper prints, is in the details: each of them is cut off at 0, so it
    is above 0 for an honest table, too."""
    if not secrets:
        return Risk(metric="inference", value=None, omitted=ONE_COLUMN)
    values = [attempts.risk.value for attempts in secrets.values()]
    overall = risk_of("inference", _pooled(list(secrets.values())))
    return overall.model_copy(
        update={"details": overall.details | {"worst": max(values), "mean_of_secrets": float(np.mean(values))}}
    )


def _pooled(attempts: list[Attempts]) -> Attempts:
    """Mean counts of attacks on the same targets: as many trials as targets, not as many as guesses."""

    def mean(counts: list[int | None]) -> int | None:
        present = [count for count in counts if count is not None]
        return round(float(np.mean(present))) if present else None

    first = attempts[0]
    return Attempts(
        first.attacks,
        mean([a.successes for a in attempts]) or 0,
        mean([a.baseline_successes for a in attempts]) or 0,
        first.control_attacks,
        mean([a.control_successes for a in attempts]),
    )


def _membership(metric: str, attack: Callable[..., Membership], target: Target) -> Risk:
    if target.holdout is None:
        return Risk(metric=metric, value=None, omitted=NO_HOLDOUT)
    try:
        found = attack(target.real, target.synthetic, target.real.schema, target.holdout, seed=target.seed)
    except InputError as reason:
        return Risk(metric=metric, value=None, omitted=str(reason))
    alarms = round(found.false_positive_rate * found.non_members)
    return Risk(
        metric=metric,
        value=found.true_positive_rate,
        null=wilson(alarms, found.non_members),
        flagged=found.flagged,
        details={
            "auroc": found.auroc.value,
            "auroc_low": found.auroc.low,
            "auroc_high": found.auroc.high,
            "ball_accuracy": found.ball_accuracy,
            "members": float(found.members),
        },
    )


def _copies(target: Target) -> Risk:
    found = copies(target.real, target.synthetic, target.real.schema, holdout=target.holdout, seed=target.seed)
    return Risk(
        metric="copies",
        value=found.share,
        null=found.null_share,
        flagged=found.flagged,
        details={"copied_rows": float(found.copied_rows), "compared_rows": float(found.compared_rows)},
    )


def _attribute(target: Target, keys: Sequence[str] | None, secret: str | None) -> Risk:
    schema = target.real.schema
    known, guessed = _attacker(schema, keys, secret)
    if guessed is None:
        return Risk(metric="attribute_disclosure", value=None, omitted="there is no discrete column to keep secret")
    if not known:
        return Risk(metric="attribute_disclosure", value=None, omitted=ONE_COLUMN)
    found = attribute_disclosure(
        target.real,
        target.synthetic,
        schema,
        keys=known,
        secret=guessed,
        known=min(KNOWN_AT_ONCE, len(known)),
        holdout=target.holdout,
        seed=target.seed,
    )
    if found is None:
        reason = f"'{guessed}' has one value in the synthetic table"
        return Risk(metric="attribute_disclosure", value=None, omitted=reason)
    return _attribute_risk(found)


def check_attacker(schema: Schema, keys: Sequence[str] | None, secret: str | None) -> None:
    """Refuses columns that an attribute attacker cannot know or guess, before anything is computed."""
    known, guessed = _attacker(schema, keys, secret)
    if guessed is not None and known:
        check(schema, known, guessed, min(KNOWN_AT_ONCE, len(known)))


def _attacker(schema: Schema, keys: Sequence[str] | None, secret: str | None) -> tuple[list[str], str | None]:
    """What the attribute attacker knows, and what it guesses."""
    guessed = secret or (schema.target if schema.target in schema.discrete else next(iter(schema.discrete), None))
    return list(keys or [name for name in schema.released if name != guessed][:QUASI_IDENTIFIERS]), guessed


def _attribute_risk(found: AttributeDisclosure) -> Risk:
    def rate(accuracy: dict[str, Accuracy] | None, targets: int | None, guesser: str = "ensemble") -> Interval | None:
        return wilson(round(accuracy[guesser].mean * targets), targets) if accuracy and targets else None

    return Risk(
        metric="attribute_disclosure",
        value=rate(found.accuracy, found.targets),
        null=rate(found.control_accuracy, found.control_targets),
        baseline=rate(found.accuracy, found.targets, "dummy"),
        flagged=found.flagged,
        details={name: accuracy.mean for name, accuracy in found.accuracy.items()},
    )


def _pi(single: Attempts | None, link: Attempts | None, secrets: dict[str, Attempts]) -> Risk:
    if link is None:
        return Risk(metric="pi", value=None, omitted=ONE_COLUMN)
    if single is None:
        return Risk(metric="pi", value=None, omitted=f"has no singling-out risk: {NOT_UNIQUE}")
    plain = pi_without_control(single, link, secrets)
    return Risk(metric="pi", value=pi(single, link, secrets), details={"without_control": plain.value})


def _closeness(target: Target) -> Risk:
    metric = "share_closer_to_real"
    if target.holdout is None:
        return Risk(metric=metric, value=None, weak_evidence=True, omitted=NO_HOLDOUT)
    rng = np.random.default_rng(target.seed)
    real, made, unseen = (t.sample(NEAREST_ROWS, rng) for t in (target.real, target.synthetic, target.holdout))
    try:
        found = closeness(real, made, real.schema, holdout=unseen, seed=target.seed)
    except InputError as reason:
        return Risk(metric=metric, value=None, weak_evidence=True, omitted=str(reason))
    if found.share_closer_to_real is None or found.null is None:
        return Risk(metric=metric, value=None, weak_evidence=True, omitted=NO_HOLDOUT)
    details = {f"synthetic_{name}": value for name, value in vars(found.synthetic).items()}
    details |= {f"null_{name}": value for name, value in vars(found.null).items()}
    return Risk(
        metric=metric,
        value=wilson(round(found.share_closer_to_real * made.rows), made.rows),
        null=Interval(0.5, 0.5, 0.5),
        weak_evidence=True,
        details=dict(details),
    )
