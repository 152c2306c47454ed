"""From a federation's document to its kits, whatever was made before: what exists is kept, what is missing is made.

The folder is the memory. Running twice changes nothing; a new party gets keys and the others only learn its public
half; a certificate is renewed when it is about to end or the server's names changed. A new authority comes in two
steps, so that nobody is cut off: after the first the kits trust both, after the second (a new server certificate) one.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from crypto.keys import IdentityKey
from fedsynth.documents import write_yaml
from fedsynth.keyring import with_retired
from fedsynth.provision import kits
from fedsynth.provision.authority import (
    Certified,
    control_certificate,
    days_left,
    fingerprints,
    is_signed_by,
    names_of,
    new_authority,
    server_certificate,
)
from fedsynth.provision.federation import Federation, Member
from fedsynth.provision.memory import Memory
from fedsynth.provision.party_keys import IDENTITY_KEY, PrivateKeys, PublicKeys, new_keys
from synth.errors import InputError

THINGS = {"ca", "server", "control", "aggregator", "federation"}  # to rotate, beside parties
RENEW_DAYS = 30  # before the end
IN_CLUSTER = ["aggregator", "localhost"]  # names under which preflights inside the cluster see the server


@dataclass
class Outcome:
    """What a run of `provision` did; everything in it is public."""

    made: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    authorities: list[str] = field(default_factory=list)  # fingerprints; two while a new one is brought in
    aggregator: str = ""
    federation: str = ""  # fingerprint of the key that signs kits
    operator_made: list[str] = field(default_factory=list)  # parties whose keys are the operator's work
    page: str = ""  # everybody's fingerprints, to be read aloud
    fingerprints: dict[str, dict[str, str]] = field(default_factory=dict)


class Provisioning:
    """One federation's folder."""

    def __init__(
        self,
        federation: Federation,
        folder: Path,
        rotate: Collection[str] = (),
        revoke: Collection[str] = (),
        make_keys: Collection[str] = (),
    ) -> None:
        self.federation, self.folder, self.make_keys = federation, folder, set(make_keys)
        self.rotate, self.outcome = set(rotate), Outcome()
        names = {party.name for party in federation.parties}
        if unknown := (set(rotate) - THINGS | set(revoke) | self.make_keys) - names:
            raise InputError(
                f"there is no party {', '.join(sorted(unknown))} in the federation; to rotate are: "
                f"{', '.join(sorted(THINGS | names))}"
            )
        self.revoked = (self._revoked_before() | set(revoke)) - self.rotate

    def carry_out(self) -> Outcome:
        ca = self._authority()
        server, control = self._server(ca), self._control()
        identity = self._key("aggregator", self.folder / "aggregator" / IDENTITY_KEY)
        trusted = self._trusted(ca, server)
        keys = {party.name: self._keys(party) for party in self.federation.parties if party.name not in self.revoked}
        if not keys:
            raise InputError("every party is revoked; a federation needs at least one")
        members = {name: public for name, (public, _) in keys.items()}
        kits.write_aggregator(self.folder / "aggregator", self.federation, trusted, server, control, identity, members)
        identities = {kits.AGGREGATOR: identity.identity.to_text()}
        identities |= {name: public.identity for name, public in members.items()}
        signs = self._key("federation", self.folder / "authority" / "federation.key")
        known = with_retired(self.folder / "keys.yaml", identities, dt.datetime.now(dt.UTC))
        meeting = kits.Meeting(self.federation, trusted, signs, identities, known)
        for name, (_, private) in keys.items():
            kits.write_party(self.folder / "parties" / name, name, meeting, private)
        page = kits.fingerprints_of_federation(trusted, signs.identity, identity.identity, members)
        kits.write(self.folder / "fingerprints.txt", page)
        kits.write(self.folder / "keys.yaml", write_yaml(known))
        kits.write(self.folder / "revoked.json", json.dumps(sorted(self.revoked)) + "\n")
        self.outcome.revoked = sorted(self.revoked)
        self.outcome.authorities = fingerprints(trusted)
        self.outcome.aggregator = identity.identity.fingerprint()
        self.outcome.federation = signs.identity.fingerprint()
        self.outcome.operator_made = sorted(name for name, (_, private) in keys.items() if private is not None)
        self.outcome.page = page
        self.outcome.fingerprints = {name: public.fingerprints() for name, public in members.items()}
        return self.outcome

    def _authority(self) -> Certified:
        folder = self.folder / "authority"
        if "ca" in self.rotate and (folder / "ca.crt").exists():
            current, server = (folder / "ca.crt").read_bytes(), self.folder / "aggregator" / "server.crt"
            if server.exists() and not is_signed_by(server.read_bytes(), current):
                raise InputError(
                    "a new authority is being brought in already: when every party installed its new kit, finish with "
                    "--rotate server; then begin again."
                )
            kits.write(folder / "previous.crt", current)
        return self._certified("ca", folder, lambda: new_authority(self.federation.name))

    def _trusted(self, ca: Certified, server: Certified) -> bytes:
        """What parties check the server by: the authority, and the previous one while the server still shows it."""
        if is_signed_by(server.certificate, ca.certificate):
            return ca.certificate
        return ca.certificate + (self.folder / "authority" / "previous.crt").read_bytes()

    def _key(self, name: str, path: Path) -> IdentityKey:
        """A key that signs: certificates (the aggregator's) or kits (the federation's)."""
        kept = path.exists() and name not in self.rotate
        if not kept:
            kits.write(path, IdentityKey.generate().to_pem())
        self._note(name, kept)
        return IdentityKey.from_pem(path.read_bytes())

    def _server(self, ca: Certified) -> Certified:
        names = list(dict.fromkeys([self.federation.host, *self.federation.server_names, *IN_CLUSTER]))
        place = self.folder / "aggregator"
        if (place / "server.crt").exists() and names_of((place / "server.crt").read_bytes()) != names:
            self.rotate.add("server")
        return self._certified("server", place, lambda: server_certificate(ca, names, self.federation.certificate_days))

    def _control(self) -> tuple[bytes, Certified]:
        authority = self.folder / "aggregator" / "control-ca.crt"

        def make() -> Certified:
            certificate, certified = control_certificate(self.federation.name, self.federation.certificate_days)
            kits.write(authority, certificate)
            return certified

        certified = self._certified("control", authority.parent, make)
        return authority.read_bytes(), certified

    def _certified(self, name: str, folder: Path, make: Callable[[], Certified]) -> Certified:
        """The certificate that is there, unless it is to be replaced or soon at its end."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        if certificate.exists() and key.exists() and name not in self.rotate:
            found = Certified(certificate.read_bytes(), key.read_bytes())
            if name == "ca" or days_left(found.certificate) > min(RENEW_DAYS, self.federation.certificate_days // 2):
                self.outcome.kept.append(f"certificate of {name}")
                return found
        made = make()
        kits.write(key, made.key)
        kits.write(certificate, made.certificate)
        self.outcome.made.append(f"certificate of {name}")
        return made

    def _keys(self, party: Member) -> tuple[PublicKeys, PrivateKeys | None]:
        """The party's public keys, and the private ones if they were made here."""
        memory = Memory(self.folder, party.name)
        stored, private = memory.public(), memory.private()
        if party.node_key is not None and party.identity is not None:
            given = PublicKeys(party.node_key, party.identity)
            if stored is not None and stored != given and party.name not in self.rotate:
                raise InputError(
                    f"party '{party.name}' now gives other keys than before. If it made new ones, say so with "
                    f"--rotate {party.name}; compare the fingerprints by telephone first."
                )
            self._note(party.name, stored == given)
            memory.keep(given)
            return given, None
        if stored is not None and party.name not in self.rotate:
            self._note(party.name, True)
            return stored, private
        if party.name not in self.make_keys:
            raise InputError(
                f"party '{party.name}' sent no {'new ' if stored else ''}keys. It makes them itself (`fedsynth node "
                f"keygen --name {party.name}`) and sends its join file: --join FILE. Or you make them and could then "
                f"act in its name, as its certificates will say: --make-keys {party.name}."
            )
        made = new_keys()
        memory.keep(made.public, made)
        self._note(party.name, False)
        return made.public, made

    def _note(self, party: str, kept: bool) -> None:
        (self.outcome.kept if kept else self.outcome.made).append(f"keys of {party}")

    def _revoked_before(self) -> set[str]:
        path = self.folder / "revoked.json"
        return set(json.loads(path.read_text())) if path.exists() else set()
