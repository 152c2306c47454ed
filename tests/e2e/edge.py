"""The aggregator's doors on this machine: nginx with the very configuration that the chart renders, its paths and ports
moved to a folder and to free ports. nginx is the system's, or that of the image `fedsynth/edge`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.charts.tools import CHARTS, run_helm

TOOLS = Path(__file__).parents[2] / "build" / "tools" / "edge"
IMAGES = ("fedsynth/edge:dev", "fedsynth/edge:0.2.0")


@cache
def nginx() -> list[str] | None:
    """How nginx is started here, or None where there is none."""
    if found := shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return [found]
    if not (TOOLS / "usr").exists() and not _unpacked():
        return None
    loader = next(TOOLS.glob("lib64/ld-linux*"))
    libraries = {str(path.parent) for path in TOOLS.rglob("*.so*")}
    return [str(loader), "--library-path", ":".join(sorted(libraries)), str(TOOLS / "usr/sbin/nginx")]


def _unpacked() -> bool:
    """The image's files, taken out of it; needs docker and the image."""
    if shutil.which("docker") is None:
        return False
    for image in IMAGES:
        made = subprocess.run(["docker", "create", image, "none"], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            TOOLS.mkdir(parents=True, exist_ok=True)
            try:
                subprocess.run(["docker", "cp", f"{made.stdout.strip()}:/.", str(TOOLS)], check=True)
            finally:
                subprocess.run(["docker", "rm", made.stdout.strip()], check=True, capture_output=True)
            return True
    return False


def rendered_conf(folder: Path, parties: dict[str, dict[str, str]], **edge: Any) -> dict[str, str]:
    """edge.conf and inside.conf as an operator's cluster would mount them."""
    values = folder / "edge-values.yaml"
    values.write_text(yaml.safe_dump({"parties": parties, "edge": edge}))
    done = run_helm("template", "demo", str(CHARTS["aggregator"]), "-f", str(values))
    assert done.returncode == 0, done.stderr
    maps = [each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] == "ConfigMap"]
    return dict(next(each["data"] for each in maps if "edge.conf" in each["data"]))


class Door:
    """One nginx. `files` says what stands for the folders that the chart mounts: /run/loopback, /etc/edge/tls …"""

    def __init__(self, conf: str, folder: Path, ports: dict[int, int], files: dict[str, Path]) -> None:
        self.folder, self.ports = folder, ports
        folder.mkdir(parents=True)
        conf = conf.replace(" /tmp/", f" {folder}/").replace("/dev/stdout", str(folder / "access.log"))
        for inner, outer in ports.items():
            conf = conf.replace(f"listen {inner}", f"listen 127.0.0.1:{outer}")
            conf = conf.replace(f"server 127.0.0.1:{inner}", f"server 127.0.0.1:{outer}")
        for inside, outside in files.items():
            conf = conf.replace(inside, str(outside))
        (folder / "nginx.conf").write_text(conf)

    def __enter__(self) -> Self:
        command = nginx()
        assert command is not None
        manners = "daemon off;" + (" user root;" if os.getuid() == 0 else "")
        words = [*command, "-e", "stderr", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-g", manners]
        with (self.folder / "errors.log").open("ab") as errors:
            self.process = subprocess.Popen(words, stdout=errors, stderr=errors)
        for port in self._listened():
            self._wait_for(port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait(10)

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]

    def _listened(self) -> list[int]:
        conf = (self.folder / "nginx.conf").read_text()
        return [port for port in self.ports.values() if f"listen 127.0.0.1:{port}" in conf]

    def _wait_for(self, port: int) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            assert self.process.poll() is None, (self.folder / "errors.log").read_text()
            time.sleep(0.05)
        raise AssertionError(f"nginx does not listen on {port}: {(self.folder / 'errors.log').read_text()}")
