"""Several of a message's objects in one request, since each request costs a SuperLink some ten milliseconds.

Flower pushes and pulls the objects of a message one by one: three for ours, at both ends. Here a request names several,
by a comma between their names, and carries them one behind the other; the SuperLink takes such a request apart again
and does with each object what it always did (aggregator/server/bundled_objects.py). No request is larger than a piece
of a message may be; what does not fit goes in the next.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError

from synth.errors import ProtocolError
from synth.messages.wire import PIECE_BYTES

BETWEEN = ","
MOST_OBJECTS = 64  # in one request
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0  # Flower: 1, then 2, 4, 8
_HEAD = struct.Struct(">64sQ")  # an object's name, the hexadecimal digits of a SHA-256, and its length

Pull = Callable[[str], bytes]
Push = Callable[[str, bytes], None]


def pack(objects: Mapping[str, bytes]) -> bytes:
    parts = (part for name, content in objects.items() for part in (_HEAD.pack(name.encode(), len(content)), content))
    return b"".join(parts)


def unpack(bundle: bytes) -> dict[str, bytes]:
    objects, place = {}, 0
    while place < len(bundle):
        if place + _HEAD.size > len(bundle):
            raise ProtocolError("a bundle of objects ends in the middle of a name")
        name, length = _HEAD.unpack_from(bundle, place)
        place += _HEAD.size + length
        if place > len(bundle) or not name.isascii():
            raise ProtocolError("a bundle of objects is shorter than it says, or names what is no object")
        objects[name.decode()] = bundle[place - length : place]
    return objects


def push_bundled(object_contents: Iterable[tuple[str, bytes]], push_object_fn: Push, **_: object) -> None:
    """In place of Flower's `push_object_contents_from_iterable`."""
    for group in _groups(object_contents):
        if len(group) == 1:
            push_object_fn(*next(iter(group.items())))
        else:
            push_object_fn(BETWEEN.join(group), pack(group))


def pull_bundled(object_ids: list[str], pull_object_fn: Pull, *, patience_seconds: float) -> dict[str, bytes]:
    """In place of Flower's `pull_objects`: they follow their message's envelope, so they are looked for often."""
    found: dict[str, bytes] = {}
    pause, deadline = FIRST_PAUSE_SECONDS, time.monotonic() + patience_seconds
    while wanted := [name for name in dict.fromkeys(object_ids) if name not in found][:MOST_OBJECTS]:
        try:
            content = pull_object_fn(BETWEEN.join(wanted))
        except ObjectUnavailableError:
            if time.monotonic() > deadline:
                raise ObjectPullError(wanted[0], "it did not come in time") from None
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            continue
        given = unpack(content) if len(wanted) > 1 else {wanted[0]: content}
        if not given or not set(given) <= set(wanted):
            raise ObjectPullError(wanted[0], "other objects were given than were asked for")
        found |= given
    return found


def _groups(contents: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    group: dict[str, bytes] = {}
    for name, content in contents:
        size = sum(map(len, group.values())) + len(content)
        if group and (size > PIECE_BYTES or len(group) == MOST_OBJECTS):
            yield group
            group = {}
        group[name] = content
    if group:
        yield group
