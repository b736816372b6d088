"""Feed the reader broken, odd and hostile MLIR: each input is read, or refused with one clear line, in linear time.

A script, not a test: `python tests/featurize/fuzz.py --corpus ../shared/corpus [--inputs 200000] [--seed 0]`.

* Mutations: chunks of the corpus with some of `MUTATIONS` applied, the n-th input a function of the seed and n alone.
  Each is read in two ways, by lines and token by token, which must agree; what is read must have features.
* Pumps: texts that repeat one thing n and 4n times, for the reader (`pumped_texts`) and for every regular expression
  of the feature modules (`pumped_patterns`). Four times the text may take eight times as long.

The work is done in a process of its own, with a limit on processor time that grows linearly with the input and a limit
on memory. Failures are told apart by where they happened; the first input of each is written to `build/fuzz`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import multiprocessing
import pkgutil
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import irgauge.featurize
from irgauge.errors import IrgaugeError, ReadError
from irgauge.featurize.featurizer import features_of
from irgauge.featurize.program import Op, Program
from irgauge.featurize.reader import read, read_by_tokens

READ_LIMIT_S = 0.5
READ_LIMIT_S_PER_CHARACTER = 20e-6
"""Many times what reading takes; an input that goes on for longer is killed."""
FEATURE_LIMIT_S = 10.0
FEATURE_LIMIT_S_PER_CHARACTER = 1e-3
MEMORY_LIMIT_BYTES = 1 << 30
"""Address space beyond what the process has at the start."""
STALLED_S = 120.0
"""Without any input done for so long, by the clock, the process is taken to hang."""
LONGEST_CHUNK = 4000
PUMPED_CHARACTERS = 10_000
MOST_GROWTH = 8.0
"""Times as long for four times the text."""

Text = str | bytes


# --- mutations --------------------------------------------------------------------------------------------------------

_pieces = re.compile(
    r'\n|[ \t]++|//[^\n]*+|"(?:[^"\\\n]++|\\.)*+"|[%@^#!][\w$.\-]*+|[\w$.]++|->|::|\{-#|#-\}|.', re.S
).findall
_numbers = re.compile(r"(?<![\w.])\d+")
_ODD_NUMBERS = (
    "0", "-1", "1", "4294967296", "9223372036854775807", "18446744073709551616", "9" * 40, "9" * 5000, "0x1F", "1e999",
    "1.5", "-0", "00", "1e", "0x", "?", "*",
)  # fmt: skip
_BRACKETS = "()[]{}<>"
_ODD_CHARACTERS = (
    "\x00", "\x0b", "\x0c", "\x1a", "\x7f", "\x85", "\xa0", "é", "\u2028", "\ufeff", "\ud800", "\udcff", "٣", "ａ",
    "\U0001f600", "\t", "\r", "`", "$", ";", "\\", "'",
)  # fmt: skip
_ODD_PIECES = (
    '"', '"\\"', '"\\', "//", "/*", "{-#", "#-}", "loc(", "loc(unknown)", "#", "!", "%", "^", "@", "@\"", "->", "=>",
    "<=", ">=", "==", "::", "...", "%0", "%0#0", "%0#9", "%0:2 =", "%0:0 =", "%0:99999999999 =", "^bb0", "^bb0:",
    "^bb0(%z: f32):", "#map", "!t", "!llvm.ptr", "tensor<", "memref<4xf32>", "vector<[4]xf32>", "dense<",
    "dense_resource<", "affine_map<(d0) -> (d0)>",
    "({", "})", "<{", "}>", "{", "}", "a.b", '"a.b"() : () -> ()', "return", "module {",
    "func.func @f() {", "scf.yield", "-", ":", "=", ",", "attributes", "else", "do", "case 0", "default", "arith.addf",
    "iter_args(", "ins(", "outs(", "to", "step", "as", "in", "symbol(", "dense<\"0x", "// -----",
)  # fmt: skip
_WRAPPERS = (
    ("a.b {\n", "a.c\n}\n"), ('"a.b"() ({\n', "}) : () -> ()\n"), ("module {\n", "}\n"), ("(", ")"), ("[", "]"),
    ("{", "}"), ("<", ">"), ("!a.b<", ">"), ("tuple<", ">"), ("vector<4x", ">"), ("complex<", ">"), ("{x = ", "}"),
    ("loc(fused[", "])"), ("scf.for %i = %i to %i step %i {\n", "}\n"), ("dense<", ">"),
)  # fmt: skip


def _some(rng: random.Random, size: int) -> int:
    return rng.randrange(size) if size else 0


def flip_characters(text: str, rng: random.Random, other: str) -> str:
    out = list(text)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if out:
            at = _some(rng, len(out))
            out[at] = rng.choice((chr(rng.randrange(128)), rng.choice(_BRACKETS), rng.choice(text), out[at].swapcase()))
    return "".join(out)


def delete_pieces(text: str, rng: random.Random, other: str) -> str:
    pieces = _pieces(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = _some(rng, len(pieces))
        del pieces[at : at + rng.choice((1, 1, 2, 8))]
    return "".join(pieces)


def repeat_pieces(text: str, rng: random.Random, other: str) -> str:
    pieces = _pieces(text)
    at = _some(rng, len(pieces))
    run = pieces[at : at + rng.choice((1, 1, 2, 8))]
    pieces[at:at] = run * rng.choice((1, 1, 2, 50))
    return "".join(pieces)


def swap_pieces(text: str, rng: random.Random, other: str) -> str:
    pieces = _pieces(text)
    for _ in range(rng.choice((1, 1, 3))):
        if pieces:
            a, b = _some(rng, len(pieces)), _some(rng, len(pieces))
            pieces[a], pieces[b] = pieces[b], pieces[a]
    return "".join(pieces)


def swap_alike(text: str, rng: random.Random, other: str) -> str:
    """Two pieces of one kind: names for names, words for words."""
    pieces = _pieces(text)
    first = rng.choice('%^@#!"afimtv01')
    alike = [k for k, piece in enumerate(pieces) if piece.startswith(first)]
    for _ in range(rng.choice((1, 2, 4))):
        if len(alike) > 1:
            a, b = rng.choice(alike), rng.choice(alike)
            if rng.random() < 0.5:
                pieces[a], pieces[b] = pieces[b], pieces[a]
            else:
                pieces[a] = pieces[b]
    return "".join(pieces)


def insert_piece(text: str, rng: random.Random, other: str) -> str:
    pieces = _pieces(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        pieces.insert(_some(rng, len(pieces) + 1), rng.choice(_ODD_PIECES))
    return "".join(pieces)


def truncate(text: str, rng: random.Random, other: str) -> str:
    return text[: _some(rng, len(text) + 1)] if rng.random() < 0.7 else text[_some(rng, len(text) + 1) :]


def splice(text: str, rng: random.Random, other: str) -> str:
    if rng.random() < 0.5:
        return text[: _some(rng, len(text) + 1)] + other[_some(rng, len(other) + 1) :]
    mine, theirs = text.split("\n"), other.split("\n")
    at, from_ = _some(rng, len(mine) + 1), _some(rng, len(theirs) + 1)
    return "\n".join([*mine[:at], *theirs[from_ : from_ + rng.choice((1, 3, 20))], *mine[at:]])


def double_brackets(text: str, rng: random.Random, other: str) -> str:
    bracket = rng.choice(_BRACKETS)
    if rng.random() < 0.5:
        return text.replace(bracket, bracket * 2)
    places = [k for k, char in enumerate(text) if char in _BRACKETS]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + text[at] * rng.choice((2, 3, 100)) + text[at + 1 :]


def nest(text: str, rng: random.Random, other: str) -> str:
    before, after = rng.choice(_WRAPPERS)
    depth = rng.choice((1, 2, 10, 300))
    start = _some(rng, len(text) + 1)
    end = start + rng.choice((0, 1, 5, 40))
    if rng.random() < 0.3:
        start, end = 0, len(text)
    if rng.random() < 0.5:  # at the ends of pieces
        while start < len(text) and (text[start].isalnum() or text[start] in "_.$"):
            start += 1
    return text[:start] + before * depth + text[start:end] + after * depth + text[end:]


def long_piece(text: str, rng: random.Random, other: str) -> str:
    pieces = _pieces(text)
    if not pieces:
        return text
    at = _some(rng, len(pieces))
    pieces[at] = pieces[at] * rng.choice((2, 500, 3000)) if len(pieces[at]) < 20 else pieces[at] * 2
    return "".join(pieces)


def join_lines(text: str, rng: random.Random, other: str) -> str:
    share = rng.choice((1.0, 0.3, 0.05))
    return re.sub(r"\n", lambda _: rng.choice(("", " ", " ")) if rng.random() < share else "\n", text)


def break_lines(text: str, rng: random.Random, other: str) -> str:
    share = rng.choice((1.0, 0.3, 0.05))
    ends = ("\n", "\r\n", "\n\n", "\n  ", " // x\n", "\t", "  ")
    return re.sub(r" ", lambda _: rng.choice(ends) if rng.random() < share else " ", text)


def windows_lines(text: str, rng: random.Random, other: str) -> str:
    return text.replace("\n", rng.choice(("\r\n", "\r", "\n\r", "\r\r\n", "\r\n")))


def odd_characters(text: str, rng: random.Random, other: str) -> str:
    out = list(text)
    for _ in range(rng.choice((1, 1, 3))):
        out.insert(
            rng.choice((0, len(out), _some(rng, len(out) + 1), _some(rng, len(out) + 1))), rng.choice(_ODD_CHARACTERS)
        )
    return "".join(out)


def change_numbers(text: str, rng: random.Random, other: str) -> str:
    share = rng.choice((1.0, 0.2, 0.05))
    return _numbers.sub(lambda m: rng.choice(_ODD_NUMBERS) if rng.random() < share else m[0], text)


def change_lines(text: str, rng: random.Random, other: str) -> str:
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 3))):
        at = _some(rng, len(lines))
        what = rng.randrange(4)
        if what == 0:
            del lines[at : at + 1]
        elif what == 1:
            lines[at:at] = lines[at : at + 1] * rng.choice((1, 2, 100))
        elif what == 2 and lines:
            to = _some(rng, len(lines))
            lines[at], lines[to] = lines[to], lines[at]
        else:
            random.Random(rng.random()).shuffle(lines[at : at + 5])
    return "\n".join(lines)


def quote_names(text: str, rng: random.Random, other: str) -> str:
    """Operations in custom syntax with their names in quotes, and the other way round."""
    if rng.random() < 0.5:
        return re.sub(r'"([a-z_]+\.[\w.]+)"', r"\1", text)
    return re.sub(r"\b([a-z_]+\.[a-z]\w*)\b", r'"\1"', text, count=rng.choice((1, 3, 0)))


MUTATIONS: tuple[Callable[[str, random.Random, str], str], ...] = (
    flip_characters, delete_pieces, repeat_pieces, swap_pieces, swap_alike, insert_piece, truncate, splice,
    double_brackets, nest, long_piece, join_lines, break_lines, windows_lines, odd_characters, change_numbers,
    change_lines, quote_names,
)  # fmt: skip


def chunk_pool(corpus: Path) -> list[str]:
    """Chunks of the corpus of at most `LONGEST_CHUNK` characters; of longer ones, a function or the first lines."""
    from irgauge.tests.featurize.corpus_check import chunks_of  # the way files are cut

    pool = []
    for file in sorted(corpus.rglob("*.mlir")):
        for chunk in chunks_of(file.read_bytes()):
            text = chunk.decode("utf-8", "surrogateescape").strip("\n") + "\n"
            if len(text) > LONGEST_CHUNK:
                found = re.search(r"(?ms)^( *)(?:func\.func|\S+\.func) [^\n]*\{\n.*?^\1\}\n", text)
                text = found[0] if found and len(found[0]) <= LONGEST_CHUNK else text[:LONGEST_CHUNK]
            pool.append(text)
    return pool


def mutated(pool: list[str], seed: int, index: int) -> Text:
    """The input with this number."""
    rng = random.Random(seed * 1_000_003 + index)
    text = rng.choice(pool)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3, 5))):
        text = rng.choice(MUTATIONS)(text, rng, rng.choice(pool))
        if len(text) > 50 * LONGEST_CHUNK:
            text = text[: 50 * LONGEST_CHUNK]
    if rng.random() < 0.3:
        data = bytearray(text.encode("utf-8", "surrogatepass"))
        if data and rng.random() < 0.5:
            for _ in range(rng.choice((1, 1, 4))):
                data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    return text


# --- pumps ------------------------------------------------------------------------------------------------------------

_UNITS = (
    "(", ")", "[", "]", "{", "}", "<", ">", "()", "[]", "{}", "<>", "%", "%a", "%a ", "%a, ", "%a = ", "%a:2, ",
    "%a#1 ",
    "^", "^a", "^a:\n", "^a(", "^a()", "#", "#a", "#a ", "#a = ", "#a = 1\n", "#a.b<", "!", "!a", "!a = ", "!a.b<", "@",
    "@a", '@"', '@"a"', "::", "a", "a.", "a.b", "a.b ", "a.b\n", "a.b {\n", "a.b {", "a.b (", "a.b {a.c}\n", "a.b {x}",
    "{x = ", "{x, ", "{x}", "({x = ", "({%a = ", "{%a, ", "({%a}", "[{", "<{", "{<", '"', '""', '"a"', '"a" ', '"a"(',
    '"a.b"(', '"a.b"()', '"a.b"() : () -> ()', '"a.b"() : () -> ()\n', '"a.b"() ({\n', '"a.b"() ({}', "({", "})", "}) ",
    "\\", "\\\"", '"\\"', "/", "//", "// \n", "//\n", " ", "\t", "\n", "\r", "\r\n", " \n", "0", "0 ", "1.", "1e", "0x",
    "-", "->", "- ", "=", "=>", "==", "<=", ">=", "<=>", ":", ", ", ",", ".", "...", "*", "?", "x", "4x", "?x", "[4]x",
    "loc", "loc ", "loc(", "loc()", " loc(#a)", "loc(unknown) ", "tensor<", "tensor<4x", "memref<4xf32>, ", "vector<",
    "complex<", "tuple<", "dense<", "dense<[", "array<", "affine_map<", "(d0) -> (", "-> (", "() -> ", "f32, ", "f32 ",
    "{-#", "#-}", "{-# #-}", "return ", "return\n", "else ", "to ", "as ", "iter_args(", "%a: f32, ", "(%a: f32",
    "%a: ",
    "(%a = ", "a.b %a\n", "%a = a.b\n", "%a = a.b : f32\n", "a.b %a : f32 ", "a.b : f32 ", "a.b ^a ", "call @a() ",
    "module {", "module {\n", "func.func @f() {\n", "scf.if %a {\n", "scf.if %a {} else {", "} else {", "}\n", "} ",
    "attributes {", "é", "\x00", "\ufeff", "\x0c", "e+", "_", "$", "a$", "a-", "%a-", "a.b -> ", "a.b ,\n",
    "a.b\n: f32\n",
    "a.b dense<1> ", "a.b loc(\"x\")\n", 'a.b "x"\n', 'a.b {x = "y"}\n', "a.b [%a, ", "a.b <%a, ", "symbol(", "min(",
    "a.b { a.c } ", "a.b ({", "a.b {a.c ", "a.b {\"x\" = ", "a.b {x = #b.c<", "a.b @f<", "a.b #a.b<\"", "a.b !x.y<(",
)  # fmt: skip
_STARTS = (
    "", "a.b ", "a.b (", "a.b {", "a.b {\n", "%a = ", "%a = a.b ", '"a.b"(', '"a.b"() ', '"a.b"() {x = ', "#a = ",
    "!a = ", "func.func @f(", "a.b {\n^a(", "//", '"', "a.b dense<", "a.b : tensor<", '"a.b"() : (', "a.b #x.y<",
    "a.b loc(",
    "%v = a.b : f32\na.b %v ", "{-# ",
)  # fmt: skip
_STOPS = ("", " {\n", ")", "\n", '"', " = a.b\n", "}", ">", "\x00", " : f32\n", "\na.c\n")


def closed(start: str) -> str:
    """What closes the brackets left open by a text of brackets and words."""
    pairs = {"(": ")", "[": "]", "{": "}", "<": ">"}
    return "".join(pairs[c] for c in reversed(start) if c in pairs)


def pumped_texts(rng: random.Random) -> Iterator[tuple[str, Callable[[int], str]]]:
    """(name, maker of a text with n repetitions): every unit after every start, with some of the ends."""
    for unit in _UNITS:
        for start in _STARTS:
            stop = rng.choice(_STOPS)
            yield f"{start!r} + {unit!r} * n + {stop!r}", lambda n, a=start, u=unit, z=stop: a + u * n + z  # type: ignore[misc]
            if closed(unit) and rng.random() < 0.5:
                shut = closed(unit)
                yield (
                    f"{start!r} + {unit!r} * n + {shut!r} * n + {stop!r}",
                    lambda n, a=start, u=unit, s=shut, z=stop: a + u * n + s * n + z,  # type: ignore[misc]
                )
    for unit in _UNITS:
        other = rng.choice(_UNITS)
        yield f"{unit!r} * n + {other!r} * n", lambda n, u=unit, o=other: u * n + o * n  # type: ignore[misc]
        yield f"({unit + other!r}) * n", lambda n, u=unit, o=other: (u + o) * n  # type: ignore[misc]


def patterns() -> dict[str, Callable[[str], object]]:
    """Every compiled regular expression of the feature modules, those behind bound methods included, as it is used."""
    found: dict[str, Callable[[str], object]] = {}
    seen = set()
    for info in pkgutil.iter_modules(irgauge.featurize.__path__):
        module = importlib.import_module(f"irgauge.featurize.{info.name}")
        for name, value in vars(module).items():
            owner = getattr(value, "__self__", value)
            if isinstance(owner, re.Pattern) and owner not in seen:
                seen.add(owner)
                used = getattr(value, "__name__", "")
                source = inspect.getsource(module)
                searched = used not in ("", "match", "fullmatch") or re.search(
                    rf"\b{name}\.(?:search|finditer|findall|sub|split)\(", source
                )
                found[f"{info.name}.{name}"] = owner.findall if searched else owner.match
    return found


def letters_of(pattern: re.Pattern[str]) -> list[str]:
    """Characters that a pattern names: its literals, and both ends of its ranges."""
    out: set[str] = set()
    parser = re._parser  # type: ignore[attr-defined]
    stack = [parser.parse(pattern.pattern, pattern.flags)]
    while stack:
        item = stack.pop()
        if isinstance(item, parser.SubPattern):
            stack.extend(item.data)
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, tuple):
            if item and str(item[0]) in ("LITERAL", "NOT_LITERAL"):
                out.add(chr(item[1]))
            elif item and str(item[0]) == "RANGE":
                out.update(map(chr, item[1]))
            elif item and str(item[0]) == "CATEGORY":
                out.update("0 a_")
            else:
                stack.extend(item)
    return sorted(out)


def pumped_patterns(rng: random.Random) -> Iterator[tuple[str, Callable[[str], object], Callable[[int], str]]]:
    """(name, use, maker): runs of the letters and pairs of letters of each pattern, with ends that do not fit."""
    for name, use in sorted(patterns().items()):
        pattern: re.Pattern[str] = use.__self__  # type: ignore[attr-defined]
        letters = letters_of(pattern)
        words = [word for word in re.findall(r"[a-z_]{2,}", pattern.pattern) if word.isalpha()]
        units = {
            *letters,
            *(a + b for a in letters for b in rng.sample(letters, min(3, len(letters)))),
            *words,
            " ",
            "a ",
        }
        starts = ["", *rng.sample(letters, min(4, len(letters))), *words[:2], '"', "value = ", "<", "{", "("]
        for unit in sorted(units):
            for start in rng.sample(starts, min(3, len(starts))):
                stop = rng.choice(("\x00", "\n", "", "!", "x"))
                yield (
                    f"{name}: {start!r} + {unit!r} * n + {stop!r}",
                    use,
                    lambda n, a=start, u=unit, z=stop: a + u * n + z,  # type: ignore[misc]
                )


# --- one input --------------------------------------------------------------------------------------------------------


class Wrong(Exception):
    """What the reader did is not what it promises."""


def _limited(seconds: float) -> None:
    """The process dies by SIGPROF when it has computed for so long; 0 takes the limit away."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def check_error(error: ReadError, text: Text) -> None:
    """The message is one line that says where, and the place is in the text."""
    line = error.one_line()
    size = len(text)
    if "\n" in line or not line.startswith(f"{error.path}:{error.line}:{error.column}: "):
        if error.line or "bytecode" not in error.message:
            raise Wrong(f"not one line with its place: {line!r}")
    elif not error.message.strip() or len(error.message) > 400:
        raise Wrong(f"the message is empty or long: {error.message[:500]!r}")
    elif error.line > size + 1 or error.column < 1 or error.column > size + 1:
        raise Wrong(f"the place is not in the text: {line!r}")


def check_program(program: Program) -> None:
    """What every program holds: values have one definition, operations stand where their parents say."""
    count = len(program.value_types)
    if len(program.value_defs) != count:
        raise Wrong("value types and definitions differ in number")
    owners: list[object] = [None] * count
    last = -1
    for op in program.walk():
        if not op.name or ("." not in op.name and not op.text.startswith("(")):
            raise Wrong(f"an operation named {op.name!r}")
        if not op.implied:
            if not 0 <= op.offset < max(len(program.text), 1):
                raise Wrong(f"'{op.name}' is not in the text")
            if op.offset < last and op.name != "builtin.module" and not (op.parent and _reordered(op)):
                raise Wrong(f"'{op.name}' is out of order")
            last = op.offset
        for value in op.operands:
            if not 0 <= value < count:
                raise Wrong(f"'{op.name}' uses a value that does not exist")
        for value in op.results:
            if owners[value] is not None or program.value_defs[value] is not op:
                raise Wrong(f"a result of '{op.name}' is defined twice")
            owners[value] = op
        for region in op.regions:
            if region.parent is not op:
                raise Wrong(f"a region of '{op.name}' has another parent")
            for block in region.blocks:
                if block.parent is not region:
                    raise Wrong(f"a block of '{op.name}' has another parent")
                for value in block.args:
                    if owners[value] is not None or program.value_defs[value] is not block:
                        raise Wrong(f"a block argument of '{op.name}' is defined twice")
                    owners[value] = block
                for inner in block.ops:
                    if inner.parent is not block:
                        raise Wrong(f"'{inner.name}' has another parent")


def _reordered(op: Op) -> bool:
    """Is it in or after a region that is not in text order (`scf.index_switch`)?"""
    block = op.parent
    while block is not None:
        owner = block.parent.parent
        if owner.name == "scf.index_switch" or any(o.name == "scf.index_switch" for o in block.ops):
            return True
        block = owner.parent
    return False


def listed(program: Program) -> list[Any]:
    """The program as plain data."""
    out: list[Any] = []
    for op in program.walk():
        types = [program.value_types[v] for v in op.results]
        blocks = [[(b.label, [program.value_types[v] for v in b.args]) for b in r.blocks] for r in op.regions]
        text = "".join(op.text.split())
        out.append((op.name, op.implied, text, list(op.operands), types, list(op.successors), blocks))
    ids: dict[int, int] = {}
    for row in out:
        row[3][:] = [ids.setdefault(value, len(ids)) for value in row[3]]
    return out


_FIELDS = ("name", "being implied", "text", "operands", "result types", "successors", "blocks")


def first_difference(mine: list[Any], theirs: list[Any]) -> str:
    """Where two listings differ; "" if they do not."""
    for left, right in zip(mine, theirs, strict=False):
        if left != right:
            field = next(k for k, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1])
            return f"{_FIELDS[field]}: {left[0]} {left[field]!r}, {right[0]} {right[field]!r}"
    return "" if len(mine) == len(theirs) else f"length: {len(mine)} and {len(theirs)}"


def outcome(reader: Callable[..., Program], text: Text) -> Program | ReadError:
    try:
        return reader(text, path="x.mlir")
    except ReadError as error:
        return error


def check(text: Text) -> str:
    """Read one input and check all that is promised; "read" or "refused". Raises `Wrong`, or what the code raises."""
    size = len(text)
    _limited(READ_LIMIT_S + READ_LIMIT_S_PER_CHARACTER * size)
    found = outcome(read, text)
    _limited(READ_LIMIT_S + 2 * READ_LIMIT_S_PER_CHARACTER * size)
    slow = outcome(read_by_tokens, text)
    _limited(FEATURE_LIMIT_S + FEATURE_LIMIT_S_PER_CHARACTER * size)
    if isinstance(found, ReadError):
        check_error(found, text)
        if not isinstance(slow, ReadError):
            raise Wrong(f"refused by lines ({found.message}), read by tokens")
        return "refused"
    if isinstance(slow, ReadError):
        raise Wrong(f"read by lines, refused by tokens ({slow.message})")
    check_program(found)
    difference = first_difference(listed(found), listed(slow))
    if difference:
        raise Wrong(f"lines and tokens differ in {difference}"[:4000])
    try:
        features_of(found)
    except IrgaugeError:
        return "without features"
    return "read"


def reason_of(problem: BaseException) -> tuple[str, str]:
    """(what tells failures apart, the whole story)."""
    story = "".join(traceback.format_exception(problem))
    if isinstance(problem, Wrong):
        return re.sub(r"'[^']*'|\d+", "_", str(problem).partition(": ")[0]), story
    frames = traceback.extract_tb(problem.__traceback__)
    inside = [f for f in frames if "featurize" in f.filename and "tests" not in f.filename]
    place = inside[-1] if inside else frames[-1]
    return f"{type(problem).__name__} in {Path(place.filename).name}:{place.name}: {place.line}", story


# --- the worker and the watch over it ---------------------------------------------------------------------------------


def _set_memory_limit() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_LIMIT_BYTES, resource.RLIM_INFINITY))


def work(pool: list[str], seed: int, indices: range, current: Any, pipe: Connection) -> None:
    """Check inputs, one after the other; `current` holds the number of the one at work."""
    _set_memory_limit()
    tally: Counter[str] = Counter()
    for index in indices:
        current.value = index
        text = mutated(pool, seed, index)
        try:
            tally[check(text)] += 1
        except Exception as problem:
            _limited(0)
            pipe.send(("failure", index, *reason_of(problem)))
            tally["failed"] += 1
        _limited(0)
        if index % 100 == 99:
            pipe.send(("tally", index, dict(tally)))
            tally.clear()
    pipe.send(("tally", indices.stop - 1, dict(tally)))
    pipe.send(("done", 0, ""))


class Failures:
    """Kinds of failure, how often each was met, and the first input of each in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, name: str, text: Text, story: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] > 1:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.mlir"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        path.with_suffix(".txt").write_text(f"{kind}\n\n{story}", encoding="utf-8", errors="backslashreplace")
        print(f"\nFAILED {path}: {kind}", flush=True)


def run_mutations(pool: list[str], options: argparse.Namespace, failures: Failures) -> Counter[str]:
    """All mutated inputs, in a process that is started again after each one that it does not survive."""
    tally: Counter[str] = Counter()
    context = multiprocessing.get_context("fork")
    current = context.Value("q", 0, lock=False)
    start = options.first
    stop = options.first + options.inputs
    began = time.monotonic()
    shown = 0.0
    while start < stop and len(failures.counts) < options.failures:
        receive, send = context.Pipe(duplex=False)
        worker = context.Process(target=work, args=(pool, options.seed, range(start, stop), current, send))
        worker.start()
        send.close()
        finished = False
        reached, since = -1, time.monotonic()
        while True:
            if receive.poll(1.0):
                try:
                    kind, index, *rest = receive.recv()
                except EOFError:
                    break
                if kind == "tally":
                    tally.update(rest[0])
                elif kind == "failure":
                    failures.add(rest[0], f"{options.seed}-{index}", mutated(pool, options.seed, index), rest[1])
                    if len(failures.counts) >= options.failures:
                        break
                else:
                    finished = True
            elif current.value != reached:
                reached, since = current.value, time.monotonic()
            elif time.monotonic() - since > STALLED_S:
                break
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                done = current.value - options.first
                each = (shown - began) / max(done, 1)
                print(f"{done:,} of {options.inputs:,}  {each * 1e3:.1f} ms each  {dict(tally)}", flush=True)
        worker.join(1)
        if worker.is_alive():
            worker.kill()
            worker.join()
        if finished or len(failures.counts) >= options.failures:
            break
        index = current.value
        died = {-signal.SIGPROF: "over its time limit", -signal.SIGKILL: "stalled"}.get(worker.exitcode or 0)
        failures.add(
            died or f"the process died ({worker.exitcode})", f"{options.seed}-{index}",
            mutated(pool, options.seed, index), "Run it with --replay FILE.",
        )  # fmt: skip
        tally["killed"] += 1
        start = index + 1
    return tally


def growth(run: Callable[[str], object], make: Callable[[int], str], size: int) -> float:
    """How many times as long four times the text takes; 0 where it takes no time worth measuring."""
    n = max(size // max(len(make(3)) - len(make(2)), 1), 1)
    small, large = make(n), make(4 * n)
    for attempt in range(3):
        start = time.process_time()
        run(large)
        long = time.process_time() - start
        if long < 0.02 + 1e-6 * len(large):
            return 0.0
        start = time.process_time()
        run(small)
        ratio = long / max(time.process_time() - start, 1e-3)
        if ratio < MOST_GROWTH:
            return ratio
        del attempt
    return ratio


def pump(seed: int, what: str, skip: int, current: Any, pipe: Connection) -> None:
    """Time all pumps of one kind, after the first `skip` ones."""
    _set_memory_limit()
    cases: Iterator[tuple[str, Callable[[str], object], Callable[[int], str], int]]
    if what == "reader":
        cases = (
            (name, lambda text: outcome(read, text), make, PUMPED_CHARACTERS)
            for name, make in pumped_texts(random.Random(seed))
        )
    else:
        cases = ((name, use, make, 4000) for name, use, make in pumped_patterns(random.Random(seed)))
    number = 0
    for number, (name, run, make, size) in enumerate(cases, 1):
        if number <= skip:
            continue
        current.value = number
        pipe.send(("at", name, make(3)))
        _limited(30 * (READ_LIMIT_S + READ_LIMIT_S_PER_CHARACTER * 4 * size))
        try:
            ratio = growth(run, make, size)
            if ratio >= MOST_GROWTH:
                pipe.send(("failure", f"{ratio:.1f} times as long for 4 times the text", name))
            elif what == "reader":
                check(make(40))
        except Exception as problem:
            _limited(0)
            pipe.send(("failure", reason_of(problem)[0], f"{name}\n{reason_of(problem)[1]}"))
        _limited(0)
    pipe.send(("done", number, ""))


def run_pumps(what: str, options: argparse.Namespace, failures: Failures) -> int:
    """All pumps of one kind; how many there were."""
    context = multiprocessing.get_context("fork")
    current = context.Value("q", 0, lock=False)
    skip = 0
    while True:
        receive, send = context.Pipe(duplex=False)
        worker = context.Process(target=pump, args=(options.seed, what, skip, current, send))
        worker.start()
        send.close()
        at = example = ""
        total = -1
        try:
            while True:
                kind, *rest = receive.recv()
                if kind == "at":
                    at, example = rest
                elif kind == "done":
                    total = rest[0]
                else:
                    kind_of = f"{rest[0]}: {at}" if "times" in rest[0] else rest[0]
                    failures.add(kind_of, f"{what}-{options.seed}-{current.value}", example, rest[1])
                    if len(failures.counts) >= options.failures:
                        worker.kill()
                        worker.join()
                        return current.value
        except EOFError:
            worker.join()
        if total >= 0:
            return total
        failures.add(f"over its limit: {at}", f"{what}-{options.seed}-{current.value}", example, at)
        skip = current.value
        if len(failures.counts) >= options.failures:
            return skip


def replay(path: Path) -> int:
    """Check one input in this process, so that a debugger can look."""
    data = path.read_bytes()
    for text in (data, data.decode("utf-8", "surrogateescape")):
        print(check(text))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Print a tally; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a folder with .mlir files to mutate")
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--failures", type=int, default=10, help="stop after this many kinds of failure")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where the inputs that failed go")
    parser.add_argument("--only", choices=["mutations", "reader", "patterns"])
    parser.add_argument("--replay", type=Path, help="check this input alone")
    options = parser.parse_args(argv)
    if options.replay:
        return replay(options.replay)
    if not options.corpus or not options.corpus.is_dir():
        parser.error("--corpus must be a folder with .mlir files")
    failures = Failures(options.out)
    start = time.monotonic()
    if options.only in (None, "patterns"):
        print(f"pumped patterns: {run_pumps('patterns', options, failures):,}", flush=True)
    if options.only in (None, "reader"):
        print(f"pumped texts: {run_pumps('reader', options, failures):,}", flush=True)
    if options.only in (None, "mutations"):
        pool = chunk_pool(options.corpus)
        tally = run_mutations(pool, options, failures)
        print(f"{sum(tally.values()):,} mutations of {len(pool):,} chunks:", end=" ")
        print(", ".join(f"{count:,} {name}" for name, count in tally.most_common()))
    print(f"{time.monotonic() - start:.0f} s, {len(failures.counts)} kinds of failure")
    for kind, count in failures.counts.most_common():
        print(f"  {count:,} x {kind}")
    return int(bool(failures.counts))


if __name__ == "__main__":
    sys.exit(main())
