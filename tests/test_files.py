"""A file is whole or as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgauge.errors import ArtifactError, IrgaugeError
from irgauge.files import replacing, write_whole


def test_text_and_bytes_are_written_and_folders_made(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b.txt", "µ \udcef")
    assert (tmp_path / "a" / "b.txt").read_bytes() == "µ \\udcef".encode()
    write_whole(tmp_path / "a" / "b.txt", b"\0")
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"\0"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (ValueError("no"), ValueError),
        (OSError(28, "No space left on device"), IrgaugeError),
    ],
)
def test_what_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, failure: BaseException, expected: type[BaseException]
) -> None:
    target = tmp_path / "kept"
    target.write_text("old")

    def half_written() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(expected):
        half_written()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_error_names_the_file_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match=r"file/x: cannot be written: (Not a directory|File exists)"):
        write_whole(tmp_path / "file" / "x", b"", ArtifactError)
