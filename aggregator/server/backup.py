"""The aggregator's volume as one archive, and back: runs (checkpoints, releases) and the audit log.

The SuperLink's database is not in it: the register of nodes is in the chart's values, and messages under way are asked
again. An archive is put back only where nothing is lost by it: the audit log there must be the beginning of the one
that comes, and a run that is there stays as it is.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from aggregator.server.run_folder import LOCK, RunFolder
from synth.audit_log import FILE, AuditLog
from synth.errors import InputError, NotVerified
from synth.messages.folder_archive import unpack

RUNS = "runs"


def archive_of(state: Path) -> bytes:
    """A run that is going on is copied as of its last checkpoint, which is replaced whole."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        if (state / RUNS).exists():
            tar.add(state / RUNS, RUNS, filter=lambda member: None if Path(member.name).name == LOCK else member)
        if (state / FILE).exists():
            tar.add(state / FILE, FILE)
    return buffer.getvalue()


def put_back(state: Path, content: bytes) -> dict[str, Any]:
    """Checked whole first: a log that the one here does not begin with, and nothing is changed."""
    with tempfile.TemporaryDirectory(dir=state) as folder:
        copy = Path(folder)
        try:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                unpack(tar, copy)
        except tarfile.TarError:
            raise InputError("this is no archive that `fedsynth backup` made, or it was cut") from None
        _require_beginning(AuditLog(state / FILE, "").read(), AuditLog(copy / FILE, "").read())
        there = {path.name for path in (state / RUNS).iterdir()} if (state / RUNS).exists() else set()
        coming = sorted((copy / RUNS).iterdir()) if (copy / RUNS).exists() else []
        (state / RUNS).mkdir(exist_ok=True)
        for run in coming:
            if run.name not in there:
                run.replace(state / RUNS / run.name)
        if (copy / FILE).exists():
            (copy / FILE).replace(state / FILE)
    names = [RunFolder(state / RUNS / run.name).name for run in coming if run.name not in there]
    return {"restored": names, "kept": sorted(there & {run.name for run in coming})}


def _require_beginning(here: list[dict[str, Any]], coming: list[dict[str, Any]]) -> None:
    hashes = [line["hash"] for line in coming]
    if here and (len(here) > len(hashes) or here[-1]["hash"] != hashes[len(here) - 1]):
        raise NotVerified(
            f"the audit log here has {len(here)} lines that the archive's ({len(hashes)}) does not begin with: putting "
            "it back would forget what was done since. Restore into a new release, or move the volume away."
        )
