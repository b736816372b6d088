"""Every fixed feature with its meaning and unit, in schema order; `python -m irgauge.featurize.describe` prints docs/features.md."""

from __future__ import annotations

from . import access, codegen, liveness, loops, ngrams, ops, options, tensors, work

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "ops": ops.FEATURES,
    "ngrams": ngrams.FEATURES,
    "loops": loops.FEATURES,
    "tensors": tensors.FEATURES,
    "work": work.FEATURES,
    "access": access.FEATURES,
    "liveness": liveness.FEATURES,
    "codegen": codegen.FEATURES,
    "options": options.FEATURES,
}
FIXED: tuple[str, ...] = tuple(name for group in GROUPS.values() for name in group)
"""Names of the hand-crafted features; every function has each of them, in this order in the schema."""

LEARNED: tuple[tuple[str, str, str], ...] = (
    ("ops.<dialect.op>", "operations of that name", "count"),
    ("ops.dialect/<dialect>", "operations of that dialect", "count"),
    ("ngram/<a>><b>, ngram/<a>><b>><c>", "runs of operations in block order", "count"),
    ("chain/<a>><b>, chain/<a>><b>><c>", "operations along def-use edges, producer first", "count"),
    (
        "options.<name>, options.<name>/<value>",
        "an integer or flag attribute; 1 where an enum attribute has that value",
        "value",
    ),
)
"""(form of the name, meaning, unit) of the features whose names come from the programs."""


def describe(name: str) -> tuple[str, str]:
    """(meaning, unit) of a feature by name, learned ones included. KeyError where it is no feature's name."""
    for group in GROUPS.values():
        if name in group:
            return group[name]
    for prefix, meaning in (
        ("ngram/", "runs of these operations in block order"),
        ("chain/", "these operations along def-use edges, producer first"),
        ("ops.dialect/", "operations of this dialect"),
        ("ops.", "operations of this name"),
    ):
        if name.startswith(prefix):
            return meaning, "count"
    if name.startswith("options."):
        return "attribute of the function or its modules", "value"
    raise KeyError(name)


def markdown() -> str:
    """The text of docs/features.md."""
    lines = [
        "# Features",
        "",
        "Generated from `featurize/` by `python -m irgauge.featurize.describe > docs/features.md`; a test keeps it in step.",
        "Each feature is a float, finite for every program, and the same however the program was printed.",
        "*Executed* means: times the average number of times the operation runs in one call of the function.",
        "",
    ]
    for group, features in GROUPS.items():
        lines += [f"## {group} ({len(features)})", "", "| feature | meaning | unit |", "|---|---|---|"]
        lines += [f"| `{name}` | {meaning} | {unit} |" for name, (meaning, unit) in features.items()]
        lines.append("")
    lines += ["## learned from the programs", "", "| feature | meaning | unit |", "|---|---|---|"]
    lines += [f"| `{form}` | {meaning} | {unit} |" for form, meaning, unit in LEARNED]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
