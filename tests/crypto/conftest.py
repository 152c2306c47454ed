"""Keys that are made once for all tests."""

import pytest

from crypto.ckks import PartyContext
from tests.crypto.federations import Federation, build_federation


@pytest.fixture(scope="session")
def hospitals() -> Federation:
    return build_federation(("berlin", "lyon", "oslo"))


@pytest.fixture(scope="session")
def ckks_key() -> PartyContext:
    return PartyContext.make()


@pytest.fixture(scope="session")
def other_ckks_key() -> PartyContext:
    return PartyContext.make()
