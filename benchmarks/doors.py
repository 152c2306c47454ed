"""2,000 strangers knock at the aggregator's door while three parties make tables; then fuzzers try every parser.

    python -m benchmarks.doors [--strangers N] [--fuzz-cases N] [--seed N]

Real are nginx with the chart's configuration, Flower's SuperLink and SuperNodes, the parties' workers and two runs; all
are processes of this machine, on loopback. The last line is one JSON object: how many strangers came; the share of the
kubelet's questions (private port, five seconds) that were answered; the SuperLink's largest resident memory; the share
of (run, party) that ended in the party's signed statement; what the fuzzers tried and how much of it failed.
"""

from __future__ import annotations

import argparse
import base64
import json
import logging
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from flwr.proto.message_pb2 import PushObjectRequest

from fed_node.consent import administration
from fedsynth.sandbox.making import free_port
from fedsynth.sandbox.programs import BIN
from synth.certificate.certificate import Certificate
from synth.plan import Plan
from tests.e2e.edge import Door, rendered_conf
from tests.e2e.loopback import ROOT, Deployment
from tests.small import plan_of

PROBE_SECONDS = 5.0  # the kubelet's patience, as the chart says
PROBE_EVERY_SECONDS = 0.5
INFORMED = 12
POLICY = {
    "maximum_epsilon_per_run": 4.0,
    "maximum_epsilon_in_total": 20.0,
    "maximum_delta": 1e-4,
    "minimum_rows": 10,
}
PLANS = [
    plan_of({"name": "marginals"}, name="crowded-counts"),
    plan_of({"name": "ctgan", "rounds": 5}, name="crowded-updates"),
]


class BehindDoors(Deployment):
    """The loopback deployment with both nginx in front."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, PLANS[0], 200, POLICY)
        self.dialled_port, self.probe_port = free_port(), free_port()
        self.doors = ExitStack()

    def start_superlink(self) -> None:
        super().start_superlink()
        files = dict.fromkeys(("/run/loopback", "/etc/edge/tls", "/etc/edge/control"), self.certificates)
        ports = {8443: self.dialled_port, 8444: free_port(), 8445: self.probe_port, 9090: free_port(), 8000: self.port}
        conf = rendered_conf(self.folder, self.register)
        self.edge = self.doors.enter_context(Door(conf["edge.conf"], self.folder / "edge", ports, files))
        self.doors.enter_context(Door(conf["inside.conf"], self.folder / "inside", ports, files))

    def carry_out(self, plan: Plan) -> int:
        """One run; how many parties signed what it did with them."""
        if plan is not self.plan:
            for name in self.keys:
                administration.approve(self.home(name), plan)
        self.plan = plan
        self.submit()
        if self.wait("released", "failed", seconds=900)["state"] != "released":
            return 0
        release = self.state / "runs" / plan.digest() / "release" / "certificate.json"
        return len(Certificate.model_validate_json(release.read_bytes()).statements)


class Kubelet:
    """Asks a door for health, again and again, until told to stop."""

    def __init__(self, url: str, authority: Path) -> None:
        self.asked = self.answered = 0
        self.slowest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, args=(url, str(authority)), daemon=True)
        self._thread.start()

    def _ask(self, url: str, authority: str) -> None:
        context = ssl.create_default_context(cafile=authority)
        while not self._stop.wait(PROBE_EVERY_SECONDS):
            began = time.monotonic()
            try:
                good = httpx.get(url, verify=context, timeout=PROBE_SECONDS).status_code == 200
            except httpx.HTTPError:
                good = False
            self.asked, self.answered = self.asked + 1, self.answered + good
            self.slowest = max(self.slowest, time.monotonic() - began)

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return self.answered / max(self.asked, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strangers", type=int, default=2000)
    parser.add_argument("--fuzz-cases", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1, help="of the strangers; the fuzzers count their cases")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, BehindDoors(Path(folder) / "doors") as deployment, deployment.doors:
        figures = crowded(deployment, arguments.strangers, arguments.seed)
    print(json.dumps(figures | fuzzed(arguments.fuzz_cases)))


def crowded(deployment: BehindDoors, strangers: int, seed: int) -> dict[str, Any]:
    authority = deployment.certificates / "ca.crt"
    words = [str(deployment.dialled_port), str(authority), str(strangers), str(seed)]
    crowd = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.strangers", *words], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    private = Kubelet(f"http://127.0.0.1:{deployment.probe_port}/health", authority)
    public = Kubelet(f"https://localhost:{deployment.dialled_port}/health", authority)
    time.sleep(20)  # until all are there
    began, served = time.monotonic(), 0
    for plan in PLANS:
        served += deployment.carry_out(plan)
        print(f"{plan.name}: {served} statements after {time.monotonic() - began:.0f} s", flush=True)
    print(f"SuperLink so far: {peak_mb(deployment.processes['superlink'].pid):.0f} MB")
    print(f"{INFORMED} strangers who know a party's key post bodies: {informed(deployment)}", flush=True)
    crowd.terminate()
    knocked = json.loads(crowd.communicate()[0])
    health, public_health = private.stop(), public.stop()
    print(f"{knocked['at_once']} strangers at once; knocks: {knocked['knocks']}")
    print(f"private /health: {private.answered} of {private.asked}, slowest {private.slowest:.2f} s")
    print(f"public /health: {public_health:.3f} of {public.asked} questions, slowest {public.slowest:.2f} s")
    print(f"edge: {peak_mb(deployment.edge.process.pid):.0f} MB; requests: {answers_to(deployment)}")
    return {
        "strangers": knocked["strangers"],
        "health_ok_share": round(health, 4),
        "superlink_peak_mb": round(peak_mb(deployment.processes["superlink"].pid), 1),
        "parties_served_share": round(served / (len(PLANS) * len(deployment.keys)), 4),
    }


def informed(deployment: BehindDoors) -> dict[int, int]:
    """The SuperLink's worst case: posts that carry a registered key and a false signature pass the edge, and are parsed
    before they are refused. Statuses and how often they came."""
    key = serialization.load_ssh_public_key(deployment.register["party-1"]["nodeKey"].encode())
    pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    headers = {"flwr-public-key": base64.b64encode(pem).decode(), "content-type": "application/protobuf"}
    context = ssl.create_default_context(cafile=str(deployment.certificates / "ca.crt"))
    url = f"https://localhost:{deployment.dialled_port}/v1/fleet/push-object"
    body = PushObjectRequest(object_content=b"x" * 5_900_000).SerializeToString()

    def post(_: int) -> int:
        try:
            return httpx.post(url, content=body, headers=headers, verify=context, timeout=60).status_code
        except httpx.HTTPError:
            return 0

    with ThreadPoolExecutor(INFORMED) as pool:
        return dict(Counter(pool.map(post, range(10 * INFORMED))))


def answers_to(deployment: BehindDoors) -> dict[str, dict[str, int]]:
    """Statuses of the access log, of parties and of strangers."""
    counts: dict[str, dict[str, int]] = {"parties": {}, "strangers": {}}
    for line in deployment.edge.logged:
        who = counts["parties" if line["party"] else "strangers"]
        who[str(line["status"])] = who.get(str(line["status"]), 0) + 1
    return counts


def peak_mb(process: int) -> float:
    """Largest resident memory of a process and its children, in MB of 10⁶ bytes."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(lines["VmHWM"].split()[0]) * 1024 / 1e6 + sum(peak_mb(int(child)) for child in children)


def fuzzed(cases: int) -> dict[str, int]:
    """The fuzzers' own count; a campaign that ends badly is a failure, not a gap."""
    if not cases:
        return {"fuzz_cases": 0, "fuzz_failures": 0}
    words = [str(BIN / "python"), "-m", "tests.fuzz.campaign", "--cases", str(cases)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    told: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return {"fuzz_cases": told["fuzz_cases"], "fuzz_failures": told["fuzz_failures"]}


if __name__ == "__main__":
    main()
