"""The headline table as text, for the terminal."""

from __future__ import annotations

from .figures import FIGURES
from .numbers import shown
from .summary import OURS, Summary
from .tables import MODEL_LABELS, best_baseline

_LETTERS = {"constant": "c", "op_count_ridge": "o", "roofline": "r", "llvm_mca": "m"}
_MOST = 9.99


def headline_text(summary: Summary) -> str:
    """One line a target: on every split our error, behind it the best baseline's, then ranking within programs.

    Kendall's tau and the regret are of the split "program", or of the first split judged without it.
    """
    splits = [split.name for split in summary.splits]
    ranked = "program" if "program" in splits else (splits[0] if splits else "")
    header = ["target", "error", *splits, *(["tau", "regret"] if ranked else [])]
    lines = []
    for target in summary.targets:
        metric = target.error_metric
        form = FIGURES[metric].form
        line = [target.name, FIGURES[metric].label]
        for split in splits:
            name, value = best_baseline(target, split, metric)
            beside = f" ({_LETTERS[name]} {shown(value, form, most=_MOST)})" if name else ""
            line.append(shown(target.figure(split, OURS, metric), form, most=_MOST) + beside)
        if ranked:
            line.append(shown(target.figure(ranked, OURS, "kendall"), "two"))
            line.append(shown(target.figure(ranked, OURS, "regret1"), "percent", most=_MOST))
        lines.append(line)
    table = [[cell.replace("\u202f", " ") for cell in row] for row in [header, *lines]]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    out = [_aligned(table[0], widths), "  ".join("-" * w for w in widths), *(_aligned(r, widths) for r in table[1:])]
    used = dict.fromkeys(m for t in summary.targets for m in t.models() if m in _LETTERS)
    out.append("")
    if used:
        named = ", ".join(f"{_LETTERS[m]} {MODEL_LABELS[m]}" for m in used)
        out.append(f"In parentheses the best baseline on the same rows: {named}.")
    if ranked:
        out.append(f"tau, regret: Kendall's tau and top-1 regret within a program's variants, split {ranked}.")
    judged = ", ".join(f"{s.name} {s.n_rows}" for s in summary.splits)
    missing = f"; not judged: {', '.join(summary.splits_missing)}" if summary.splits_missing else ""
    seed = f"; seed {summary.versions.seed}" if summary.versions.seed is not None else ""
    size = f"{summary.dataset.n_rows} records of {summary.dataset.n_programs} programs"
    out.append(f"Track {summary.track}, {size}; rows judged: {judged}{missing}{seed}.")
    return "\n".join(out)


def _aligned(cells: list[str], widths: list[int]) -> str:
    """Names to the left, numbers to the right."""
    parts = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]
    return "  ".join(parts).rstrip()
