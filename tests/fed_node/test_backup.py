"""A copy of a home is whole, and is put back only where no charge is forgotten."""

from __future__ import annotations

import io
import shutil
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from aggregator.federate import federate
from aggregator.sums.secure_sum import SecureSum
from fed_node.backup import Backup, put_back, read, take
from fed_node.errors import StoreInUse
from fed_node.ledger.ledger import LedgerView
from fed_node.ledger.tally import tally_of
from fed_node.party import Party
from synth.errors import InputError, NotVerified, Refusal
from synth.programme import whole_cost
from synth.statistics.mixture_rounds import statistics_inquiry
from tests.fed_node.two_parties import ROWS, CheapTraining, World, make_homes, small_plan
from tests.small import plan_of

PLANS = [plan_of({"name": "marginals"}, parties=2, rows=ROWS, name=f"plan-{number}") for number in range(3)]


def approve(home: Path, number: int) -> None:
    party = Party(home)
    party.approve(PLANS[number], "anna")
    party.ledger.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = next(iter(make_homes(tmp_path / "homes", PLANS[0]).values()))
    approve(made, 1)
    return made


def copied(home: Path, tmp_path: Path) -> tuple[Path, Backup]:
    out = tmp_path / "copy.tar.gz"
    return out, take(home, out, keys=False)


def test_a_lost_volume_comes_back_as_it_was(home: Path, tmp_path: Path) -> None:
    out, about = copied(home, tmp_path)
    assert out.stat().st_mode & 0o777 == 0o600
    assert read(out) == about
    again = tmp_path / "again"
    assert put_back(out, again) == (about, [])
    with closing(LedgerView(home / "ledger.sqlite")) as before, closing(LedgerView(again / "ledger.sqlite")) as after:
        assert after.to_json() == before.to_json()
    assert {path.name for path in (again / "approved").iterdir()} == {
        path.name for path in (home / "approved").iterdir()
    }
    assert not (again / "identity.key").exists()


def test_a_copy_is_taken_beside_a_running_worker_and_not_put_back_beside_one(home: Path, tmp_path: Path) -> None:
    party = Party(home)
    out, _ = copied(home, tmp_path)
    with pytest.raises(StoreInUse, match="stop it first"):
        put_back(out, home)
    party.ledger.close()
    put_back(out, home)


def test_what_was_spent_since_is_not_forgotten(home: Path, tmp_path: Path) -> None:
    """The attack is a restore: an older ledger over a newer one gives a spent budget back."""
    out, about = copied(home, tmp_path)
    approve(home, 2)
    before = (home / "ledger.sqlite").read_bytes()
    with pytest.raises(NotVerified, match=f"and the copy {about.entries}"):
        put_back(out, home)
    assert (home / "ledger.sqlite").read_bytes() == before


def test_another_ledger_of_the_same_length_is_refused(home: Path, tmp_path: Path) -> None:
    out, _ = copied(home, tmp_path)
    other = next(iter(make_homes(tmp_path / "others", PLANS[0]).values()))
    approve(other, 2)
    with pytest.raises(NotVerified, match="not an earlier state"):
        put_back(out, other)


def test_a_damaged_copy_changes_nothing(home: Path, tmp_path: Path) -> None:
    out, _ = copied(home, tmp_path)
    other, _ = copied(next(iter(make_homes(tmp_path / "others", PLANS[0]).values())), tmp_path / "others")
    with tarfile.open(out) as tar, tarfile.open(other) as foreign, tarfile.open(tmp_path / "mixed", "w:gz") as mixed:
        for member in tar.getmembers():
            source = foreign if member.name == "ledger.sqlite" else tar
            chosen = source.getmember(member.name)
            mixed.addfile(chosen, source.extractfile(chosen) if chosen.isfile() else None)
    before = (home / "ledger.sqlite").read_bytes()
    with pytest.raises(NotVerified, match="damaged"):
        put_back(tmp_path / "mixed", home)
    assert (home / "ledger.sqlite").read_bytes() == before


def test_any_file_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no tar")
    with pytest.raises(InputError, match="no copy"):
        put_back(tmp_path / "x", tmp_path / "home")


def test_a_run_under_way_in_a_copy_is_not_answered_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack: a copy is taken between two asks, the volume is lost after the second, and the second is asked again.
    Masks would be the same and the noise another, for one charge; and no peer has seen a head that the copy lacks."""
    monkeypatch.setattr("synth.programme.build", CheapTraining)
    plan = small_plan(rounds=2)
    homes = make_homes(tmp_path / "homes", plan, seed=None)
    lost, out = homes["party-1"], tmp_path / "copy.tar.gz"
    parties = {name: Party(home) for name, home in homes.items()}
    world = World({name: party.handle for name, party in parties.items()})
    sums, statistics, training = SecureSum(plan, "run-1", world), statistics_inquiry(plan), CheapTraining(plan)
    sums.agree_on_keys(world("hello", dict.fromkeys(sums.parties, sums.hello())).received)
    asked = sum(1 for _ in federate(statistics, sums, 0, 0))
    take(lost, out, keys=True)
    next(federate(training, sums, 0, asked))
    parties["party-1"].ledger.close()
    rows = (lost / "rows.csv").read_bytes()
    shutil.rmtree(lost)
    assert put_back(out, lost)[1] == ["run-1"]
    (lost / "rows.csv").write_bytes(rows)
    again = Party(lost)
    world.deliver["party-1"] = again.handle
    with pytest.raises(Refusal, match="run-finished"):
        next(federate(CheapTraining(plan), sums, 0, asked))
    assert tally_of(again.ledger.events()) == tally_of(whole_cost(plan, "party-1"))
    for party in (again, parties["party-2"]):
        party.ledger.close()


def test_a_copy_holds_no_session_keys_and_brings_nothing_else_along(home: Path, tmp_path: Path) -> None:
    (home / "sessions" / "run-1").mkdir(parents=True)
    (home / "sessions" / "run-1" / "session").write_bytes(b"secret")
    out, _ = copied(home, tmp_path)
    with tarfile.open(out) as tar, tarfile.open(tmp_path / "more", "w:gz") as more:
        assert not [name for name in tar.getnames() if name.startswith("sessions")]
        for member in tar.getmembers():
            more.addfile(member, tar.extractfile(member) if member.isfile() else None)
        stowaway = tarfile.TarInfo("sitecustomize.py")
        stowaway.size = 4
        more.addfile(stowaway, io.BytesIO(b"bad\n"))
    put_back(tmp_path / "more", tmp_path / "again")
    assert not (tmp_path / "again" / "sitecustomize.py").exists()
