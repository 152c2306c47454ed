"""A stored answer comes back as it was, exactly once per ask, or is refused."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fed_node.answers import AnswerKey, AnswerStore
from fed_node.errors import AskChanged, RunOfAnotherPlan, StoreDamaged
from synth.errors import OutputError, ProtocolError
from synth.interface import Answer

PLAN = "p" * 64
KEY = AnswerKey("run-1", PLAN, 3, "d" * 64)
ANSWER = Answer(
    {"file": np.arange(6, dtype=np.int64).reshape(2, 3), "weights/a b": np.array([0.5, -0.0], dtype=np.float32)}, 0.25
)
LOCAL = {"moments": np.array([1.5, np.inf, np.nan])}


def same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> bool:
    return list(left) == list(right) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(left.values(), right.values(), strict=True)
    )


def test_unanswered_is_none(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path / "answers")
    assert store.get(KEY) is None
    assert store.latest_local("run-1") == {}


def test_an_answer_survives_a_new_process(tmp_path: Path) -> None:
    AnswerStore(tmp_path).put(KEY, ANSWER, LOCAL)
    found = AnswerStore(tmp_path).get(KEY)
    assert found is not None
    answer, local = found
    assert same(answer.arrays, ANSWER.arrays)
    assert answer.weight == 0.25
    assert same(local, LOCAL)
    assert same(AnswerStore(tmp_path).latest_local("run-1"), LOCAL)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arrays=st.dictionaries(
        st.text(min_size=1, max_size=8),
        hnp.arrays(
            st.one_of(hnp.integer_dtypes(), hnp.floating_dtypes(), hnp.boolean_dtypes()),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=3,
    ),
    weight=st.floats(allow_nan=False, allow_infinity=False),
    sequence=st.integers(0, 10**7),
)
def test_any_arrays_come_back_bit_for_bit(
    tmp_path: Path, arrays: dict[str, np.ndarray], weight: float, sequence: int
) -> None:
    store = AnswerStore(Path(tempfile.mkdtemp(dir=tmp_path)))
    key = AnswerKey("r", PLAN, sequence, "x")
    store.put(key, Answer(arrays, weight), arrays)
    found = store.get(key)
    assert found is not None
    assert same(found[0].arrays, arrays)
    assert found[0].weight == weight
    assert same(found[1], arrays)


def test_the_first_answer_stays(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(KEY, ANSWER, LOCAL)
    store.put(KEY, Answer({}, 9.0), {})
    found = store.get(KEY)
    assert found is not None
    assert found[0].weight == 0.25


def test_the_same_number_with_another_ask_is_refused(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(KEY, ANSWER, LOCAL)
    other = AnswerKey("run-1", PLAN, 3, "e" * 64)
    with pytest.raises(AskChanged, match="ask 3"):
        store.get(other)
    with pytest.raises(AskChanged):
        store.put(other, ANSWER, LOCAL)


def test_only_the_latest_local_arrays_are_kept_and_all_answers(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    for sequence in range(12):
        store.put(AnswerKey("r", PLAN, sequence, "x"), ANSWER, {"n": np.array(sequence)})
    assert store.latest_local("r")["n"] == 11
    assert len(list((tmp_path / "r").glob("*.local"))) == 1
    early = store.get(AnswerKey("r", PLAN, 2, "x"))
    assert early is not None
    assert early[1] == {}


def test_the_answers_of_a_run_that_ended_are_forgotten(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(KEY, ANSWER, LOCAL)
    store.forget("run-1")
    store.forget("run-1")
    assert not (tmp_path / "run-1").exists()
    assert (store.get(KEY), store.latest_local("run-1")) == (None, {})


def test_runs_that_the_version_before_ended_are_still_known(tmp_path: Path) -> None:
    assert AnswerStore(tmp_path / "none").ended_before() == []
    (tmp_path / ".finished-run-1").touch()
    assert AnswerStore(tmp_path).ended_before() == ["run-1"]


def test_an_answer_belongs_to_one_plan(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(KEY, ANSWER, LOCAL)
    with pytest.raises(RunOfAnotherPlan):
        store.get(replace(KEY, plan="q" * 64))


def test_killed_between_local_and_answer_means_unanswered(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(AnswerKey("r", PLAN, 0, "x"), ANSWER, {"n": np.array(0)})
    store.put(AnswerKey("r", PLAN, 1, "x"), ANSWER, {"n": np.array(1)})
    (tmp_path / "r" / "000001.answer").rename(tmp_path / "held")  # as if killed just before the answer was moved
    (tmp_path / "r" / "000000.local").write_bytes((tmp_path / "r" / "000001.local").read_bytes())
    assert store.get(AnswerKey("r", PLAN, 1, "x")) is None
    store.put(AnswerKey("r", PLAN, 1, "x"), ANSWER, {"n": np.array(7)})
    assert store.latest_local("r")["n"] == 7


@pytest.mark.parametrize("suffix", [".answer", ".local"])
@pytest.mark.parametrize("damage", ["cut", "emptied", "flipped"])
def test_a_damaged_file_is_refused(tmp_path: Path, suffix: str, damage: str) -> None:
    store = AnswerStore(tmp_path)
    store.put(KEY, ANSWER, LOCAL)
    path = tmp_path / "run-1" / f"000003{suffix}"
    whole = path.read_bytes()
    flipped = whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]
    path.write_bytes({"cut": whole[:-7], "emptied": b"", "flipped": flipped}[damage])
    with pytest.raises(StoreDamaged, match=r"000003.*[Rr]estore"):
        store.get(KEY)


def test_missing_local_arrays_are_refused(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(KEY, ANSWER, LOCAL)
    (tmp_path / "run-1" / "000003.local").unlink()
    with pytest.raises(StoreDamaged, match="missing"):
        AnswerStore(tmp_path).latest_local("run-1")


def test_objects_are_never_pickled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        AnswerStore(tmp_path).put(KEY, Answer({"o": np.array([{}])}, 1.0), {})
    assert AnswerStore(tmp_path).get(KEY) is None


def test_a_volume_that_takes_no_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "run-1").symlink_to("/proc/self")  # a folder nobody can make files in
    with pytest.raises(OutputError, match="cannot write"):
        AnswerStore(tmp_path).put(KEY, ANSWER, LOCAL)


@pytest.mark.parametrize("run", ["", "..", "../up", "a/b", ".hidden", "x" * 200, "a\n"])
def test_a_run_cannot_name_another_folder(tmp_path: Path, run: str) -> None:
    with pytest.raises(ProtocolError):
        AnswerKey(run, PLAN, 0, "x")
    with pytest.raises(ProtocolError):
        AnswerStore(tmp_path).forget(run)
