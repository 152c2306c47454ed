"""What a party must remember of an alignment and of an exchange of shares, on its volume, for one run.

The key of the pseudonyms, who takes part, and whether all agreed; the seeds that mask this party's rows, and its shares
as far as chunks came in. A seed is written before anything leaves under it, with a digest of what it masks: it masks
nothing else, ever, whatever is killed in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fed_node.errors import StoreDamaged
from fed_node.seal.run_folder import RunFolder
from synth.errors import InputError
from synth.interface import Arrays
from synth.messages import archive


@dataclass
class Page:
    """One file of the run's folder: a few values and arrays."""

    folder: RunFolder
    name: str
    values: dict[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)

    @classmethod
    def read(cls, folder: RunFolder, name: str) -> Page:
        content = folder.read(name)
        if content is None:
            return cls(folder, name)
        try:
            arrays, values = archive.unpack(content, str(folder.path / name))
        except InputError as error:
            raise StoreDamaged(f"{error}. Restore the volume from a backup, or start a new run.") from error
        return cls(folder, name, values, arrays)

    def note(self, values: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Write these beside what is there, durably."""
        self.values |= values
        self.arrays |= arrays or {}
        self.folder.write(self.name, archive.pack(self.arrays, self.values))
