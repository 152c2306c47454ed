"""A party's rows for one run, however the plan cuts the table; and the letters that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fed_node.errors import AskOutsidePlan
from fed_node.linkage.people import People
from fed_node.linkage.post import Post
from fed_node.linkage.rows import PAGE, SHARES, LinkedTable
from fed_node.seal.seal import Seal
from fed_node.settings import SCRATCH, PartySettings
from fed_node.source.units import open_units
from synth.encoding.rows import Rows
from synth.interface import Inquiry
from synth.linkage.own import own_table
from synth.plan import Plan
from synth.privacy.coin import Coin


def rows_of(plan: Plan, settings: PartySettings, home: Path, seal: Seal, coin: Coin) -> Rows:
    """The plan's records of the table, or this party's columns of everybody's."""
    source = settings.source(home)
    if plan.linkage is None:
        return open_units(source, plan, home / SCRATCH, coin)
    holds = settings.name in plan.holders
    people = People.read(source, own_table(plan, settings.name), plan.linkage.key) if holds else None
    return LinkedTable(plan, settings.name, people, seal.sessions.folder)


def post_of(plan: Plan, rows: Rows, inquiries: Mapping[str, Inquiry], seal: Seal) -> Post:
    if not isinstance(rows, LinkedTable):
        raise AskOutsidePlan("parties write each other letters only under a plan by columns")
    return Post(plan, rows, inquiries, seal)


def forget(seal: Seal) -> None:
    """The run has ended: nobody needs its pseudonyms' key, seeds or shares again."""
    for page in (PAGE, *SHARES.values()):
        seal.sessions.folder.remove(page)
