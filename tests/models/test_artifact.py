"""The artifact is read as data or not at all."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from irgauge.errors import ArtifactError
from irgauge.models.artifact import FORMAT_NUMBER, checksum, plain_scores, read_artifact, read_plain, write_artifact

PLAIN = {
    "manifest": {"targets": {}, "note": "some text", "number": 2.5, "yes": True, "nothing": None},
    "tracks": {
        "kernel": {
            "a": np.arange(6, dtype=np.float32).reshape(2, 3),
            "b": [np.array([True, False]), np.zeros(0, np.int16)],
        }
    },
}


class Bomb:
    """Runs when unpickled by a trusting reader."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.target,)


def same(a: Any, b: Any) -> bool:
    return checksum(a) == checksum(b)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_artifact(PLAIN, tmp_path / "m.joblib")
    read = read_artifact(tmp_path / "m.joblib")
    assert same(read["tracks"], PLAIN["tracks"])
    assert read["manifest"]["note"] == "some text"
    assert read["manifest"]["format_number"] == FORMAT_NUMBER
    assert next(iter(read)) == "manifest"
    assert [p.name for p in tmp_path.iterdir()] == ["m.joblib"]


def test_plain_joblib_reads_the_same(tmp_path: Path) -> None:
    write_artifact(PLAIN, tmp_path / "m.joblib")
    theirs, ours = joblib.load(tmp_path / "m.joblib"), read_artifact(tmp_path / "m.joblib")
    assert same(theirs["tracks"], ours["tracks"])
    assert {**json.loads(theirs["manifest"]), "checksum": theirs["checksum"]} == ours["manifest"]


@pytest.mark.parametrize(
    "manifest", [{"share": float("nan")}, {"scores": np.zeros(2)}], ids=["not_a_number", "an_array"]
)
def test_a_manifest_that_json_cannot_hold_is_not_written(tmp_path: Path, manifest: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="not written: its manifest is not JSON"):
        write_artifact({"manifest": manifest, "tracks": {}}, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    write_artifact(PLAIN, tmp_path / "a.joblib")
    write_artifact(PLAIN, tmp_path / "b.joblib")
    assert (tmp_path / "a.joblib").read_bytes() == (tmp_path / "b.joblib").read_bytes()


@pytest.mark.parametrize("compress", [0, ("zlib", 3), ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)])
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_every_compression_and_protocol_is_read(tmp_path: Path, compress: Any, protocol: int) -> None:
    joblib.dump(PLAIN, tmp_path / "m", compress=compress, protocol=protocol)
    assert same(read_plain(tmp_path / "m"), PLAIN)


def test_fortran_order_and_foreign_byte_order_are_read(tmp_path: Path) -> None:
    arrays = {
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(4, dtype=">i4"),
        "scalar": np.array(2.0),
    }
    joblib.dump(arrays, tmp_path / "m")
    read = read_plain(tmp_path / "m")
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype.isnative


@pytest.mark.parametrize("compress", [0, ("zlib", 3), ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda bomb: bomb,
        lambda bomb: {"manifest": bomb},
        lambda bomb: {"manifest": {}, "tracks": [1, {"deep": [bomb]}]},
        lambda bomb: np.array([bomb, None], dtype=object),
        lambda bomb: {"x": np.array([[bomb]], dtype=object)},
        lambda bomb: OrderedDict(a=bomb),
        lambda bomb: {"manifest": {"format": "irgauge"}, "tracks": {"kernel": np.array([{"x": [bomb]}], dtype=object)}},
    ],
    ids=["root", "manifest", "deep", "object_array", "nested_object_array", "ordered_dict", "container_in_an_array"],
)
def test_code_in_a_file_is_refused_before_it_runs(tmp_path: Path, wrap: Callable[[Any], Any], compress: Any) -> None:
    touched = tmp_path / "touched"
    joblib.dump(wrap(Bomb(touched)), tmp_path / "m.joblib", compress=compress)
    with pytest.raises(ArtifactError, match="refused") as caught:
        read_artifact(tmp_path / "m.joblib")
    assert "\n" not in str(caught.value)
    assert not touched.exists()
    joblib.load(tmp_path / "m.joblib")  # the bomb is live: a trusting reader sets it off
    assert touched.exists()


@pytest.mark.parametrize(
    "thing",
    [
        {1, 2},
        b"bytes",
        1j,
        np.float64(3),
        np.array(["text"]),
        np.array([1, 2], dtype="m8[s]"),
        np.zeros(2, [("a", "f4")]),
        Path("x"),
    ],
    ids=str,
)
def test_anything_but_plain_data_is_refused(tmp_path: Path, thing: Any) -> None:
    joblib.dump({"manifest": thing}, tmp_path / "m")
    with pytest.raises(ArtifactError):
        read_plain(tmp_path / "m")
    with pytest.raises(ArtifactError, match="not written"):
        write_artifact({"manifest": {"thing": thing}, "tracks": {}}, tmp_path / "n")
    assert not (tmp_path / "n").exists()


def test_lz4_is_one_clear_line(tmp_path: Path) -> None:
    """joblib can write it where the package lz4 is installed; we never do and do not read it."""
    (tmp_path / "m").write_bytes(b"\x04\x22\x4d\x18" + bytes(range(200)))
    with pytest.raises(ArtifactError, match="not a model file of irgauge, or damaged") as caught:
        read_artifact(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_memory_mapped_arrays_are_neither_written_nor_read(tmp_path: Path) -> None:
    joblib.dump({"manifest": {}, "tracks": {"a": np.arange(9.0)}}, tmp_path / "plain")
    mapped = joblib.load(tmp_path / "plain", mmap_mode="r")
    assert type(mapped["tracks"]["a"]) is np.memmap
    with pytest.raises(ArtifactError, match="not written: it would hold a memmap"):
        write_artifact(mapped, tmp_path / "m")
    joblib.dump(mapped, tmp_path / "m")
    with pytest.raises(ArtifactError, match=r"refused: it holds 'numpy\.memmap'") as caught:
        read_plain(tmp_path / "m")
    assert "\n" not in str(caught.value)


HAND_MADE = {
    "inst": b"(S'touched'\nios\nmkdir\n.",
    "global_call": b"cos\nmkdir\n(S'touched'\ntR.",
    "stack_global": b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93\x8c\x07touched\x85R.",
    "newobj_ex": b"\x80\x04cnumpy\ndtype\n)}\x92.",
    "call_of_known_name": b"cnumpy\nndarray\n(I1000000000000\ntR.",
    "state_on_a_class": b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n}S'read'\nI1\nsb.",
    "persistent": b"Pthing\n.",
    "extension": b"\x80\x02\x82\x01.",
    "array_without_type": b"\x80\x02cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}X\x05\x00\x00\x00shapeK\x01\x85sb.",
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_hand_made_pickles_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").write_bytes(HAND_MADE[name])
    with pytest.raises(ArtifactError):
        read_plain("m")
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_reading_one_bad_file_leaves_the_reader_as_it_was(tmp_path: Path) -> None:
    test_file = tmp_path / "bad"
    test_file.write_bytes(HAND_MADE["state_on_a_class"])
    with pytest.raises(ArtifactError):
        read_plain(test_file)
    write_artifact(PLAIN, tmp_path / "good")
    assert same(read_artifact(tmp_path / "good")["tracks"], PLAIN["tracks"])


@pytest.mark.parametrize("keep", [0, 1, 10, 0.5, 0.99, -1])
@pytest.mark.parametrize("compress", [0, ("zlib", 3), ("xz", 3), ("bz2", 3), ("gzip", 3)])
def test_truncated_file_is_one_clear_line(tmp_path: Path, keep: float, compress: Any) -> None:
    joblib.dump(PLAIN, tmp_path / "m", compress=compress)
    content = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(ArtifactError, match=r"damaged|empty|no irgauge manifest") as caught:
        read_artifact(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    """Uncompressed, so that no other checksum helps; a flip is either refused or changes nothing that is read."""
    write_artifact(PLAIN, tmp_path / "packed")
    good = read_artifact(tmp_path / "packed")
    joblib.dump(joblib.load(tmp_path / "packed"), tmp_path / "m", protocol=4)
    content = bytearray((tmp_path / "m").read_bytes())
    noticed = 0
    for position in range(0, len(content), 3):
        content[position] ^= 4
        (tmp_path / "m").write_bytes(content)
        try:
            assert same(read_artifact(tmp_path / "m"), good)
        except ArtifactError:
            noticed += 1
        content[position] ^= 4
    assert noticed > len(content) / 3 * 0.8


@pytest.mark.parametrize(("number", "written"), [(99, json.dumps), (2, dict)], ids=["later", "a_dict_as_up_to_2"])
def test_wrong_format_says_what_to_do(tmp_path: Path, number: int, written: Callable[[Any], Any]) -> None:
    manifest = {"format": "irgauge", "format_number": number}
    joblib.dump({"manifest": written(manifest), "tracks": {}}, tmp_path / "m")
    with pytest.raises(ArtifactError, match=rf"has format {number}; this version reads 3\. Run `make train`"):
        read_artifact(tmp_path / "m")


@pytest.mark.parametrize(
    "content",
    [b"not a model", b"\x00\x01\x02", b"\x78\x9c", b"BZ", b"\x1f\x8b", pickle.dumps({"a": 1}), pickle.dumps([1])],
)
def test_other_files_are_one_clear_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ArtifactError, match="not a model file") as caught:
        read_artifact(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="No such file"):
        read_artifact(tmp_path / "nothing")
    with pytest.raises(ArtifactError, match="directory"):
        read_artifact(tmp_path)


def test_small_file_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zlib

    monkeypatch.setattr("irgauge.models.artifact.MAX_BYTES", 1 << 20)
    (tmp_path / "m").write_bytes(zlib.compress(bytes(1 << 22)))
    with pytest.raises(ArtifactError, match="more than 1 MiB"):
        read_plain(tmp_path / "m")


@pytest.mark.parametrize("compress", [0, ("zlib", 3), ("gzip", 3), ("xz", 3)])
def test_reading_asks_for_little_more_memory_than_the_file_holds(tmp_path: Path, compress: Any) -> None:
    joblib.dump(PLAIN, tmp_path / "m", compress=compress)
    read_plain(tmp_path / "m")
    tracemalloc.start()
    try:
        read_plain(tmp_path / "m")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_numbers_that_json_lacks_become_none() -> None:
    assert plain_scores({"a": {"b": float("nan"), "c": np.float64(1.5)}}) == {"a": {"b": None, "c": 1.5}}


def test_writing_into_a_file_as_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    content: Mapping[str, Any] = PLAIN
    with pytest.raises(ArtifactError, match="cannot be written"):
        write_artifact(content, tmp_path / "file" / "m.joblib")
