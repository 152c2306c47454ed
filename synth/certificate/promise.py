"""What a certificate promises, and what it does not, in words for whoever is handed the table."""

from __future__ import annotations

from collections.abc import Sequence

from synth.certificate import participation
from synth.certificate.certificate import Certificate, read
from synth.certificate.evidence import Finding
from synth.units import NOUNS, Unit, unit_of

BEYOND: dict[Unit, str] = {  # who is in more of it than the promise is about
    "row": "a person with several rows",
    "subject": "a person at several parties, or under several names",
    "step": "somebody who shows in several steps",
}


def promise(certificate: Certificate) -> str:
    """What is and is not promised, in one paragraph. It believes the certificate: see `spoken`."""
    if certificate.claim.epsilon is None:
        return " ".join([promised(certificate), *_foreign_keys(certificate)])
    return " ".join([f"Promised: {promised(certificate)}", "Not promised:", *not_promised(certificate)])


def spoken(certificate: Certificate, findings: Sequence[Finding]) -> str:
    """What may be said to whoever is handed the table: a certificate that fails promises nothing, whatever it says."""
    if any(finding.holds is False for finding in findings):
        return "Nothing is promised: this certificate does not hold. Ask whoever gave it to you for the true one."
    return promise(certificate)


def promised(certificate: Certificate) -> str:
    claim = certificate.claim
    noun = NOUNS[unit_of(claim.relation)]
    if claim.epsilon is None:
        nominal = f" The ε of {claim.nominal_epsilon:.4g} is nominal." if claim.nominal_epsilon is not None else ""
        return (
            f"No limit is promised to what the release tells about a {noun}: something left a party without "
            f"differential privacy (profile '{certificate.profile}').{nominal} It is for rows that are public anyway."
        )
    return " ".join(
        [
            f"whatever anybody concludes about a {noun} from everything released in this run, that {noun} being "
            f"there changes the odds by a factor of at most e^{claim.epsilon:.4g}, but for a chance of {claim.delta:g} "
            f"(neighbouring tables: {claim.relation}). {certificate.noise} {certificate.sampling}",
            *_by_columns(certificate),
            *_losses(certificate),
        ]
    )


def not_promised(certificate: Certificate) -> list[str]:
    """One sentence each."""
    beyond = BEYOND[unit_of(certificate.claim.relation)]
    seeded = any(statement.seeded for statement in map(read, certificate.statements) if statement)
    return [
        "anything about other runs on the same rows (each party's ledger adds them up), about "
        f"{beyond} (their losses add up), or that a party ran the code it states: it signed so.",
        *(["It was simulated: all parties ran on one machine, where nothing was hidden."] * certificate.simulated),
        *(["Its noise was fixed by a seed, and whoever knows the seed can take it away."] * seeded),
        *_foreign_keys(certificate),
    ]


def _foreign_keys(certificate: Certificate) -> list[str]:
    """Whose statements prove less, because somebody else could have signed them."""
    statements = filter(None, map(read, certificate.statements))
    names = ", ".join(each.party for each in statements if each.keys_made_by == "operator")
    told = f"The operator made the keys of {names}, by their own word: it could sign in their name, and read letters."
    return [told] if names else []


def _by_columns(certificate: Certificate) -> list[str]:
    """What is different where parties hold columns of the same people."""
    if (record := certificate.linkage) is None:
        return []
    towards = (
        ""
        if record.substitution_epsilon is None
        else (
            f" A party of the plan knows who is in; what it can learn of a person's cells elsewhere is limited by ε = "
            f"{record.substitution_epsilon:.4g} for cells replaced."
        )
    )
    return [f"{record.unit} {record.alignment} {record.dealers}{towards}"]


def _losses(certificate: Certificate) -> list[str]:
    words = participation.in_words(certificate.participation, certificate.absent)
    lost = ", ".join(each.party for each in certificate.absent)
    told = f"Not stated: what was charged at {lost}, which was lost; the promise counts all that was set aside there."
    return [*([words] if words else []), *([told] if lost else [])]
