"""What the administrator decides while the worker holds the ledger: approving a plan, and taking an approval back.

A ledger has one writer. If that is the worker, it is asked over its second socket, at the address that it left in the
home; else the commands write themselves. In a cluster only the worker's own container mounts that socket, and the
console's if there is one: whoever takes over the containers that decode the aggregator's bytes can approve
nothing. Nor can the aggregator: the action of a Flower message is an identifier, which has no '/', and the ClientApp
carries only the kinds that it lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from fed_node.errors import StoreInUse
from fed_node.party import Party
from fed_node.process.frames import Request
from fed_node.process.worker_client import PING_SECONDS, ask_worker
from synth.audit_log import caller
from synth.errors import InputError, ProtocolError
from synth.messages.fields import text
from synth.messages.wire import Envelope
from synth.plan import Plan, parse_plan

APPROVE, WITHDRAW = "administrator/approve", "administrator/withdraw"
ADMINISTRATION = (APPROVE, WITHDRAW)
ADDRESS = "worker.address"  # a file in the home: where the worker's socket for its administrator is


def approve(home: Path, plan: Plan) -> None:
    """Set the plan's whole cost aside and remember that it is approved."""
    _decide(home, _approval(plan), lambda party: party.approve(plan))


def ask_to_approve(home: Path, plan: Plan) -> None:
    """The same by the running worker alone: for whoever must not open the ledger, such as a page in a browser."""
    ask_worker(_address(home), _approval(plan), PING_SECONDS)


def withdraw(home: Path, digest: str) -> None:
    """Take the approval of a plan back, and with it what is set aside for it."""
    request = Request(WITHDRAW, Envelope({}, {"digest": digest, "who": caller()}))
    _decide(home, request, lambda party: party.withdraw(digest))


def administer(party: Party, request: Request) -> Envelope:
    """The worker's end."""
    if request.kind == APPROVE:
        party.approve(parse_plan(json.loads(text(request.envelope, "plan"))), text(request.envelope, "who"))
    elif request.kind == WITHDRAW:
        party.withdraw(text(request.envelope, "digest"), text(request.envelope, "who"))
    else:
        raise ProtocolError("this is nothing that an administrator decides")
    return Envelope()


def _approval(plan: Plan) -> Request:
    content = json.dumps(plan.model_dump(mode="json", by_alias=True))
    return Request(APPROVE, Envelope({}, {"plan": content, "who": caller()}))


def _address(home: Path) -> Path:
    """Where the worker's socket for its administrator is."""
    try:
        return Path((home / ADDRESS).read_text())
    except OSError:
        raise InputError(f"no worker left its address in {home}; start it with `fedsynth node serve`.") from None


def _decide(home: Path, request: Request, here: Callable[[Party], object]) -> None:
    try:
        party = Party(home)
    except StoreInUse as in_use:
        try:
            socket = _address(home)
        except InputError:
            raise in_use from None
        ask_worker(socket, request, PING_SECONDS)
        return
    with closing(party.ledger):
        here(party)
