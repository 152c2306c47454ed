"""Answers that were given once, kept so that the same question gets the same answer and is charged once.

An answer is stored before it is sealed and sent. If the party is killed anywhere, a repeated ask finds either the
stored answer (sent again, freshly sealed) or none, and then the ledger says whether one had left. Beside the answers
of a run only its latest `local` arrays are kept: no earlier ones are ever needed again. Nothing is decided by what is
missing here: which asks were answered and which runs have ended is written in the ledger, since a second answer to a
charged ask would carry new noise and cost nothing.

    <folder>/<run>/000012.local     the party's arrays after ask 12; counts only if 000012.answer exists
    <folder>/<run>/000012.answer    written last: the moment at which ask 12 is answered
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fed_node.errors import AskChanged, RunOfAnotherPlan, StoreDamaged, StoreUnwritable
from synth.errors import InputError, ProtocolError
from synth.interface import Answer, Arrays
from synth.messages import archive, wire

Header = dict[str, Any]  # plan and digest of the ask, weight, whether local arrays belong to it, array names
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
ENDED = ".finished-"  # how version 0.1 marked a run that had ended


@dataclass(frozen=True)
class AnswerKey:
    """What an answer is the answer to."""

    run: str
    plan: str  # digest
    sequence: int
    digest: str  # of the ask as this party received it

    def __post_init__(self) -> None:
        check_run_name(self.run)
        if self.sequence < 0:
            raise ProtocolError("an ask's sequence number must not be negative")


class AnswerStore:
    """The answers of all unfinished runs in one folder of the party's volume."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._latest: dict[str, Arrays] = {}  # by run, as last put: most asks need not read them again

    def get(self, key: AnswerKey) -> tuple[Answer, Arrays] | None:
        """The stored answer with the local arrays if they are still the latest ({} otherwise); None if unanswered."""
        path = self._path(key.run, key.sequence)
        if (stored := _read(path)) is None:
            return None
        header, arrays = stored
        if header.get("plan", key.plan) != key.plan:  # version 0.1 did not write it; the ledger binds those to a plan
            raise RunOfAnotherPlan(f"run {key.run}, ask {key.sequence}: it was answered under another plan.")
        if header["digest"] != key.digest:
            raise AskChanged(
                f"run {key.run}, ask {key.sequence}: it was answered before, with other content. One answer to each "
                "number is all that was charged; the aggregator must resume from its checkpoint or start a new run."
            )
        is_latest = key.sequence == max(self._answered(key.run))
        return Answer(arrays, header["weight"]), self._local(header, path) if is_latest else {}

    def put(self, key: AnswerKey, answer: Answer, local: Arrays) -> None:
        """Store durably. An ask that has its answer keeps it: that one may have left already."""
        if self.get(key) is not None:
            return
        path = self._path(key.run, key.sequence)
        header = {"plan": key.plan, "digest": key.digest, "weight": float(answer.weight), "has_local": bool(local)}
        if local:
            archive.write_durably(path.with_suffix(".local"), _packed(local, {}))
        archive.write_durably(path, _packed(answer.arrays, header))
        self._latest = {key.run: local}
        for older in path.parent.glob("*.local"):
            if int(older.stem) < key.sequence:
                older.unlink(missing_ok=True)

    def latest_local(self, run: str) -> Arrays:
        """The party's own arrays after the last answered ask of the run; {} before the first."""
        if run in self._latest:
            return dict(self._latest[run])
        path = self._path(run, max(self._answered(run), default=0))
        stored = _read(path)
        return {} if stored is None else self._local(stored[0], path)

    def ended_before(self) -> list[str]:
        """Runs that version 0.1 ended, which wrote that down here and not in the ledger."""
        return [path.name.removeprefix(ENDED) for path in self.folder.glob(f"{ENDED}*")]

    def forget(self, run: str) -> None:
        """Remove the answers of a run that has ended. Repeated, it changes nothing."""
        folder = self._folder(run)
        self._latest.pop(run, None)
        if not folder.exists():
            return
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise StoreUnwritable(
                f"cannot remove {folder}: {error.strerror}. Make the volume writable, then try again."
            ) from error

    def _local(self, header: Header, path: Path) -> Arrays:
        if not header["has_local"]:
            return {}
        stored = _read(path.with_suffix(".local"))
        if stored is None:
            raise StoreDamaged(
                f"the local arrays beside {path} are missing, so the run cannot go on from there. Restore the volume "
                "from a backup, or start a new run."
            )
        return stored[1]

    def _answered(self, run: str) -> list[int]:
        return [int(path.stem) for path in self._folder(run).glob("*.answer")]

    def _path(self, run: str, sequence: int) -> Path:
        return self._folder(run) / f"{sequence:06d}.answer"

    def _folder(self, run: str) -> Path:
        return self.folder / check_run_name(run)


def check_run_name(run: str) -> str:
    if not RUN_NAME.fullmatch(run):
        raise ProtocolError("a run's name must be letters, digits, '.', '_' and '-', at most 128 of them")
    return run


def digest_of(answer: Answer) -> str:
    """What the ledger notes of an answer before it leaves."""
    return wire.digest(wire.pack_answer(answer))


def _packed(arrays: Arrays, header: Header) -> bytes:
    """Arrays are numbered in the file, as their names are free text."""
    numbered = {str(place): array for place, array in enumerate(arrays.values())}
    return archive.pack(numbered, {**header, "names": list(arrays)})


def _read(path: Path) -> tuple[Header, Arrays] | None:
    """Header and arrays of a stored file, None if there is none."""
    try:
        arrays, header = archive.unpack(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except (InputError, OSError) as error:
        raise StoreDamaged(f"a stored answer cannot be read: {error}. Restore the volume from a backup.") from error
    return header, {name: arrays[str(place)] for place, name in enumerate(header["names"])}
