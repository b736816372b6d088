"""Feature group `options`: integer, boolean and short enum attributes of the module and the function."""

from __future__ import annotations

import re

from .attribute_text import is_generic, split_top
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
_ENTRY = re.compile(r'\s*+(?:"((?:[^"\\]++|\\.)*+)"|([A-Za-z_][\w$.-]*+))\s*+(=)?+')
_INTEGER = re.compile(r"(-?\d++)\s*+(?::\s*+(?:[su]?i\d++|index))?+$")
_FLOAT = re.compile(r"(-?\d++\.\d*+(?:[eE][-+]?\d++)?+)\s*+(?::\s*+\w++)?+$")
_ENUM = re.compile(r'(?:#[\w.]++<\s*+([\w.-]++)\s*+>|"([\w.:-]{1,32})"|(true|false|unit))$')
_PROPERTIES = re.compile(r"\([^)]*+\)\s*+(?:\[[^\]]*+\]\s*+)?+<\{")
_TAIL = re.compile(r"\)\s*+(\{)")
_ATTRIBUTES = re.compile(r"\battributes\s*+(\{)")


def options(view: FunctionView) -> dict[str, float]:
    """The fixed features, `options.<name>` for each number or flag, `options.<name>/<value>` = 1 for each enum."""
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
            key = f"options.{safe_name(name)}"
            if value is None:
                out[key] = 1.0
                continue
            value = view.attribute(value)
            number = _INTEGER.match(value) or _FLOAT.match(value)
            enum = _ENUM.match(value)
            if number:
                out[key] = max(-1e15, min(1e15, float(number.group(1))))
            elif enum:
                word = enum.group(1) or enum.group(2) or enum.group(3)
                if word in ("true", "false"):
                    out[key] = float(word == "true")
                else:
                    out[f"{key}/{safe_name(word)}"] = 1.0
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
    out: list[tuple[str, str | None]] = []
    for chunk in chunks:
        for part in split_top(chunk):
            match = _ENTRY.match(part)
            name = (match.group(1) or match.group(2) or "") if match else ""
            if match and name and name not in _OWN and not name.endswith(".noalias"):
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
