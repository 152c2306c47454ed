"""`fedsynth node backup` and `restore`: a party's ledger, approvals and answers in one file, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedsynth.commands.home import Home
from fedsynth.commands.options import Json, say


def backup(
    home: Home,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; keep it as safe as the ledger itself.")],
    keys: Annotated[bool, typer.Option("--with-keys", help="Also the identity key, where it is in the home.")] = False,
    as_json: Json = False,
) -> None:
    """Copy a party's home into one file, while the worker runs. Do it after every run at least.

    On Kubernetes run it in the worker's container with --out /tmp/copy.tar.gz, and `kubectl cp` the file.

    Exit codes: 0 written, 2 there is no ledger, 5 the file cannot be written, 6 the ledger is damaged.
    """
    from fed_node.backup import take

    about = take(home, out, keys=keys)
    words = f"{out}: {about.entries} entries of '{about.party}', head {about.head[:16]}."
    say(asdict(about) | {"file": str(out)}, as_json, words)


def restore(
    archive: Annotated[Path, typer.Argument(help="What `fedsynth node backup` wrote.")],
    home: Home,
    as_json: Json = False,
) -> None:
    """Put a copy back into a home whose worker is stopped, if the ledger there is not newer.

    A copy is checked whole before anything is changed. It forgets what was spent after it was taken: a run that was
    under way in it is charged in full and over. For the others go on with the restore drill of the party guide, which
    asks certificates and the other parties.

    Exit codes: 0 put back, 2 no such copy, 6 the worker runs, 7 the ledger there knows more, or the copy is damaged.
    """
    from fed_node.backup import put_back

    about, ended = put_back(archive, home)
    over = f" Runs that were under way are charged in full and over: {', '.join(ended)}." if ended else ""
    words = (
        f"put back: {about.entries} entries, head {about.head[:16]}, as of {about.taken}.{over} Next: `fedsynth node "
        f"ledger --home {home} --against CERTIFICATE` for every run since then."
    )
    say(asdict(about) | {"ended": ended}, as_json, words)
