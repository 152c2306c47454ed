"""What a dealer of cross tables is told and tells, as bytes: seeds in, corrections out. It needs nothing else."""

from collections.abc import Iterable, Mapping

from crypto.cross_tables import dealt
from crypto.errors import Malformed
from crypto.framing import pack, read_text, unpack_all

Deal = tuple[str, str, tuple[int, int]]  # first party, second party, widths of their matrices


def seeds_letter(seeds: Iterable[tuple[str, bytes]]) -> bytes:
    """From a party to a dealer: the seed of its mask, by the other party of the pair."""
    return pack("seeds", *(field for other, seed in seeds for field in (other.encode(), seed)))


def deals(pairs: Iterable[Deal], chunks: list[slice], letters: Mapping[str, bytes]) -> dict[str, bytes]:
    """To the second of every pair: its correction, by the first; from the seeds that both sent."""
    seeds = {sender: _named("seeds", letter) for sender, letter in letters.items()}
    found: dict[str, list[bytes]] = {}
    for first, second, widths in pairs:
        both = seeds.get(first, {}).get(second, b""), seeds.get(second, {}).get(first, b"")
        found.setdefault(second, []).extend((first.encode(), dealt(both, widths, chunks).tobytes()))
    return {second: pack("deals", *content) for second, content in found.items()}


def correction(letter: bytes, first: str) -> bytes:
    """What a dealer's letter says about the pair with this first party."""
    return _named("deals", letter).get(first, b"")


def _named(kind: str, letter: bytes) -> dict[str, bytes]:
    """Names and contents that alternate in a letter."""
    fields = unpack_all(kind, letter)
    if len(fields) % 2:
        raise Malformed(f"a letter with {kind} does not name all that it holds")
    return {read_text(name): content for name, content in zip(fields[::2], fields[1::2], strict=True)}
