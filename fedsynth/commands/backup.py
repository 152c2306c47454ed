"""`fedsynth backup` and `restore`: the aggregator's runs, releases and audit log in one file, and back."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from fedsynth.commands.options import Context, Json, Namespace, Release, say
from fedsynth.operated import operated
from synth.errors import InputError, OutputError


def backup(
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; releases are in it, withheld ones too.")],
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Copy the aggregator's checkpoints, releases and audit log into one file. Runs may go on meanwhile.

    A party's ledger is copied by its own `fedsynth node backup`.

    Exit codes: 0 written, 5 the file cannot be written, 8 the cluster.
    """
    content = base64.b64decode(operated(namespace, release, context).ask("backup"))
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise OutputError(f"cannot write {out}: {error.strerror}") from None
    say({"file": str(out), "bytes": len(content)}, as_json, f"{out}: {len(content) / 1e6:.1f} MB.")


def restore(
    archive: Annotated[Path, typer.Argument(help="What `fedsynth backup` wrote.")],
    namespace: Namespace = "fedsynth",
    release: Release = "aggregator",
    context: Context = None,
    as_json: Json = False,
) -> None:
    """Put a copy back into an installed aggregator. Runs that are there stay; the audit log must go on from its own.

    Interrupted runs among them are resumed by the supervisor; nothing is charged twice.

    Exit codes: 0 put back, 2 no such file, 8 the cluster, or what is there would be forgotten.
    """
    if not archive.is_file():
        raise InputError(f"there is no file {archive}")
    typed = base64.b64encode(archive.read_bytes()).decode() + "\n"
    outcome = json.loads(operated(namespace, release, context).ask("restore", typed=typed))
    say(outcome, as_json, f"put back: {', '.join(outcome['restored']) or 'nothing that was not there'}.")
