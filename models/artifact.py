"""The artifact: one joblib file of dicts, lists, strings, numbers and arrays, and a reader that lets nothing else in.

`joblib.load` on a stranger's file runs whatever the file asks for. `read_artifact` reads the same format with an
unpickler of its own that knows four names (NumPy's array and dtype, joblib's array wrapper) and replaces each with an
inert object of this module: no function or class named in the file is ever looked up, called or imported. Object
arrays cannot be expressed. The content is then compared with a checksum, and every tree is checked before use.

The file also opens with plain `joblib.load`, for whoever trusts it.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..errors import ArtifactError
from ..files import replacing

FORMAT = "irgauge"
FORMAT_NUMBER = 3
MAX_BYTES = 1 << 29
"""Largest file and largest content read, 512 MiB: a small compressed file must not fill the memory."""


class _Refused(Exception):
    """The file holds something that an artifact never holds; the text says what."""


class _DType:
    """Stands for `numpy.dtype` while reading: remembers the letters, never calls NumPy with anything but a plain
    numeric type."""

    def __init__(self, code: object = "", align: object = False, copy: object = False) -> None:
        self.code, self.order = code, "|"

    def take_state(self, state: object) -> None:
        if not (
            isinstance(state, tuple)
            and len(state) >= 5
            and state[1] in ("<", ">", "|", "=")
            and state[2:5] == (None, None, None)
        ):
            raise _Refused("an array type that is not plain numbers")
        self.order = state[1]

    def numeric(self) -> np.dtype[Any]:
        code = self.code
        if not (isinstance(code, str) and code in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")):
            raise _Refused(f"an array of type {str(code)[:20]!r}; only plain numbers are allowed")
        plain: np.dtype[Any] = np.dtype(f"{self.order if self.order in '<>' else '='}{code}")
        return plain


class _Array:
    """Stands for joblib's `NumpyArrayWrapper` while reading: the description of an array whose bytes follow in the
    file."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def read(self, file: io.BytesIO, size: int) -> np.ndarray[Any, Any]:
        state = self.state
        dtype, shape, order = state.get("dtype"), state.get("shape"), state.get("order")
        if not isinstance(dtype, _DType):
            raise _Refused("an array without a type")
        if state.get("subclass") != _NDARRAY:
            raise _Refused("an array of a class other than numpy.ndarray")
        if not (
            isinstance(shape, tuple) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)
        ):
            raise _Refused("an array without a shape")
        if order not in ("C", "F"):
            raise _Refused("an array without an order")
        plain = dtype.numeric()
        if state.get("numpy_array_alignment_bytes") is not None:
            padding = file.read(1)
            file.read(padding[0] if padding else 0)
        n_bytes = plain.itemsize
        for n in shape:
            n_bytes *= n
        if n_bytes > size - file.tell():
            raise EOFError("an array is longer than the file")
        array = np.frombuffer(file.read(n_bytes), plain).reshape(shape, order=order)
        return np.array(array, dtype=plain.newbyteorder("="))  # own memory, own byte order


_NDARRAY = "numpy.ndarray"
_KNOWN: Mapping[tuple[str, str], Any] = {
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _Array,
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _DType,
    ("numpy.dtypes", "dtype"): _DType,
}


class _PlainUnpickler(pickle._Unpickler):  # the Python one: array bytes stand between its opcodes
    """Reads joblib's format; every name outside `_KNOWN` ends the reading before anything happens."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    stack: list[Any]

    def __init__(self, content: bytes) -> None:
        self.content, self.size = io.BytesIO(content), len(content)
        super().__init__(self.content)

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module, name))
        if known is None:
            raise _Refused(f"'{module[:60]}.{name[:60]}', which is not plain data")
        return known

    def get_extension(self, code: int) -> Any:
        raise _Refused("a registered extension, which is not plain data")

    def persistent_load(self, pid: object) -> Any:
        raise _Refused("a reference to something outside the file")

    def load_reduce(self) -> None:
        arguments = self.stack.pop()
        made = self.stack[-1]
        if made is not _DType or not isinstance(arguments, tuple):
            raise _Refused("a call, which is not plain data")
        self.stack[-1] = _DType(*arguments[:3])

    def load_new(self) -> None:
        arguments = self.stack.pop()
        if self.stack[-1] is not _Array or arguments != ():
            raise _Refused("an object, which is not plain data")
        self.stack[-1] = _Array()

    def load_build(self) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        if type(made) is _DType:
            made.take_state(state)
        elif type(made) is _Array and isinstance(state, dict):
            made.state = state
            self.stack[-1] = made.read(self.content, self.size)
        else:
            raise _Refused("an object with a state, which is not plain data")

    def refuse(self) -> None:
        raise _Refused("an object, which is not plain data")

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_new
    dispatch[pickle.BUILD[0]] = load_build
    for _opcode in (pickle.INST, pickle.OBJ, pickle.NEWOBJ_EX, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER):
        dispatch[_opcode[0]] = refuse


_PACKED = (
    (b"\x1f\x8b", lambda f: gzip.GzipFile(fileobj=f)),
    (b"BZ", bz2.BZ2File),
    (b"\xfd7zXZ", lzma.LZMAFile),
    (b"\x5d\x00", lzma.LZMAFile),
)


def _unpack(content: bytes) -> bytes:
    """Undo joblib's compression (zlib, gzip, bz2, xz, lzma), whatever the file is called."""
    if content[:1] == b"\x78":
        stream = zlib.decompressobj()
        out = stream.decompress(content, MAX_BYTES + 1)
        if len(out) <= MAX_BYTES and not stream.eof:
            raise EOFError("the compressed content ends early")
    else:
        opener = next((o for magic, o in _PACKED if content.startswith(magic)), None)
        if opener is None:
            return content
        with opener(io.BytesIO(content)) as file:
            out = _bounded(file.read)
    if len(out) > MAX_BYTES:
        raise _Refused(f"more than {MAX_BYTES >> 20} MiB")
    return out


def _bounded(read: Callable[[int], bytes]) -> bytes:
    """All of a file, or its first bytes where there are more than `MAX_BYTES`. Piece by piece: one read of so many asks
    for the memory before it knows that they are there."""
    pieces = []
    left = MAX_BYTES + 1
    while left > 0 and (piece := read(min(left, 1 << 22))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


_DAMAGED = (
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    AssertionError,
    NotImplementedError,
    RecursionError,
    OSError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    pickle.UnpicklingError,
)


def read_plain(path: str | os.PathLike[str]) -> Any:
    """Read a joblib file of plain data.

    Raises
    ------
    ArtifactError
        No such file, not such a file, damaged, too large, or with anything in it but dicts, lists, strings, numbers
        and numeric arrays.
    """
    shown = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = _bounded(file.read)
    except OSError as error:
        raise ArtifactError(f"{shown}: cannot be read: {error.strerror or error}") from None
    if not content:
        raise ArtifactError(f"{shown}: the file is empty")
    try:
        if len(content) > MAX_BYTES:
            raise _Refused(f"more than {MAX_BYTES >> 20} MiB")
        plain = _PlainUnpickler(_unpack(content)).load()
        _check_plain(plain)
    except _Refused as refused:
        raise ArtifactError(f"{shown}: refused: it holds {refused}. A model file of irgauge holds only data.") from None
    except _DAMAGED as error:
        raise ArtifactError(f"{shown}: not a model file of irgauge, or damaged ({type(error).__name__}).") from None
    return plain


def _check_plain(root: Any) -> None:
    """Only plain containers, numbers, strings and numeric arrays; iterative, each container once."""
    waiting, seen = [root], set()
    while waiting:
        item = waiting.pop()
        if item is None or type(item) in (bool, int, float, str):
            continue
        if type(item) is np.ndarray:
            if item.dtype.kind not in "biuf":
                raise _Refused(f"an array of type {item.dtype}")
            continue
        if id(item) in seen:
            continue
        seen.add(id(item))
        if type(item) is dict:
            if not all(type(key) is str for key in item):
                raise _Refused("a dict whose keys are not strings")
            waiting += item.values()
        elif type(item) in (list, tuple):
            waiting += item
        else:
            raise _Refused(f"a {type(item).__name__}, which is not plain data")


def checksum(plain: Any) -> str:
    """SHA-256 over structure, values and array bytes, in an order that does not depend on how dicts were filled."""
    digest = hashlib.sha256()
    _update(digest, plain)
    return digest.hexdigest()


def _update(digest: Any, item: Any) -> None:
    if isinstance(item, np.ndarray):
        little = np.ascontiguousarray(item, item.dtype.newbyteorder("<"))
        digest.update(f"array {item.dtype.kind}{item.dtype.itemsize} {item.shape};".encode())
        digest.update(little.tobytes())
    elif isinstance(item, dict):
        digest.update(f"dict {len(item)};".encode())
        for key in sorted(item):
            digest.update(json.dumps(key).encode())
            _update(digest, item[key])
    elif isinstance(item, (list, tuple)):
        digest.update(f"list {len(item)};".encode())
        for part in item:
            _update(digest, part)
    else:
        digest.update(f"{type(item).__name__} {item!r};".encode())


def write_artifact(plain: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write an artifact; the file appears whole or not at all.

    Parameters
    ----------
    plain : {"manifest": {...}, "tracks": {...}}; the manifest's "format", "format_number" and "checksum" are filled in
        here. The file holds the manifest as one JSON string: unpickled one by one, its thousands of scores took a third
        of the time of reading.

    Raises
    ------
    ArtifactError
        Something in it is not plain data, or the file cannot be written.
    """
    import joblib

    stated = {k: v for k, v in plain["manifest"].items() if k != "checksum"}
    target = Path(path)
    try:
        _check_plain(plain)
        content = {
            "manifest": json.dumps({**stated, "format": FORMAT, "format_number": FORMAT_NUMBER}, allow_nan=False),
            "tracks": plain["tracks"],
        }
    except _Refused as refused:
        raise ArtifactError(f"{target}: not written: it would hold {refused}") from None
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"{target}: not written: its manifest is not JSON: {error}") from None
    with replacing(target, ArtifactError) as temporary:
        joblib.dump({**content, "checksum": checksum(content)}, temporary, compress=("zlib", 9), protocol=4)


def read_artifact(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Read an artifact and make sure that it is one, undamaged, of a format this version reads.

    Returns
    -------
    {"manifest": {...}, "tracks": {...}}, as given to `write_artifact`.

    Raises
    ------
    ArtifactError
        Anything else; one line that says what and, where it helps, what to do.
    """
    plain: Any = read_plain(path)
    shown = os.fspath(path)
    manifest = _manifest(plain.get("manifest")) if isinstance(plain, dict) else None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not isinstance(plain.get("tracks"), dict):
        raise ArtifactError(f"{shown}: not a model file of irgauge (it has no irgauge manifest).")
    if manifest.get("format_number") != FORMAT_NUMBER:
        raise ArtifactError(
            f"{shown}: has format {manifest.get('format_number')!r}; this version reads {FORMAT_NUMBER}. "
            "Run `make train`, or use the irgauge that wrote it."
        )
    content = {"manifest": plain["manifest"], "tracks": plain["tracks"]}
    if plain.get("checksum") != checksum(content):
        raise ArtifactError(f"{shown}: damaged: its content does not match its checksum.")
    return {"manifest": {**manifest, "checksum": plain["checksum"]}, "tracks": plain["tracks"]}


def _manifest(written: Any) -> Any:
    """What a file's manifest says: a JSON string; up to format 2 a dict. None where it is neither."""
    try:
        return json.loads(written) if isinstance(written, str) else written
    except (ValueError, RecursionError):
        return None


def plain_number(value: float) -> float | int | None:
    """A number as the manifest holds it: NaN and infinities become None, as JSON has neither."""
    value = float(value)
    return value if np.isfinite(value) else None


def plain_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Nested scores with plain numbers."""
    return {k: plain_scores(v) if isinstance(v, Mapping) else plain_number(v) for k, v in scores.items()}


def library_versions(names: Iterable[str]) -> dict[str, str]:
    """Installed versions of distributions, those that are there."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
