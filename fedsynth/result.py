"""A finished run, for Python: the table, what is promised for it, its report, and more rows of its model."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from fedsynth.conditions import Where
from synth.certificate.certificate import Certificate
from synth.errors import InputError
from synth.plan import Plan


@dataclass(frozen=True)
class Report:
    """How the synthetic table compares with the real rows. Not private: it belongs to whoever may see those rows."""

    figures: dict[str, Any]
    html: str

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither styles the other."""
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:40em;border:0"></iframe>'


@dataclass(frozen=True)
class Result:
    """A finished run: the table, what was promised for it, and the model, from which rows can be drawn at no cost."""

    folder: Path
    plan: Plan
    table: pd.DataFrame
    certificate: Certificate

    @property
    def epsilon(self) -> float | None:
        """What the whole release costs; None where no finite ε is proven."""
        return self.certificate.claim.epsilon

    def report(self) -> Report:
        page = self.folder / "report.html"
        if not page.exists():
            raise InputError("this run was made without a report; make one with `fedsynth evaluate`")
        return Report(json.loads((self.folder / "report.json").read_text()), page.read_text())

    def sample(self, rows: int, *, where: Where = (), seed: int | None = None) -> pd.DataFrame:
        """More rows, at no further cost in privacy; other ones each time unless a seed is given.

        `where` is a mapping (`{"sex": "f", "age": (18, 65), "ward": ["a", "b"]}`), a condition (`"cost > 1000"`), or a
        list of conditions, which rows fulfil all."""
        from fedsynth.drawing import draw_rows
        from fedsynth.model_file import read_model

        return draw_rows(read_model(self.folder / "model.npz"), rows, where, seed)

    def save(self, folder: str | Path) -> Path:
        """Copy table, model, certificate and report; `Result.load` reads them again."""
        target = Path(folder)
        if target.exists() and any(target.iterdir()):
            raise InputError(f"{target} is not empty; choose a new folder")
        shutil.copytree(self.folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("work"))
        return target

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        from fedsynth.documents import read_plan

        place = Path(folder)
        if not (place / "certificate.json").exists():
            raise InputError(f"{place} holds no finished run: there is no certificate.json in it")
        parquet, text = place / "synthetic.parquet", place / "synthetic.csv"
        typed = parquet.exists() and (find_spec("pyarrow") or not text.exists())
        table = pd.read_parquet(parquet) if typed else pd.read_csv(text)
        certificate = Certificate.model_validate_json((place / "certificate.json").read_bytes())
        return cls(place, read_plan(place / "plan.json"), table, certificate)
