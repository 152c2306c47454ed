"""`fedsynth`: one command for the data scientist, the party, the operator and the auditor.

Errors are one paragraph on standard error and a documented exit code: 1 internal, 2 input, 3 privacy, 4 protocol,
5 output, 6 the party's own volume, 7 a certificate that does not hold, 8 the cluster, 9 a run without a
release, 10 a table withheld by its plan's gate, 11 a claim that an audit refuted, 12 an audit without power, 130
interrupted.
"""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from fedsynth import (
    argument_help,
    commands_audit,
    commands_evaluate,
    commands_node,
    commands_preflight,
    commands_provision,
    commands_run,
    commands_schema,
    commands_simulate,
    commands_verify,
)
from synth import VERSION
from synth.errors import FedsynthError

argument_help.keep()
app = typer.Typer(
    name="fedsynth",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Synthetic tables made together by institutions that may not pool their rows, under differential privacy.",
)
app.add_typer(commands_schema.app, name="schema")
app.add_typer(commands_node.app, name="node")
app.command("provision")(commands_provision.provision)
app.add_typer(commands_preflight.app, name="preflight")
for command in ("install", "run", "status", "logs", "stop", "resume", "fetch", "uninstall"):
    app.command(command)(getattr(commands_run, command))
app.command("verify")(commands_verify.verify)
app.command("audit")(commands_audit.audit)
app.command("simulate")(commands_simulate.simulate)
app.command("sample")(commands_simulate.sample)
app.command("evaluate")(commands_evaluate.evaluate)


@app.command("version")
def version() -> None:
    """Print the version."""
    typer.echo(VERSION)


def main() -> None:
    """The console entry point: turns our errors into one paragraph and an exit code."""
    try:
        app()
    except FedsynthError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {_plain(str(error))}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)


def _plain(text: str) -> str:
    """Square brackets are markup to rich; here they are only brackets."""
    return text.replace("[", r"\[")
