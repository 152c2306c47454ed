"""`fedsynth node`: everything a party's administrator does. Nothing here talks to the network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crypto.keys import Identity
from fed_node.ledger.ledger import LedgerView
from fed_node.settings import LEDGER, LOG, PartySettings, budget_of, policy_at
from fedsynth.commands.approve import approve
from fedsynth.commands.approving import digest_to_withdraw
from fedsynth.commands.audit_log import node_audit_log
from fedsynth.commands.checking import reports_on, show_report, source_to_check
from fedsynth.commands.home import Home, HomeOption
from fedsynth.commands.ledger_drill import show_against, show_restored
from fedsynth.commands.ledger_tables import ledger_report
from fedsynth.commands.node_backup import backup, restore
from fedsynth.documents import write_yaml
from fedsynth.party_home import identity_of, make_home, party_name
from fedsynth.provision.federation import Member
from fedsynth.provision.fingerprints import bare, in_groups
from fedsynth.provision.kits import party_secret
from fedsynth.provision.party_keys import own_keys
from synth.errors import InputError
from synth.messages.archive import write_durably

app = typer.Typer(
    no_args_is_help=True,
    help="For the administrator of a party: check data, approve plans, run the worker, read the ledger.",
)

app.command("audit-log")(node_audit_log)
app.command()(backup)
app.command()(restore)
SOCKET = "worker.sock"


@app.command()
def init(
    home: Home,
    name: Annotated[str, typer.Option(help="This party's name in plans: short, lower case.")],
    data: Annotated[Path, typer.Option(help="The table: CSV, CSV.gz or Parquet. For a database edit party.yaml.")],
) -> None:
    """Make a party's home: settings and policy with every key explained, and an identity key.

    The policy starts cautious (ε 1 a run, 3 in all); edit it before the first plan is approved.

    Exit codes: 0 made, 2 the home is in use or the name cannot be used.
    """
    identity = make_home(home, name, data)
    console = Console()
    console.print(f"Made {home}: party.yaml, policy.yaml, identity.key. Next:")
    console.print(f"  1. read and edit {home / 'policy.yaml'}")
    console.print("  2. give the others your public key, and compare fingerprints by telephone:")
    _show(console, identity)
    console.print(f"     (for a federation on Kubernetes: fedsynth node keygen --home {home})")
    console.print(f"  3. fedsynth node check-data --home {home} --schema SCHEMA")


@app.command()
def keygen(
    home: Home,
    name: Annotated[
        str | None, typer.Option(help="This party's name in plans. Left out: the one in the home's party.yaml.")
    ] = None,
) -> None:
    """Make this party's keys, readable by their owner alone, and join.yaml, which is for the operator.

    identity.key signs, node.key connects; secrets.yaml is both as a Kubernetes Secret, for `fedsynth install --keys`.
    None of the three leaves this party. join.yaml holds the public halves: send it, and read the fingerprints to the
    operator and to the other parties by telephone. An existing key is never replaced: others may have pinned it.

    Exit codes: 0 made or already there, 2 a key that is there cannot be used, or nobody said a name.
    """
    name = party_name(name or PartySettings.load(home).name)
    keys = own_keys(home)
    join = Member(name=name, node_key=keys.public.node_key, identity=keys.public.identity)
    write_durably(home / "secrets.yaml", party_secret(keys).encode())
    write_durably(home / "join.yaml", write_yaml(join.model_dump(mode="json")).encode())
    identity = in_groups(bare(keys.public.fingerprints()["identity"]))
    typer.echo(f"Send {home / 'join.yaml'} to the operator. Fingerprints, for the telephone:")
    typer.echo(f"{name}:\n    {identity}\n{name}, its node:\n    {keys.public.fingerprints()['node key']}")


@app.command("check-data")
def check_data_command(
    home: Annotated[Path | None, HomeOption] = None,
    data: Annotated[Path | None, typer.Option(help="A table to check instead of the home's own.")] = None,
    schema: Annotated[
        Path | None, typer.Option(help="A schema, or a plan with one. Left out: the schemas of all approved plans.")
    ] = None,
) -> None:
    """Check that the rows fit the schema; say what does not, by column and row number, and what becomes of it.

    In a run no row is ever refused, since that would tell the others about it: the schema's rules make something of
    every cell (the nearest bound, 'other', an empty cell) or leave its row out. Here is where you see that and decide.
    The report stays on this machine. Nothing is charged, and no cell is printed.

    Exit codes: 0 everything fits, or rules take care of what does not; 2 the table cannot be used or read at all.
    """
    console, source = Console(), source_to_check(home, data)
    reports = reports_on(source, home, schema)
    for report in reports:
        show_report(console, report)
    if not all(report.usable for report in reports):
        raise typer.Exit(2)


app.command()(approve)


@app.command()
def withdraw(
    plan: Annotated[str, typer.Argument(help="The plan's file, or its digest as `fedsynth node ledger` lists it.")],
    home: Home,
) -> None:
    """Take the approval of a PLAN back: what is set aside for it is given back, and nothing more is answered.

    A run of it that is under way stops at its next question; what it was charged so far stays spent. Approved again,
    such a run can be taken up where it stopped. A withdrawn plan is remembered: no policy approves it again by itself.

    Exit codes: 0 withdrawn, 2 unreadable, 6 the volume fails or the worker that holds the ledger does not answer.
    """
    from fed_node.consent import administration

    digest = digest_to_withdraw(plan)
    administration.withdraw(home, digest)
    typer.echo(f"Withdrawn: {digest}")


@app.command()
def ledger(
    home: Home,
    verify: Annotated[bool, typer.Option("--verify", help="Only check the chain of entries on the disk.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for auditors and other programs.")] = False,
    against: Annotated[
        Path | None, typer.Option(help="A certificate: does the ledger hold what this party signed for in it?")
    ] = None,
    restored: Annotated[
        bool, typer.Option("--restored", help="After an older copy was put back: charge what it lacks, and open.")
    ] = False,
    certificate: Annotated[
        list[Path] | None, typer.Option(help="With --restored: of a run since the copy was made. May be repeated.")
    ] = None,
    plan: Annotated[
        list[Path] | None, typer.Option(help="With --restored: of a run without a certificate; charged whole.")
    ] = None,
    write_off: Annotated[
        bool, typer.Option("--write-off", help="With --restored: give the dataset up, as nobody knows what was spent.")
    ] = False,
) -> None:
    """Show the budget, what was spent, what open runs have reserved, and every entry.

    It may be read while the worker runs. The head is the hash of the last entry: certificates quote it, so a ledger
    that was cut short can be told from a whole one (--against). A party whose ledger is older than what others or its
    own volume remember answers nothing until --restored has charged the difference; stop the worker for that.

    Exit codes: 0 it holds, 2 there is none, or --restored needs more, 6 it was damaged or changed, 7 the certificate
    says more than the ledger.
    """
    if restored:
        show_restored(home, certificate or [], plan or [], write_off)
        return
    view = LedgerView(home / LEDGER)
    try:
        if against is not None:
            show_against(view, home, against)
        elif verify:
            typer.echo(f"{view.verify()} entries hold; head {view.head}")
        elif as_json:
            typer.echo(view.to_json())
        else:
            Console().print(ledger_report(view))
    finally:
        view.close()


@app.command()
def serve(
    home: Home,
    socket: Annotated[
        Path | None, typer.Option(help="Unix socket for the ClientApp. Default: worker.sock in the home.")
    ] = None,
    administration: Annotated[
        Path | None,
        typer.Option(help="Unix socket for `approve` and `withdraw`. Default: administration.sock in the home."),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Also serve the budget to your monitoring: GET /metrics.")
    ] = None,
) -> None:
    """Run the worker that holds rows, models, keys and ledger, until it is told to end (SIGTERM, Ctrl-C).

    It may be killed at any moment: what it answered is stored, and nothing is charged twice. Its log is party.log in
    the home, one JSON object a line; SOCKET with the ending .ready exists while it takes messages. Unless the rows are
    in a database it gives up the network first: its line "ready" in the log says whether that worked.

    Exit codes: 0 told to end, 2 settings, 6 the volume fails or another worker holds the ledger.
    """
    from fed_node.process import logs
    from fed_node.process.prometheus import BudgetMetrics
    from fed_node.process.worker import serve as serve_party
    from synth.metrics_page import serve_metrics

    settings = PartySettings.load(home)
    if settings.seed is not None:
        raise InputError("party.yaml fixes a seed, and known noise protects nobody; seeds are for `fedsynth simulate`.")
    if budget_of(settings, policy_at(home)) is None:
        raise InputError("neither policy.yaml nor party.yaml states a budget; without one nothing is answered.")
    identity_of(home)
    _require_device()
    logs.log_worker(home / LOG, settings.debug_values)
    if metrics_port is not None:
        serve_metrics(BudgetMetrics(settings.name, home / LEDGER).text, metrics_port)
    serve_party(home, socket or home / SOCKET, administration)


def _require_device() -> None:
    """A GPU that was asked for and is not there is said at the start, not in the middle of a run."""
    if os.environ.get("FEDSYNTH_DEVICE", "cpu") not in ("", "cpu"):
        from synth.neural.device import chosen  # loads torch

        chosen()


def _show(console: Console, identity: Identity) -> None:
    console.print(f"     public key   {identity.to_text()}", soft_wrap=True, highlight=False)
    console.print(f"     fingerprint  {identity.fingerprint()}", soft_wrap=True, highlight=False)
