"""`fedsynth audit`: try to break a plan's promise, and say how hard was tried."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from fedsynth.documents import read_plan_content
from synth.errors import FedsynthError, InputError
from synth.messages.archive import write_durably
from synth.plan import Plan, Privacy, parse_plan

if TYPE_CHECKING:
    from fedsynth.evaluation.audit_runs import Folder, Settings
    from synth.audit.game import Outcome

CLAIM, NONE = "claim", "none"


class ClaimRefuted(FedsynthError):
    """The attack proved more than the plan promises."""

    code = "claim-refuted"
    exit_code = 11


class NoPower(FedsynthError):
    """The attack failed where nothing protects: its failure elsewhere means nothing."""

    code = "audit-without-power"
    exit_code = 12


def audit(
    plan: Annotated[Path, typer.Argument(help="The plan whose promise is tried.")],
    data: Annotated[
        list[str],
        typer.Option(help="One FILE of real rows for all parties together, or NAME=FILE for each party."),
    ],
    rows: Annotated[
        int, typer.Option(min=10, help="Real rows in every run, all parties together, or as many as there are.")
    ] = 900,
    canaries: Annotated[int, typer.Option(min=10, help="Unusual rows that are planted or not, by a coin each.")] = 100,
    trials: Annotated[
        int, typer.Option(min=4, help="Runs of the plan, and of ten times its ε; half are shadows.")
    ] = 60,
    control_trials: Annotated[int, typer.Option(min=4, help="Runs without noise, which take longest.")] = 8,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at the same time. Default: one a core.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results; an audit in it goes on.")] = Path(
        "runs/audit"
    ),
    seed: Annotated[int | None, typer.Option(min=0, help="Make the audit repeatable, noise and all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of a summary.")] = False,
) -> None:
    """Attack what PLAN would publish: run it many times, with and without planted rows, and guess which were there.

    The attacker sees synthetic tables only and learns on shadow runs of its own. Positive controls are attacked in the
    same way: without noise, and with ten times the ε. An attack that fails there has no power, and its failure against
    the plan would say nothing. No run leaves this machine or touches a ledger; the planted rows are invented.

    What a result means: "would have detected ε ≥ X" is about this attack and so many runs. It never shows that ε is
    small; that is what noise, accounting and the white-box audits of the test suite are for.

    Stopped with Ctrl-C, the same command continues. `marginals` takes minutes, `ctgan` longer: see --trials.

    Exit codes: 0 nothing was found by an attack that had the power to, 2 bad input, 11 the attack proved more than the
    plan claims, 12 the attack had no power.

    Example:

      fedsynth audit examples/adult.yaml --data examples/data/adult-train.csv.gz
    """
    from fedsynth.evaluation import audit_runs as runs
    from synth.audit.game import attacked

    content = read_plan_content(plan)
    parsed = parse_plan(content)
    claimed = _claim(parsed, trials, control_trials, canaries)
    files = _files(data, parsed)
    used = runs.rows_to_use(parsed, files, rows)
    _say_if_fewer(used, rows)
    wanted = runs.Settings(
        plan=json.loads(json.dumps(content, default=str)),
        data=files,
        rows=used,
        canaries=canaries,
        trials=trials,
        control_trials=control_trials,
        seed=runs.fresh_seed() if seed is None else seed,
        seeded_noise=seed is not None,
    )
    folder = runs.Folder(out)
    settings = runs.agreed(folder, wanted, seed is not None)
    _carry_out(settings, folder, jobs or os.cpu_count() or 1)
    outcomes = {rung: attacked(folder.trials(settings, rung), claimed.delta, settings.seed) for rung in settings.rungs}
    report = _report(claimed.epsilon, claimed.delta, outcomes, {rung: settings.epsilon_of(rung) for rung in outcomes})
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    write_durably(folder.result, text.encode())
    if as_json:
        typer.echo(text, nl=False)
    else:
        Console().print(_table(report))
        Console().print(report["verdict"], markup=False, highlight=False)
    _conclude(report)


def _say_if_fewer(used: dict[str, int], asked: int) -> None:
    """A remainder that the parties could not share evenly is not worth a word."""
    total = sum(used.values())
    if total < asked - asked % len(used):
        Console(stderr=True).print(f"--data holds fewer than --rows {asked} to share out: every run uses {total} rows.")


def _carry_out(settings: Settings, folder: Folder, jobs: int) -> None:
    """Whatever is still to be run, with progress on standard error."""
    from fedsynth.evaluation.audit_runs import carry_out

    console, missing = Console(stderr=True), [rung for rung, _ in folder.missing(settings)]
    totals = {rung: settings.runs_of(rung) for rung in settings.rungs}
    try:
        with _bars(console, totals) as bars:
            for rung, total in totals.items():
                bars(rung, total - missing.count(rung))
            carry_out(settings, folder, jobs, lambda rung: bars(rung, 1))
    except KeyboardInterrupt:
        console.print("Stopped. What was run is kept; the same command continues.")
        raise typer.Exit(130) from None


def _claim(plan: Plan, trials: int, control_trials: int, canaries: int) -> Privacy:
    from synth.audit.game import provable

    if plan.privacy == "none" or plan.profile == "faithful":
        raise InputError(
            "this plan promises no ε (privacy 'none' or profile 'faithful'), so there is nothing to refute"
        )
    for option, count in (("--trials", trials), ("--control-trials", control_trials)):
        most = provable(count, canaries, plan.privacy.delta)
        if most <= plan.privacy.epsilon:
            raise InputError(
                f"{option} {count} with --canaries {canaries} could prove at most ε = {most:.2f}, and the plan claims "
                f"{plan.privacy.epsilon:g}: such an audit could not fail. Raise {option} or --canaries"
            )
    return plan.privacy


def _files(data: list[str], plan: Plan) -> dict[str, str]:
    names = {party.name for party in plan.parties}
    if len(data) == 1 and Path(data[0]).is_file():
        return {"": str(Path(data[0]).resolve())}
    pairs = dict(text.partition("=")[::2] for text in data)
    if set(pairs) != names:
        raise InputError(
            "--data must be one file that exists, or NAME=FILE for each of the plan's parties "
            f"({', '.join(sorted(names))})"
        )
    for name, file in pairs.items():
        if not Path(file).is_file():
            raise InputError(f"the data file of party '{name}' is missing: {file}")
    return {name: str(Path(file).resolve()) for name, file in pairs.items()}


def _report(
    claimed: float, delta: float, outcomes: dict[str, Outcome], epsilons: dict[str, float | None]
) -> dict[str, Any]:
    """The result as plain values. `detects` is the least control ε at which the attack refuted the claim; None: ∞."""
    proofs = {rung: outcome.epsilon > claimed for rung, outcome in outcomes.items()}
    finite = [epsilons[rung] for rung, proof in proofs.items() if proof and rung not in (NONE, CLAIM)]
    detects = min((each for each in finite if each is not None), default=None)
    report = {
        "claimed": {"epsilon": claimed, "delta": delta},
        "refuted": proofs[CLAIM],
        "has_power": proofs[NONE] or detects is not None,
        "would_have_detected_epsilon": detects,
        "confidence": 0.95,
        "attacks": {rung: {"plan_epsilon": epsilons[rung], **asdict(each)} for rung, each in outcomes.items()},
    }
    return {"verdict": _verdict(report, claimed), **report}


def _verdict(report: dict[str, Any], claimed: float) -> str:
    proven, detects = report["attacks"][CLAIM]["epsilon"], report["would_have_detected_epsilon"]
    if report["refuted"]:
        return f"REFUTED: the plan claims ε = {claimed:g}, and the attack proves ε ≥ {proven:.2f} with 95 % confidence."
    if not report["has_power"]:
        return "NO POWER: the attack failed even where nothing protects, so that it failed here says nothing."
    limit = "a release without noise (ε = ∞), and no finite ε that was tried" if detects is None else f"ε ≥ {detects:g}"
    return f"Nothing found. The audit would have detected {limit}; it does not show that ε is below that."


def _conclude(report: dict[str, Any]) -> None:
    if report["refuted"]:
        raise ClaimRefuted(f"{report['verdict']} Publish nothing made with this plan and this code; report a bug.")
    if not report["has_power"]:
        raise NoPower("the audit had no power. Give it fewer --rows, more --trials and --control-trials.")


def _table(report: dict[str, Any]) -> Table:
    claimed = report["claimed"]
    table = Table(title=f"Claimed: ε = {claimed['epsilon']:g} at δ = {claimed['delta']:g}", title_justify="left")
    for heading in ("attacked", "guesses", "right", "proves (95 %)", "could prove", "TPR at 1 % FPR (95 %)"):
        table.add_column(heading, overflow="fold")
    for rung, found in report["attacks"].items():
        epsilon = found["plan_epsilon"]
        name = "the plan" if rung == CLAIM else "control: " + ("no noise" if epsilon is None else f"ε = {epsilon:g}")
        table.add_row(
            name,
            f"{found['guesses']} of {found['canaries']}",
            f"{found['right'] / found['guesses']:.0%}",
            f"ε ≥ {found['epsilon']:.2f}" if found["epsilon"] > 0 else "nothing",
            f"ε ≥ {found['provable']:.2f}",
            f"{found['true_positive_rate']:.1%} ({found['low']:.1%} – {found['high']:.1%})",
        )
    return table


@contextmanager
def _bars(console: Console, totals: dict[str, int]) -> Iterator[Callable[[str, int], None]]:
    """A bar for each series of runs on a terminal, a line each quarter elsewhere."""
    columns = (TextColumn("{task.description:<14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    counts = dict.fromkeys(totals, 0)
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        tasks = {rung: progress.add_task(rung, total=total) for rung, total in totals.items()}

        def advance(rung: str, runs: int) -> None:
            before, counts[rung] = counts[rung], counts[rung] + runs
            progress.update(tasks[rung], completed=counts[rung])
            if not console.is_terminal and 4 * before // totals[rung] < 4 * counts[rung] // totals[rung]:
                console.print(f"{rung}: {counts[rung]} of {totals[rung]} runs")

        yield advance
