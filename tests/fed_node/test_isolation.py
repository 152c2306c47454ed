"""A worker that was taken over must not be able to send rows anywhere: it has no network left."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fed_node.process.worker_client import ping
from fed_node.source import SqlSource
from tests.fed_node.test_worker import started
from tests.fed_node.two_parties import make_homes, small_plan

# What somebody inside the process could try, before it gave up the network and afterwards; also in its threads and
# children.
TRY = """
import json, socket, subprocess, sys, threading
from fed_node.process.isolation import give_up_network

FAMILIES = [socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK]

def opened(family):
    try:
        socket.socket(family).close()
    except PermissionError:
        return False
    except OSError:
        return None
    return True

listening = socket.create_server(("127.0.0.1", 0))
go, seen = threading.Event(), []
thread = threading.Thread(target=lambda: (go.wait(), seen.append(opened(socket.AF_INET))))
thread.start()
caller = socket.create_connection(listening.getsockname())
before = opened(socket.AF_INET)
why = give_up_network()
go.set()
thread.join()
caller.sendall(b"scrape")
child = "import socket; socket.socket(socket.AF_INET)"
print(json.dumps({
    "before": before, "why": why, "thread": seen[0], "families": [opened(family) for family in FAMILIES],
    "unix": opened(socket.AF_UNIX), "listening": listening.accept()[0].recv(6).decode(),
    "child": subprocess.run([sys.executable, "-c", child], capture_output=True).returncode,
}))
"""


def test_after_giving_up_the_network_nothing_but_unix_sockets_opens() -> None:
    done = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert found["before"] is True
    assert found["why"] is None
    assert found["families"] == [False] * 5
    assert (found["thread"], found["child"]) == (False, 1)
    assert (found["unix"], found["listening"]) == (True, "scrape")  # messages, and metrics that listened before


@pytest.mark.parametrize("rows", ["file", "database"])
def test_the_worker_says_whether_it_is_cut_off(tmp_path: Path, rows: str) -> None:
    home = make_homes(tmp_path, small_plan(rounds=3), approved=False)["party-1"]
    if rows == "database":
        source = SqlSource(kind="sql", query="SELECT 1", url_env="NOWHERE").model_dump(mode="json", exclude_none=True)
        text = (home / "party.yaml").read_text()
        kept = "\n".join(line for line in text.splitlines() if "csv" not in line and "data" not in line)
        (home / "party.yaml").write_text(f"{kept}\ndata: {json.dumps(source)}\n")
    worker = started(home)
    try:
        network = ping(home / "w.sock")["network"]
    finally:
        worker.kill()
        worker.wait()
    assert network == ("none: only Unix sockets" if rows == "file" else "open: the rows are in a database")
    socket.socket(socket.AF_INET).close()  # and this process kept its own
