"""What an operator is entitled to say to a party, as one list. Whatever is not on it is refused by its name.

A kit's values are read before a party's own, so everything that the party left open would be the operator's to decide:
another image, a policy that approves by itself, a network without walls. So a kit speaks of where to meet, who takes
part, and whose keys are whose; of nothing else.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from crypto.errors import CryptoError
from crypto.keys import Identity
from fedsynth.provision.errors import KitRefused
from fedsynth.provision.federation import ENDPOINT, NAME_OF_FEDERATION, NAME_OF_PARTY
from fedsynth.provision.party_keys import IDENTITY_KEY, NODE_KEY
from synth.printable import quoted
from synth.schema import Strict

PARTY_SECRETS = {"fed-node-keys": {NODE_KEY, IDENTITY_KEY}}
OPERATOR_SECRETS = {
    "aggregator-tls": {"tls.crt", "tls.key"},
    "aggregator-control": {"ca.crt", "tls.crt", "tls.key"},
    "aggregator-identity": {IDENTITY_KEY},
}


def _identity(text: str) -> str:
    try:
        Identity.from_text(text)
    except CryptoError as error:
        raise ValueError(str(error)) from None
    return text


PartyName = Annotated[str, StringConstraints(pattern=NAME_OF_PARTY)]
PublicKey = Annotated[str, AfterValidator(_identity)]
Endpoint = Annotated[str, StringConstraints(pattern=f"^{ENDPOINT.pattern}$")]
Certificates = Annotated[
    str, StringConstraints(pattern=re.compile(r"^\s*-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s-]*$"))
]


class KitParty(Strict):
    name: PartyName = Field(description="Whom the kit is for.")
    peers: dict[PartyName, PublicKey] = Field(description="The other parties' public identities.")


class KitAggregator(Strict):
    endpoint: Endpoint = Field(description="Where parties and aggregator meet.")
    ca: Certificates = Field(description="The authority that the endpoint's certificate is checked by.")


class KitFederation(Strict):
    name: str = Field(pattern=NAME_OF_FEDERATION, description="Name of the federation.")
    key: PublicKey = Field(description="The public key that its kits are signed with.")


class KitKeys(Strict):
    madeBy: Literal["operator"] = Field(description="Said if, and only if, the operator made the party's keys.")


class KitValues(Strict):
    """Everything that a party's kit may say to its release."""

    party: KitParty
    aggregator: KitAggregator
    federation: KitFederation
    keys: KitKeys | None = None


class AggregatorParty(Strict):
    nodeKey: str = Field(description="The public key its node connects with.")
    identity: PublicKey = Field(description="The public key it signs with.")


class AggregatorValues(Strict):
    """Everything that the operator's own folder says to the aggregator's release."""

    endpoint: Endpoint
    ca: Certificates
    parties: dict[PartyName, AggregatorParty]


def check_values(model: type[Strict], content: object, place: str) -> None:
    """Refuse what is not on the list, naming the key."""
    try:
        model.model_validate(content)
    except ValidationError as error:
        found = []
        for item in error.errors(include_url=False, include_context=False, include_input=False):
            key = ".".join(map(str, item["loc"])) or "everything"
            unknown = item["type"] == "extra_forbidden"
            reason = "an operator has no say in this" if unknown else item["msg"].removeprefix("Value error, ")
            found.append(f"{quoted(key)}: {reason}")
        raise KitRefused(
            f"{place} is refused: {'; '.join(found)}. Ask the operator for a kit without; what you want yourself "
            "belongs in your own values (-f)."
        ) from None


def check_secrets(text: str, allowed: dict[str, set[str]], place: str) -> None:
    """Refuse any manifest but the secrets that belong there, with the entries that belong into them."""
    try:
        manifests = list(filter(None, yaml.safe_load_all(text)))
    except (yaml.YAMLError, RecursionError, ValueError):
        raise KitRefused(f"{place} is not YAML that anybody would write.") from None
    for manifest in manifests:
        told = _secret_flaw(manifest, allowed)
        if told is not None:
            raise KitRefused(f"{place} is refused: {told}. Ask the operator for a kit without.")
    names = [manifest["metadata"]["name"] for manifest in manifests]
    if sorted(names) != sorted(allowed):
        raise KitRefused(f"{place} must hold the secrets {', '.join(sorted(allowed))}, each once.")


def _secret_flaw(manifest: Any, allowed: dict[str, set[str]]) -> str | None:
    if not isinstance(manifest, dict):
        return "it holds something that is no manifest"
    kind, metadata = manifest.get("kind"), manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name"))
    if kind != "Secret" or name not in allowed:
        return f"it would write the {quoted(str(kind))} {quoted(name)}, which is none of a kit's"
    if set(manifest) != {"apiVersion", "kind", "metadata", "type", "stringData"} or set(metadata) != {"name"}:
        return f"the secret {quoted(name)} says more than its name and its entries"
    entries = manifest["stringData"]
    if not isinstance(entries, dict) or set(entries) != allowed[name]:
        return f"the secret {quoted(name)} must have the entries {', '.join(sorted(allowed[name]))} and no others"
    return None
