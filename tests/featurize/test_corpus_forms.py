"""A sample of a corpus of real programs: every form of one gives the same features (`make corpus-check`: all)."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from irgauge.errors import ReadError
from irgauge.featurize import features_of
from irgauge.tests.featurize import forms
from irgauge.tests.featurize.corpus_check import chunks_of

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
LONGEST = 4000
CHUNKS, PRINTED = 100, 12


@pytest.fixture(scope="module")
def sample() -> list[tuple[str, str]]:
    """(name, text) of chunks that are read, the same ones each time."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of programs in {CORPUS}")
    rng = random.Random(0)
    files = sorted(CORPUS.rglob("*.mlir"))
    rng.shuffle(files)
    found = []
    for file in files:
        number, chunk = rng.choice(list(enumerate(chunks_of(file.read_bytes()))))
        if b"expected-error" not in chunk and len(chunk) <= LONGEST:
            found.append((f"{file.relative_to(CORPUS)}[{number}]", chunk.decode("utf-8", "surrogateescape")))
        if len(found) == CHUNKS:
            break
    return found


def features_or_none(text: str) -> forms.Features | None:
    try:
        return features_of(text)
    except ReadError:
        return None


def test_respelled_programs_have_the_same_features(sample: list[tuple[str, str]]) -> None:
    compared = 0
    for number, (name, text) in enumerate(sample):
        expected = features_or_none(text)
        if expected is None:
            continue
        for form, difference in forms.respelling_differences(text, expected, seed=number).items():
            assert difference == "", f"{name}, {form}"
            compared += 1
    assert compared > 2 * CHUNKS


def test_printed_programs_have_the_same_features(sample: list[tuple[str, str]], mlir_opt: Callable[..., str]) -> None:
    printed = 0
    for name, text in sample:
        expected = features_or_none(text)
        if expected is None or printed == PRINTED:
            continue
        try:
            prints = {form: mlir_opt(text, *arguments) for form, arguments in forms.PRINTS.items()}
        except (subprocess.CalledProcessError, UnicodeError):  # a dialect that mlir-opt does not have
            continue
        printed += 1
        for form, other in prints.items():
            assert forms.compare(expected, other) == "", f"{name}, {form}"
    assert printed == PRINTED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('%a = a.b "%a" // %a\n', '%v0 = a.b "%a" // %a\n'),
        ("^bb(%x: i1):", "^v0(%v1: i1):"),
        ("a.b %5x, %5", "a.b %v0x, %v0"),
    ],
)
def test_renaming_leaves_strings_and_comments(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random.Random, "choice", lambda self, options: options[0])
    assert forms.renamed(text, 0) == expected


def test_functions_change_places() -> None:
    text = "func.func @a() {\n  return\n}\nfunc.func @b() {\n  return\n}\nfunc.func @c() {\n  return\n}\n"
    other = forms.reordered(text, 0)
    assert other is not None
    assert other != text
    assert forms.compare(features_of(text), other) == ""
    assert forms.first_difference(features_of(text), features_of(text.replace("@b", "@x"))).startswith("functions")
    changed = text.replace("return", "a.b\n  return", 1)
    assert "@a" in forms.first_difference(features_of(text), features_of(changed))
