"""Every hole that was ever found, opened again on purpose: a check that does not notice is no check.

A mutation is a patch of the real code and a check that must complain under it and be content without it. Most checks
are scripted attacks in the game; those about gradients, certificates and the accountant are the tests that were written
for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from crypto.vouchers import Voucher
from fed_node import party as party_module
from fed_node.answers import AnswerStore
from fed_node.consent import policy
from fed_node.ledger import ledger as ledger_module
from fed_node.ledger import lifetime
from fed_node.ledger.ledger import Ledger
from fed_node.linkage import opening
from fed_node.party import Party, Run
from fed_node.seal import numbers
from fed_node.seal.journal import Journal
from fed_node.seal.run_folder import RunFolder
from fed_node.source import check_data, read_records
from synth.certificate import verification
from synth.errors import DataError
from synth.family import Declaration
from synth.neural import question
from synth.privacy import bookkeeping
from synth.privacy.accounting import compose
from synth.privacy.noise import NoiseSource
from synth.synthesizers.marginals.settings import MarginalsSettings
from tests.adversary import attacks, checks
from tests.adversary.consortium import plans
from tests.adversary.game import game
from tests.adversary.moves import Move
from tests.aggregator import test_verified_runs as verified
from tests.audit import test_mutations as audit
from tests.synth.privacy import test_dpsgd as steps
from tests.synth.synthesizers import test_ctgan as ctgan

Check = Callable[[Path], bool]  # whether something is wrong


@dataclass(frozen=True)
class Mutation:
    patch: Callable[[], AbstractContextManager[Any]]
    notices: Check


def played(moves: Callable[[], list[Move]], case: int = 0) -> Check:
    """Whether an attack breaks a promise."""

    def notices(folder: Path) -> bool:
        with game(folder / "game", case) as made:
            for move in moves():
                made.play(move)
            return bool(made.found)

    return notices


def fails(test: Callable[..., object], *arguments: object, in_folder: bool = False) -> Check:
    """Whether a test does not pass."""

    def notices(folder: Path) -> bool:
        try:
            test(*arguments, *([folder] if in_folder else []))
        except (AssertionError, pytest.fail.Exception):
            return True
        return False

    return notices


def caught(name: str, folder: Path) -> bool:
    """Whether the mutation is noticed, and nothing is where nothing is wrong."""
    mutation = MUTATIONS[name]
    if mutation.notices(folder / "sound"):
        return False
    with mutation.patch():
        return mutation.notices(folder / "mutated")


# The patches


def _replaced(owner: Any, name: str, value: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(owner, name, value)


@contextmanager
def _runs_without_a_plan() -> Iterator[None]:
    """As it was: everything on disk and in memory is found by the run's name alone."""
    get, reserve = AnswerStore.get, Ledger.reserve

    def found(self: Party, kind: str, envelope: Any) -> Run:
        digest = str(envelope.options["plan"])
        run = self.runs.get(str(envelope.options["run"]))
        if run is not None and run.plan.digest() == digest:
            return run
        return Run(self, str(envelope.options["run"]), self.approvals.get(digest))

    def reserved(self: Ledger, run: str, plan: str, events: Any, *, automatic: bool = False) -> Any:
        return self.history()[-1] if self.plan_of(run) else reserve(self, run, plan, events, automatic=automatic)

    def stored(self: AnswerStore, key: Any) -> Any:
        with patch.object(AnswerStore, "get", get):
            read = party_module.AnswerKey
            for plan in (each.digest() for each in plans()):
                try:
                    if (answer := get(self, read(key.run, plan, key.sequence, key.digest))) is not None:
                        return answer
                except party_module.RunOfAnotherPlan:
                    continue
        return None

    with ExitStack() as patches:
        for owner, name, value in (
            (Party, "_run", found),
            (Ledger, "reserve", reserved),
            (AnswerStore, "get", stored),
            (RunFolder, "_require_plan", lambda self: (self.path / "plan").exists()),
            (Journal, "_require_free", lambda self, moment: None),
        ):
            patches.enter_context(patch.object(owner, name, value))
        yield


def _strict(source: Any, plan: Any, _scratch: Any, _coin: Any) -> Any:
    if check_data(source, plan.table).problems:
        raise DataError("the rows do not fit the schema")
    return read_records(source, plan.table)


def _any_run(self: Ledger, run: str, plan: str, events: Any, *, automatic: bool = False) -> Any:
    return _RESERVE(self, run, plan, events, automatic=True)


_RESERVE = Ledger.reserve


@contextmanager
def _forgetful_ledger() -> Iterator[None]:
    with patch.object(Ledger, "is_answered", lambda *_: False), patch.object(Ledger, "answer", lambda *_: None):
        yield


@contextmanager
def _forgotten_lists() -> Iterator[None]:
    with patch.object(Ledger, "list_of", lambda *_: None), patch.object(Ledger, "bind", lambda *_: None):
        yield


def _two_asks(self: MarginalsSettings, *, private: bool, faithful: bool) -> Declaration:
    return Declaration(asks=2, answers="counts")


def _added_up_by_pld(accounts: Any, budget: Any, wanted: Any = None) -> Any:
    parts = [part for part in (*(account.committed for account in accounts), wanted) if part]
    return compose(lifetime.events_of(sum(parts[1:], parts[0])) if parts else [], budget.delta)


def _in_float32(a: torch.Tensor, g: torch.Tensor, bias: float) -> torch.Tensor:
    slopes, inputs = (stack.float().square().sum(2) for stack in (g, a))
    return (slopes * (inputs + bias))[:, 0].double()


def _float_noise(self: NoiseSource, sigma: float, count: int) -> Any:
    return sigma * np.random.default_rng(0).normal(size=count)


def _audited(test: Callable[[pytest.MonkeyPatch], None]) -> Mutation:
    """A mutation that tests/audit carries out itself: it is noticed if the test of it passes."""

    def notices(folder: Path) -> bool:
        if folder.name == "sound":
            return False  # the test looks at the sound code first
        with pytest.MonkeyPatch.context() as monkeypatch:
            return not fails(test, monkeypatch)(folder)

    return Mutation(nullcontext, notices)


MUTATIONS: dict[str, Mutation] = {
    "a run goes on under another plan, masked": Mutation(
        _runs_without_a_plan, played(lambda: attacks.plan_swap("all-masked", "two-masked", attacks.TWO))
    ),
    "a run goes on under another plan, encrypted": Mutation(
        _runs_without_a_plan,
        played(lambda: attacks.plan_swap("all-ckks", "three-ckks", attacks.WITHOUT_SOUTH)),
    ),
    "a row that does not fit is refused": Mutation(
        _replaced(opening, "open_units", _strict), played(attacks.first_message, case=1)
    ),
    "an approval serves any number of runs": Mutation(
        _replaced(Ledger, "reserve", _any_run), played(attacks.many_runs_on_one_approval)
    ),
    "a lost answer is made again": Mutation(_forgetful_ledger, played(lambda: attacks.answers_lost("all-masked"))),
    "an answer serves two lists of parties": Mutation(
        _replaced(Journal, "_require_free", lambda *_: None),
        played(lambda: attacks.loss_invented_after_the_sum("lossy-masked")),
    ),
    "only the journal knows an answer's list": Mutation(
        _forgotten_lists, played(lambda: attacks.sessions_lost("lossy-masked"))
    ),
    "encrypted counts lie under no mask of their own": Mutation(
        _replaced(numbers, "tolerates_loss", lambda _: False),
        played(lambda: attacks.loss_invented_before_the_sum("lossy-ckks")),
    ),
    "an opener adds whatever it is sent": Mutation(
        _replaced(Voucher, "require", lambda *_: None), played(attacks.another_ciphertext)
    ),
    "a policy has no say on colluders": Mutation(
        _replaced(policy, "_privacy", lambda *_: []), checks.a_careless_plan_is_allowed
    ),
    "a lifetime is added up by PLD": Mutation(
        _replaced(ledger_module, "held", _added_up_by_pld), checks.a_lifetime_is_overspent
    ),
    "a certificate over nothing holds": Mutation(
        _replaced(verification, "_participation", lambda *_: [verification.Finding("participation", True, "")]),
        fails(verified.test_hello_and_finish_are_no_release, "every sum", in_folder=True),
    ),
    "one party's share is nearly everything": Mutation(
        _replaced(question, "share_limits", lambda plan: (np.zeros(len(plan.parties)), np.ones(len(plan.parties)))),
        fails(ctgan.test_shares_that_would_single_a_party_out_are_refused, "rigorous"),
    ),
    "norms are squared in float32": Mutation(
        _replaced(bookkeeping, "_squared_norms", _in_float32), fails(steps.test_no_row_escapes_clipping_by_underflow)
    ),
    "noise is floating point": Mutation(
        _replaced(NoiseSource, "rounded_gaussian", _float_noise), fails(steps.test_what_is_released_lies_on_the_lattice)
    ),
    "a family declares asks that it never makes": Mutation(
        _replaced(MarginalsSettings, "declared", _two_asks), checks.a_programme_is_untrue
    ),
    "conditions share a stream with made-up rows": _audited(
        audit.test_conditions_of_real_rows_from_the_stream_of_made_up_ones
    ),
    "dropout shares a stream with made-up rows": _audited(
        audit.test_dropout_on_real_rows_from_the_stream_of_made_up_ones
    ),
    "a party has one stream": _audited(audit.test_one_stream_for_a_whole_party),
    "answers carry batch statistics": _audited(audit.test_batch_norm_statistics_in_an_answer),
}
