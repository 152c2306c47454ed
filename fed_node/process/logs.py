"""The party's own log: one JSON object a line, without a single cell of the table.

Our own messages carry no values, so they are written out. Anybody else's may (pandas quotes the cell it stumbled
over), so of a foreign exception or log record only its type and its place in the code are kept. `debug_values: true`
in party.yaml lifts this, for the party's own eyes; nothing of the log ever leaves the party.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from crypto.errors import CryptoError
from fed_node.errors import StoreUnwritable
from synth.errors import FedsynthError
from synth.messages.archive import private_folder

OURS = "fed_node"
LARGEST_FILE_BYTES = 10_000_000
FILES_KEPT = 5
LONGEST_MESSAGE = 2_000  # characters: the aggregator chooses some of the words that a refusal quotes
FIELDS = ("party", "run", "kind", "code", "seconds", "network")  # what callers add by `extra`


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def __init__(self, debug_values: bool = False) -> None:
        super().__init__()
        self.debug_values = debug_values

    def format(self, record: logging.LogRecord) -> str:
        time = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "message": self._message(record)}
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[1] is not None:
            line["errors"] = [self._error(error) for error in _chain(record.exc_info[1])]
        return json.dumps(line, ensure_ascii=False, default=_type_name)

    def _message(self, record: logging.LogRecord) -> str:
        return self._whole_message(record)[:LONGEST_MESSAGE]

    def _whole_message(self, record: logging.LogRecord) -> str:
        if self.debug_values:
            return record.getMessage()
        if record.name.partition(".")[0] != OURS:
            return f"a message of {record.name} at {Path(record.pathname).name}:{record.lineno}, withheld"
        if isinstance(record.args, tuple):
            record.args = tuple(_without_values(value) for value in record.args)
        return record.getMessage()

    def _error(self, error: BaseException) -> dict[str, Any]:
        told = self.debug_values or is_ours(error)
        frames = [
            f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        return {
            "type": _type_name(error),
            "code": getattr(error, "code", "internal") if is_ours(error) else "internal",
            "message": str(error)[:LONGEST_MESSAGE] if told else None,
            "frames": frames,
        }


def is_ours(error: BaseException) -> bool:
    return isinstance(error, FedsynthError | CryptoError)


def log_party(path: Path, debug_values: bool = False) -> None:
    """The party's records go to this file and nowhere else: for a process that several parties share."""
    _send(logging.getLogger(OURS), [_file(path)], debug_values)


def log_worker(path: Path, debug_values: bool = False) -> None:
    """For a process that is the party's alone: all records and warnings, to this file and to standard error."""
    _send(logging.getLogger(OURS), [], debug_values)
    logging.getLogger(OURS).propagate = True
    _send(logging.getLogger(), [_file(path), logging.StreamHandler(sys.stderr)], debug_values)
    logging.captureWarnings(True)


def log_client() -> None:
    """For the thin ClientApp, which has no volume: standard error."""
    _send(logging.getLogger(OURS), [logging.StreamHandler(sys.stderr)], debug_values=False)


class PrivateFile(RotatingFileHandler):
    """For its owner alone, each time that a new file is begun."""

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        os.chmod(self.baseFilename, 0o600)
        return stream


def _file(path: Path) -> logging.Handler:
    try:
        private_folder(path.parent)
        return PrivateFile(path, maxBytes=LARGEST_FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8")
    except OSError as error:
        raise StoreUnwritable(f"cannot write the log {path}: {error.strerror}. Make the volume writable.") from error


def _send(logger: logging.Logger, handlers: list[logging.Handler], debug_values: bool) -> None:
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    for handler in handlers:
        handler.setFormatter(JsonLines(debug_values))
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, latest first."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _without_values(value: object) -> object:
    return _type_name(value) if isinstance(value, BaseException) and not is_ours(value) else value


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
