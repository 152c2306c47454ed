"""The party's log: JSON, one object a line, and never a cell."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fed_node.errors import StoreUnwritable
from fed_node.guard import Refused, attempt
from fed_node.process.logs import log_client, log_party, log_worker
from synth.errors import DataError

SECRET = "secret-diagnosis-F20.0"
log = logging.getLogger("fed_node")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    loggers = [logging.getLogger(), log]
    before = [(list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers = []
    yield
    logging.captureWarnings(False)
    for handler in {handler for logger in loggers for handler in logger.handlers}:
        handler.close()
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.level, logger.propagate = handlers, level, propagate


def stumble() -> None:
    try:
        pd.Series([SECRET]).astype("float64")
    except ValueError as error:
        raise DataError("column 'diagnosis', row 17 is no number") from error


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_foreign_error_leaves_its_type_and_place_but_not_its_text(tmp_path: Path) -> None:
    path = tmp_path / "party.log"
    log_party(path)
    assert attempt("ask", stumble) == Refused("data-does-not-fit-schema")
    assert SECRET not in path.read_text()
    (line,) = lines(path)
    assert line["level"] == "error"
    assert (line["kind"], line["code"]) == ("ask", "data-does-not-fit-schema")
    ours, foreign = line["errors"]
    assert ours["type"] == "synth.errors.DataError"
    assert ours["message"] == "column 'diagnosis', row 17 is no number"
    assert (foreign["type"], foreign["message"]) == ("ValueError", None)
    assert any(frame.startswith("test_logs.py:") and frame.endswith(" stumble") for frame in foreign["frames"])


def test_debug_values_shows_everything(tmp_path: Path) -> None:
    log_party(tmp_path / "party.log", debug_values=True)
    attempt("ask", stumble)
    assert SECRET in (tmp_path / "party.log").read_text()


def test_a_foreign_error_among_the_arguments_is_named_only(tmp_path: Path) -> None:
    log_party(tmp_path / "party.log")
    log.warning("cannot go on (%s)", ValueError(SECRET))
    assert lines(tmp_path / "party.log")[0]["message"] == "cannot go on (ValueError)"


@pytest.mark.filterwarnings("default")
def test_in_the_workers_process_foreign_records_and_warnings_are_withheld(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "party.log"
    log_worker(path)
    logging.getLogger("sqlalchemy.engine").warning("row %s", SECRET)
    warnings.warn(SECRET, stacklevel=1)
    log.info("answered", extra={"kind": "ask", "run": "r", "seconds": 0.25})
    assert SECRET not in path.read_text() + capsys.readouterr().err
    library, warning, ours = lines(path)
    assert library["message"].startswith("a message of sqlalchemy.engine at test_logs.py:")
    assert warning["message"].startswith("a message of py.warnings")
    assert (ours["message"], ours["run"], ours["seconds"]) == ("answered", "r", 0.25)


def test_the_client_app_logs_json_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log_client()
    attempt("ask", stumble)
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["code"] == "data-does-not-fit-schema"
    assert SECRET not in line


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable, match="log"):
        log_party(tmp_path / "file" / "party.log")
