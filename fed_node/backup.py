"""A copy of a party's home in one file, taken while the worker runs, and put back only where nothing newer is lost.

The ledger is copied last, by SQLite's own means: it may then know of answers that the copy lacks, which is refused
later and harmless, and never the other way round. A copy says which head its ledger had. Put back over a ledger that
has gone on since, it would forget what was spent: that is refused. Where the volume is gone, the copy is all there is;
the drill of the party guide (`fedsynth node ledger --against`, `--restored`) then asks others what they saw. Heads are
shown when a run begins, so nobody can tell of a run that was under way in the copy what it answered afterwards: it is
charged in full and over. Its session's keys are therefore not copied at all; they would outlive their epoch in a file.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fed_node.errors import StoreInUse
from fed_node.ledger.chain import Chain
from fed_node.ledger.ledger import Ledger
from fed_node.ledger.view import LedgerView
from fed_node.settings import KEY, LEDGER, PartySettings
from fed_node.witnesses import MISSING, STANDING, WITNESSED
from synth.audit_log import FILE
from synth.errors import InputError, NotVerified, OutputError
from synth.messages.archive import private_folder
from synth.messages.folder_archive import unpack

MANIFEST = "backup.json"
FOLDERS = ("approved", "begun", "answers")
FILES = ("party.yaml", "policy.yaml", STANDING, WITNESSED, MISSING, FILE)


@dataclass(frozen=True)
class Backup:
    """What a copy says of itself."""

    party: str
    dataset: str
    taken: str
    entries: int
    head: str
    keys: bool


def take(home: Path, out: Path, *, keys: bool) -> Backup:
    """Copy a home into a file for its owner alone; with its identity key only if that is asked for."""
    settings = PartySettings.load(home)
    if not (home / LEDGER).exists():
        raise InputError(f"there is no ledger in {home}; there is nothing worth a copy yet")
    names = [name for name in (*FOLDERS, *FILES, *((KEY,) if keys else ())) if (home / name).exists()]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        try:
            with tarfile.open(made / "home.tar.gz", "w:gz") as tar:
                for name in names:
                    tar.add(home / name, name)
                _copy_ledger(home / LEDGER, made / LEDGER)
                tar.add(made / LEDGER, LEDGER)
                about = _described(settings, made / LEDGER, keys=keys)
                _add(tar, MANIFEST, json.dumps(asdict(about), indent=1).encode())
            os.chmod(made / "home.tar.gz", 0o600)
            shutil.move(made / "home.tar.gz", out)
        except OSError as error:
            raise OutputError(f"cannot write {out}: {error.strerror}") from None
    return about


def put_back(archive: Path, home: Path) -> tuple[Backup, list[str]]:
    """Put a copy into a home whose worker is stopped, unless the ledger there knows more; and the runs that are over by
    that. All is checked first."""
    about = read(archive)
    private_folder(home)
    _require_stopped(home)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        copy = Path(folder)
        _unpacked(archive, copy)
        hashes = _hashes(copy / LEDGER)
        if len(hashes) != about.entries or hashes[-1:] != [about.head][: len(hashes)]:
            raise NotVerified(f"{archive} does not hold the ledger that it says it holds; it was damaged")
        there = _hashes(home / LEDGER) if (home / LEDGER).exists() else []
        _require_nothing_newer(there, hashes)
        ended = [] if there == hashes else _ended(copy / LEDGER, about.dataset)
        for name in (*FOLDERS, *FILES, KEY, LEDGER):
            if (copy / name).exists():
                _replace(copy / name, home / name)
    return about, ended


def _unpacked(archive: Path, copy: Path) -> None:
    try:
        with tarfile.open(archive) as tar:
            unpack(tar, copy)
    except (OSError, EOFError, tarfile.TarError):
        raise InputError(f"{archive} is no copy that `fedsynth node backup` made, or it was cut") from None
    if not (copy / LEDGER).is_file():
        raise InputError(f"{archive} holds no ledger")


def _ended(path: Path, dataset: str) -> list[str]:
    with closing(LedgerView(path)) as view:
        budget = view.budget
    with closing(Ledger(path, dataset, budget)) as ledger:
        return ledger.give_up()


def read(archive: Path) -> Backup:
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile(MANIFEST)
            content: dict[str, Any] = json.loads(member.read()) if member else {}
        return Backup(**content)
    except (OSError, KeyError, TypeError, ValueError, tarfile.TarError):
        raise InputError(f"{archive} is no copy that `fedsynth node backup` made, or it was cut") from None


def _require_stopped(home: Path) -> None:
    if not (home / LEDGER).exists():
        return
    try:
        Chain(home / LEDGER, write=True).close()
    except StoreInUse:
        raise StoreInUse(
            f"the worker of {home} runs; stop it first (on Kubernetes: `kubectl scale deploy/fed-node --replicas=0`)"
        ) from None


def _require_nothing_newer(there: list[str], copied: list[str]) -> None:
    """What is there must be the beginning of what comes: entries are chained, so its last hash says it all."""
    if len(there) > len(copied):
        raise NotVerified(
            f"the ledger there has {len(there)} entries and the copy {len(copied)}: putting it back would forget what "
            "was spent since. Keep the ledger there; if it is damaged, move it away first and then do the drill of the "
            "party guide."
        )
    if there and there[-1] != copied[len(there) - 1]:
        raise NotVerified("the ledger there is not an earlier state of the copy's; one of them is another dataset's")


def _hashes(ledger: Path) -> list[str]:
    with closing(Chain(ledger, write=False)) as chain:
        return [link.hash for link in chain.read()]


def _replace(path: Path, place: Path) -> None:
    """Whole or not at all; a folder takes the place of what was there."""
    if path.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    for beside in ("-wal", "-shm", "-journal"):  # of the database that was there; they would be played into the new one
        place.with_name(place.name + beside).unlink(missing_ok=True)
    path.replace(place)


def _copy_ledger(path: Path, copy: Path) -> None:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as ledger, closing(sqlite3.connect(copy)) as target:
        ledger.backup(target)


def _described(settings: PartySettings, ledger: Path, *, keys: bool) -> Backup:
    with closing(LedgerView(ledger)) as view:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        return Backup(settings.name, view.dataset, now, view.verify(), view.head, keys)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o600
    tar.addfile(about, io.BytesIO(content))
