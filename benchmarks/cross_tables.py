"""What shares of tables across two parties cost: `python -m benchmarks.cross_tables --dealt ROWS` (or `--encrypted`).

Uniform rows in Adult's bins (101 and 73, of which one of every column is left out). With a dealer, sealing and opening
of letters included; without one (BFV), sealing is not worth measuring. CPU seconds of everybody together, megabytes on
the busier of the two ways between the parties and on both, and the memory of a process that plays all of them. Tables
are held against counts in one place. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time

import numpy as np

from crypto import sealed
from crypto.announcement import Announcement
from crypto.bfv import OtherKey, OwnerKey
from crypto.cross_tables import (
    Matrix,
    Places,
    chunks_of,
    dealt,
    first_offset,
    first_share,
    masked_rows,
    places_of_ones,
    second_share,
    with_last_bins,
)
from crypto.encrypted_tables import (
    added,
    encrypted_rows,
    hidden,
    letters_down,
    letters_up,
    opened,
    totals_letter,
)
from crypto.keys import IdentityKey, SessionKey
from crypto.rounds import KeyPeriod
from synth.metrics.tables import IntArray

BINS = ([20, 9, 20, 16, 16, 7, 13], [6, 5, 2, 12, 8, 16, 22, 2])  # bins of Adult's columns: 101 and 73


class Peer:
    """Keys of a party, for letters."""

    def __init__(self, name: str) -> None:
        self.name, self.identity, self.session = name, IdentityKey.generate(), SessionKey.generate()
        self.announced = Announcement(KeyPeriod("run", "plan", 0), name, self.session.public)


def carried(content: bytes, sender: Peer, to: Peer) -> tuple[bytes, int]:
    """A letter, sealed, carried and opened; and its size."""
    box = sealed.seal(content, key=sender.identity, sender=sender.name, recipient=to.announced, purpose="rows")
    roster = {sender.name: sender.identity.identity}
    opened = sealed.unseal(
        box, session=to.session, recipient=to.announced, sender=sender.name, roster=roster, purpose="rows"
    )
    return opened, len(box)


def with_a_dealer(rows: int) -> dict[str, float]:
    """Shares of all tables of two parties: CPU seconds of everybody, megabytes of the busier link."""
    bins, ones, widths = adult_like(rows)
    began, seeds = time.process_time(), (os.urandom(32), os.urandom(32))
    first, second, sent = Peer("first"), Peer("second"), [0, 0]
    chunks = chunks_of(rows, max(widths))
    one, two = first_offset(seeds[0], widths).copy(), dealt(seeds, widths, chunks)
    for number, part in enumerate(chunks):
        letters = [masked_rows(ones[p][part], widths[p], seeds[p], number).tobytes() for p in (0, 1)]
        to_second, size = carried(letters[0], first, second)
        to_first, other = carried(letters[1], second, first)
        sent = [sent[0] + size, sent[1] + other]
        shape = part.stop - part.start
        one += first_share(ones[0][part], widths[0], np.frombuffer(to_first, "<u4").reshape(shape, -1))
        two += second_share(np.frombuffer(to_second, "<u4").reshape(shape, -1), widths[1], seeds[1], number)
    return measured(one + two, bins, began, sent)


def without_one(rows: int) -> dict[str, float]:
    """The same without a dealer: rows encrypted up, masked totals down; sealing is not worth measuring."""
    bins, ones, widths = adult_like(rows)
    began, owner, sent = time.process_time(), OwnerKey(OwnerKey.make()), [0, 0]
    other, totals = OtherKey(owner.public()), [b""] * widths[1]
    for number in range(letters_up(rows, widths)):
        letter = encrypted_rows(owner, ones[0], widths[0], number)
        totals, sent[0] = added(other, totals, letter, ones[1], widths, number), sent[0] + len(letter)
    masked, total = hidden(other, totals, rows, widths)
    for number in range(letters_down(widths)):
        letter = totals_letter(masked, number)
        part, columns = opened(owner, letter, widths, number)
        total[:, part] += columns
        sent[1] += len(letter)
    return measured(total, bins, began, sent)


def measured(total: Matrix, bins: list[IntArray], began: float, sent: list[int]) -> dict[str, float]:
    """After making sure that the tables are right."""
    seconds, (a, b) = time.process_time() - began, (BINS[0][0], BINS[1][0])
    block = np.bincount(bins[0][:, 0] * b + bins[1][:, 0], minlength=a * b).reshape(a, b)
    if not np.array_equal(with_last_bins(total, slice(1, a), slice(1, b)).astype(np.int64), block):
        raise SystemExit("the shares do not add up")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "megabytes": max(sent) / 1e6, "sent": sum(sent) / 1e6, "peak_mb": peak}


def adult_like(rows: int) -> tuple[list[IntArray], list[Places], tuple[int, int]]:
    """Uniform rows in Adult's bins: the bins, the matrices, their widths."""
    rng = np.random.default_rng(0)
    bins = [np.stack([rng.integers(0, size, rows) for size in sizes], axis=1) for sizes in BINS]
    first, second = (1 + sum(sizes) - len(sizes) for sizes in BINS)
    return bins, [places_of_ones(each, sizes) for each, sizes in zip(bins, BINS, strict=True)], (first, second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--dealt", type=int, metavar="ROWS")
    way.add_argument("--encrypted", type=int, metavar="ROWS")
    given = parser.parse_args()
    print(json.dumps(with_a_dealer(given.dealt) if given.dealt else without_one(given.encrypted)))


if __name__ == "__main__":
    main()
