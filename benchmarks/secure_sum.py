"""What a secure sum costs one party in one round, beside the primitives of Flower's SecAgg+.

``python -m benchmarks.secure_sum``: 450,000 float32 parameters (CTGAN's two networks), ten parties, one thread.
Everything a party does after computing its answer counts: quantise or scale, mask or encrypt, sign. Key agreement
happens once per epoch and is shown apart; Flower agrees on keys in every round, so there it counts. Seconds are
the median of up to five. `vgm_distance` is explained in benchmarks/federated_vgm.py. The last line is one JSON object.
"""

import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.common.secure_aggregation.crypto.shamir import create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import encrypt, generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    factor_combine,
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.quantization import quantize
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen, share_keys_plaintext_concat
from flwr.supercore.primitives.asymmetric import generate_key_pairs, private_key_to_bytes
from numpy.typing import NDArray

from benchmarks.federated_vgm import vgm_figures
from crypto.announcement import Announcement
from crypto.ckks import PartyContext
from crypto.keys import IdentityKey, SessionKey
from crypto.masking import mask, masked_sum
from crypto.pairing import pair_secrets
from crypto.quantize import FixedPoint, RingBits, narrowest_fixed_point
from crypto.rounds import KeyPeriod, Round
from crypto.slots import SlotReals
from crypto.vouchers import vouch

PARAMETERS = 450_000
PARTIES = 10
CLIP = 8.0  # Flower's default range, so that both quantise the same numbers
PERIOD = KeyPeriod("benchmark", "plan", 0)
REPEATS = 5
PATIENCE_SECONDS = 2.0
RINGS: tuple[RingBits, ...] = (32, 64)
PEER_LEVELS, PEER_MODULUS = 2**22, 2**32  # Flower's defaults
IDENTITY = IdentityKey.generate()

Vector = NDArray[np.float32]
Figures = dict[str, float]


def main() -> None:
    figures: Figures = {}
    for measure in (masked_figures, ckks_figures, vgm_figures, peer_figures):
        figures |= measure()
    print(table([2, 10, 50, 100]))
    print(json.dumps(figures))


def masked_figures() -> Figures:
    """Both rings with every party taking part; the figures are those of the 64-bit ring."""
    names, vectors = parties(PARTIES), party_vectors(PARTIES)
    sessions, admitted = session_keys(names)
    figures: Figures = {}
    for bits in RINGS:
        codec = FixedPoint(CLIP, PARTIES, bits)
        sent = [
            (name, mask(codec.encode(vector), me=name, secrets=secrets, moment=moment_of(PARTIES)))
            for name, vector in zip(names, vectors, strict=True)
            for secrets in [pair_secrets(sessions[name], name, admitted)]
        ]
        opened = codec.decode(masked_sum(sent, parties=names))
        figures = {
            "masked_seconds": masked_seconds(PARTIES, bits),
            "masked_bytes_per_param": bytes_per_parameter(sent[0][1].tobytes()),
            "masked_max_error": largest_error(opened, vectors) / CLIP,
        }
        print(f"masked, {bits}-bit ring: {readable(figures)} (of the clip range; bound {codec.error_bound / CLIP:.1e})")
    return figures


def ckks_figures() -> Figures:
    names, vectors = parties(PARTIES), party_vectors(PARTIES)
    key, codec = PartyContext.make(), SlotReals(CLIP, PARTIES)
    sent = [
        (name, key.encrypt(codec.encode(vector), parties=PARTIES)) for name, vector in zip(names, vectors, strict=True)
    ]
    opened = codec.decode(key.open(sent, length=PARAMETERS, parties=names))
    figures = {
        "ckks_seconds": ckks_seconds(PARTIES),
        "ckks_bytes_per_param": bytes_per_parameter(sent[0][1]),
        "ckks_max_error": largest_error(opened, vectors),
    }
    opening = timed(lambda: key.open(sent, length=PARAMETERS, parties=names))
    megabytes = sum(len(message) for _, message in sent) / 1e6
    print(f"CKKS: {readable(figures)}; adding and opening at each of two openers {opening:.3f} s, {megabytes:.0f} MB")
    return figures


def peer_figures() -> Figures:
    figures = {"peer_seconds": peer_seconds(PARTIES)}
    step = 2 * CLIP / PEER_LEVELS
    print(f"Flower SecAgg+: {readable(figures)}; MT19937 masks from 32-bit seeds, quantisation step {step:.1e}")
    return figures


def table(counts: list[int]) -> str:
    """Cost by number of parties, then by number of parameters."""
    lines = ["parties  64-bit ring s  32-bit ring s  ring for 1e-7  key agreement s  CKKS s  Flower s"]
    for count in counts:
        ring = narrowest_fixed_point(CLIP, count).bits
        lines.append(
            f"{count:7d}  {masked_seconds(count, 64):13.4f}  {masked_seconds(count, 32):13.4f}  {ring:13d}"
            f"  {agreement_seconds(count):15.4f}  {ckks_seconds(count):6.3f}  {peer_seconds(count):8.3f}"
        )
    lines.append("parameters  64-bit ring s  CKKS s")
    for size in (PARAMETERS // 2, PARAMETERS, 2 * PARAMETERS):
        lines.append(f"{size:10d}  {masked_seconds(PARTIES, 64, size):13.4f}  {ckks_seconds(PARTIES, size):6.3f}")
    return "\n".join(lines)


def masked_seconds(count: int, bits: RingBits, size: int = PARAMETERS) -> float:
    names, vector, codec = parties(count), party_vectors(1, size)[0], FixedPoint(CLIP, count, bits)
    sessions, admitted = session_keys(names)
    secrets = pair_secrets(sessions[names[0]], names[0], admitted)
    return timed(
        lambda: voucher(mask(codec.encode(vector), me=names[0], secrets=secrets, moment=moment_of(count)).tobytes())
    )


def agreement_seconds(count: int) -> float:
    names = parties(count)
    sessions, admitted = session_keys(names)
    return timed(lambda: pair_secrets(sessions[names[0]], names[0], admitted))


def ckks_seconds(count: int, size: int = PARAMETERS) -> float:
    vector, codec, key = party_vectors(1, size)[0], SlotReals(CLIP, count), PartyContext.make()
    return timed(lambda: voucher(key.encrypt(codec.encode(vector), parties=count)))


def peer_seconds(count: int) -> float:
    """The client's arithmetic in Flower's SecAgg+ (full graph), without its four exchanges of messages."""
    vector = party_vectors(1)[0].astype(np.float64)
    others = {node: (generate_key_pairs()[1], generate_key_pairs()[1]) for node in range(2, count + 1)}

    def work() -> list[NDArray[Any]]:
        (mask_key, _), (letter_key, _) = generate_key_pairs(), generate_key_pairs()
        seed, threshold = os.urandom(32), max(2, 2 * count // 3)
        seed_shares = create_shares(seed, threshold, count)
        key_shares = create_shares(private_key_to_bytes(mask_key), threshold, count)
        for node, (_, letter_public) in others.items():
            letter = share_keys_plaintext_concat(1, node, seed_shares[node - 1], key_shares[node - 1])
            encrypt(generate_shared_key(letter_key, letter_public), letter)
        quantized: list[NDArray[Any]] = list(quantize([vector], CLIP, PEER_LEVELS))
        masked = factor_combine(1, quantized)
        shapes = [array.shape for array in masked]
        masked = parameters_addition(masked, list(pseudo_rand_gen(seed, PEER_MODULUS, shapes)))
        for mask_public, _ in others.values():
            pair_mask = pseudo_rand_gen(generate_shared_key(mask_key, mask_public), PEER_MODULUS, shapes)
            masked = parameters_subtraction(masked, list(pair_mask))  # node 1 comes before every other
        return parameters_mod(masked, PEER_MODULUS)

    return timed(work)


def parties(count: int) -> list[str]:
    return [f"party-{index:03d}" for index in range(count)]


def moment_of(count: int) -> Round:
    return Round(PERIOD, tuple(parties(count)), 0, "question")


def party_vectors(count: int, size: int = PARAMETERS) -> list[Vector]:
    random = np.random.default_rng(0)
    return [random.uniform(-CLIP, CLIP, size).astype(np.float32) for _ in range(count)]


def session_keys(names: list[str]) -> tuple[dict[str, SessionKey], dict[str, Announcement]]:
    sessions = {name: SessionKey.generate() for name in names}
    admitted = {name: Announcement(PERIOD, name, sessions[name].public) for name in names}
    return sessions, admitted


def voucher(payload: bytes) -> bytes:
    return vouch(IDENTITY, payload, party=parties(1)[0], moment=moment_of(PARTIES), purpose="benchmark")


def bytes_per_parameter(payload: bytes) -> float:
    return (len(payload) + len(voucher(payload))) / PARAMETERS


def largest_error(opened: NDArray[np.float64], vectors: list[Vector]) -> float:
    return float(np.abs(opened - np.sum(vectors, axis=0, dtype=np.float64)).max())


def readable(figures: Figures) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())


def timed(work: Callable[[], object]) -> float:
    """Median seconds; slow work is repeated less."""
    seconds: list[float] = []
    while len(seconds) < REPEATS and (len(seconds) < 1 or sum(seconds) < PATIENCE_SECONDS):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
