"""Who is in the register and not in the plan has no part in a run, and nobody speaks in another one's name.

The grid is a function; names and identifiers of nodes are those that the SuperLink's register would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from flwr.app import ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from aggregator.sums.exchange import REFUSED, GridExchange
from synth.errors import MissingParties, ProtocolError, Refusal
from synth.messages import wire
from synth.messages.wire import Envelope

Behaviour = Callable[[Message], Message]
HELLO = Envelope({}, {"run": "r", "epoch": 0})


def answers_as(name: str) -> Behaviour:
    return lambda message: Message(wire.to_records(Envelope({}, {"party": name})), reply_to=message)


def refuses_as(name: str, code: str = "plan-not-approved") -> Behaviour:
    return lambda message: Message(Error(code=REFUSED, reason=f"{name}/{code}"), reply_to=message)


def sends(content: RecordDict) -> Behaviour:
    return lambda message: Message(content, reply_to=message)


@dataclass
class Register:
    """A grid of nodes by registered name; `greeted` are those that were sent anything."""

    nodes: dict[str, Behaviour]
    greeted: list[str] = field(default_factory=list)
    waiting: dict[str, Message] = field(default_factory=dict)

    def __post_init__(self) -> None:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0

    def get_nodes(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(node_id=100 + place, name=name) for place, name in enumerate(self.nodes)]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        names = []
        for message in messages:
            name = list(self.nodes)[message.metadata.dst_node_id - 100]
            self.greeted.append(name)
            names.append(f"message-{len(self.greeted)}")
            message.metadata.__dict__["_message_id"] = names[-1]
            self.waiting[names[-1]] = self.nodes[name](message)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self.waiting[name] for name in message_ids]


def met(nodes: dict[str, Behaviour], minimum: int = 2) -> tuple[dict[str, Envelope], Register]:
    register = Register(nodes)
    exchange = GridExchange(register, timeout_seconds=0.2)
    return exchange.discover(HELLO, ["north", "south"], minimum), register


BOTH = {"north": answers_as("north"), "south": answers_as("south")}


@pytest.mark.parametrize(
    "stranger",
    [refuses_as("stranger"), refuses_as("north"), answers_as("north"), answers_as("stranger")],
    ids=["refuses", "refuses in a name of the plan", "takes a name of the plan", "answers"],
)
def test_a_registered_party_outside_the_plan_is_ignored(stranger: Behaviour) -> None:
    """Its refusal ended every run of everybody else."""
    replies, register = met({"stranger": stranger} | BOTH)
    assert set(replies) == {"north", "south"}
    assert register.greeted == ["north", "south"]


def test_a_stranger_cannot_stand_in_for_a_party_that_is_away() -> None:
    with pytest.raises(MissingParties, match="south"):
        met({"north": answers_as("north"), "stranger": answers_as("south")})


def test_a_refusal_is_believed_of_the_node_it_came_from_and_of_nobody_else() -> None:
    with pytest.raises(Refusal) as refusal:
        met({"north": answers_as("north"), "south": refuses_as("north")})
    assert (refusal.value.party, refusal.value.code) == ("south", "plan-not-approved")


def test_a_refusal_of_a_later_message_is_its_senders() -> None:
    exchange = GridExchange(Register({"north": refuses_as("south", "budget-exceeded")}), timeout_seconds=0.2)
    exchange.node_of = {"north": 100}
    with pytest.raises(Refusal, match="north"):
        exchange("ask", {"north": HELLO})


def test_a_code_that_no_party_knows_is_not_repeated() -> None:
    with pytest.raises(Refusal) as refusal:
        met({"north": answers_as("north"), "south": refuses_as("south", "<b>your password</b>")})
    assert refusal.value.code == "unknown"


def test_a_member_that_answers_in_another_name_is_named() -> None:
    with pytest.raises(ProtocolError, match="registered as 'south'"):
        met({"north": answers_as("north"), "south": answers_as("north")})


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"000000": ArrayRecord()}),
        RecordDict({"000000": ConfigRecord({"block": "text"})}),
        RecordDict({"000000": ConfigRecord({"block": b"\x80\x04N."})}),
        RecordDict({"000000": ConfigRecord({"block": bytes(8), "layout/a": "|O8 [1]"})}),
        RecordDict({"000000": ConfigRecord({"block": b"", "layout/a": "<f8 [999999999999, 999999999999]"})}),
    ],
)
def test_a_malformed_message_is_its_partys_fault_and_said_so(content: RecordDict) -> None:
    """Else the run would stay "running"."""
    with pytest.raises(ProtocolError, match="party 'south' sent what cannot be read"):
        met({"north": answers_as("north"), "south": sends(content)})
