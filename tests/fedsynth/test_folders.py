"""A simulation's folder: one run at a time, nothing left of a killed one, many parties, files that change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from aggregator.watch import Silent
from fed_node.ledger.holder import holder_of
from fedsynth.cli import app
from fedsynth.commands.verify import _plan
from fedsynth.plan_content import with_parties
from fedsynth.simulation import simulate as simulation
from fedsynth.simulation.occupied import occupied
from fedsynth.simulation.simulate import Folders
from synth.errors import DataError, InputError
from tests.small import plan_content, table

MARGINALS = {"name": "marginals", "rounds": 0, "pairs": 3}
SLOW = """
import sys, time
from pathlib import Path
from aggregator.watch import Silent
from fedsynth.simulation import simulate as simulation
from fedsynth.simulation.occupied import occupied
from fedsynth.simulation.simulate import Folders

class Halting(Silent):
    def stage(self, text, *_):
        if "training" in text:
            print("halted", flush=True)
            time.sleep(600)

folders = Folders(Path(sys.argv[1]))
with occupied(folders.out):
    plan, seed = simulation.load_unfinished(folders)
    simulation.run(plan, folders, seed, Halting())
"""


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan_content(MARGINALS, rows=60), sort_keys=False))
    table(120).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "plan.yaml"


def begun(folder: Path, parties: int = 2) -> Folders:
    folders = Folders(folder / "out")
    rows = folder / "rows.csv"
    table(120).to_csv(rows, index=False)
    content = plan_content(MARGINALS, secure_sum={"statistics": "masked"})
    simulation.prepare_partition(content, rows, "iid", parties, folders, 1)
    return folders


def children(process: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def test_a_killed_run_leaves_nobody_behind_and_is_resumed(tmp_path: Path) -> None:
    folders = begun(tmp_path)
    run = subprocess.Popen([sys.executable, "-c", SLOW, str(folders.out)], stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "halted\n"
        parties = children(run.pid)
        assert parties
        assert holder_of(folders.out) == run.pid
        refused = CliRunner().invoke(app, ["simulate", "--resume", "--overwrite", "--out", str(folders.out)])
        assert isinstance(refused.exception, InputError)
        assert f"under way in {folders.out} (process {run.pid})" in str(refused.exception)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    plan, seed = simulation.load_unfinished(folders)
    simulation.run(plan, folders, seed, Silent())  # waits for the ledgers, if need be
    assert folders.release.exists()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{party}").exists() for party in parties):
        assert time.monotonic() < deadline, "a party outlived its run"
        time.sleep(0.05)


def test_forty_parties_run(tmp_path: Path) -> None:
    """Each of two processes holds twenty; one that was let go of would keep its ledger's lock."""
    folders = begun(tmp_path, parties=40)
    plan, seed = simulation.load_unfinished(folders)
    simulation.run(plan, folders, seed, Silent())
    assert folders.release.exists()


def test_counts_of_very_many_parties_are_masked_unless_the_plan_says_otherwise() -> None:
    """Whoever opens an encrypted sum is sent everybody's ciphertexts: gigabytes, of a thousand parties."""
    rows = {f"party-{number}": 2 for number in range(101)}
    assert with_parties({}, rows)["secure_sum"] == {"statistics": "masked"}
    assert with_parties({"secure_sum": {"colluders": 3}}, rows)["secure_sum"]["colluders"] == 3
    assert with_parties({"secure_sum": {"statistics": "ckks"}}, rows)["secure_sum"] == {"statistics": "ckks"}
    assert "secure_sum" not in with_parties({}, dict(list(rows.items())[:100]))


def test_a_folder_is_let_go_of_and_not_left_empty(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with occupied(out), pytest.raises(InputError, match=f"process {os.getpid()}"), occupied(out):
        pass
    assert not out.exists()
    with occupied(out):
        (out / "kept").touch()
    with occupied(out):
        assert (out / "kept").exists()


def test_a_file_that_changed_is_not_resumed_on_its_old_rows(tmp_path: Path) -> None:
    folders = begun(tmp_path)
    (tmp_path / "rows.csv").write_text((tmp_path / "rows.csv").read_text() + "\n")
    with pytest.raises(InputError, match=r"rows\.csv has changed"):
        simulation.load_unfinished(folders)


def test_rows_are_named_as_in_the_file_that_was_given(tmp_path: Path) -> None:
    folders = begun(tmp_path)
    plan, _ = simulation.load_unfinished(folders)
    spoilt = table(120)
    spoilt.loc[100, "age"] = "999"
    spoilt.to_csv(tmp_path / "rows.csv", index=False)
    (report,) = simulation.check_rows(plan, folders, None)
    assert report.place == f"the file {tmp_path / 'rows.csv'}"
    assert report.problems[0].rows == (102,)


def test_held_out_rows_are_looked_at_first(tmp_path: Path) -> None:
    folders, test = begun(tmp_path), tmp_path / "test.csv"
    plan, _ = simulation.load_unfinished(folders)
    table(20).drop(columns="age").to_csv(test, index=False)
    with pytest.raises(DataError, match="age"):
        simulation.check_test(plan, test)
    with pytest.raises(DataError, match="age"):
        list(simulation.check_rows(plan, folders, test))


def test_one_party_needs_no_other_plan(plan_file: Path) -> None:
    rows, out = plan_file.with_name("rows.csv"), plan_file.with_name("one")
    arguments = ["simulate", str(plan_file), "--data", str(rows), "--partition", "iid", "--parties", "1"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(out), "--no-evaluate"])
    assert result.exit_code == 0, result.output
    checked = CliRunner().invoke(app, ["verify", str(out / "certificate.json"), "--plan", str(plan_file), "--unsigned"])
    assert checked.exit_code == 0, checked.output
    strict = _plan(plan_file, out / "plan.json", simulated=False)
    assert strict is not None
    assert len(strict.parties) == 3  # who took part is overlooked in simulations only
