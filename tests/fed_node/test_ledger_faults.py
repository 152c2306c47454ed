"""A ledger whose disk fails, whose file is tampered with, or whose process is killed. Never silently reset."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fed_node.errors import StoreDamaged, StoreInUse, StoreUnwritable
from fed_node.ledger.ledger import Budget, Ledger, LedgerView
from synth.privacy.events import SampledGaussian
from synth.privacy.lifetime import compose_adaptively

BUDGET = Budget(epsilon=8.0, delta=1e-6)
PLAN = "p" * 64
NOBODY = 65534


def steps(count: int) -> SampledGaussian:
    return SampledGaussian(0.02, 1.5, count)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger with one run of three charges: five entries in all."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path, "patients", BUDGET)
    ledger.reserve("r1", PLAN, [steps(60)], automatic=True)
    for sequence in range(3):
        ledger.charge("r1", PLAN, sequence, "a", [steps(1)])
    ledger.close()
    return path


def tamper(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as database:
        database.executescript("DROP TRIGGER entries_stay; DROP TRIGGER entries_remain;" + statement)
    database.close()


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("UPDATE entries SET body = replace(body, '1.5', '9.5') WHERE number = 3", 3),
        ("UPDATE entries SET body = replace(body, '\"sequence\":2', '\"sequence\":7') WHERE number = 5", 5),
        ("DELETE FROM entries WHERE number = 4", 4),
        ("DELETE FROM entries WHERE number = 1", 1),
        ("UPDATE entries SET number = 9 WHERE number = 5", 5),
        ("UPDATE entries SET hash = upper(hash) WHERE number = 2", 2),
        ("UPDATE entries SET number = -number; UPDATE entries SET number = 6 + number", 1),
    ],
)
def test_the_chain_says_where_it_breaks(path: Path, statement: str, entry: int) -> None:
    tamper(path, statement)
    with pytest.raises(StoreDamaged, match=rf"breaks at entry {entry}\b.*[Rr]estore"):
        Ledger(path, "patients", BUDGET)
    with pytest.raises(StoreDamaged, match=rf"breaks at entry {entry}\b"):
        LedgerView(path)


def test_verify_looks_at_the_disk_again(path: Path) -> None:
    view = LedgerView(path)
    assert view.verify() == 5
    tamper(path, "UPDATE entries SET hash = '' WHERE number = 4")
    with pytest.raises(StoreDamaged, match="entry 4"):
        view.verify()


def test_entries_cannot_be_changed_by_plain_sql(path: Path) -> None:
    database = sqlite3.connect(path)
    for statement in ("DELETE FROM entries", "UPDATE entries SET body = ''"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: path.write_bytes(path.read_bytes()[:4096]),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-4096]),
        lambda path: path.write_bytes(b"x" * len(path.read_bytes())),
        lambda path: path.write_bytes(path.read_bytes()[:-900] + os.urandom(900)),
        lambda path: path.write_text("{}"),
        lambda path: path.unlink(),
    ],
)
def test_a_cut_emptied_or_removed_file_is_refused(path: Path, damage: Callable[[Path], object]) -> None:
    damage(path)
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="backup"):
            Ledger(path, "patients", BUDGET)
    assert (path.read_bytes() if path.exists() else None) == before


def test_an_entry_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    from fed_node.ledger.chain import Chain

    path = tmp_path / "ledger.sqlite"
    chain = Chain(path, write=True)
    chain.append({"kind": "open", "colour": "blue"})
    chain.close()
    with pytest.raises(StoreDamaged, match="entry 1 is not one this version writes"):
        Ledger(path, "patients", BUDGET)


def test_killed_while_it_was_made_for_the_first_time(tmp_path: Path) -> None:
    (tmp_path / ".ledger.sqlite.new").write_bytes(b"half")
    (tmp_path / "ledger.sqlite.lock").touch()
    ledger = Ledger(tmp_path / "ledger.sqlite", "patients", BUDGET)
    assert ledger.verify() == 1


def test_a_full_disk_refuses_and_recovers(path: Path) -> None:
    """A real limit of the operating system on file sizes stands for the full disk."""
    ledger = Ledger(path, "patients", BUDGET)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = ledger.history()
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size // 2, limits[1]))
    try:
        with pytest.raises(StoreUnwritable, match="Free space"):
            ledger.charge("r1", PLAN, 3, "a", [steps(1)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ledger.history() == before
    ledger.charge("r1", PLAN, 3, "a", [steps(1)])
    ledger.close()
    assert LedgerView(path).events() == [steps(4)]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an unprivileged user can reach, as pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


READ_ONLY = """
import os, sys
from pathlib import Path
from fed_node.errors import StoreUnwritable
from fed_node.ledger.ledger import Budget, Ledger, LedgerView
if os.geteuid() == 0:
    os.setuid({nobody})  # nothing is read-only for root
path = Path(sys.argv[1])
try:
    Ledger(path, "patients", Budget(8.0, 1e-6))
except StoreUnwritable as error:
    print("refused:", error)
print("still readable:", len(LedgerView(path).history()))
"""


def test_a_read_only_volume(path: Path, open_folder: Path) -> None:
    copy = open_folder / path.name
    for name in (path, path.with_name(path.name + ".lock")):
        shutil.copy(name, open_folder)
        (open_folder / name.name).chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    open_folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY.format(nobody=NOBODY), copy], capture_output=True, text=True, check=True
    )
    assert "refused:" in done.stdout
    assert "writable" in done.stdout
    assert "still readable: 5" in done.stdout


WORKER = """
import sys
from pathlib import Path
from fed_node.ledger.ledger import Budget, Ledger
from synth.privacy.events import SampledGaussian
ledger = Ledger(Path(sys.argv[1]), "patients", Budget(8.0, 1e-6))
ledger.reserve("r2", "p" * 64, [SampledGaussian(0.02, 1.5, 500)], automatic=True)
for sequence in range(500):
    ledger.charge("r2", "p" * 64, sequence, "a", [SampledGaussian(0.02, 1.5, 1)])
    print(sequence, flush=True)
"""


def test_killed_at_any_moment_it_has_what_it_acknowledged(path: Path) -> None:
    moments = random.Random(5)
    acknowledged = -1
    for _ in range(4):
        worker = subprocess.Popen([sys.executable, "-c", WORKER, path], stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        seen = [int(worker.stdout.readline())]  # it has started and taken up where it was
        with pytest.raises(StoreInUse):
            Ledger(path, "patients", BUDGET)
        time.sleep(moments.uniform(0, 0.15))
        worker.send_signal(signal.SIGKILL)
        seen += [int(line) for line in worker.communicate()[0].split("\n") if line]
        acknowledged = max(acknowledged, *seen)
        view = LedgerView(path)
        charged = [entry for entry in view.history() if entry.kind == "charge" and entry.run == "r2"]
        assert [entry.sequence for entry in charged] == list(range(len(charged)))  # each once
        assert len(charged) >= acknowledged + 1
        assert view.history()[-1].cumulative.epsilon >= view.spent().epsilon
    ledger = Ledger(path, "patients", BUDGET)
    assert ledger.release("r2").cumulative == compose_adaptively(ledger.events() + ledger.reserved(), 1e-6)
