"""What a party's ledger charged is what the party released: the same calls, the same noise, over whole runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.federations import FAMILY_NAMES
from tests.audit.parties import recorded_parties, understated


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_every_release_is_charged_and_every_charge_released(family: str, tmp_path: Path) -> None:
    with recorded_parties(tmp_path, family) as parties:
        parties.repeated = True
        parties.run("run-1")
        assert parties.tape.releases
        assert parties.unpaid() == []
        assert not understated(parties.ledger)
