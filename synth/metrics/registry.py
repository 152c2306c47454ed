"""Every figure of an evaluation: what it means in plain words, which way is better, and what real data would score.

Adding a fidelity metric is one line here and one function elsewhere; reports are generated from this list.
"""

from __future__ import annotations

from synth.metrics.clusters import FLOOR, log_cluster
from synth.metrics.fidelity import jsd, tvd_one_way, tvd_two_way, wd
from synth.metrics.fidelity_columns import hellinger, ks
from synth.metrics.fidelity_joint import avd
from synth.metrics.fidelity_pairs import association_kept, matrix_distance, mean_absolute_difference, pcd
from synth.metrics.findiff import omega
from synth.metrics.kernel import mmd
from synth.metrics.metric import Better, FidelityMetric, Metric, fidelity, support
from synth.metrics.propensity import detection_auroc, pmse

TRAIN_REAL = "the same classifiers trained on the real rows"
CONTROL = "the same attack on people who were not in the data (the holdout rows)"

CLUSTERED_ROWS = 10_000
DETECTED_ROWS = 50_000

FIDELITY: tuple[FidelityMetric, ...] = (
    fidelity(
        "tvd_one_way",
        "Single columns",
        "How much of the rows would have to move to make every column's histogram right, on average.",
        lambda c: tvd_one_way(c.real, c.synthetic, c.schema),
        headline=True,
    ),
    fidelity(
        "tvd_two_way",
        "Pairs of columns",
        "The same for the joint histogram of every pair of columns.",
        lambda c: tvd_two_way(c.real, c.synthetic, c.schema),
        absent="there is only one column",
        headline=True,
    ),
    fidelity(
        "association_kept",
        "Relations kept",
        "The share of the real table's associations between columns that the synthetic table keeps; shuffled columns "
        "keep none.",
        lambda c: association_kept(*c.associations),
        better="higher",
        ideal=1.0,
        absent="no two real columns are associated",
        headline=True,
    ),
    fidelity(
        "detection_auroc",
        "Told apart",
        "How well a classifier tells real rows from synthetic ones: 0.5 not at all, 1 always.",
        lambda c: detection_auroc(c.real, c.synthetic, c.schema, seed=c.seed),
        better="nearer",
        ideal=0.5,
        absent="a table has fewer than three rows",
        rows=DETECTED_ROWS,
        headline=True,
    ),
    fidelity(
        "jsd",
        "Categories (JSD)",
        "Mean Jensen-Shannon distance, base 2, of the discrete columns.",
        lambda c: jsd(c.real, c.synthetic, c.schema),
        absent="there is no discrete column",
    ),
    fidelity(
        "wd",
        "Numbers (WD)",
        "Mean distance that numbers would have to be moved, as a share of the real column's range.",
        lambda c: wd(c.real, c.synthetic, c.schema),
        high=None,
        absent="there is no numeric column with numbers in both tables",
    ),
    fidelity(
        "hellinger",
        "Columns (Hellinger)",
        "Mean Hellinger distance of all columns, numbers cut at automatic edges.",
        lambda c: hellinger(c.real, c.synthetic, c.schema),
        absent="no column has cells in both tables",
    ),
    fidelity(
        "ks",
        "Numbers (KS)",
        "Mean largest gap between the distribution functions of the numeric columns.",
        lambda c: ks(c.real, c.synthetic, c.schema),
        absent="there is no numeric column with numbers in both tables",
    ),
    fidelity(
        "association_difference",
        "Relations, mean difference",
        "Mean absolute difference of the associations (Pearson, Cramér's V, correlation ratio) over pairs.",
        lambda c: mean_absolute_difference(*c.associations),
        high=2.0,
        absent="there is only one column",
    ),
    fidelity(
        "pcd",
        "Relations (PCD)",
        "Length of the difference of the two association matrices; grows with the number of columns.",
        lambda c: pcd(*c.associations),
        high=None,
    ),
    fidelity(
        "correlation_matrix_distance",
        "Relations (CMD)",
        "Angle between the correlation matrices, category codes taken as numbers.",
        lambda c: matrix_distance(c.real, c.synthetic, c.schema),
    ),
    fidelity(
        "avd_3_way",
        "Three columns at once",
        "Mean total variation of 100 random combinations of three columns.",
        lambda c: avd(c.real, c.synthetic, c.schema, ways=3, seed=c.seed),
    ),
    fidelity(
        "avd_4_way",
        "Four columns at once",
        "Mean total variation of 100 random combinations of four columns; far from 0 even for real data.",
        lambda c: avd(c.real, c.synthetic, c.schema, ways=4, seed=c.seed),
    ),
    fidelity(
        "pmse",
        "Propensity (pMSE)",
        "How far a shallow decision tree's guess 'synthetic?' is from not knowing; at most 0.25.",
        lambda c: pmse(c.real, c.synthetic, c.schema, seed=c.seed),
        high=0.25,
    ),
    fidelity(
        "log_cluster",
        "Clusters (log)",
        "How unevenly clusters of similar rows are filled by the two tables, base-2 logarithm.",
        lambda c: log_cluster(c.real, c.synthetic, c.schema, seed=c.seed),
        low=FLOOR,
        high=0.0,
        ideal=FLOOR,
        absent="all rows are equal",
        rows=CLUSTERED_ROWS,
    ),
    support("precision", "Plausible rows", "Share of synthetic rows that lie among real rows.", lambda s: s.precision),
    support("recall", "Variety", "Share of real rows that lie among synthetic rows.", lambda s: s.recall),
    support(
        "density",
        "Density",
        "How many real neighbourhoods a synthetic row lies in; about 1.",
        lambda s: s.density,
        better="nearer",
        high=None,
    ),
    support(
        "coverage", "Coverage", "Share of real rows with a synthetic row in their neighbourhood.", lambda s: s.coverage
    ),
    fidelity(
        "mmd",
        "Whole rows (MMD)",
        "Distance between the two tables as clouds of points; around 0, even slightly below, for real data.",
        lambda c: mmd(c.real, c.synthetic, c.schema, seed=c.seed),
        better="nearer",
        low=None,
        high=None,
        absent="a table has fewer than two rows",
    ),
    fidelity(
        "omega",
        "FinDiff fidelity Ω",
        "Mean of column and pair similarity as the FinDiff paper defines them.",
        lambda c: omega(c.real, c.synthetic, c.schema, *c.associations),
        better="higher",
        ideal=1.0,
    ),
)


def _score(name: str, title: str, meaning: str, headline: bool = False) -> Metric:
    return Metric(name, title, meaning, "higher", 0.0, 1.0, 1.0, TRAIN_REAL, headline)


UTILITY: tuple[Metric, ...] = (
    _score(
        "auroc", "Ranking (AUROC)", "How well a model trained on synthetic rows ranks real ones; 0.5 is chance.", True
    ),
    _score("accuracy", "Accuracy", "Share of real test rows a model trained on synthetic rows classifies right."),
    _score("auprc", "Precision and recall (AUPRC)", "Area under precision against recall; chance is the class share."),
    _score("f1", "F1", "Harmonic mean of precision and recall of the positive class (weighted over several classes)."),
    _score("phi", "FinDiff utility Φ", "Mean accuracy of the five classifiers of the FinDiff paper."),
)


def _risk(
    name: str, title: str, meaning: str, ideal: float = 0.0, headline: bool = False, better: Better = "lower"
) -> Metric:
    return Metric(name, title, meaning, better, 0.0, 1.0, ideal, CONTROL, headline)


PRIVACY: tuple[Metric, ...] = (
    _risk(
        "singling_out",
        "Singling out",
        "Can a description from the synthetic table fit exactly one real person?",
        headline=True,
    ),
    _risk("linkability", "Linkability", "Can two partial records of one person be joined through it?", headline=True),
    _risk(
        "inference",
        "Inference",
        "Can an unknown value of a person be read off the most similar synthetic row?",
        headline=True,
    ),
    _risk(
        "membership_distance",
        "Membership, by distance",
        "Share of the people in the data an attacker recognises while wrongly accusing 1 % of strangers, by how close "
        "the nearest synthetic row is.",
        ideal=0.01,
    ),
    _risk(
        "membership_density_ratio",
        "Membership, by density ratio",
        "The same for an attacker who also knows how common such people are.",
        ideal=0.01,
        headline=True,
    ),
    _risk(
        "copies",
        "Exact copies",
        "Share of synthetic rows that equal a real row, beside the share that equals one of as many strangers.",
        headline=True,
    ),
    _risk(
        "attribute_disclosure",
        "Attribute disclosure",
        "How often a model of the synthetic table guesses a secret right.",
    ),
    _risk("pi", "FinDiff privacy Π", "Mean of singling-out, linkability and inference risk."),
    _risk(
        "share_closer_to_real",
        "Closer to real than to unseen (weak evidence)",
        "Share of synthetic rows nearer to a real than to a holdout row; 0.5 is honest, and a table can pass and leak.",
        ideal=0.5,
        better="nearer",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*FIDELITY, *UTILITY, *PRIVACY)}
