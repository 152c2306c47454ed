"""What the administrator decides while the worker holds the ledger: approving a plan, and taking an approval back.

A ledger has one writer. If that is the worker, it is asked over its socket, at the address that it left in the home;
else the commands write themselves. The two kinds of message below cannot come from the aggregator: the action of a
Flower message is an identifier, which has no '/', and the ClientApp carries only the kinds that it lists.
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
from synth.errors import ProtocolError
from synth.messages.fields import text
from synth.messages.wire import Envelope
from synth.plan import Plan, parse_plan

APPROVE, WITHDRAW = "administrator/approve", "administrator/withdraw"
ADMINISTRATION = (APPROVE, WITHDRAW)
ADDRESS = "worker.address"  # a file in the home: where the worker's socket is


def approve(home: Path, plan: Plan) -> None:
    """Set the plan's whole cost aside and remember that it is approved."""
    content = json.dumps(plan.model_dump(mode="json", by_alias=True))
    _decide(home, Request(APPROVE, Envelope({}, {"plan": content})), lambda party: party.approve(plan))


def withdraw(home: Path, digest: str) -> None:
    """Take the approval of a plan back, and with it what is set aside for it."""
    _decide(home, Request(WITHDRAW, Envelope({}, {"digest": digest})), lambda party: party.withdraw(digest))


def administer(party: Party, request: Request) -> Envelope:
    """The worker's end."""
    if request.kind == APPROVE:
        party.approve(parse_plan(json.loads(text(request.envelope, "plan"))))
    elif request.kind == WITHDRAW:
        party.withdraw(text(request.envelope, "digest"))
    else:
        raise ProtocolError("this is nothing that an administrator decides")
    return Envelope()


def _decide(home: Path, request: Request, here: Callable[[Party], object]) -> None:
    try:
        party = Party(home)
    except StoreInUse as in_use:
        try:
            socket = Path((home / ADDRESS).read_text())
        except OSError:
            raise in_use from None
        ask_worker(socket, request, PING_SECONDS)
        return
    with closing(party.ledger):
        here(party)
