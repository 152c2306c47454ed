"""The attacks that were ever found, as the shortest series of moves that carries each out."""

from __future__ import annotations

from tests.adversary.consortium import NAMES, plans
from tests.adversary.moves import Approve, Confirm, Hello, Junk, Keys, Lose, Move, Open, Question, Restart, Where

PLACES = {plan.name: place for place, plan in enumerate(plans())}
ALL, WITHOUT_SOUTH, TWO = NAMES, ("east", "north", "west"), ("east", "north")


def greeted(plan: str, parties: tuple[str, ...], run: str = "run-1") -> list[Move]:
    """Keys for an epoch over these parties."""
    to = [Where(party, run, PLACES[plan]) for party in parties]
    return [*map(Hello, to), *(Keys(each, parties) for each in to)]


def asked(plan: str, parties: tuple[str, ...], run: str = "run-1", *, confirmed: bool = False) -> list[Move]:
    """The first ask, to all of them."""
    to = [Where(party, run, PLACES[plan]) for party in parties]
    return [*(Question(each, 0) for each in to), *(Confirm(each, 0) for each in to if confirmed)]


def plan_swap(larger: str, smaller: str, parties: tuple[str, ...]) -> list[Move]:
    """A sum under one plan, then the same answers again under a plan of fewer parties; the rest is a subtraction."""
    everybody = tuple(sorted(party.name for party in plans()[PLACES[larger]].parties))
    junk: list[Move] = [
        Junk(Where(party, f"junk-{number}", PLACES[smaller]), "hello") for party in parties for number in range(5)
    ]
    restarts: list[Move] = [Restart(party) for party in parties]
    first = [*greeted(larger, everybody), *asked(larger, everybody)]
    return [*first, *junk, *restarts, *greeted(smaller, parties), *asked(smaller, parties)]


def loss_invented_after_the_sum(plan: str) -> list[Move]:
    """The sum of all is confirmed; then somebody is said to be lost, and the others confirm a sum without it."""
    first = [*greeted(plan, ALL), *asked(plan, ALL, confirmed=True)]
    return [*first, *greeted(plan, WITHOUT_SOUTH), *asked(plan, WITHOUT_SOUTH, confirmed=True)]


def loss_invented_before_the_sum(plan: str) -> list[Move]:
    """Nobody confirms anything; a colluder who has the CKKS key opens both lists by itself."""
    first = [*greeted(plan, ALL), *asked(plan, ALL)]
    return [*first, *greeted(plan, WITHOUT_SOUTH), *asked(plan, WITHOUT_SOUTH)]


def sessions_lost(plan: str) -> list[Move]:
    """The folder that says which list an answer is bound to is gone; then another list is asked for."""
    lost: list[Move] = [Lose(party, "sessions") for party in ALL]
    first = [*greeted(plan, ALL), *asked(plan, ALL, confirmed=True)]
    return [*first, *lost, *greeted(plan, WITHOUT_SOUTH), *asked(plan, WITHOUT_SOUTH, confirmed=True)]


def answers_lost(plan: str) -> list[Move]:
    """The stored answers are gone, and the same ask comes again in new epochs."""
    again = [*greeted(plan, ALL), *asked(plan, ALL)]
    return [*again, *(Lose(party, "answers") for party in ALL), *again]


def many_runs_on_one_approval() -> list[Move]:
    return [Hello(Where("east", f"run-{number}", PLACES["all-masked"])) for number in range(3)]


def first_message() -> list[Move]:
    return [Hello(Where(party, "run-1", PLACES["all-masked"])) for party in ALL]


def another_ciphertext() -> list[Move]:
    """A victim's ciphertext in another's place."""
    to = Where("east", "run-1", PLACES["all-ckks"])
    return [*greeted("all-ckks", ALL), *asked("all-ckks", ALL), Open(to, 0, leave_out="south")]


def withdrawn_and_approved_again() -> list[Move]:
    """What was charged stays charged, however often the administrator changes its mind."""
    again: list[Move] = [Approve("east", PLACES["all-masked"])]
    return [*greeted("all-masked", ALL), *asked("all-masked", ALL), *again, *greeted("all-masked", ALL, "run-2")]
