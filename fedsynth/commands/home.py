"""The option that every command of a party's administrator takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HomeOption = typer.Option(
    envvar="FEDSYNTH_HOME", help="The party's home folder: party.yaml, policy.yaml, key, ledger, approvals."
)
Home = Annotated[Path, HomeOption]
