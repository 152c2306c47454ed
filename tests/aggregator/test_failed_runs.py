"""A run that cannot go on says so: whoever waits for it never sees "running" for ever."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from flwr.app import Context
from flwr.serverapp import Grid

from aggregator.federate import federate
from aggregator.server import server_app
from aggregator.server.run_folder import RunFolder
from aggregator.states import RunState
from aggregator.sums.secure_sum import SecureSum
from crypto.keys import IdentityKey
from synth.errors import ProtocolError
from synth.interface import Arrays, Sum
from tests.fed_node.two_parties import CheapTraining
from tests.small import plan_of

PLAN = plan_of({"name": "marginals"}, parties=2)


@pytest.mark.parametrize("error", [TypeError("a cell?"), ProtocolError("party 'north' sent what cannot be read")])
def test_whatever_ends_a_run_its_progress_says_failed(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = tmp_path / "identity.key"
    parties = tmp_path / "parties.json"
    keys = {party.name: {"identity": IdentityKey.generate().identity.to_text()} for party in PLAN.parties}
    parties.write_text(json.dumps(keys))
    given = {"STATE": tmp_path, "PARTIES": parties, "IDENTITY": identity, "ANSWER_TIMEOUT_SECONDS": 1}
    for name, value in given.items():
        monkeypatch.setenv(f"FEDSYNTH_{name}", str(value))

    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(server_app, "synthesize", fails)
    context = SimpleNamespace(run_config={"plan": PLAN.model_dump_json(by_alias=True)}, run_id=7)
    with pytest.raises(type(error)):
        server_app.main(cast(Grid, SimpleNamespace()), cast(Context, context))
    standing = RunFolder.of(tmp_path, PLAN).standing
    assert standing is not None
    assert standing.state is RunState.failed
    assert standing.reason is not None
    assert standing.reason.message
    assert "cell" not in json.dumps(standing.to_json())


@pytest.mark.parametrize(
    "arrays", [{}, {"other": np.zeros(4)}, {"change": np.zeros((3, 3))}], ids=["nothing", "another name", "a shape"]
)
def test_a_sum_that_no_inquiry_can_use_names_those_whose_answers_are_in_it(arrays: Arrays) -> None:
    total = Sum(arrays, 1.0, ("north", "south"))
    sums = cast(SecureSum, SimpleNamespace(total=lambda *_: total))
    with pytest.raises(ProtocolError, match="answers of north, south"):
        list(federate(CheapTraining(PLAN), sums, 0, 0))
