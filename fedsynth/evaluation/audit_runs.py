"""The runs of an audit: what each consists of, where its result lies, and how they share the cores.

    <out>/settings.json             what is audited, and how; another audit does not fit into the folder
    <out>/trials/claim/0007.npz     one run of the plan as it is
    <out>/trials/epsilon-10/…       positive controls: the same with a larger budget,
    <out>/trials/none/…             and without any noise
    <out>/audit.json                the result

A result counts once its file is there, so an audit that was stopped goes on where it was. Every run has its own coins
and its own noise: shared ones would make the runs with and without a row the same run twice.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fed_node.source import read_records, source_of
from synth.audit.canaries import random_rows
from synth.audit.game import Trial, likeness, synthesized
from synth.encoding.records import Records
from synth.errors import InputError
from synth.messages import archive
from synth.plan import Plan, parse_plan
from synth.privacy.noise import NoiseSource, seeded_source

CLAIM, NONE = "claim", "none"


@dataclass(frozen=True)
class Settings:
    """Everything a run of the audit depends on."""

    plan: dict[str, Any]
    data: dict[str, str]  # party → file; one file for all under ""
    rows: dict[str, int]  # party → real rows in every run
    canaries: int
    trials: int
    control_trials: int
    seed: int
    seeded_noise: bool

    def runs_of(self, rung: str) -> int:
        """As many of the larger ε as of the plan, so that they compare; without noise an attack needs few."""
        return self.control_trials if rung == NONE else self.trials

    @property
    def rungs(self) -> list[str]:
        """What is run, strongest control first: without it the rest would say nothing."""
        claimed = self.plan["privacy"]["epsilon"]
        larger = min(10 * claimed, 100.0)
        return [NONE, *([f"epsilon-{larger:g}"] if larger > claimed else []), CLAIM]

    def epsilon_of(self, rung: str) -> float | None:
        if rung == NONE:
            return None
        return float(self.plan["privacy"]["epsilon"] if rung == CLAIM else rung.removeprefix("epsilon-"))


@dataclass(frozen=True)
class Folder:
    out: Path

    @property
    def settings(self) -> Path:
        return self.out / "settings.json"

    @property
    def result(self) -> Path:
        return self.out / "audit.json"

    def trial(self, rung: str, number: int) -> Path:
        return self.out / "trials" / rung / f"{number:04d}.npz"

    def missing(self, settings: Settings) -> list[tuple[str, int]]:
        wanted = [(rung, number) for rung in settings.rungs for number in range(settings.runs_of(rung))]
        return [each for each in wanted if not self.trial(*each).exists()]

    def trials(self, settings: Settings, rung: str) -> list[Trial]:
        found = []
        for number in range(settings.runs_of(rung)):
            path = self.trial(rung, number)
            try:
                arrays, _ = archive.unpack(path.read_bytes(), str(path))
            except InputError:
                raise InputError(f"{path} is damaged; delete it, and the same command makes it again") from None
            found.append(Trial(arrays["likeness"].astype(np.float64), arrays["joined"]))
        return found


def agreed(folder: Folder, wanted: Settings, seed_given: bool) -> Settings:
    """The folder's own settings if they are the wanted ones, so that runs are added to it; written if it is new."""
    if folder.settings.exists():
        found = _found(folder)
        same = asdict(found) | ({} if seed_given else {"seed": wanted.seed})
        if same != asdict(wanted):
            raise InputError(
                f"{folder.out} holds an audit of another plan, other data or other numbers; repeat its command to "
                "continue it, or choose another --out"
            )
        return found
    archive.write_durably(folder.settings, json.dumps(asdict(wanted), indent=2).encode())
    return wanted


def _found(folder: Folder) -> Settings:
    try:
        return Settings(**json.loads(folder.settings.read_bytes()))
    except (ValueError, TypeError):
        raise InputError(
            f"{folder.settings} is damaged, so nobody can tell what {folder.out} holds an audit of; delete the folder "
            "to start anew, or choose another --out"
        ) from None


def fresh_seed() -> int:
    return secrets.randbits(31)


def rows_to_use(plan: Plan, data: dict[str, str], wanted: int) -> dict[str, int]:
    """Rows for each party, `wanted` in all or as many as there are. Reads every file, so that one that cannot be used
    is found before anything is written."""
    names = [party.name for party in plan.parties]
    at_hand = {name: len(_read(file, plan)) for name, file in data.items()}
    if "" in at_hand:
        at_hand = dict.fromkeys(names, at_hand[""] // len(names))
    used = {name: min(wanted // len(names), at_hand[name]) for name in names}
    if not all(used.values()):
        raise InputError(
            f"--rows {wanted} would leave some of the plan's {len(names)} parties without a row; give more --rows, or "
            "files that hold more"
        )
    return used


def carry_out(settings: Settings, folder: Folder, jobs: int, done: Callable[[str], None]) -> None:
    """Make every result that is missing, `jobs` at a time; `done` is told the rung of each."""
    context = multiprocessing.get_context("spawn")  # torch and threads do not survive a fork
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start)
    try:
        text, out = json.dumps(asdict(settings)), str(folder.out)
        waiting = {pool.submit(run_trial, text, out, *each): each[0] for each in folder.missing(settings)}
        for future in as_completed(waiting):
            future.result()
            done(waiting[future])
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_trial(settings_json: str, out: str, rung: str, number: int) -> None:
    """One run: coins, rows, a synthetic table, and what it shows about every canary."""
    world = world_of(settings_json)
    settings, plan = world.settings, world.plan(rung)
    rng = np.random.default_rng([settings.seed, number, settings.rungs.index(rung)])
    joined = rng.random(settings.canaries) < 0.5
    rows = dict(world.rows)
    victim = plan.parties[0].name
    rows[victim] = Records.concat([rows[victim], world.canaries.take(np.flatnonzero(joined))])

    def noise_of(party: str, sequence: int) -> NoiseSource:
        return seeded_source(settings.seed, rung, number, party, sequence) if settings.seeded_noise else NoiseSource()

    synthetic = synthesized(plan, rows, noise_of, int(rng.integers(2**31)))
    found = likeness(plan, synthetic, world.canaries).astype(np.float32)
    archive.write_durably(
        Folder(Path(out)).trial(rung, number), archive.pack({"likeness": found, "joined": joined}, {})
    )


@dataclass(frozen=True, eq=False)
class World:
    """What all runs of an audit have in common."""

    settings: Settings
    rows: dict[str, Records]  # by party, canaries not among them
    canaries: Records

    def plan(self, rung: str) -> Plan:
        """The audited plan for as many rows as there are here, at the rung's ε."""
        content, epsilon = dict(self.settings.plan), self.settings.epsilon_of(rung)
        victim, half = next(iter(self.rows)), self.settings.canaries // 2
        content["parties"] = [
            {"name": name, "rows": max(2, len(part) + (half if name == victim else 0))}
            for name, part in self.rows.items()
        ]
        content |= {"output": {}, "assessment": None, "gate": None}
        content["privacy"] = content["privacy"] | {"epsilon": epsilon} if epsilon else "none"
        return parse_plan(content)


@lru_cache(maxsize=1)
def world_of(settings_json: str) -> World:
    settings = Settings(**json.loads(settings_json))
    plan, rng = parse_plan(settings.plan), np.random.default_rng(settings.seed)
    names = [party.name for party in plan.parties]
    rows = dict(_sampled(settings, plan, names, rng))
    return World(settings, rows, random_rows(plan.table, settings.canaries, rng, plan.constraints))


def _sampled(
    settings: Settings, plan: Plan, names: list[str], rng: np.random.Generator
) -> Iterator[tuple[str, Records]]:
    """The same rows for every run: of each party's file, or of one file for all."""
    if "" in settings.data:
        whole = _read(settings.data[""], plan)
        chosen = rng.permutation(len(whole))[: sum(settings.rows.values())]
        for number, name in enumerate(names):
            yield name, whole.take(chosen[number :: len(names)])
        return
    for name in names:
        part = _read(settings.data[name], plan)
        yield name, part.take(rng.permutation(len(part))[: settings.rows[name]])


def _read(file: str, plan: Plan) -> Records:
    return read_records(source_of(Path(file)), plan.table)


def _start() -> None:
    """One thread a run, so that runs share the cores fairly; Ctrl-C is for the command to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
