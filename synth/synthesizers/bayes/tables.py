"""Conditional tables from everything that was opened about a family: columns and pairs within it, and its own table.

The family's own counts say most and are the noisiest. So the distribution of greatest entropy over the family's columns
and pairs comes first, each pair averaged over all tables it is in; the family's table then moves it, by as much as the
two differ more than noise explains (James and Stein).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from synth.counting.estimates import Measurement, average, margin
from synth.counting.evidence import Evidence
from synth.counting.fitting import Fitter
from synth.counting.structure import Structure
from synth.encoding.contingency import Clique
from synth.encoding.scales import Floats
from synth.synthesizers.bayes.network import Network, Node, conditional

ITERATIONS = 1000  # at most; a fit stops when it no longer gains


def learn(parents: dict[int, Clique], evidence: Evidence) -> Network:
    """The network with these parents, its columns in the order given."""
    return Network([_node(child, above, evidence) for child, above in parents.items()])


def _node(child: int, parents: Clique, evidence: Evidence) -> Node:
    family = tuple(sorted((child, *parents)))
    counts = _counts(family, evidence)
    return Node(child, parents, conditional(np.transpose(counts, [family.index(one) for one in (*parents, child)])))


def _counts(family: Clique, evidence: Evidence) -> Floats:
    """Rows expected in every cell of the family's table."""
    columns = [evidence.columns[column] for column in family]
    rows = max(float(np.mean([column.counts.sum() for column in columns])), 1.0)
    smooth = rows * _fitted(family, [*columns, *_pairs(family, evidence)], evidence, rows)
    if len(family) < 3 or family not in evidence.tables:
        return smooth
    own = evidence.tables[family]
    surplus = own.counts - smooth
    scale = smooth + np.sqrt(own.variance)
    surprise, noise = float((surplus**2 / scale).sum()), float((own.variance / scale).sum())
    trust = max(0.0, 1 - noise / surprise) if surprise > 0 else 0.0
    return np.where(smooth > 0, smooth + trust * surplus, 0.0)


def _fitted(family: Clique, tables: Sequence[Measurement], evidence: Evidence, rows: float) -> Floats:
    """The distribution over a family of greatest entropy that explains tables within it."""
    structure = Structure(tuple(column.counts.size for column in evidence.columns), [], [-1])
    structure.cliques.append(structure.ordered(family))
    zeros = [zero for zero in evidence.zeros if set(zero.clique) <= set(family)]
    fit = Fitter(structure, tables, zeros).fit(rows, ITERATIONS)
    return np.transpose(fit.tree.beliefs[0], [structure.cliques[0].index(column) for column in family])


def _pairs(family: Clique, evidence: Evidence) -> list[Measurement]:
    """Every pair within the family that some table holds, averaged over these tables."""
    found = []
    for pair in combinations(family, 2):
        margins = [margin(table, pair) for clique, table in evidence.tables.items() if set(pair) <= set(clique)]
        found += [average(margins)] if margins else []
    return found
