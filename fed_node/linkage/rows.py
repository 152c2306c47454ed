"""A party's rows in the order that all parties agreed on: what it counts alone, and its share of what it does not.

A table of its own columns is counted here. A table across this party and another is a block of the share that the two
made together (exchange.py). All other tables are somebody else's: zeros.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from crypto.cross_tables import places_of_ones
from fed_node.errors import NoSession, RowsMisaligned, SharesMissing
from fed_node.linkage.dealt import DealtExchange
from fed_node.linkage.encrypted import EncryptedExchange
from fed_node.linkage.people import NOBODY, People, pseudonyms
from fed_node.linkage.state import Page
from fed_node.seal.run_folder import RunFolder
from synth.encoding import contingency
from synth.encoding.bins import Bins
from synth.encoding.cells import Cells
from synth.encoding.contingency import Clique, Ints
from synth.encoding.records import Records
from synth.encoding.rows import ROWS_AT_ONCE
from synth.encoding.scales import scale_of
from synth.linkage.linked import LinkedRows, Tokens, room, strangers
from synth.linkage.pairs import SHARED_PHASES, Geometry
from synth.linkage.settings import NOBODY_DEALS
from synth.plan import Plan
from synth.privacy.noise import NoiseSource, seeded_source

PAGE = "linkage"
SHARES = {phase: f"shares-{phase}" for phase in SHARED_PHASES}
NO_SEAL = bytes(32)


class LinkedTable(LinkedRows):
    """`people` is None at a party that holds no columns and only deals."""

    def __init__(self, plan: Plan, party: str, people: People | None, folder: RunFolder) -> None:
        self.plan, self.party, self.source = plan, party, people
        self.columns = plan.columns_of(party)
        self.page = Page.read(folder, PAGE)
        how = DealtExchange if plan.linkage is None or plan.linkage.dealer != NOBODY_DEALS else EncryptedExchange
        self.exchanges = {phase: how(plan, party, Page.read(folder, page)) for phase, page in SHARES.items()}
        self._ones: tuple[bytes, Ints] | None = None  # of the bins asked for last: every chunk needs them

    # Alignment

    @property
    def secret(self) -> bytes:
        """The key of the pseudonyms, which the aggregator lacks."""
        if "secret" not in self.page.values:
            raise NoSession("no key for pseudonyms came yet; the aggregator must carry it first")
        return bytes.fromhex(self.page.values["secret"])

    def keep_secret(self, secret: bytes) -> None:
        """One key a run: with another one the same people would have other places."""
        if self.page.values.setdefault("secret", secret.hex()) != secret.hex():
            raise RowsMisaligned("another key for pseudonyms came than this run began with; start a new run")
        self.page.note({})

    def tokens(self, noise: NoiseSource, variance: float | None) -> Tokens:
        if self.source is None:
            return np.zeros(0, dtype=np.uint64)
        strange = noise.child("strangers")
        alone = strange.uint64(strangers(strange.child("count"), variance)).astype(np.uint64)
        return np.unique(np.concatenate([self._tokens, alone, *self._shared_strangers(variance)]))

    def people(self, noise: NoiseSource, variance: float | None) -> int:
        """The first holder's word is everybody's: their seals say whether they hold as many."""
        if self.source is None or self.party != self.plan.holders[0]:
            return 0
        return len(self.source.keys) + strangers(noise.child("strangers"), variance)

    def match(self, kept: Tokens | int) -> bytes:
        places = kept if isinstance(kept, int) else len(kept)
        if self.source is None:
            self.page.note({"places": places})
            return NO_SEAL
        tokens = {} if isinstance(kept, int) else {"kept": kept}
        content = self._standing(kept)
        whose = self._whose(self._order_of(kept)).hex()
        self.page.note({"places": places, "standing": content.hex(), "whose": whose, "agreed": False}, tokens)
        vars(self).pop("order", None)
        return self._seal(self.party, content)

    def agree(self, seals: dict[str, bytes]) -> None:
        if self.source is not None:
            content = bytes.fromhex(self.page.values.get("standing", ""))
            wrong = [name for name, seal in seals.items() if not hmac.compare_digest(seal, self._seal(name, content))]
            if wrong or not content:
                raise RowsMisaligned(
                    f"{', '.join(wrong) or 'nobody'} does not have the same people in the same order as this party. "
                    "Nothing was counted: compare key columns (spelling, blanks, who is in), then start a new run."
                )
        self.page.note({"agreed": True})

    @property
    def places(self) -> int:
        """Rows of everybody's table, those that hold nobody included."""
        if not self.page.values.get("agreed"):
            raise RowsMisaligned("the parties have not agreed on whose row is whose; nothing is counted before")
        return int(self.page.values["places"])

    @cached_property
    def order(self) -> Ints:
        """Of every place, whose cells are there; NOBODY where there are none."""
        if self.source is None:
            return np.full(self.places, NOBODY, dtype=np.int64)
        kept = self.page.arrays["kept"].astype(np.uint64) if "kept" in self.page.arrays else self.places
        order = self._order_of(kept)
        if self._whose(order).hex() != self.page.values["whose"]:
            raise RowsMisaligned("the rows are others than those that were aligned; restore them or start a new run")
        return np.where(order == NOBODY, NOBODY, self.source.record[order]) if len(self.source.keys) else order

    @cached_property
    def _tokens(self) -> Tokens:
        return np.zeros(0, np.uint64) if self.source is None else self.source.tokens(self.secret)

    def _order_of(self, kept: Tokens | int) -> Ints:
        """The person at every place: by pseudonym, which is nobody's alphabet."""
        sorting = np.argsort(self._tokens, kind="stable")
        if isinstance(kept, int):
            order = np.full(max(kept, len(sorting)), NOBODY, dtype=np.int64)
            order[: len(sorting)] = sorting
            return order[:kept]
        if not len(sorting):
            return np.full(len(kept), NOBODY, dtype=np.int64)
        found = np.minimum(np.searchsorted(self._tokens, kept, sorter=sorting), len(sorting) - 1)
        return np.where(self._tokens[sorting[found]] == kept, sorting[found], NOBODY)

    def _standing(self, kept: Tokens | int) -> bytes:
        """Who is where, as a digest: the pseudonyms in order.

        Whether somebody is at a place here is not in it. The aggregator may take in a pseudonym of one party's list and
        would learn from a refusal whether it is a person or a stranger, which the noisy counts of people are to hide.
        Somebody who is here alone counts here alone, as one person, which the tables' noise covers, too."""
        tokens = np.sort(self._tokens) if isinstance(kept, int) else kept
        places = np.array(kept if isinstance(kept, int) else len(kept), dtype="<i8")
        return hashlib.sha256(places.tobytes() + tokens.astype("<u8").tobytes()).digest()

    def _whose(self, order: Ints) -> bytes:
        """Which of this party's people are at which places: for its own memory."""
        here = np.append(self._tokens, np.uint64(0))[order]  # NOBODY is the last
        return hashlib.sha256(here.astype("<u8").tobytes() + (order != NOBODY).tobytes()).digest()

    def _seal(self, party: str, content: bytes) -> bytes:
        return hmac.new(self.secret, b"fedsynth order\0" + party.encode() + b"\0" + content, hashlib.sha256).digest()

    def _shared_strangers(self, variance: float | None) -> Iterator[Tokens]:
        """People that do not exist, at every set of two parties or more that this one is in: as many as noise under
        the shared key says, the same at each of them."""
        names = [f"{number}" for number in range(2 * room(variance))]
        for size in range(2, len(self.plan.holders) + 1):
            for group in combinations(self.plan.holders, size):
                if self.party in group:
                    luck = seeded_source(int.from_bytes(self.secret), "strangers", *group)
                    yield pseudonyms(self.secret, "stranger at " + "+".join(group), names[: strangers(luck, variance)])

    # Counting

    def pieces(self) -> Iterator[Records]:
        """Everybody's cells at this party; columns that it does not hold have their first value, and nobody's."""
        _ = self.places
        if self.source is None:
            return
        present = self.order[self.order != NOBODY]
        for start in range(0, max(len(present), 1), ROWS_AT_ONCE):
            yield self._filled(self.source.records.take(present[start : start + ROWS_AT_ONCE]))

    def at_hand(self) -> Records:
        return Records.concat(list(self.pieces()))

    def histograms(self, cells: Cells) -> Ints:
        counts = super().histograms(cells)
        for name, part in cells.slices.items():
            if name not in self.columns:
                counts[part] = 0
        return counts

    def tables(self, bins: Bins, names: list[str], cliques: Sequence[Clique]) -> Ints:
        sizes, found = [bins.size(name) for name in names], list[Ints]()
        own = [clique for clique in cliques if self._holds(clique, names)]
        geometry = Geometry(self.plan, bins, names, self.places)
        counted = iter(contingency.split(super().tables(bins, names, own), own, sizes))
        for clique in cliques:
            if clique in own:
                table = next(counted).astype(np.int64)
            else:
                shape = tuple(sizes[column] for column in clique)
                table = self._share([names[column] for column in clique], shape, geometry)
            found.append(table.ravel())
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    def _share(self, columns: list[str], shape: tuple[int, ...], geometry: Geometry) -> Ints:
        """This party's share of a table that is not its own: zeros where it holds none of the columns."""
        owners = [self.plan.owner([column]) for column in columns]
        if len(columns) != 2 or self.party not in owners or owners[0] == owners[1]:
            return np.zeros(shape, dtype=np.int64)
        made = [exchange for exchange in self.exchanges.values() if exchange.is_for(geometry)]
        if not made:
            raise SharesMissing("no shares were made for these bins; the aggregator must carry the letters first")
        return made[0].table(columns, geometry)

    def places_of_ones(self, bins: Bins, names: list[str]) -> Ints:
        """This party's rows as one-hot rows over the bins of its columns: where each one is."""
        cuts = bins.of_cell.tobytes()
        if self._ones is not None and self._ones[0] == cuts:
            return self._ones[1]
        held = [name for name in names if name in self.columns]
        found = np.full((self.places, len(held)), NOBODY, dtype=np.int64)
        rows = np.flatnonzero(self.order != NOBODY)
        done = 0
        for piece in self.pieces():
            here = rows[done : done + len(piece)]
            for number, index in enumerate(bins.index(piece, held)):
                found[here, number] = index
            done += len(piece)
        self._ones = cuts, places_of_ones(found, [bins.size(name) for name in held])
        return self._ones[1]

    def _holds(self, clique: Clique, names: list[str]) -> bool:
        return all(names[column] in self.columns for column in clique)

    def _filled(self, records: Records) -> Records:
        rows = len(records)
        columns = {
            name: records.columns[name]
            if name in records.columns
            else np.full(rows, scale_of(self.plan.table.numeric[name]).lowest)
            if name in self.plan.table.numeric
            else np.zeros(rows, dtype=np.int64)
            for name in self.plan.table.released
        }
        return Records(columns)
