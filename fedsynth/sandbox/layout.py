"""Where a sandbox keeps what. A folder is a whole federation; whoever deletes it deletes the federation.

federation.yaml     who meets where            plan.yaml       what the example proposes to do
federation/         the operator's kits and keys.yaml, as `fedsynth provision` makes them
aggregator/         its volume (state/), the SuperLink's certificate
parties/NAME/       a party's home: settings, policy, keys, rows, ledger
logs/               one file a process          processes.json  which processes are whose
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fedsynth.documents import read_document
from synth.errors import InputError

AGGREGATOR = "aggregator"


@dataclass(frozen=True)
class Layout:
    """The places of one sandbox."""

    folder: Path

    @property
    def federation(self) -> Path:
        return self.folder / "federation.yaml"

    @property
    def kits(self) -> Path:
        return self.folder / "federation"

    @property
    def plan(self) -> Path:
        return self.folder / "plan.yaml"

    @property
    def state(self) -> Path:
        return self.folder / AGGREGATOR / "state"

    @property
    def certificates(self) -> Path:
        """The SuperLink's own, as the aggregator's pod has them on loopback."""
        return self.folder / AGGREGATOR / "loopback"

    @property
    def register(self) -> Path:
        return self.folder / AGGREGATOR / "parties.json"

    @property
    def metrics(self) -> Path:
        return self.folder / AGGREGATOR / "metrics.prom"

    @property
    def identity(self) -> Path:
        return self.kits / AGGREGATOR / "identity.key"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def home(self, party: str) -> Path:
        return self.folder / "parties" / party

    def authority(self, party: str) -> Path:
        """What the party believes the endpoint by: a file of its kit."""
        return self.kits / "parties" / party / "ca.crt"

    @property
    def parties(self) -> list[str]:
        return list(json.loads(self.register.read_bytes()))

    @property
    def endpoint(self) -> str:
        return str(read_document(self.federation)["endpoint"])

    @property
    def port(self) -> int:
        return int(self.endpoint.rpartition(":")[2])

    def require(self) -> Layout:
        if not self.register.exists():
            raise InputError(f"there is no sandbox in {self.folder}; `fedsynth sandbox up` makes one.")
        return self
