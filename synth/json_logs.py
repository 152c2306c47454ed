"""Other people's logs as JSON lines: Flower colours its words for a terminal, and no SIEM reads that."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys

LONGEST_MESSAGE = 2_000
ROUTINE = ("", "ControlServicer.ListNodes", "ControlServicer.ListRuns")
THEIRS = ("flwr", "uvicorn", "uvicorn.error", "uvicorn.access")


class JsonLine(logging.Formatter):
    """A record as one line: time, level, who, and the message without colours or line breaks."""

    def format(self, record: logging.LogRecord) -> str:
        time = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        words = " ".join(record.getMessage().split())[:LONGEST_MESSAGE]
        line = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": words}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


class _Worded(logging.StreamHandler):  # type: ignore[type-arg]
    """Flower logs empty lines to look tidy, and a line each time that the register is looked at."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().strip() not in ROUTINE:
            super().emit(record)


def log_as_json() -> None:
    """From now on, in this process."""
    handler = _Worded(sys.stderr)
    handler.setFormatter(JsonLine())
    handler.setLevel(logging.INFO)
    for name in THEIRS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
