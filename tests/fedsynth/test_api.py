"""The way in from Python: one table, several parties, a script without a guard, and what is said when it is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import fedsynth
from fedsynth import Result, draft_schema, new_plan, synthesize
from fedsynth.plan_content import small_delta
from synth.errors import FedsynthError, InputError
from synth.plan import parse_plan
from tests.small import plan_content, table

SCRIPT = """
import pandas as pd
from fedsynth import synthesize
result = synthesize(pd.read_csv("rows.csv"), epsilon=3, target="died", out="made")
print(len(result.table), round(result.epsilon))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """By a script of five lines, as a newcomer writes it."""
    folder = tmp_path_factory.mktemp("newcomer")
    table(300).to_csv(folder / "rows.csv", index=False)
    (folder / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "300 3"
    return Result.load(folder / "made")


def test_a_script_of_five_lines_makes_a_table(made: Result) -> None:
    assert set(made.table["sex"]) <= {"f", "m"}
    assert pd.api.types.is_numeric_dtype(made.table["age"])
    assert made.plan.secure_sum.statistics == "plain"
    assert "patient" not in made.table.columns or made.plan.table.columns["patient"].kind == "identifier"


def test_rows_are_drawn_again_and_other_ones(made: Result) -> None:
    women = made.sample(20, where={"sex": "f"})
    assert set(women["sex"]) == {"f"}
    assert not made.sample(20).equals(made.sample(20))
    assert made.sample(20, seed=1).equals(made.sample(20, seed=1))


def test_the_report_shows_itself_in_a_notebook(made: Result) -> None:
    report = made.report()
    assert report._repr_html_().startswith("<iframe srcdoc=")
    assert report.figures["private"] is False


def test_a_result_is_saved_and_read_again(made: Result, tmp_path: Path) -> None:
    again = Result.load(made.save(tmp_path / "kept"))
    assert again.certificate == made.certificate
    assert again.table.equals(made.table)
    with pytest.raises(InputError, match="not empty"):
        made.save(tmp_path / "kept")


def test_parties_are_a_federation_of_their_own_rows(tmp_path: Path) -> None:
    parts = {"north": table(150), "south": table(150, seed=1)}
    out, schema = tmp_path / "made", draft_schema(table(300), "died")
    found = synthesize(parts, epsilon=3, schema=schema, test=table(50, seed=2), out=out, progress=False, seed=1)
    assert [path.name for path in out.rglob("*.csv")] == ["synthetic.csv"]  # no real rows are left behind
    assert [party.name for party in found.plan.parties] == ["north", "south"]
    assert found.plan.secure_sum.statistics == "ckks"
    assert len(found.table) == 300


def test_mistakes_are_sentences() -> None:
    plan = parse_plan(plan_content({"name": "marginals"}))
    with pytest.raises(InputError, match="either the plan"):  # an ε that is not heeded would be a broken promise
        synthesize({party.name: table(200) for party in plan.parties}, plan=plan, epsilon=0.1)
    with pytest.raises(InputError, match="no table"):
        synthesize({})
    with pytest.raises(FedsynthError, match="lower-case letters"):
        synthesize({"North Hospital": table(50)}, epsilon=1, progress=False)
    with pytest.raises(AttributeError, match="synthesize"):
        _ = fedsynth.synthesise


@pytest.mark.parametrize("rows", [2, 50, 178, 32_561, 100_000, 10**7])
def test_a_new_plan_has_a_delta_well_below_one_row(rows: int) -> None:
    assert small_delta(rows) <= min(1e-5, 0.5 / rows)


@pytest.mark.parametrize("parties", [1, 2, 3])
def test_a_new_plan_holds_for_any_number_of_parties(parties: int) -> None:
    rows = {f"party-{n}": 100 for n in range(parties)}
    plan = parse_plan(new_plan("new", draft_schema(table(50)).model_dump(mode="json"), rows, epsilon=1))
    assert len(plan.parties) == parties
