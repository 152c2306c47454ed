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
from fedsynth.commands.paragraphs import flow
from fedsynth.extras import what_to_install
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
    "status": "status",
    "logs": "run",
    "stop": "run",
    "resume": "run",
    "forget": "run",
    "fetch": "run",
    "backup": "backup",
    "restore": "backup",
    "uninstall": "install",
    "audit-log": "audit_log",
    "verify": "verify",
    "audit": "audit",
    "airgap": "airgap",
    "sandbox": "sandbox",
    "console": "console",
    "simulate": "simulate",
    "sample": "sample",
    "evaluate": "evaluate",
}
# What `fedsynth --help` says of each, so that it need not load any: the first sentence of its own help, which a test
# compares.
SUMMARIES = {
    "schema": "Draft, check and export schemas and plans.",
    "plan": "Write plans.",
    "node": "For the administrator of a party: check data, approve plans, run the worker, read the ledger.",
    "provision": "Make what is missing and keep what is there: authority, server certificate, and a kit "
    "for every party.",
    "preflight": "Check networks and clusters before anybody depends on them.",
    "install": "Install or upgrade one side from its kit, and wait until it is ready.",
    "run": "Start a synthesis on the cluster's aggregator.",
    "status": "Show which parties are connected and how far the runs are.",
    "logs": "Print the aggregator's log. What a party logs stays with the party.",
    "stop": "Stop a run. What parties spent is spent; it can be resumed.",
    "resume": "Continue a run that failed, was stopped or lost its pod, from its checkpoint. Nothing is spent twice.",
    "forget": "Remove a run from the aggregator: its checkpoint, report and release. Fetch what you need first.",
    "fetch": "Bring a finished run's table, model and certificate here; of a withheld one the "
    "certificate and the reasons.",
    "backup": "Copy the aggregator's checkpoints, releases and audit log into one file. Runs may go on meanwhile.",
    "restore": "Put a copy back into an installed aggregator. Runs that are there stay; the audit log must "
    "go on from its own.",
    "uninstall": "Remove a release and what its runs and tests left. Its volume stays, and its Secrets "
    "unless --secrets is said.",
    "audit-log": "Print the aggregator's audit log: who ran, resumed, stopped, fetched, and whom it "
    "admits. JSON lines.",
    "verify": "Check a CERTIFICATE: signatures, table, plan, and ε composed anew from the events that "
    "the parties signed.",
    "audit": "Attack what PLAN would publish: run it many times, with and without planted rows, and "
    "guess which were there.",
    "airgap": "A whole release in one signed file, for sites without a network.",
    "sandbox": "A federation on this machine: aggregator and parties as real processes, without Kubernetes.",
    "console": "A page in the browser: runs and releases at the aggregator; budget, ledger and approvals at a party.",
    "simulate": "Run a whole federation on this machine: every party a process of its own, the code that clusters run.",
    "sample": "Draw more rows from a finished MODEL, without asking any party and without further cost in privacy.",
    "evaluate": "Compare a SYNTHETIC table with the REAL one, and write evaluation.json and report.html.",
}


def assembled(names: Iterable[str] = tuple(MODULES)) -> typer.Typer:
    """The command line with these commands. Each brings its own imports, so a small one starts fast."""
    app = _empty()
    for name in names:
        module = import_module(f"fedsynth.commands.{MODULES[name]}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name.replace("-", "_")))
    app.command("version")(version)
    flow(app)
    return app


def contents() -> typer.Typer:
    """The command line without its commands, only what they are for: to list them, or to say that there is none."""
    app = _empty()
    for name in MODULES:
        app.command(name, help=SUMMARIES.get(name, ""))(_only_listed)
    app.command("version")(version)
    return app


def _only_listed() -> None:
    """A command that was asked for is loaded, see `main`."""


def _empty() -> typer.Typer:
    return typer.Typer(
        name="fedsynth",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        suggest_commands=False,  # click does
        help="Synthetic tables made together by institutions that may not pool their rows, under differential privacy.",
    )


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
        (assembled([asked]) if asked in MODULES else contents())()
    except FedsynthError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {_plain(_ended(str(error)))}")
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if (words := what_to_install(error)) is None:
            raise
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"[bold red]error:[/] {_plain(words)}")
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)


def _ended(text: str) -> str:
    """A sentence within a sentence would end twice."""
    return text[:-1] if text.endswith("..") else text


def _plain(text: str) -> str:
    """Square brackets are markup to rich, and other characters commands to a terminal; here they are only shown."""
    return escaped(text, keep="\n").replace("[", r"\[")
