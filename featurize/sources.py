"""What a program may be given as: text, bytes, a file, or an object of an MLIR library; none of these is imported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import ReadError

BYTECODE = b"ML\xefR"

_MOST_ELEMENTS = 2**14
"""The values of larger constants are not asked for: no feature looks at them, and their text takes twice their memory.
Even one bit an element, these are longer in hexadecimal than what the reader keeps of a string."""
_MOST_RESOURCE_CHARACTERS = 2**16
"""The same for the blobs of `dense_resource`."""


def is_text(source: object) -> bool:
    """Whether this is text, bytes or a path, and not an object that has to be printed."""
    return isinstance(source, (str, bytes, bytearray, memoryview, os.PathLike))


def text_and_path(source: object, path: str) -> tuple[str, str]:
    """MLIR text of a source, and how messages call it (`path` where it has no name of its own).

    Parameters
    ----------
    source : str, bytes (UTF-8, other bytes are kept as surrogates), os.PathLike, or an object:
        - what has `get_asm`: modules, operations and their views in the Python bindings of MLIR, and those of IREE,
          torch-mlir and JAX, which are copies of them. Values of large constants are left out: `dense_resource<...>`
          stands for them;
        - what has `compiler_ir` or `mlir_module`: `Lowered` and `Exported` of JAX;
        - what `str()` turns into MLIR: xDSL's operations, and others.

    Raises
    ------
    ReadError
        Bytecode, a file that cannot be read, an object that cannot be printed or whose print is empty.
    """
    if isinstance(source, str):
        return source, path
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _decoded(bytes(source), path), path
    if isinstance(source, os.PathLike):
        name = os.fsdecode(source)
        try:
            data = Path(name).read_bytes()
        except OSError as problem:
            raise ReadError(f"cannot be read: {problem.strerror or problem}", path=name) from None
        return _decoded(data, name), name
    try:
        text = _printed(source)
    except Exception as problem:  # whatever the object's library raises
        line = next(iter(str(problem).splitlines()), "") or type(problem).__name__
        raise ReadError(f"{_quoted_type(source)} object cannot be printed: {line}", path=path) from problem
    if not text.strip():
        raise ReadError(f"{_quoted_type(source)} object is not MLIR: it prints as ''", path=path)
    return text, path


def not_mlir(source: object, text: str, failure: ReadError) -> ReadError:
    """The error for an object whose text was refused with `failure`."""
    hint = failure.hint
    if callable(getattr(source, "lower", None)):
        hint = "Lower it first: pass what its .lower(...) returns."
    elif "never defined" in failure.message:
        hint = "Pass the function or the module around it."
    if failure.line == failure.column == 1:
        start = " ".join(text[:60].split())
        message = f"{_quoted_type(source)} object is not MLIR: it prints as '{start}'"
        return ReadError(message, path=failure.path, hint=hint)
    return ReadError(
        f"what a {_quoted_type(source)} object prints cannot be read: {failure.message}",
        path=failure.path,
        line=failure.line,
        column=failure.column,
        source_line=failure.source_line,
        hint=hint,
    )


def _quoted_type(source: object) -> str:
    """Full name of an object's type, for messages: "'jaxlib._jax.PjitFunction'", "'int'"."""
    kind = type(source)
    return f"'{kind.__qualname__}'" if kind.__module__ == "builtins" else f"'{kind.__module__}.{kind.__qualname__}'"


def _decoded(data: bytes, path: str) -> str:
    if data.startswith(BYTECODE):
        raise ReadError(
            "this is MLIR bytecode, not text",
            path=path,
            hint=f"Turn it into text first: mlir-opt --allow-unregistered-dialect {path} -o {path}.txt",
        )
    return data.decode("utf-8", "surrogateescape")


def _printed(source: Any) -> str:
    """Text of an object, by its own means."""
    for name in ("compiler_ir", "mlir_module"):
        inner = getattr(source, name, None)
        if inner is not None:
            inner = inner() if callable(inner) else inner
            return inner if isinstance(inner, str) else _printed(inner)
    operation = getattr(source, "operation", source)  # a module and a view have one, an operation is its own
    get_asm = getattr(operation, "get_asm", None)
    if get_asm is None:
        return str(source)
    try:
        text = get_asm(large_elements_limit=_MOST_ELEMENTS, large_resource_limit=_MOST_RESOURCE_CHARACTERS)
    except TypeError:  # bindings from before 2024 know only the first
        text = get_asm(large_elements_limit=_MOST_ELEMENTS)
    return str(text)
