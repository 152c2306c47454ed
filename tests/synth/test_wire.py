"""What crosses is what was sent: through Flower's records, without pickle, and each party sees only its own extras."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from synth.errors import ProtocolError
from synth.interface import Answer, Ask
from synth.messages import wire
from synth.messages.wire import Envelope

arrays = st.dictionaries(
    st.text("abcdef/", min_size=1, max_size=6),
    hnp.arrays(
        st.sampled_from([np.int64, np.float32, np.uint64, np.uint8]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    max_size=3,
)
scalars = st.dictionaries(
    st.text("xyz", min_size=1, max_size=3),
    st.one_of(st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text(max_size=5)),
    max_size=3,
)


@given(arrays, scalars)
def test_envelopes_survive_flower(content: dict[str, np.ndarray], options: dict[str, bool | int | float | str]) -> None:
    back = wire.from_records(wire.to_records(Envelope(content, options)))
    assert back.options == options
    assert set(back.arrays) == set(content)
    for name, array in content.items():
        assert back.arrays[name].dtype == array.dtype
        assert back.arrays[name].shape == array.shape
        np.testing.assert_array_equal(back.arrays[name], array)
    assert wire.digest(back) == wire.digest(Envelope(content, options))


def test_an_ask_survives_the_wire_and_holds_nothing_for_one_party_alone() -> None:
    ask = Ask({"w": np.ones(2)}, {"phase": "training"})
    seen = wire.unpack_ask(wire.pack_ask(ask))
    assert list(seen.arrays) == ["w"]
    assert seen.options == {"phase": "training"}
    extra = Envelope(wire.pack_ask(ask).arrays | {"only/share": np.array(1.0)}, wire.pack_ask(ask).options)
    with pytest.raises(ProtocolError, match="no part of it"):
        wire.unpack_ask(extra)


def test_an_answer_survives() -> None:
    answer = wire.unpack_answer(wire.pack_answer(Answer({"n": np.arange(3)}, 0.25)))
    assert answer.weight == 0.25
    np.testing.assert_array_equal(answer.arrays["n"], np.arange(3))


@pytest.mark.parametrize("change", ["dtype", "shape", "value", "name", "option"])
def test_the_digest_sees_every_difference(change: str) -> None:
    base = Envelope({"a": np.arange(4, dtype=np.int64)}, {"x": 1})
    other = {
        "dtype": Envelope({"a": np.arange(4, dtype=np.uint64)}, {"x": 1}),
        "shape": Envelope({"a": np.arange(4, dtype=np.int64).reshape(2, 2)}, {"x": 1}),
        "value": Envelope({"a": np.array([0, 1, 2, 4])}, {"x": 1}),
        "name": Envelope({"b": np.arange(4, dtype=np.int64)}, {"x": 1}),
        "option": Envelope({"a": np.arange(4, dtype=np.int64)}, {"x": 2}),
    }[change]
    assert wire.digest(base) != wire.digest(other)


def test_a_message_is_few_objects_however_many_arrays_it_has() -> None:
    """Every object costs the SuperLink several writes."""
    many = wire.to_records(Envelope({f"layer-{n}": np.ones(n) for n in range(1, 40)}, {"run": "r"}))
    assert len(many) == 1


def test_a_large_message_is_cut_into_pieces_that_the_edge_lets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PIECE_BYTES", 100)
    sent = Envelope({"a": np.arange(40), "b": np.ones(3, np.uint8)}, {"run": "r"})
    records = wire.to_records(sent)
    assert [len(record["block"]) for _, record in sorted(records.config_records.items())] == [100, 100, 100, 23]
    assert wire.digest(wire.from_records(records)) == wire.digest(sent)
    del records["000002"]
    with pytest.raises(ProtocolError, match="shorter"):
        wire.from_records(records)


@pytest.mark.parametrize(
    "form",
    [
        "|O8 [1]",
        "<f8 [-1]",
        "<f8 [2]",
        "<U4 [1]",
        ">f8 [1]",
        "<f4 [1]",
        "|b2 [4]",
        "<f1 [8]",
        "<f8 [1000000]",
        "<f8 [1 1]",
        "<f8 [1,]",
        "<f8 [ ]",
        "f8",
        "",
    ],
)
def test_a_layout_that_does_not_fit_its_block_is_refused(form: str) -> None:
    records = wire.to_records(Envelope({"a": np.ones(1)}))
    records["000000"]["layout/a"] = form
    with pytest.raises(ProtocolError, match="a message's"):
        wire.from_records(records)


def test_malformed_messages_are_refused() -> None:
    bytes_alone = ConfigRecord({"block": b""})
    for wrong, why in (
        ({"arrays": ConfigRecord()}, "pieces of one block"),
        ({"000000": ArrayRecord()}, "pieces of one block"),
        ({"000000": bytes_alone, "more": ArrayRecord()}, "pieces of one block"),
        ({"000000": ConfigRecord()}, "neither an option"),
        ({"000000": ConfigRecord({"block": "text"})}, "must be bytes"),
        ({"000000": ConfigRecord({"block": b"", "more": 1})}, "neither an option"),
        ({"000000": bytes_alone, "000001": ConfigRecord({"block": b"", "option/x": 1})}, "neither an option"),
        ({"000000": ConfigRecord({"block": b"", "option/x": [1]})}, "scalars"),
    ):
        with pytest.raises(ProtocolError, match=why):
            wire.from_records(RecordDict(wrong))
    with pytest.raises(ProtocolError, match="combined"):
        wire.unpack_ask(Envelope())
    with pytest.raises(ProtocolError, match="weight"):
        wire.unpack_answer(Envelope())
