"""Tables of any size: all rows where they fit, else a sample that only the seed decides, and always said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from fedsynth.cli import app
from fedsynth.evaluation.sampled_reading import read_sample, read_text
from synth.errors import InputError
from synth.schema import Categorical, Integer, Schema

SCHEMA = Schema(columns={"number": Integer(min=0, max=9999), "label": Categorical(categories=["a", "b"], missing=True)})


def written(folder: Path, rows: int) -> Path:
    labels = ["a", "b", ""] * (rows // 3 + 1)
    pd.DataFrame({"number": range(rows), "label": labels[:rows]}).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fed_node.source.csv_file.BLOCK_CHARACTERS", 200)


def test_a_table_that_fits_is_read_whole_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch)
    reading = read_sample(written(tmp_path, 500), SCHEMA, "the real table", seed=0, most_rows=500)
    assert reading.table.numbers["number"].tolist() == list(range(500))
    assert reading.table.codes["label"][:3].tolist() == [0, 1, 2]
    assert not reading.is_sampled


def test_the_sample_depends_on_the_seed_and_not_on_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, 1000)
    in_one_piece = read_sample(path, SCHEMA, "the real table", seed=3, most_rows=40)
    small_pieces(monkeypatch)
    in_many, other_seed = (read_sample(path, SCHEMA, "the real table", seed=s, most_rows=40) for s in (3, 4))
    assert in_one_piece.rows_in_file == in_many.rows_in_file == 1000
    assert in_one_piece.table.numbers["number"].tolist() == in_many.table.numbers["number"].tolist()
    assert in_many.table.rows == 40
    assert in_many.table.numbers["number"].tolist() != other_seed.table.numbers["number"].tolist()


def test_every_row_is_as_likely_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch)
    path, draws, rows, most = written(tmp_path, 90), 200, 90, 30
    seen = np.zeros(rows)
    for seed in range(draws):
        sample = read_sample(path, SCHEMA, "the real table", seed=seed, most_rows=most).table
        seen[sample.numbers["number"].astype(int)] += 1
    # Each count is binomial(200, 1/3), deviation 6.7: beyond 4.5 deviations once in about 1,600 sets of 90 counts.
    assert np.abs(seen - draws * most / rows).max() < 4.5 * np.sqrt(draws * (1 / 3) * (2 / 3))


def test_a_bad_cell_far_down_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch)
    path = written(tmp_path, 400)
    path.write_text(path.read_text() + "7,z\n")
    with pytest.raises(InputError, match=r"'label' in the real table \(from row \d+ on\)"):
        read_sample(path, SCHEMA, "the real table", seed=0, most_rows=10)


def test_a_schema_is_not_drafted_from_more_rows_than_fit(tmp_path: Path) -> None:
    path = written(tmp_path, 50)
    assert len(read_text(path, most_rows=50)) == 50
    with pytest.raises(InputError, match="--schema"):
        read_text(path, most_rows=49)


def test_the_report_says_which_tables_were_not_seen_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedsynth.evaluation.files.MOST_ROWS", 60)
    path = written(tmp_path, 100)
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA.model_dump(mode="json")))
    files = [str(path), str(path), "--schema", str(tmp_path / "schema.yaml"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["evaluate", *files])
    assert result.exit_code == 0, result.output
    said = "everything about the real table: 60 of its 100 rows"
    assert said in " ".join(result.stdout.split())
    assert said in (tmp_path / "out" / "report.html").read_text()
