"""The same program in other texts: respelled by hand, or printed by `mlir-opt`."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from irgauge.errors import ReadError
from irgauge.featurize.featurizer import features_of, functions_of
from irgauge.featurize.reader import read

PRINTS: dict[str, tuple[str, ...]] = {
    "custom print": (),
    "generic print": ("--mlir-print-op-generic",),
    "print with locations": ("--mlir-print-debuginfo",),
    "generic print with locations": ("--mlir-print-op-generic", "--mlir-print-debuginfo"),
    "print without aliases": ("--mlir-print-local-scope",),
    "print with names of locations": ("--mlir-use-nameloc-as-prefix", "--mlir-print-unique-ssa-ids"),
}
"""Arguments of `mlir-opt` for each way to print a program."""

Features = dict[str, dict[str, float]]

_lexemes = re.compile(
    r'(?P<string>"(?:[^"\\\n]++|\\.)*+")|(?P<comment>//[^\n]*+)|(?P<break>[ \t]*+\r?\n[ \t]*+)|(?P<space>[ \t]++)'
    r"|(?P<value>%[A-Za-z0-9_$.\-]++)|(?P<label>\^[A-Za-z0-9_$.\-]++)|(?P<open>[!#][\w$.]++<|[<(\[{])|(?P<close>->|[>)\]}])"
    r"|(?P<word>[@!#]?[\w$.\-]++)|(?P<other>.)",
    re.S | re.A,
)
_digits = re.compile(r"%\d+")


def _lexed(text: str) -> list[tuple[str, str, bool]]:
    """(kind, text, is it in the raw body of a dialect's type or attribute) of each piece."""
    out = []
    raw: list[bool] = []
    for match in _lexemes.finditer(text):
        kind = match.lastgroup or ""
        part = match[0]
        if kind == "open":
            raw.append(bool(raw and raw[-1]) or part[0] in "!#")
        elif kind == "close" and part != "->" and raw:
            raw.pop()
        out.append((kind, part, bool(raw and raw[-1])))
    return out


def renamed(text: str, seed: int) -> str:
    """Other names for values and block labels."""
    rng = random.Random(seed)
    names: dict[str, str] = {}
    out = []
    for kind, part, _ in _lexed(text):
        if kind in ("value", "label"):
            name, tail = part, ""
            if kind == "value" and (digits := _digits.match(part)):
                name, tail = digits[0], part[digits.end() :]
            if name not in names:
                names[name] = f"{name[0]}{rng.choice(('v', 'x.', '_', 'a-', '$'))}{len(names)}"
            out.append(names[name] + tail)
        else:
            out.append(part)
    return "".join(out)


_COMMENTS = (' // a "comment" } with %x = op.name', " // ({[<", " //", " // return")


def commented(text: str, seed: int) -> str:
    """Comments at the ends of lines and on lines of their own, others dropped; other indentation; empty lines."""
    rng = random.Random(seed)
    out = []
    for kind, part, raw in _lexed(text):
        if kind == "comment" and not raw:
            continue
        if kind == "break" and not raw:
            out.append(rng.choice(("", "", "  ", *_COMMENTS)) + "\n")
            while rng.random() < 0.2:
                out.append(rng.choice(("", "   ", *_COMMENTS)) + "\n")
            out.append(rng.choice(("", " ", "  ", "\t", "\t\t")))
        else:
            out.append(part)
    return "".join(out)


def respaced(text: str, seed: int) -> str:
    """Other white space between the words of a line, Windows' line ends."""
    rng = random.Random(seed)
    ends = rng.choice(("\n", "\r\n"))
    out = []
    for kind, part, raw in _lexed(text):
        if kind == "space" and not raw:
            out.append(rng.choice((" ", " ", "  ", "\t", " \t ")))
        elif kind == "break" and not raw:
            out.append(part.replace("\r\n", "\n").replace("\n", ends))
        else:
            out.append(part)
    return "".join(out)


def reordered(text: str, seed: int) -> str | None:
    """The functions in another order; None where there are not two of them in one place."""
    program = read(text)
    names = [name for name, _ in functions_of(program)]
    if len(names) < 2 or any("#" in name for name in names):
        return None
    places = {}
    for _, op in functions_of(program):
        places.setdefault(id(op.parent), []).append(op)
    for functions in places.values():
        block = functions[0].parent
        if len(functions) < 2 or block is None:
            continue
        first = block.ops.index(functions[0])
        if block.ops[first : first + len(functions)] != functions:
            continue
        starts = [op.offset for op in functions]
        after = block.ops[first + len(functions) :]
        end = after[0].offset if after else program.text.rfind("}", 0, len(program.text.rstrip()))
        if not after and block.parent.parent.implied:
            end = len(program.text)
        elif not after:
            continue  # where the module around ends is not known here
        parts = [program.text[a:b] for a, b in zip(starts, [*starts[1:], end], strict=True)]
        if any(re.search(r"(?m)^\s*[#!][A-Za-z_]\w*\s*=|\{-#", part) for part in parts):
            continue
        random.Random(seed).shuffle(parts)
        return program.text[: starts[0]] + "\n".join([*parts[1:], parts[0], ""]) + program.text[end:]
    return None


RESPELLINGS: dict[str, Callable[[str, int], str | None]] = {
    "values renamed": renamed,
    "comments changed": commented,
    "white space changed": respaced,
    "functions in another order": reordered,
}


def first_difference(expected: Features, found: Features) -> str:
    """The first feature that differs, with both values; "" if none does."""
    if expected.keys() != found.keys():
        return f"functions {sorted(expected)[:4]} for {sorted(found)[:4]}"
    for name, features in expected.items():
        other = found[name]
        if features == other:
            continue
        for key in sorted({*features, *other}):
            if features.get(key) != other.get(key):
                more = sum(features.get(k) != other.get(k) for k in {*features, *other}) - 1
                return f"@{name} {key}: {features.get(key)} for {other.get(key)}" + (
                    f" and {more} more" if more else ""
                )
    return ""


def compare(expected: Features, text: str) -> str:
    """How the features of a text differ from those expected; "" if they do not."""
    try:
        found = features_of(text)
    except ReadError as problem:
        return f"refused: {problem.one_line()}"
    return first_difference(expected, found)


def respelling_differences(text: str, expected: Features, seed: int) -> Mapping[str, str]:
    """For each respelling that there is of the text: how its features differ ("" if they do not)."""
    out = {}
    for name, respell in RESPELLINGS.items():
        other = respell(text, seed)
        if other is not None:
            out[name] = compare(expected, other)
    return out
