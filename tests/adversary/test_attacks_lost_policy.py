"""A party that loses its policy, and its lifetime budget with it, must not become more permissive by a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from crypto.keys import IdentityKey
from fed_node.party import Party
from synth.errors import InputError
from tests.adversary.consortium import NAMES, table

POLICY = {"maximum_epsilon_per_run": 1.0, "maximum_epsilon_in_total": 2.0, "maximum_delta": 1e-4, "minimum_rows": 2}


def test_without_its_policy_a_party_does_not_start_again(tmp_path: Path) -> None:
    """Before, the ledger took the missing file for a budget without limit."""
    home = tmp_path / "east"
    home.mkdir()
    peers = {name: IdentityKey.generate().identity.to_text() for name in NAMES[1:]}
    settings = {"name": "east", "data": {"kind": "csv", "path": "rows.csv"}, "peers": peers}
    (home / "party.yaml").write_text(yaml.safe_dump(settings))
    (home / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    (home / "identity.key").write_bytes(IdentityKey.generate().to_pem())
    table(0).to_csv(home / "rows.csv", index=False)
    Party(home).ledger.close()
    (home / "policy.yaml").unlink()
    with pytest.raises(InputError, match="Put the file back"):
        Party(home)
    (home / "policy.yaml").write_text(yaml.safe_dump(POLICY | {"maximum_epsilon_in_total": 3.0}))
    party = Party(home)
    assert party.ledger.budget is not None
    assert party.ledger.budget.epsilon == 3.0
    party.ledger.close()
