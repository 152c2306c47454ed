"""One unambiguous way to turn fields into bytes, for everything that is signed, derived from or sent.

Two different lists of fields must never give the same bytes, or a signature over one could be presented as a
signature over the other. So every field carries its length, and the first field names the kind of message.
"""

from crypto.errors import Malformed, OutOfRange

_LENGTH_BYTES = 8
MOST_FIELDS = 2**16  # a longer list of parties is an attack on our patience


def pack(kind: str, *fields: bytes) -> bytes:
    """The kind and the fields, each preceded by its length."""
    every = (kind.encode(), *fields)
    return b"".join(part for field in every for part in (len(field).to_bytes(_LENGTH_BYTES), field))


def unpack(kind: str, data: bytes, count: int) -> list[bytes]:
    """The ``count`` fields of a message of this kind; anything else, one byte more or less, is refused."""
    fields = unpack_all(kind, data, count)
    if len(fields) != count:
        raise Malformed(f"a {kind} message is truncated; ask its sender to send it again")
    return fields


def unpack_all(kind: str, data: bytes, most: int = MOST_FIELDS) -> list[bytes]:
    """All fields of a message of this kind, at most so many."""
    fields: list[bytes] = []
    position = 0
    while not fields or (position < len(data) and len(fields) <= most):
        start = position + _LENGTH_BYTES
        end = start + int.from_bytes(data[position:start])
        if end > len(data) or start > len(data):
            raise Malformed(f"a {kind} message is truncated; ask its sender to send it again")
        fields.append(data[start:end])
        position = end
    if position != len(data):
        raise Malformed(f"a {kind} message has bytes after its end; ask its sender to send it again")
    if fields[0] != kind.encode():
        raise Malformed(f"expected a {kind} message, got another kind; the exchange is out of step")
    return fields[1:]


def number_bytes(number: int) -> bytes:
    if not 0 <= number < 2**64:
        raise OutOfRange("a number in a message must lie between 0 and 2^64")
    return number.to_bytes(8)


def read_number(field: bytes) -> int:
    if len(field) != 8:
        raise Malformed("a number field does not have eight bytes; ask the sender to send the message again")
    return int.from_bytes(field)


def read_text(field: bytes) -> str:
    try:
        return field.decode()
    except UnicodeDecodeError:
        raise Malformed("a text field is not UTF-8; ask the sender to send the message again") from None
