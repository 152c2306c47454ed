"""A party whose keys the operator made says so in what it signs, and the certificate's words repeat it."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

from fed_node.party import Party
from synth import programme
from synth.certificate.certificate import Certificate, Statement
from synth.certificate.promise import promise
from tests.fed_node.two_parties import CheapTraining, World, make_homes, run_all, small_plan

ROOT = Path(__file__).parents[2]
OLD = (ROOT / "tests/compatibility/version-0.1.0/marginals/certificate.json").read_text()


def test_a_party_states_who_made_its_keys(tmp_path: Path) -> None:
    plan = small_plan(rounds=3)
    with mock.patch.object(programme, "build", CheapTraining):
        homes = make_homes(tmp_path, plan)
        settings = homes["party-2"] / "party.yaml"
        settings.write_text(settings.read_text() + "keys_made_by: operator\n")
        parties = {name: Party(home) for name, home in homes.items()}
        statements = run_all(plan, World({name: party.handle for name, party in parties.items()})).statements
    assert {name: each.keys_made_by for name, each in statements.items()} == {"party-1": None, "party-2": "operator"}
    assert "keys_made_by" not in statements["party-1"].model_dump_json()  # as before, where there is nothing to say
    for party in parties.values():
        party.ledger.close()


def test_the_certificate_says_it_in_words_and_old_ones_say_nothing() -> None:
    content = json.loads(OLD)
    assert "operator made" not in promise(Certificate.model_validate(content))
    statement = Statement.model_validate_json(content["statements"][0]["text"])
    told = statement.model_copy(update={"keys_made_by": "operator"})
    content["statements"][0]["text"] = told.model_dump_json()
    assert f"The operator made the keys of {statement.party}, by their own word" in promise(
        Certificate.model_validate(content)
    )
