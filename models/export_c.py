"""The models of a track as C99 source: feature vector in, all targets with their intervals out. No dependency but libm.

`model.c` holds the trees as constant arrays and the steps of `TargetModel`; `model.h` says how to call it. Trees are
compared in float32 and added in float64 in the same order as here, so every sum is the same to the last bit; exp, log
and log1p are the C library's, which may differ from NumPy's in the last place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArtifactError, UsageError
from ..files import write_whole
from . import analytical
from .expressions import Expression, estimate_expression
from .target_model import LARGEST_LOG, TargetModel, parts_of
from .track_model import TrackModel
from .trees import Forest, concatenate

_MOST_FEATURES = 0xFFFF
_TOGETHER = 8
"""Trees walked side by side, so that the processor waits for eight loads at once."""


def write_c(track: TrackModel, path: Path) -> None:
    """Write `path` and, beside it, the header with the same name and the ending `.h`; each appears whole or not at all.

    Raises
    ------
    UsageError
        `path` does not end in `.c`.
    ArtifactError
        The files cannot be written.
    """
    if path.suffix != ".c":
        raise UsageError(f"{path}: the name of the C source must end in .c; the header is written beside it.")
    header = path.with_suffix(".h")
    for target, text in ((header, header_text(track)), (path, source_text(track, header.name))):
        write_whole(target, text, ArtifactError)


def header_text(track: TrackModel) -> str:
    """The header: sizes, names, and the functions to call."""
    targets = "".join(
        f"  IRGAUGE_{t.device}_{t.name} = {i}, /* {t.unit or 'share in [0, 1]'} */\n".replace("-", "_")
        for i, t in enumerate(track.targets)
    )
    return _HEADER.format(
        track=track.track,
        n_features=len(track.names),
        n_targets=len(track.targets),
        schema_version=track.schema_version,
        schema_hash=track.schema_hash,
        targets=targets,
    )


def source_text(track: TrackModel, header: str) -> str:
    """The C source.

    Raises
    ------
    UsageError
        More features than the source can number.
    """
    if len(track.names) >= _MOST_FEATURES:
        raise UsageError(f"{len(track.names)} features are too many for the C source.")
    named = parts_of(track.targets)
    parts = [part for _, _, part in named]
    forest = concatenate([part.forest for part in parts])
    ends = np.cumsum([0, *(part.forest.n_trees for part in parts)])
    # Trees are walked _TOGETHER at a time; a part's last group is filled up with a leaf of value 0 behind all nodes.
    groups = [-(-part.forest.n_trees // _TOGETHER) for part in parts]
    group_ends = np.cumsum(groups)
    roots = np.concatenate(
        [
            np.append(forest.roots[start:end], np.full(n * _TOGETHER - (end - start), forest.n_nodes))
            for start, end, n in zip(ends[:-1], ends[1:], groups, strict=True)
        ]
    ).astype(np.int64)
    level = np.append(forest.levels(), 0)
    depths = np.maximum.reduceat(level, np.append(forest.roots, forest.n_nodes))
    depth_of = dict(zip([*forest.roots.tolist(), forest.n_nodes], depths.tolist(), strict=True))
    steps = [max(depth_of[r] for r in roots[i : i + _TOGETHER].tolist()) for i in range(0, len(roots), _TOGETHER)]
    if max(steps, default=0) > 255:
        raise UsageError("a tree is deeper than 255 comparisons, too deep for the C source.")
    place = {(number, role): at for at, (number, role, _) in enumerate(named)}
    targets = [
        _target_text(i, target, place.get((i, "gate"), -1), place.get((i, "order"), -1))
        for i, target in enumerate(track.targets)
    ]
    lines = [
        f'#include "{header}"\n',
        _PRELUDE,
        _array("const char *const irgauge_feature_names[IRGAUGE_N_FEATURES]", map(_string, track.names)),
        _array(
            "const irgauge_target irgauge_targets[IRGAUGE_N_TARGETS]",
            (f"{{{_string(t.device)}, {_string(t.name)}, {_string(t.unit)}}}" for t in track.targets),
        ),
        _array("static const float lowest[]", map(_float, track.low)),
        _array("static const float highest[]", map(_float, track.high)),
        f"enum {{ N_PARTS = {len(parts)}, TOGETHER = {_TOGETHER} }};\n",
        _array("static const double base[]", (_double(part.base) for part in parts)),
        _array("static const int group_end[]", map(str, group_ends.tolist())),
        _array("static const unsigned char group_steps[]", map(str, steps)),
        _array("static const int root[]", map(str, roots.tolist())),
        _NODE,
        _array("static const node nodes[]", _nodes_text(forest)),
        _array("static const double leaf_value[]", map(_double, np.append(forest.value, 0.0))),
        _linear_text(parts),
        *(_intervals_text(i, t) for i, t in enumerate(track.targets)),
        _used_text(track),
        _BODY,
        "void irgauge_predict(const float *x, irgauge_estimate *out) {\n"
        "  double sum[N_PARTS], learned;\n"
        "  add_trees(x, sum);\n" + "".join(_margin_text(i, t, track) for i, t in enumerate(track.targets)) + "}\n",
    ]
    text = "".join(lines)
    return text.replace("@TARGETS@", "".join(targets))


def _target_text(index: int, target: TargetModel, gate: int, order: int) -> str:
    edges = len(target.intervals.edges)
    return (
        f"  {{{int(target.space == 'log')}, {int(target.whole)}, {gate}, {order}, {_double(target.offset)}, "
        f"{_double(target.upper)}, {edges}, edges_{index}, below_{index}, above_{index}}},\n"
    )


def _margin_text(index: int, target: TargetModel, track: TrackModel) -> str:
    if not target.estimate:
        return f"  out[{index}] = finish(&targets[{index}], sum[{index}], sum);\n"
    formula = _c_expression(estimate_expression(target.estimate), track.columns)
    limits = f"{_double(analytical.SMALLEST)}, {_double(analytical.LARGEST)}"
    return (
        f"  /* analytical estimate of {target.estimate} */\n"
        f"  learned = sum[{index}] + log(clip({formula}, {limits}) + {_double(target.offset)});\n"
        f"  out[{index}] = finish(&targets[{index}], learned, sum);\n"
    )


def _c_expression(e: Expression, columns: dict[str, int]) -> str:
    if e.kind == "column":
        return f"positive(x[{columns[e.name]}] /* {e.name} */)"
    if e.kind == "constant":
        return _double(e.value)
    a, b = (_c_expression(part, columns) for part in e.parts)
    return f"smaller({a}, {b})" if e.kind == "min" else f"({a} {e.kind} {b})"


def _linear_text(parts: Sequence[Any]) -> str:
    """Lines of all parts one after the other."""
    lines = [part.linear for part in parts]
    ends = np.cumsum([0 if line is None else len(line.columns) for line in lines]).tolist()
    rows = [
        f"{{{column}, {', '.join(map(_double, numbers))}}}"
        for line in lines
        if line is not None
        for column, *numbers in zip(line.columns, line.weight, line.center, line.low, line.high, strict=True)
    ]
    return (
        "static const struct { int column; double weight, center, low, high; } line[] = {\n  "
        + ",\n  ".join(rows or ["{0, 0, 0, 0, 0}"])
        + "\n};\n"
        + _array("static const int line_end[]", map(str, ends))
    )


def _intervals_text(index: int, target: TargetModel) -> str:
    i = target.intervals
    edges = target.edges_of_values() if target.whole else i.edges
    named = (("edges", edges if len(edges) else np.zeros(1)), ("below", i.below), ("above", i.above))
    return "".join(_array(f"static const double {name}_{index}[]", map(_double, values)) for name, values in named)


def _used_text(track: TrackModel) -> str:
    """The features that each target reads, one after the other."""
    read = [np.flatnonzero(row) for row in track.used]
    ends = np.cumsum([len(r) for r in read]).tolist()
    return _array("static const unsigned short used[]", map(str, [*np.concatenate(read).tolist(), 0])) + _array(
        "static const int used_end[]", map(str, ends)
    )


def _array(declaration: str, values: Iterable[str]) -> str:
    """An array's definition; one that nothing stands in gets a 0 that nothing reads, since C has no empty arrays."""
    lines, line = [], "  "
    for value in list(values) or ["0"]:
        if len(line) + len(value) > 118:
            lines.append(line.rstrip())
            line = "  "
        line += value + ", "
    lines.append(line.rstrip(", "))
    return f"{declaration} = {{\n" + "\n".join(lines) + "\n};\n"


def _nodes_text(forest: Forest) -> Iterable[str]:
    columns = (forest.threshold, forest.left.tolist(), forest.feature.tolist(), forest.nan_left.astype(int).tolist())
    for threshold, left, feature, nan_left in zip(*columns, strict=True):
        yield f"{{{_float(threshold)},{left},{feature},{nan_left}}}"
    yield f"{{{_float(np.inf)},{forest.n_nodes},0,1}}"


def _string(text: str) -> str:
    return json.dumps(text)


def _double(value: float) -> str:
    value = float(value)
    return "HUGE_VAL" if value == np.inf else repr(value)


def _float(value: float) -> str:
    if value == np.inf:
        return "HUGE_VALF"
    text = repr(float(value)) if float(value) == int(value) and abs(value) < 1e15 else f"{float(value):.9g}"
    return f"{text if '.' in text or 'e' in text else text + '.0'}f"


_HEADER = """\
/* irgauge, track "{track}": predictions from a feature vector. Generated by `irgauge export --format c`.

   float x[IRGAUGE_N_FEATURES] = {{0}};
   x[irgauge_feature_index("loops.max_depth")] = 3;   ... every feature that is not 0
   irgauge_estimate out[IRGAUGE_N_TARGETS];
   irgauge_predict(x, out);

   All functions are pure: no state, no allocation, safe in any thread. */
#ifndef IRGAUGE_MODEL_H
#define IRGAUGE_MODEL_H

#ifdef __cplusplus
extern "C" {{
#endif

#define IRGAUGE_SCHEMA_VERSION {schema_version}
#define IRGAUGE_SCHEMA_HASH "{schema_hash}"

enum {{ IRGAUGE_N_FEATURES = {n_features}, IRGAUGE_N_TARGETS = {n_targets} }};

/* where each target stands, and its unit */
enum {{
{targets}}};

typedef struct {{
  double value;     /* in the target's unit */
  double low, high; /* 95 % interval, contains the value */
  double ranked;    /* for ordering variants: before rounding, moved by what was learned about order alone */
}} irgauge_estimate;

typedef struct {{
  const char *device, *name, *unit;
}} irgauge_target;

extern const char *const irgauge_feature_names[IRGAUGE_N_FEATURES];
extern const irgauge_target irgauge_targets[IRGAUGE_N_TARGETS];

/* Column of a feature, -1 where the model does not have it. */
int irgauge_feature_index(const char *name);

/* All targets from IRGAUGE_N_FEATURES features in the order of irgauge_feature_names; NaN is a missing value. */
void irgauge_predict(const float *x, irgauge_estimate *out);

/* How many of the features that a target reads lie outside their range in training; over 0: fall back. */
int irgauge_outside(const float *x, int target);

#ifdef __cplusplus
}}
#endif
#endif
"""

_PRELUDE = """\
#include <math.h>
#include <stddef.h>
#include <string.h>

"""

_NODE = """\
typedef struct {
  float threshold;
  int left; /* the right child stands behind it; a leaf points to itself */
  unsigned short feature, nan_left;
} node;
"""

_BODY = (
    """\
typedef struct {
  int is_log, is_whole, gate, order;
  double offset, upper;
  int n_edges;
  const double *edges, *below, *above;
} target_model;

static const target_model targets[] = {
@TARGETS@};

static inline double clip(double v, double low, double high) { return v < low ? low : v > high ? high : v; }
static inline double positive(float v) { return v < 0 ? 0 : (double)v; }
static inline double smaller(double a, double b) { return b < a ? b : a; }

static void add_trees(const float *x, double *sum) {
  int group = 0, missing = 0;
  for (int i = 0; i < IRGAUGE_N_FEATURES; ++i) missing |= x[i] != x[i];
  for (int part = 0; part < N_PARTS; ++part) {
    double total = 0, lines = 0;
    for (; group < group_end[part]; ++group) {
      int at[TOGETHER];
      for (int k = 0; k < TOGETHER; ++k) at[k] = root[group * TOGETHER + k];
      for (int step = 0; step < group_steps[group]; ++step)
        for (int k = 0; k < TOGETHER; ++k) {
          const node *n = &nodes[at[k]];
          const float v = x[n->feature];
          at[k] = n->left + (v > n->threshold);
          if (missing && v != v) at[k] = n->left + !n->nan_left;
        }
      for (int k = 0; k < TOGETHER; ++k) total += leaf_value[at[k]];
    }
    total += base[part];
    for (int i = part ? line_end[part - 1] : 0; i < line_end[part]; ++i) {
      const double v = x[line[i].column], squashed = v < 0 ? -log1p(-v) : log1p(v);
      lines += line[i].weight * (clip(squashed, line[i].low, line[i].high) - line[i].center);
    }
    sum[part] = total + lines;
  }
}

static double decode(const target_model *t, double learned) {
"""
    f"  if (t->is_log) learned = exp(learned > {LARGEST_LOG!r} ? {LARGEST_LOG!r} : learned) - t->offset;\n"
    """\
  return clip(learned, 0, t->upper);
}

static irgauge_estimate finish(const target_model *t, double learned, const double *sum) {
  irgauge_estimate out;
  double value = decode(t, learned);
  out.ranked = t->order >= 0 ? decode(t, learned + sum[t->order]) : value;
  if (t->gate >= 0) {
    const double odds = sum[t->gate], floor_ = t->is_whole ? 1 : 0;
    out.ranked /= 1 + exp(-clip(odds, -60, 60));
    value = odds >= 0 ? (value < floor_ ? floor_ : value) : 0;
  }
  if (t->is_whole) value = rint(value);
  const double encoded = t->is_log ? log(value + t->offset) : value;
  const double compared = t->is_whole ? value : encoded; /* whole values often lie on an edge */
  int group = 0;
  while (group < t->n_edges && t->edges[group] < compared) ++group;
  double low = decode(t, encoded + t->below[group]), high = decode(t, encoded + t->above[group]);
  if (t->is_whole) {
    low = ceil(low - 1e-9 * low);
    high = floor(high + 1e-9 * high);
  }
  out.value = value;
  out.low = low > value ? value : low;
  out.high = high < value ? value : high;
  return out;
}

int irgauge_feature_index(const char *name) {
  for (int i = 0; i < IRGAUGE_N_FEATURES; ++i)
    if (strcmp(irgauge_feature_names[i], name) == 0) return i;
  return -1;
}

int irgauge_outside(const float *x, int target) {
  int n = 0;
  for (int i = target ? used_end[target - 1] : 0; i < used_end[target]; ++i)
    n += x[used[i]] < lowest[used[i]] || x[used[i]] > highest[used[i]];
  return n;
}

"""
)
