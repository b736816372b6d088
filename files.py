"""Files that appear whole or not at all: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import IrgaugeError


@contextmanager
def replacing(path: str | os.PathLike[str], error: type[IrgaugeError] = IrgaugeError) -> Iterator[Path]:
    """A temporary file that becomes `path` when the block ends, and is removed where it fails. Folders are made.

    Raises
    ------
    IrgaugeError
        (or `error`) The file cannot be written.
    """
    import tempfile  # predicting writes nothing, and starts sooner without

    target, temporary = Path(path), None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(target)
        temporary = None
    except OSError as failure:
        raise error(f"{target}: cannot be written: {failure.strerror or failure}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: bytes | str, error: type[IrgaugeError] = IrgaugeError) -> None:
    """Write bytes, or text as UTF-8 (lone surrogates escaped); errors as `replacing`."""
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    with replacing(path, error) as temporary:
        temporary.write_bytes(content)
