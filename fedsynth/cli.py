"""`fedsynth`: one command for the data scientist, the party, the operator and the auditor.

Errors are one paragraph on standard error and a documented exit code: 1 internal, 2 input, 3 privacy, 4 protocol,
5 output, 6 the party's own volume, 7 a certificate that does not hold, 8 the cluster, 9 a run without a
release, 10 a table withheld by its plan's gate, 11 a claim that an audit refuted, 12 an audit without power, 130
interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module

import typer
from rich.console import Console

from fedsynth.commands import argument_help
from synth import VERSION
from synth.errors import FedsynthError
from synth.printable import escaped

argument_help.keep()
MODULES = {  # command → where it is; a module of several commands under one name calls them `app`
    "schema": "schema",
    "plan": "plan",
    "node": "node",
    "provision": "provision",
    "preflight": "preflight",
    "install": "install",
    "run": "run",
    "status": "run",
    "logs": "run",
    "stop": "run",
    "resume": "run",
    "fetch": "run",
    "uninstall": "install",
    "audit-log": "audit_log",
    "verify": "verify",
    "audit": "audit",
    "simulate": "simulate",
    "sample": "sample",
    "evaluate": "evaluate",
}


def assembled(names: Iterable[str] = tuple(MODULES)) -> typer.Typer:
    """The command line with these commands. Each brings its own imports, so a small one starts fast."""
    app = typer.Typer(
        name="fedsynth",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        help="Synthetic tables made together by institutions that may not pool their rows, under differential privacy.",
    )
    for name in names:
        module = import_module(f"fedsynth.commands.{MODULES[name]}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name.replace("-", "_")))
    app.command("version")(version)
    return app


def __getattr__(name: str) -> typer.Typer:
    """`app` is the whole command line, made when somebody asks for it."""
    if name != "app":
        raise AttributeError(name)
    return assembled()


def version() -> None:
    """Print the version."""
    typer.echo(VERSION)


def main() -> None:
    """The console entry point: turns our errors into one paragraph and an exit code."""
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        assembled([asked] if asked in MODULES else MODULES)()
    except FedsynthError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {_plain(str(error))}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)


def _plain(text: str) -> str:
    """Square brackets are markup to rich, and other characters commands to a terminal; here they are only shown."""
    return escaped(text, keep="\n").replace("[", r"\[")
