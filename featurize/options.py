"""Feature group `options`: numbers, flags, short enums and targets of the module, the function and its arguments."""

from __future__ import annotations

import re

from .attribute_text import is_generic, property_text, split_top, top_level_groups
from .function_view import FunctionView
from .ops import safe_name
from .program import Block, Op

FEATURES: dict[str, tuple[str, str]] = {
    "options.count": ("attributes of the function and the modules around it, names and types apart", "count"),
    "options.noalias": ("arguments marked llvm.noalias", "count"),
}
_OWN = {  # with those of llvm.func and gpu.func, which the custom syntax writes as words, or not at all
    "sym_name",
    "function_type",
    "arg_attrs",
    "res_attrs",
    "sym_visibility",
    "operandSegmentSizes",
    "res_names",
    "arg_names",
    "CConv",
    "linkage",
    "visibility_",
    "unnamed_addr",
    "gpu.kernel",
    "workgroup_attributions",
}
"""Written in one syntax only, or what every function has."""
MOST = 8
"""Numbers of a list, and words of a target, that become features."""
_ENTRY = re.compile(r'\s*+(?:"((?:[^"\\]++|\\.)*+)"|([A-Za-z_][\w$.-]*+))\s*+(=)?+')
_INTEGER = re.compile(r"(-?\d++)\s*+(?::\s*+(?:[su]?i\d++|index))?+$")
_FLOAT = re.compile(r"(-?\d++\.\d*+(?:[eE][-+]?\d++)?+)\s*+(?::\s*+\w++)?+$")
_ENUM = re.compile(r'(?:#[\w.]++<\s*+([\w.-]++)\s*+>|"([\w.:-]{1,32})"|(true|false|unit))$')
_PROPERTIES = re.compile(r"\([^)]*+\)\s*+(?:\[[^\]]*+\]\s*+)?+<\{")
_TAIL = re.compile(r"\)\s*+(\{)")
_ATTRIBUTES = re.compile(r"\battributes\s*+(\{)")
_LIST = re.compile(
    r"(?:array<[su]?i\d++\s*+(?::([-\d,\s]*+))?+>|dense<\[?+([-\d,\s]*+)\]?+>\s*+:.*+|\[([-\d,\s]*+)\])$"
)
_WORD = re.compile(r'"([\w.:+-]{1,32})"')
_QUOTED = re.compile(r'"(-?\d{1,15})"')
_DIGITS = re.compile(r"-?\d++")


def options(view: FunctionView) -> dict[str, float]:
    """The fixed features, and those that the program's own attributes name.

    `options.<name>` is a number or a flag, `options.<name>/<i>` number i of a list, `options.<name>/<value>` = 1 an
    enum or a word of a target. `options.args/<name>` counts the arguments that carry an attribute, and
    `options.args/<name>/<value>` those with that number.
    """
    out = {"options.count": 0.0, "options.noalias": 0.0}
    function = view.function
    text = view.text_of(function)
    out["options.noalias"] = float(text.count("llvm.noalias"))
    scopes: list[Op] = [function]
    block: Block | None = function.parent
    while block is not None:
        owner = block.parent.parent
        scopes.append(owner)
        block = owner.parent
    for op in reversed(scopes):
        for name, value in attributes(text if op is function else view.text_of(op)):
            out["options.count"] += 1
            out.update(_values(f"options.{safe_name(name)}", None if value is None else _of_aliases(view, value)))
    for name, value in argument_attributes(text):
        key = f"options.args/{safe_name(name)}"
        out[key] = out.get(key, 0.0) + 1.0
        number = _INTEGER.match(value) if value is not None else None
        if number:
            key = f"{key}/{safe_name(number.group(1))}"
            out[key] = out.get(key, 0.0) + 1.0
    return out


def _of_aliases(view: FunctionView, value: str) -> str:
    """An attribute with its alias, or those in its list, replaced; inside a dialect's attribute they are its text."""
    written = view.program.aliases.written
    if value.startswith("[") and "#" in value:
        return f"[{', '.join(written.get(v.strip(), v.strip()) for v in split_top(value[1:-1]))}]"
    return written.get(value, value)


def _values(key: str, value: str | None) -> dict[str, float]:
    """The features of one attribute."""
    if value is None:
        return {key: 1.0}
    quoted = _QUOTED.fullmatch(value)
    number = quoted or _INTEGER.match(value) or _FLOAT.match(value)
    if number:
        return {key: max(-1e15, min(1e15, float(number.group(1))))}
    listed = _LIST.match(value)
    if listed:
        numbers = _DIGITS.findall(next((g for g in listed.groups() if g is not None), ""))
        return {f"{key}/{i}": max(-1e15, min(1e15, float(n))) for i, n in enumerate(numbers[:MOST])}
    enum = _ENUM.match(value)
    if enum:
        word = enum.group(1) or enum.group(2) or enum.group(3)
        return {key: float(word == "true")} if word in ("true", "false") else {f"{key}/{safe_name(word)}": 1.0}
    if "target" in key:
        return {f"{key}/{safe_name(word)}": 1.0 for word in _WORD.findall(value)[:MOST]}
    return {}


def argument_attributes(text: str) -> list[tuple[str, str | None]]:
    """(name, value) of each attribute of each argument of a function, `llvm.noalias` apart."""
    stripped = text.lstrip()
    groups: list[str] = []
    if is_generic(stripped):
        written = property_text(stripped, "arg_attrs")
        groups = split_top(written[1:-1]) if written.startswith("[") else []
    elif "{" in stripped:
        try:
            groups = split_top(next(iter(top_level_groups(stripped)), ""))
        except ValueError:
            return []
    out = []
    for group in groups:
        at = group.find("{")
        if at >= 0 and group.rstrip().endswith("}"):
            out += [(n, v) for n, v in _entries(group[at + 1 : _match_brace(group, at)]) if not n.endswith(".noalias")]
    return out


def attributes(text: str) -> list[tuple[str, str | None]]:
    """(name, value text or None for a unit attribute) of a module's or function's attributes, in either syntax."""
    stripped = text.lstrip()
    chunks: list[str] = []
    if is_generic(stripped):
        properties = _PROPERTIES.match(stripped)
        if properties:
            end = _match_brace(stripped, properties.end() - 1)
            chunks.append(stripped[properties.end() : end])
            stripped = stripped[end + 1 :]
        tail = _TAIL.search(stripped)
        if tail:
            chunks.append(stripped[tail.start(1) + 1 : _match_brace(stripped, tail.start(1))])
    else:
        at = _ATTRIBUTES.search(stripped)
        if at:
            chunks.append(stripped[at.start(1) + 1 : _match_brace(stripped, at.start(1))])
    return [
        (name, value)
        for chunk in chunks
        for name, value in _entries(chunk)
        if name not in _OWN and not name.endswith(".noalias")
    ]


def _entries(chunk: str) -> list[tuple[str, str | None]]:
    """(name, value text or None) of the inside of an attribute dictionary."""
    out: list[tuple[str, str | None]] = []
    for part in split_top(chunk):
        match = _ENTRY.match(part)
        name = (match.group(1) or match.group(2) or "") if match else ""
        if match and name:
            out.append((name, part[match.end() :].strip() if match.group(3) else None))
    return out


def _match_brace(text: str, start: int) -> int:
    depth = 0
    quoted = False
    for i in range(start, len(text)):
        c = text[i]
        if c == '"' and text[i - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                return i
    return len(text)
