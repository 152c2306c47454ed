"""A sandbox's federation as containers: the images of the charts, started by `docker compose`, the edge in front.

Every command line is that of `programs`, so there is no second set of flags: a container sees the folders that are its
own under the paths that they have on this machine. Networks are as narrow as in a cluster: a party reaches the edge and
nobody else, the edge passes Fleet requests alone, and Control is reached from inside the aggregator only.

    edge ── superlink, runner (its network)          north, south, west ── worker, tasks (each its network)
     ╰───────────────── one network for each party ─────────────────╯
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from fedsynth.documents import write_yaml
from fedsynth.operated import SANDBOX
from fedsynth.sandbox import programs
from fedsynth.sandbox.layout import AGGREGATOR, Layout
from fedsynth.sandbox.programs import QUIET, Program
from synth.messages.archive import write_durably

EDGE_PORT, NODE_PORT = 8443, 9094
IMAGE_USER = 10001
EDGE = """worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr crit;
events {{ worker_connections 256; }}
http {{
  client_body_temp_path /tmp/body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
  access_log off;
  server_tokens off;
  ssl_protocols TLSv1.2 TLSv1.3;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host localhost;
  proxy_read_timeout 300s;
  proxy_ssl_trusted_certificate {files}/ca.crt;
  proxy_ssl_verify on;
  proxy_ssl_name localhost;
  server {{  # a URI in proxy_pass makes nginx send the path as it understood it: no "/v1/fleet/../control/"
    listen {edge} ssl;
    ssl_certificate {files}/tls.crt;
    ssl_certificate_key {files}/tls.key;
    client_max_body_size 64m;
    location /v1/fleet/ {{ proxy_pass https://127.0.0.1:{port}/v1/fleet/; }}
    location = /health {{ proxy_pass https://127.0.0.1:{port}/health; }}
    location / {{ return 404; }}
  }}
}}
"""


def write_compose(layout: Layout, tag: str) -> Path:
    """compose.yaml and the edge's configuration, into the sandbox's folder."""
    edge = EDGE.format(files=layout.certificates, edge=EDGE_PORT, port=layout.port)
    write_durably(_edge_file(layout), edge.encode())
    path = layout.folder / "compose.yaml"
    text = write_yaml(composed(layout, tag))
    write_durably(path, ("# Written by `fedsynth sandbox compose`; for trying, with made-up rows.\n" + text).encode())
    if os.getuid() == 0:
        _hand_over(layout)
    return path


def composed(layout: Layout, tag: str) -> dict[str, Any]:
    services = {AGGREGATOR: _edge(layout, tag)} | _aggregator(layout, tag)
    for party in layout.parties:
        services |= _party(layout, party, tag)
    return {"services": services, "networks": {party: {"internal": True} for party in layout.parties}}


def _edge(layout: Layout, tag: str) -> dict[str, Any]:
    """Under the aggregator's name, since that is what parties dial; the SuperLink is in its network, on loopback."""
    return _contained(f"fedsynth/edge:{tag}", [_edge_file(layout), layout.certificates], []) | {
        "command": ["-c", str(_edge_file(layout))],
        "networks": list(layout.parties),
    }


def _aggregator(layout: Layout, tag: str) -> dict[str, Any]:
    """The `operator` is where commands are typed: it registers the parties, and stays."""
    image, inside = f"fedsynth/aggregator:{tag}", {"network_mode": f"service:{AGGREGATOR}"}
    superlink = programs.superlink(layout.port, layout.certificates, layout.state / "superlink.sqlite")
    runner = programs.runner(
        layout.port, layout.certificates, layout.state, layout.register, layout.identity, layout.metrics
    )
    register = Program(
        ["sh", "-c", f"python -m aggregator.server.control register '{layout.register}' && sleep infinity"],
        programs.control(layout.port, layout.certificates, layout.state) | {SANDBOX: str(layout.folder)},
    )
    own = [layout.folder / AGGREGATOR]
    read = [layout.federation, layout.plan, layout.identity]
    return {
        name: _contained(image, read, own) | _started(program) | inside
        for name, program in (("superlink", superlink), ("runner", runner), ("operator", register))
    }


def _party(layout: Layout, party: str, tag: str) -> dict[str, Any]:
    """The SuperNode has the network, under the party's name; the worker reads rows and has none."""
    image, home, authority = f"fedsynth/fed-node:{tag}", layout.home(party), layout.authority(party)
    socket, key = home / "worker.sock", home / "node.key"
    node = programs.supernode(party, f"{AGGREGATOR}:{EDGE_PORT}", NODE_PORT, authority, key)
    worker = _contained(image, [layout.plan], [home]) | _started(programs.worker(home, socket))
    tasks = _contained(image, [], [home]) | _started(programs.tasks(NODE_PORT, socket))
    return {
        party: _contained(image, [authority, key], []) | _started(node) | {"networks": [party]},
        f"{party}-worker": worker | {"network_mode": "none"},
        f"{party}-tasks": tasks | {"network_mode": f"service:{party}"},
    }


def _contained(image: str, read: list[Path], own: list[Path]) -> dict[str, Any]:
    """What every container has: nothing but its folders, and no rights."""
    return {
        "image": image,
        "user": "{}:{}".format(*_owner()),
        "read_only": True,
        "tmpfs": ["/tmp:mode=1777"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "restart": "unless-stopped",  # as a cluster would: a node that finds its old session alive tries again
        "volumes": [*(f"{path}:{path}:ro" for path in read), *(f"{path}:{path}" for path in own)],
    }


def _started(program: Program) -> dict[str, Any]:
    command = ["python" if word == sys.executable else word for word in program.command]
    return {"entrypoint": command, "environment": QUIET | program.environment}


def _owner() -> tuple[int, int]:
    """Whose files they are; root's are handed to the images' own user, since no container runs as root."""
    return (os.getuid(), os.getgid()) if os.getuid() else (IMAGE_USER, IMAGE_USER)


def _hand_over(layout: Layout) -> None:
    for path in [layout.folder, *layout.folder.rglob("*")]:
        os.chown(path, *_owner())


def _edge_file(layout: Layout) -> Path:
    return layout.folder / "edge.conf"
