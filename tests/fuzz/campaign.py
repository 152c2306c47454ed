"""A campaign of damaged documents: `python -m tests.fuzz.campaign --cases 200000` or `--seconds 600`.

A case fails if anything but our own errors comes out, if it takes more than 5 s of computing, or more than 500 MB
beside what was there before. The generator is seeded by number, so `--only NUMBER` repeats a case. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.targets import REFUSALS, TARGETS

SLOWEST_SECONDS = 5.0  # of computing: a busy machine is no fault
MOST_BYTES = 500 << 20
TOLD_EVERY = 10_000


class Hang(BaseException):
    """The case took too long."""


@dataclass
class Outcome:
    cases: int = 0
    failures: list[str] = field(default_factory=list)
    by_target: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"fuzz_cases": self.cases, "fuzz_failures": len(self.failures)})


def campaign(cases: int | None = None, seconds: float | None = None, first: int = 0) -> Outcome:
    """So many cases, or as many as fit into the time."""
    outcome, deadline = Outcome(), None if seconds is None else time.monotonic() + seconds
    with _limits():
        while (cases is None or outcome.cases < cases) and (deadline is None or time.monotonic() < deadline):
            _carry_out(first + outcome.cases, outcome)
            if outcome.cases % TOLD_EVERY == 0:
                sys.stderr.write(f"{outcome.cases:,} cases, {len(outcome.failures)} failures\n")
    return outcome


def _carry_out(seed: int, outcome: Outcome) -> None:
    chance = random.Random(seed)
    name = chance.choices(list(TARGETS), [target.share for target in TARGETS.values()])[0]
    target = TARGETS[name]
    content = target.make(chance)
    outcome.cases += 1
    outcome.by_target[name] += 1
    began = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, SLOWEST_SECONDS)
        target.use(content)
    except REFUSALS:
        pass
    except (Exception, Hang) as error:  # noqa: BLE001
        place = "".join(traceback.format_exception(error)[-4:])
        outcome.failures.append(f"case {seed}, {name}: {type(error).__name__}\n{place[-1500:]}")
        sys.stderr.write(f"{outcome.failures[-1]}\n")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    outcome.slowest[name] = max(outcome.slowest.get(name, 0.0), time.process_time() - began)


@contextmanager
def _limits() -> Iterator[None]:
    def stop(*_: int | FrameType | None) -> None:
        raise Hang

    for target in TARGETS.values():  # what is loaded on first use is no case's fault
        for seed in range(3):
            try:
                target.use(target.make(random.Random(seed)))
            except Exception:  # noqa: BLE001
                continue
    handler = signal.signal(signal.SIGPROF, stop)
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, before[1]))
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGPROF, handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only", type=int, help="Repeat this case.")
    parser.add_argument("--first", type=int, default=0, help="Begin at this case.")
    given = parser.parse_args()
    if given.only is not None:
        outcome = campaign(1, None, given.only)
    else:
        outcome = campaign(given.cases, given.seconds or (600 if given.cases is None else None), given.first)
    told = ", ".join(
        f"{name} {count:,} (slowest {outcome.slowest[name]:.2f} s)" for name, count in outcome.by_target.items()
    )
    sys.stdout.write(f"{told}\n{outcome.to_json()}\n")
    sys.exit(bool(outcome.failures))


if __name__ == "__main__":
    main()
