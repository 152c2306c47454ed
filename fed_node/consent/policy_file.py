"""The policy as its file stands now, not as it stood when the worker was started.

An institution that tightens its policy wants it to hold for the very next message. So the file is looked at before
each; it is parsed again only if a byte of it changed. A policy that cannot be read, or is gone, forbids everything:
no party becomes more permissive by losing a file.
"""

from __future__ import annotations

from pathlib import Path

from fed_node.consent.policy import Policy, read_policy
from fed_node.settings import POLICY
from synth.errors import InputError


class PolicyFile:
    """`policy` is None only for a party that never had one."""

    def __init__(self, home: Path) -> None:
        self.path = home / POLICY
        self.policy: Policy | None = None
        self._content: bytes | None = None
        self.reload()

    def reload(self) -> bool:
        """Read the file again; whether it changed."""
        if not self.path.exists():
            if self.policy is None:
                return False
            raise InputError(f"the policy {self.path} is gone; nothing is answered until it is back.")
        content = read_policy(self.path)
        if content == self._content:
            return False
        self.policy, self._content = Policy.parse(self.path, content), content
        return True
