"""One row more or less, of whatever kind, changes nothing that leaves a party but the noisy numbers.

Real parties on D and on neighbours of D get the same messages, through a whole run. Noise is fixed by a seed here, so
where answers are plain, even the numbers can be compared: they differ in the cells of that one row.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aggregator.federate import federate
from aggregator.sums.secure_sum import SecureSum
from fed_node.party import Party
from fed_node.source import read_records_from
from synth.errors import FedsynthError
from synth.grid import grid_of
from synth.interface import Ask
from synth.messages.wire import Envelope
from synth.plan import Plan
from synth.statistics.mixture_rounds import statistics_inquiry
from synth.synthesizers.registry import build
from tests.contract.test_synthesizers import SMALLEST
from tests.fed_node.two_parties import RUN, World, deliver_to, make_homes
from tests.small import SCHEMA, plan_of, table

VICTIM = "party-1"
PACKED = 1 << 16  # bytes; nothing but CKKS is as long in these small plans
MASKED = {"statistics": "masked", "updates": "masked"}
D = table(60).to_csv(index=False).encode()
ROWS: dict[str, bytes] = {
    "a row like others": b"p,50,5.00,f,a,no,2020-05-05,no\n",
    "a copy of a row": D.splitlines(keepends=True)[1],
    "out of bounds": b"p,177,5.00,f,a,no,2020-05-05,no\n",
    "an outlier": b"p,-1e308,1e308,f,a,no,1066-10-14,no\n",
    "infinite": b"p,inf,-inf,f,a,no,2020-05-05,no\n",
    "not whole": b"p,50.5,5.00,f,a,no,2020-05-05,no\n",
    "undeclared labels": b"p,50,5.00,x,y,z,2020-05-05,perhaps\n",
    "no time": b"p,50,5.00,f,a,no,2020-05-05T00:00:00+01:00,no\n",
    "empty cells": b"p,,,,,,,\n",
    "too few cells": b"p,50\n",
    "too many cells": b"p,50,5.00,f,a,no,2020-05-05,no,1\n",
    "no text": b"\xff\xfe,\x00,5.00,\xc3,a,no,2020-05-05,no\n",
    "a quote that is not closed": b'p,50,5.00,f,"a,no,2020-05-05,no\n',
    "a lonely return": b"p,50,5.00,f,a\r,no,2020-05-05,no\n",
}


def neighbours() -> dict[str, bytes]:
    header, *rows = D.splitlines(keepends=True)
    found = {f"with {name}": b"".join([header, *rows[:30], row, *rows[30:]]) for name, row in ROWS.items()}
    return found | {"without a row": b"".join([header, *rows[1:]]), "no rows": header, "one row": header + rows[0]}


def form_of(reply: Envelope) -> tuple[Any, ...]:
    """Everything about a message but its numbers; of texts (keys, signatures, digests) the length.

    CKKS keys and ciphertexts are packed, which makes pseudorandom bytes a little longer or shorter, by chance.
    """
    options = {k: (type(v), len(v) if isinstance(v, str) else v) for k, v in reply.options.items()}
    sizes = {
        name: round(array.size / PACKED) if _is_packed(array) else array.shape for name, array in reply.arrays.items()
    }
    return options, sizes, {name: array.dtype for name, array in reply.arrays.items()}


def _is_packed(array: np.ndarray) -> bool:
    return array.dtype == np.uint8 and array.size > PACKED


class Watched:
    """A federation whose one party's every reply is kept."""

    def __init__(self, folder: Path, plan: Plan, content: bytes) -> None:
        self.plan = plan
        homes = make_homes(folder, plan)
        (homes[VICTIM] / "rows.csv").write_bytes(content)
        self.victim, self.replies = Party(homes[VICTIM]), list[tuple[str, Envelope | str]]()
        others = {name: deliver_to(Party(home)) for name, home in homes.items() if name != VICTIM}
        self.sums = SecureSum(plan, RUN, World(others | {VICTIM: self._listen}))

    def _listen(self, kind: str, envelope: Envelope) -> Envelope:
        try:
            reply = self.victim.handle(kind, envelope)
        except FedsynthError as error:
            self.replies.append((kind, error.code))
            raise
        self.replies.append((kind, reply))
        return reply

    def begin(self) -> None:
        greet = dict.fromkeys(self.sums.parties, self.sums.hello())
        self.sums.agree_on_keys(self.sums.agreement.exchange("hello", greet).received)

    def inquire(self) -> list[Ask]:
        """A whole run; what was asked."""
        asked: list[Ask] = []
        statistics, training = statistics_inquiry(self.plan), build(self.plan)
        asked += [ask for ask, _ in federate(statistics, self.sums, 0, 0)]
        training.begin(statistics.result(), seed=1)
        asked += [ask for ask, _ in federate(training, self.sums, 0, len(asked))]
        return asked

    def ask_again(self, asked: Iterable[Ask]) -> None:
        for sequence, ask in enumerate(asked):
            self.sums.total(ask, sequence)

    def forms(self) -> list[tuple[str, Any]]:
        return [(kind, reply if isinstance(reply, str) else form_of(reply)) for kind, reply in self.replies]


LOCAL = {"privacy": {"epsilon": 3.0, "delta": 1e-5, "noise": "local"}}
PLANS = {
    "marginals, masked, parties may be lost": plan_of(
        SMALLEST["marginals"],
        rows=60,
        secure_sum=MASKED | {"minimum_parties": 2},
    ),
    "marginals, plain": plan_of(
        SMALLEST["marginals"],
        parties=2,
        rows=60,
        secure_sum={"statistics": "plain", "updates": "plain"},
        **LOCAL,
    ),
    "ctgan, encrypted and masked": plan_of(SMALLEST["ctgan"], parties=2, rows=60),
}


@pytest.mark.parametrize("name", PLANS)
def test_all_that_leaves_is_of_the_same_form_on_neighbouring_tables(tmp_path: Path, name: str) -> None:
    first = Watched(tmp_path / "D", PLANS[name], D)
    first.begin()
    asked = first.inquire()
    first.sums.finish()
    kinds = {kind for kind, _ in first.replies}
    assert kinds >= {"hello", "keys", "ask", "finish"}
    for number, (which, content) in enumerate(neighbours().items()):
        other = Watched(tmp_path / str(number), PLANS[name], content)
        other.begin()
        other.ask_again(asked)
        other.sums.finish()
        assert other.forms() == first.forms(), which


def test_only_the_cells_of_that_row_differ(tmp_path: Path) -> None:
    """The histogram release, with the noise of one seed: what is left is the row's own cells."""
    plan = PLANS["marginals, plain"]
    grid, ask = grid_of(plan), statistics_inquiry(plan).ask(0)
    assert ask is not None
    counted: dict[str, np.ndarray] = {}
    exact: dict[str, np.ndarray] = {}
    for number, (which, content) in enumerate({"D": D, **neighbours()}.items()):
        world = Watched(tmp_path / str(number), plan, content)
        world.begin()
        world.ask_again([ask])
        reply = world.replies[-1][1]
        assert isinstance(reply, Envelope)
        (counted[which],) = [array for array in reply.arrays.values() if array.shape == (grid.released_size,)]
        rows = read_records_from(tmp_path / str(number) / VICTIM / "rows.csv", plan.table)
        exact[which] = grid.released(grid.count(rows))
    for which in neighbours():
        np.testing.assert_array_equal(counted[which] - counted["D"], exact[which] - exact["D"])
        if which not in ("no rows", "one row"):
            assert np.abs(exact[which] - exact["D"]).sum() in (0, grid.queries + grid.counted_again)


def refusal_or_form(folder: Path, plan: Plan) -> Any:
    world = Watched(folder, plan, D)
    try:
        world.begin()
    except FedsynthError as error:
        return error.code
    return world.forms()


def asked_with(**column: Any) -> Plan:
    """A schema as a hostile aggregator writes it, to ask about single rows."""
    columns = SCHEMA["columns"] | {name: SCHEMA["columns"][name] | change for name, change in column.items()}
    return plan_of(SMALLEST["marginals"], 2, 60, schema=SCHEMA | {"columns": columns}, secure_sum=MASKED)


def test_a_bound_finds_no_oldest_patient(tmp_path: Path) -> None:
    """Six bounds found the exact age of the oldest one, by refusals, at no cost."""
    oldest = table(60)["age"].astype(int).max()
    bounds = [30, 64, oldest - 2, oldest - 1, oldest, oldest + 1]
    found = [refusal_or_form(tmp_path / str(m), asked_with(age={"max": int(m)})) for m in bounds]
    assert all(form == found[0] for form in found)
    assert not isinstance(found[0], str)


def test_a_spelling_of_empty_finds_no_admission(tmp_path: Path) -> None:
    """Whether somebody was admitted on a day: its date declared to mean 'empty', where nothing may be."""
    dates = [table(60)["admitted"][7], "2019-12-31"]
    plans = [
        plan_of(SMALLEST["marginals"], 2, 60, schema=SCHEMA | {"missing_values": ["", date]}, secure_sum=MASKED)
        for date in dates
    ]
    present, absent = (refusal_or_form(tmp_path / date, plan) for date, plan in zip(dates, plans, strict=True))
    assert present == absent
    assert not isinstance(present, str)
