"""Flower's SuperLink with its log as JSON lines: `python -m aggregator.server.superlink`, with Flower's own flags.

Its database waits for the disk at checkpoints only, not at every message: a machine that loses power may lose the last
messages, which are asked again (sums/round_trip.py), and never its consistency (SQLite's WAL).
"""

from __future__ import annotations

import logging
import sqlite3
import sys

from flwr.superlink.cli.flower_superlink import flower_superlink
from sqlalchemy import event
from sqlalchemy.engine import Engine

from synth.json_logs import log_as_json


@event.listens_for(Engine, "connect")
def _hurry(connection: sqlite3.Connection, _: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


def main() -> None:
    log_as_json()
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)  # the edge's log has the requests
    unchanged = {"version": 1, "disable_existing_loggers": False, "incremental": True}
    vars(sys.modules[flower_superlink.__module__])["get_uvicorn_log_config"] = lambda _: unchanged
    flower_superlink()


if __name__ == "__main__":
    main()
