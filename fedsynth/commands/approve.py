"""`fedsynth node approve`: the screen that a person reads, and the answer that nobody gives by accident.

The party may live on this machine (`--home`) or in a cluster (`--namespace`). There the pod, which has policy, ledger
and rows, writes the screen; it is read, and answered, at the administrator's own terminal. The digest that is typed is
that of the plan's file on this side, and the pod approves that plan and no other.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fed_node.consent.description import in_groups
from fedsynth.commands.approving import TYPED_CHARACTERS, is_typed, show_screen
from fedsynth.commands.home import HomeOption
from fedsynth.documents import read_plan
from synth.audit_log import WHO
from synth.errors import InputError
from synth.plan import Plan, parse_plan
from synth.printable import escaped

STDIN = Path("-")  # one line of JSON: a cluster's stream has no end that a pod would see
HOME_IN_POD = "/var/lib/fedsynth"


def approve(
    plan: Annotated[Path, typer.Argument(help="The plan, YAML or JSON, as the consortium sent it.")],
    home: Annotated[Path | None, HomeOption] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="The party is in a cluster, in this namespace.")
    ] = None,
    release: Annotated[str, typer.Option(help="With --namespace: name of the Helm release.")] = "fed-node",
    context: Annotated[str | None, typer.Option(help="With --namespace: context of the kubeconfig.")] = None,
    digest: Annotated[
        str | None, typer.Option(help="For programs: the plan's whole digest, in place of the question.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the screen and approve nothing.")] = False,
) -> None:
    """Show in words what a PLAN would release and cost, hold it against policy, budget and your rows, and ask.

    You answer by typing the end of the plan's digest: compare it with the one that the consortium gave you. Approval is
    by digest: a plan that is changed afterwards, by one letter, is another plan and is refused. It is for one run, the
    first that begins, whose whole cost is set aside in the ledger at once, so that the run never ends half-way for lack
    of budget; what it does not use is given back at its end. The worker may be running.

    Exit codes: 0 approved or shown, 1 you said no, 2 unreadable or another digest, 3 the budget is short, 4 the policy
    forbids it, 6 the volume fails or the worker that holds the ledger does not answer, 8 the cluster, or what the pod
    said.
    """
    document = _read(plan)
    if digest is not None and digest.replace(" ", "").lower() != document.digest():
        raise InputError(f"this plan's digest is {document.digest()}, not the one you gave. Nothing was approved.")
    if namespace is not None:
        _approve_in_cluster(document, _Pod(namespace, release, context), asked=digest is None, show=show)
        return
    if home is None:
        raise InputError("whose party? Give --home DIR, or --namespace for one in a cluster.")
    show_screen(Console(highlight=False), document, home)
    if show:
        return
    if digest is None:
        _ask(document)
    from fed_node.consent import administration

    administration.approve(home, document)
    _tell(document)


class _Pod:
    """The worker's container, as a place where this very command runs."""

    def __init__(self, namespace: str, release: str, context: str | None) -> None:
        from fedsynth.cluster.api import Cluster
        from fedsynth.cluster.user import kubernetes_user

        self.cluster = Cluster(namespace, context)
        self.who = kubernetes_user(context)
        self.labels = f"app.kubernetes.io/instance={release},app.kubernetes.io/component=node"

    def approve(self, plan: Plan, *more: str) -> str:
        from fedsynth.cluster.errors import NotInstalled

        pods = self.cluster.pods(self.labels)
        if not pods:
            raise NotInstalled("there is no node of a party here; check --namespace and --release")
        for_the_audit_log = ["/usr/bin/env", f"{WHO}={self.who}"]
        command = [*for_the_audit_log, "fedsynth", "node", "approve", str(STDIN), "--home", HOME_IN_POD, *more]
        line = json.dumps(plan.model_dump(mode="json", by_alias=True)) + "\n"
        return self.cluster.run_in(pods[0].metadata.name, "worker", command, typed=line)


def _approve_in_cluster(plan: Plan, pod: _Pod, *, asked: bool, show: bool) -> None:
    """Shown and answered here; a program, which answered beforehand, has the pod do both at once."""
    if show or asked:
        typer.echo(escaped(pod.approve(plan, "--show"), keep="\n"))
    if show:
        return
    if asked:
        _ask(plan)
    approved = pod.approve(plan, "--digest", plan.digest())
    if asked:
        _tell(plan)
    else:
        typer.echo(escaped(approved, keep="\n"))


def _read(plan: Path) -> Plan:
    if plan != STDIN:
        return read_plan(plan)
    try:
        return parse_plan(json.loads(sys.stdin.readline()))
    except ValueError:
        raise InputError("what came on standard input is no plan on one line of JSON.") from None


def _ask(plan: Plan) -> None:
    """Whoever types the end of the digest has looked at it; a pressed key too many approves nothing."""
    typer.echo(f"\nThe plan's digest:\n  {in_groups(plan.digest())}")
    typed = typer.prompt(f"To approve, type its last {TYPED_CHARACTERS} characters", default="", show_default=False)
    if not is_typed(plan, typed):
        typer.echo("Not approved.")
        raise typer.Exit(1)


def _tell(plan: Plan) -> None:
    typer.echo(f"Approved, and its cost set aside:\n  {in_groups(plan.digest())}")
