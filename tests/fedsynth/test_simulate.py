"""A federation on one machine, as a data scientist runs it: results, resuming, and every kind of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from aggregator.watch import Silent
from fedsynth.cli import app
from fedsynth.simulation import simulate as simulation
from fedsynth.simulation.simulate import Folders
from synth.errors import FedsynthError, InputError, Refusal
from synth.messages import archive
from tests.small import plan_content, table

TINY = {
    "name": "ctgan",
    "rounds": 2,
    "steps_per_round": 2,
    "generator": {"width": 16, "warm_start_steps": 5},
    "discriminator": {"width": 8, "fake_batch": 20},
}
ROWS = 150


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan, and one data file per party."""
    folder = tmp_path_factory.mktemp("consortium")
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan_content(TINY, rows=ROWS), sort_keys=False))
    for number in (1, 2, 3):
        table(ROWS, seed=number).to_csv(folder / f"party-{number}.csv", index=False)
    return folder


def files_of(place: Path) -> dict[str, Path]:
    return {f"party-{n}": place / f"party-{n}.csv" for n in (1, 2, 3)}


def content_of(place: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((place / "plan.yaml").read_text())
    return content


@pytest.fixture(scope="module")
def finished(place: Path) -> Folders:
    folders = Folders(place / "finished")
    plan = simulation.prepare(content_of(place), files_of(place), folders, seed=5)
    simulation.run(plan, folders, 5, Silent())
    return folders


def test_the_release_is_whole(finished: Folders) -> None:
    names = {path.name for path in finished.out.iterdir()}
    assert {"synthetic.csv", "synthetic.parquet", "model.npz", "certificate.json", "plan.json", "schema.json"} <= names
    assert not any(name.startswith(".partial") for name in names)
    rows = pd.read_csv(finished.out / "synthetic.csv")
    assert len(rows) == 3 * ROWS
    assert "patient" not in rows.columns


def test_the_certificate_adds_up(finished: Folders) -> None:
    certificate = json.loads((finished.out / "certificate.json").read_text())
    assert 0 < certificate["claim"]["epsilon"] <= 3.0
    assert certificate["simulated"] is True
    statements = [json.loads(signed["text"]) for signed in certificate["statements"]]
    assert {statement["party"] for statement in statements} == {"party-1", "party-2", "party-3"}
    assert all(statement["seeded"] for statement in statements)
    kinds = {event["kind"] for statement in statements for event in statement["events"]}
    assert kinds == {"count_noise", "sampled_gaussian"}


def test_the_model_holds_no_rows_and_draws_more(finished: Folders, place: Path) -> None:
    arrays, _ = archive.unpack((finished.out / "model.npz").read_bytes(), "model")
    assert all(ROWS not in array.shape and 3 * ROWS not in array.shape for array in arrays.values())
    result = CliRunner().invoke(
        app, ["sample", str(finished.out / "model.npz"), "--rows", "20", "--where", "died=yes", "--seed", "3"]
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.strip().splitlines()
    assert len(lines) == 21
    assert all(line.endswith(",yes") for line in lines[1:])


def test_an_interrupted_run_is_resumed_to_the_same_table(place: Path, finished: Folders) -> None:
    class Impatient(Silent):
        def round(self, done: int, total: int, losses: dict[str, float], epsilon: float | None) -> None:
            raise KeyboardInterrupt

    folders = Folders(place / "resumed")
    plan = simulation.prepare(content_of(place), files_of(place), folders, seed=5)
    with pytest.raises(KeyboardInterrupt):
        simulation.run(plan, folders, 5, Impatient())
    assert not folders.release.exists()
    plan, seed = simulation.load_unfinished(folders)
    simulation.run(plan, folders, seed, Silent())
    assert (folders.out / "synthetic.csv").read_bytes() == (finished.out / "synthetic.csv").read_bytes()
    certificate = json.loads((folders.out / "certificate.json").read_text())
    before = json.loads((finished.out / "certificate.json").read_text())
    assert certificate["claim"] == before["claim"]  # nothing was paid twice


def test_a_partitioned_table_runs_and_its_parts_are_removed(place: Path) -> None:
    out = place / "split"
    arguments = ["simulate", str(place / "plan.yaml"), "--data", str(place / "party-1.csv"), "--partition", "iid"]
    result = CliRunner().invoke(app, [*arguments, "--parties", "2", "--out", str(out), "--seed", "1"])
    assert result.exit_code == 0, result.output
    assert json.loads((out / "report.json").read_text())["fidelity"]["jsd"] < 1
    assert "is the certified one" in (out / "report.html").read_text()
    assert not list(out.rglob("rows.csv"))
    again = CliRunner().invoke(app, [*arguments, "--parties", "2", "--out", str(out)])
    assert isinstance(again.exception, InputError)
    assert "--overwrite" in str(again.exception)


def refusal(place: Path, arguments: list[str]) -> str:
    """The one paragraph a user sees; nothing may be half-written."""
    out = place / "refused"
    result = CliRunner().invoke(app, ["simulate", *arguments, "--out", str(out)])
    assert isinstance(result.exception, FedsynthError), result.output
    assert result.exception.exit_code != 0
    assert not (out / "synthetic.csv").exists()
    return str(result.exception)


def data_of(place: Path, **changes: Path) -> list[str]:
    files = files_of(place) | {name.replace("_", "-"): path for name, path in changes.items()}
    return [part for name, path in files.items() for part in ("--data", f"{name}={path}")]


def test_what_is_missing_is_named(place: Path) -> None:
    assert "no file" in refusal(place, [str(place / "nowhere.yaml")])
    assert "which plan?" in refusal(place, [])
    plan = str(place / "plan.yaml")
    assert "party-3" in refusal(place, [plan, *data_of(place)[:4]])
    assert "missing" in refusal(place, [plan, *data_of(place, party_2=place / "gone.csv")])
    assert "NAME=FILE" in refusal(place, [plan, "--data", "party-1"])
    assert "no unfinished run" in refusal(place, ["--resume"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"privacy": {"epsilon": 0, "delta": 1e-5}}, "privacy.epsilon"),
        ({"privacy": {"epsilon": -2, "delta": 1e-5}}, "privacy.epsilon"),
        ({"privacy": {"epsilon": 1, "delta": 0.5}}, "1/rows"),
        ({"privasy": {}}, "privasy: unknown key"),
    ],
)
def test_a_wrong_plan_is_explained(place: Path, change: dict[str, Any], words: str) -> None:
    path = place / "wrong.yaml"
    path.write_text(yaml.safe_dump(content_of(place) | change, sort_keys=False))
    assert words in refusal(place, [str(path), *data_of(place)])


SECRET = "leak-7713"


def spoilt(place: Path, spoil: str) -> Path:
    """A copy of a party's file with one thing wrong, carrying a recognisable cell where there is one."""
    rows = table(20, seed=9)
    separator = ","
    match spoil:
        case "category":
            rows.loc[3, "sex"] = SECRET
        case "number":
            rows.loc[3, "age"] = SECRET
        case "bounds":
            rows.loc[3, "age"] = "7713"
        case "empty cell":
            rows.loc[3, "age"] = ""
        case "column":
            rows = rows.rename(columns={"age": "alter"})
        case "separator":
            separator = "|"
        case "no rows":
            rows = rows.head(0)
        case "one row":
            rows = rows.head(1)
    path = place / f"{spoil.replace(' ', '-')}.csv"
    rows.to_csv(path, index=False, sep=separator)
    if spoil == "separator":
        path.write_text(path.read_text().replace("|", " "))
    return path


def test_a_table_that_is_another_is_refused_by_a_code(place: Path) -> None:
    """The aggregator learns a code; the party's own log names the column; no cell value is in either."""
    folders = Folders(place / "unfit")
    files = {spoil: spoilt(place, spoil) for spoil in ("column", "separator")}
    content = content_of(place) | {"parties": [{"name": name, "rows": ROWS} for name in files]}
    plan = simulation.prepare(content, files, folders, seed=1)
    with pytest.raises(Refusal, match="data-does-not-fit-schema"):
        simulation.run(plan, folders, 1, Silent())
    for name in files:
        assert "data-does-not-fit-schema" in (folders.party(name) / "party.log").read_text()
    assert not folders.release.exists()


def test_unfit_rows_end_no_run_and_are_counted_by_the_party_alone(place: Path) -> None:
    """A refusal would tell the aggregator about one row."""
    folders = Folders(place / "unfit-rows")
    spoils = ("category", "number", "bounds", "empty cell", "no rows", "one row")
    files = {spoil.replace(" ", "-"): spoilt(place, spoil) for spoil in spoils}
    content = content_of(place) | {"parties": [{"name": name, "rows": ROWS} for name in files]}
    plan = simulation.prepare(content, files, folders, seed=1)
    simulation.run(plan, folders, 1, Silent())
    for name, words in {
        "category": "column 'sex', 1 cell(s): undeclared labels are left out",
        "number": "column 'age', 1 cell(s): cells that are not numbers are left out",
        "bounds": "column 'age', 1 cell(s): numbers above 100 become 100",
        "empty-cell": "column 'age', 1 cell(s): empty cells are left out",
    }.items():
        log = (folders.party(name) / "party.log").read_text()
        assert words in log
        assert SECRET not in log
    assert folders.release.exists()


def test_on_one_machine_unfit_rows_are_shown_and_unusable_tables_end_it_before_it_begins(place: Path) -> None:
    plan = str(place / "plan.yaml")
    for spoil, words in {"column": "'age'", "no rows": "has no row", "separator": "separator"}.items():
        assert words in refusal(place, [plan, *data_of(place, party_2=spoilt(place, spoil))])
        assert not Folders(place / "refused").work.exists()
    data = data_of(place, party_2=spoilt(place, "bounds"))
    result = CliRunner().invoke(app, ["simulate", plan, *data, "--out", str(place / "shown"), "--no-evaluate"])
    assert result.exit_code == 0, result.output
    assert "19 of 20" not in result.output
    assert "20 of 20 rows are used" in result.output.replace("\n", " ")


def test_a_full_disk_leaves_nothing_half_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    folders = Folders(place / "full")
    plan = simulation.prepare(content_of(place), files_of(place), folders, seed=5)
    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_parquet", full)
        with pytest.raises(FedsynthError, match="No space left") as failure:
            simulation.run(plan, folders, 5, Silent())
    assert failure.value.exit_code == 5
    assert [path.name for path in folders.out.iterdir()] == ["work"]
    simulation.run(plan, folders, 5, Silent())  # after making room, the run is resumed
    assert folders.release.exists()
