"""The resident worker and the thin ClientApp in front of it, as separate processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fed_node import party as party_module
from fed_node.errors import StoreInUse
from fed_node.guard import REFUSED, Refused
from fed_node.party import Party
from fed_node.process.client_app import app
from fed_node.process.frames import Hangup, Request, receive_reply, receive_request, send_reply, send_request
from fed_node.process.worker import Worker, ready_file, serve
from fed_node.process.worker_client import WorkerAway, WorkerRefused, ask_worker, ping
from synth import VERSION
from synth.errors import InputError, ProtocolError
from synth.interface import Scalar
from synth.messages import wire
from synth.messages.wire import Envelope
from synth.plan import Plan
from tests.fed_node.two_parties import RUN, CheapTraining, World, make_homes, run_all, small_plan
from tests.small import plan_of


@pytest.fixture(autouse=True)
def cheap_training() -> Iterator[None]:
    with mock.patch("synth.programme.build", CheapTraining):
        yield


@pytest.fixture
def plan() -> Plan:
    return small_plan(rounds=3)


@pytest.fixture
def homes(tmp_path: Path, plan: Plan) -> dict[str, Path]:
    return make_homes(tmp_path, plan)


# ── frames ──

names = st.text(max_size=6)
scalars = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), names)
arrays = hnp.arrays(
    st.one_of(hnp.integer_dtypes(), hnp.floating_dtypes(), hnp.boolean_dtypes()),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@settings(max_examples=50, deadline=None)
@given(
    kind=names,
    content=st.dictionaries(names, arrays, max_size=3),
    options=st.dictionaries(names, scalars, max_size=3),
)
def test_envelopes_cross_the_socket_unchanged(kind: str, content: dict, options: dict) -> None:  # type: ignore[type-arg]
    here, there = socket.socketpair()
    with here, there:
        send_request(here, Request(kind, Envelope(content, options)))
        request = receive_request(there)
        assert request.kind == kind
        assert request.envelope.options == options
        assert wire.digest(request.envelope) == wire.digest(Envelope(content, options))
        send_reply(there, Refused("some-code"))
        assert receive_reply(here) == Refused("some-code")


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 8,
        struct.pack(">Q", 10) + b"0123456789",
        struct.pack(">Q", 0),
    ],
)
def test_bytes_that_are_no_frame_are_refused(content: bytes) -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(content)
        with pytest.raises(ProtocolError):
            receive_request(there)


def test_a_frame_that_breaks_off_is_a_hangup() -> None:
    here, there = socket.socketpair()
    with there:
        here.sendall(struct.pack(">Q", 100) + b"half")
        here.close()
        with pytest.raises(Hangup):
            receive_request(there)


def test_what_json_cannot_hold_is_refused_before_it_is_sent() -> None:
    here, there = socket.socketpair()
    with here, there:
        for wrong in (Envelope({}, {"x": float("nan")}), Envelope({"o": np.array([{}])})):
            with pytest.raises(ProtocolError):
                send_request(here, Request("ask", wrong))


# ── the worker ──


def carry(path: Path, kind: str, envelope: Envelope) -> Envelope:
    return ask_worker(path, Request(kind, envelope))


def test_a_run_through_two_workers_is_the_run_without_them(tmp_path: Path, plan: Plan, homes: dict[str, Path]) -> None:
    calm = {name: Party(home) for name, home in make_homes(tmp_path / "calm", plan).items()}
    expected = run_all(plan, World({name: party.handle for name, party in calm.items()}))
    workers = {name: Worker(Party(home), home / "w.sock") for name, home in homes.items()}
    outcome = run_all(plan, World({name: partial(carry, worker.path) for name, worker in workers.items()}))
    assert np.array_equal(outcome.state, expected.state)
    assert np.array_equal(outcome.counts, expected.counts)
    for worker in workers.values():
        worker.close()


def test_it_says_that_it_is_ready_even_while_it_computes(homes: dict[str, Path], plan: Plan) -> None:
    home, begun, go_on = homes["party-1"], threading.Event(), threading.Event()
    with closing(Worker(Party(home), home / "w.sock")) as worker:
        assert stat.S_IMODE(worker.path.stat().st_mode) == 0o600
        assert worker.ready_file.read_text() == f"{os.getpid()}\n"
        assert ping(worker.path) == {
            "party": "party-1",
            "version": VERSION,
            "network": "open",
            "busy": False,
        }

        def slowly(kind: str, envelope: Envelope) -> Envelope:
            begun.set()
            go_on.wait(10)
            return Envelope()

        with mock.patch.object(worker.party, "handle", slowly):
            asking = threading.Thread(target=ask_worker, args=(worker.path, Request("ask")))
            asking.start()
            assert begun.wait(10)
            assert ping(worker.path)["busy"] is True
            go_on.set()
            asking.join()
    assert not worker.path.exists()
    assert not worker.ready_file.exists()


def test_whatever_breaks_inside_only_a_code_comes_out(homes: dict[str, Path]) -> None:
    home = homes["party-1"]
    with closing(Worker(Party(home), home / "w.sock")) as worker:
        with pytest.raises(WorkerRefused) as refused:
            ask_worker(worker.path, Request("hello", Envelope({}, {"run": RUN, "plan": "0" * 64})))
        assert refused.value.code == "plan-not-approved"
        with (
            mock.patch.object(worker.party, "handle", side_effect=ValueError("secret cell 4711")),
            pytest.raises(WorkerRefused) as refused,
        ):
            ask_worker(worker.path, Request("ask"))
        assert refused.value.code == "internal"
        assert "4711" not in str(refused.value)
        with socket.socket(socket.AF_UNIX) as stranger:  # no frame at all
            stranger.connect(str(worker.path))
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert receive_reply(stranger) == Refused("protocol")
        assert ping(worker.path)["party"] == "party-1"


def test_a_socket_may_lie_deep_but_not_have_a_long_name(homes: dict[str, Path]) -> None:
    """The system takes 107 bytes; a home in a deep folder was refused."""
    party = Party(homes["party-1"])
    with pytest.raises(InputError, match="shorter"):
        Worker(party, homes["party-1"] / ("x" * 120))
    deep = homes["party-1"] / ("d" * 90) / "w.sock"
    deep.parent.mkdir()
    with closing(Worker(party, deep)):
        assert ping(deep)["party"] == "party-1"


def test_nobody_there_is_said_and_a_message_that_always_kills_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(WorkerAway, match="nobody serves"):
        ask_worker(tmp_path / "none.sock", Request("ask"), patience_seconds=0.1)
    path = tmp_path / "w.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(8)

        def hang_up() -> None:
            for _ in range(3):
                listening.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(WorkerAway, match="3 times"):
            ask_worker(path, Request("ask"))
        thread.join()


SERVE = (
    "import sys; from pathlib import Path; from fed_node.process.worker import serve; serve(*map(Path, sys.argv[1:]))"
)


def started(home: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(home), str(home / "w.sock")], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 240  # a busy machine
    while not ready_file(home / "w.sock").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def test_killed_it_starts_over_what_it_left_and_told_to_end_it_ends(homes: dict[str, Path]) -> None:
    home = homes["party-1"]
    first = started(home)
    with pytest.raises(StoreInUse):  # a second worker on the same home
        serve(home, home / "second.sock")
    first.kill()
    first.wait()
    assert (home / "w.sock").exists()  # stale
    with pytest.raises(WorkerAway):
        ask_worker(home / "w.sock", Request("ping"), patience_seconds=0.1)
    ready_file(home / "w.sock").unlink()
    second = started(home)
    assert ping(home / "w.sock")["party"] == "party-1"
    second.send_signal(signal.SIGTERM)
    assert second.wait(30) == 0
    assert not (home / "w.sock").exists()
    assert not ready_file(home / "w.sock").exists()


# ── the ClientApp ──


def through_the_app(kind: str, options: dict[str, Scalar], **node_config: str) -> Message:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 0
    message = Message(wire.to_records(Envelope({}, options)), dst_node_id=7, message_type=f"query.{kind}")
    return app(message, Context(1, 7, node_config=dict(node_config), state=RecordDict(), run_config={}))


def test_the_client_app_carries_answers_and_codes(
    homes: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes["party-1"]
    header: dict[str, Scalar] = {"run": RUN, "plan": plan.digest(), "epoch": 0}
    with closing(Worker(Party(home), home / "w.sock")) as worker:
        reply = through_the_app("hello", header, socket=str(worker.path), party="party-1")
        assert wire.from_records(reply.content).options["party"] == "party-1"
        monkeypatch.setenv("FEDSYNTH_SOCKET", str(worker.path))
        reply = through_the_app("ask", header, party="party-1")
        assert reply.error.code == REFUSED
        assert reply.error.reason == "party-1/no-session"


def test_a_node_that_names_no_worker_says_so_in_a_code() -> None:
    assert through_the_app("hello", {"run": RUN}, party="party-1").error.reason == "party-1/bad-input"


def test_in_a_simulation_the_party_lives_in_the_process(
    homes: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDSYNTH_SOCKET", "a-real-partys.sock")  # none of a simulation's business
    header: dict[str, Scalar] = {"run": RUN, "plan": plan.digest(), "epoch": 0}
    reply = through_the_app("hello", header, home=str(homes["party-2"]), party="party-2")
    assert wire.from_records(reply.content).options["party"] == "party-2"
    party_module.party_at(homes["party-2"]).ledger.close()
    party_module.party_at.cache_clear()


def test_many_simulated_parties_share_a_process(tmp_path: Path) -> None:
    """Nine of them used to be one too many: the first was let go of, and its ledger stayed locked."""
    many = make_homes(tmp_path, plan_of({"name": "marginals"}, parties=20), approved=False)
    first = [party_module.party_at(home) for home in many.values()]
    assert [party_module.party_at(home) for home in many.values()] == first
    for party in first:
        party.ledger.close()
    party_module.party_at.cache_clear()


def test_the_client_app_imports_nothing_heavy() -> None:
    heavy = ["torch", "pandas", "scipy", "sklearn", "dp_accounting", "pyarrow", "tenseal", "opacus", "fed_node.party"]
    code = f"import json, sys, fed_node.process.client_app; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert json.loads(found.stdout) == []
