"""The literature's models: tokens, networks that padding does not reach, fits that learn, runs that resume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")

from irgauge.benchmarks import literature  # noqa: E402  torch is not in `dev`
from irgauge.benchmarks.literature_data import Data, load_data  # noqa: E402
from irgauge.benchmarks.literature_fit import Configuration, Scale, fit, masked_loss, padded, predict  # noqa: E402
from irgauge.benchmarks.literature_networks import NETWORKS  # noqa: E402
from irgauge.benchmarks.literature_ranking import fit_ranking, relevances  # noqa: E402
from irgauge.benchmarks.literature_rivals import NetworkRival, RankingRival  # noqa: E402
from irgauge.benchmarks.literature_tokens import UNKNOWN, Vocabulary, coarse, shape_of, tokens_of  # noqa: E402
from irgauge.data.splits import splits_of  # noqa: E402
from irgauge.data.targets import targets_of  # noqa: E402
from irgauge.featurize.reader import read  # noqa: E402

TILED = """
#start = affine_map<(d0) -> (d0)>
#end = affine_map<(d0) -> (d0 + 32, 100)>
module {
  func.func @kernel(%a: memref<96x100xf32>, %s: f32) {
    affine.for %i = 0 to 96 {
      affine.for %t = 0 to 100 step 32 {
        affine.for %j = #start(%t) to min #end(%t) {
          %x = affine.load %a[%i, %j] : memref<96x100xf32>
          %y = arith.mulf %x, %s : f32
          affine.store %y, %a[%i, %j] : memref<96x100xf32>
        }
      }
    }
    return
  }
}
"""


def kernel(n: int, adds: int) -> str:
    """A loop of `n` iterations around so many additions."""
    body = "\n".join(f"%v{i + 1} = arith.addf %v{i}, %v{i} : f32" for i in range(adds))
    return f"""func.func @kernel(%a: memref<{n}xf32>) {{
      affine.for %i = 0 to {n} {{
        %v0 = affine.load %a[%i] : memref<{n}xf32>
        {body}
        affine.store %v{adds}, %a[%i] : memref<{n}xf32>
      }}
      return
    }}"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parquet of 6 families, 20 programs each, 3 variants; labels follow from sizes, some are missing."""
    rows = []
    for program in range(120):
        for variant in range(3):
            n, adds = 8 * (1 + program % 7), 1 + program % 5 + 2 * variant
            rows.append(
                {
                    "id": f"{program}-{variant}",
                    "program_id": f"p{program}",
                    "family": f"f{program % 6}",
                    "mlir": kernel(n, adds),
                    "x86-64-v3/latency_ns": float(n * adds),
                    "x86-64-v3/instructions_executed": float(n * adds) if program % 2 else np.nan,
                    "x86-64-v3/gpr_used": float(adds),
                }
            )
    path = tmp_path_factory.mktemp("dataset") / "kernel.parquet"
    pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.fixture(scope="module")
def data(dataset: Path) -> Data:
    return load_data(dataset, dataset.parent, "kernel")


def test_ops_are_names_in_print_order_without_what_is_implied() -> None:
    names = "func.func affine.for affine.for affine.for affine.load arith.mulf affine.store func.return"
    assert tokens_of(read(TILED), "ops") == names.split()


def test_shapes_follow_their_operation() -> None:
    assert tokens_of(read(TILED), "shapes") == [
        *("func.func", "memref<96x100xf32>"),
        *("affine.for", "trip:96", "affine.for", "trip:4", "affine.for", "trip:32"),
        *("affine.load", "memref<96x100xf32>", "arith.mulf", "affine.store", "memref<96x100xf32>"),
        "func.return",
    ]


def test_a_loop_whose_end_is_not_written_has_an_unknown_trip() -> None:
    text = """func.func @f(%n: index) {
      affine.for %i = 0 to %n { "x.y"() : () -> () }
      return
    }"""
    assert "trip:?" in tokens_of(read(text), "shapes")


def test_the_least_of_several_ends_counts() -> None:
    text = """func.func @f() {
      affine.for %i = 2 to min affine_map<() -> (17, 9)>() step 2 { "x.y"() : () -> () }
      return
    }"""
    assert "trip:4" in tokens_of(read(text), "shapes")


@pytest.mark.parametrize(
    ("token", "rounded"),
    [
        ("memref<96x100x?xf32>", "memref<~128x~128x?xf32>"),
        ("vector<8xindex>", "vector<~8xindex>"),
        ("memref<f32>", "memref<f32>"),
        ("memref<4xcomplex<f32>>", "memref<~4xcomplex<f32>>"),
        ("trip:100", "trip:~108"),
        ("trip:0", "trip:0"),
        ("trip:?", "trip:?"),
        ("arith.addf", "arith.addf"),
    ],
)
def test_coarse_spelling(token: str, rounded: str) -> None:
    assert coarse(token) == rounded


def test_layout_is_no_part_of_a_shape() -> None:
    assert shape_of("memref<4x?xf32, strided<[8, 1]>>") == "memref<4x?xf32>"
    assert shape_of("f32") == ""


def test_vocabulary_counts_programs_not_variants() -> None:
    sequences = [["a", "b", "trip:100"], ["a", "b", "trip:100"], ["a", "c", "trip:99"]]
    vocabulary = Vocabulary.of(sequences, ["p", "p", "q"], least=2)
    assert list(vocabulary.numbers) == ["a", "trip:~108"]
    assert vocabulary.encode(["a", "b", "trip:102", "trip:3"]).tolist() == [2, UNKNOWN, 3, UNKNOWN]
    assert vocabulary.size == 4


@pytest.mark.parametrize("name", NETWORKS)
def test_padding_changes_no_prediction(name: str) -> None:
    torch.manual_seed(0)
    network = NETWORKS[name](20, 3, 16).eval()
    rng = np.random.default_rng(0)
    short, long = rng.integers(1, 20, 7), rng.integers(1, 20, 30)
    with torch.no_grad():
        alone, together = network(padded([short])), network(padded([short, long]))
    torch.testing.assert_close(together[0], alone[0], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(together[0], together[1], atol=1e-3)


def test_missing_labels_have_no_loss_and_no_gradient() -> None:
    z = torch.tensor([[1.0, 5.0], [2.0, 7.0]], requires_grad=True)
    loss = masked_loss(z, torch.tensor([[1.0, torch.nan], [4.0, torch.nan]]))
    loss.backward()
    assert loss.item() == pytest.approx((0 + (2 - 0.05)) / 2)
    assert torch.equal(z.grad[:, 1], torch.zeros(2))


def test_scale_gives_labels_back_and_keeps_predictions_in_their_range() -> None:
    by_name = {t.column: t for t in targets_of("kernel")}
    columns = ("latency_ns", "gpr_used", "mca_cycles", "vector_utilization")
    targets = [by_name[f"x86-64-v3/{column}"] for column in columns]
    y = np.array([[10.0, 3, 0.5, 0.0], [1e6, 16, 900, 1.0], [np.nan, 8, 30, 0.25]])
    scale = Scale.of(targets, y)
    assert (scale.offset > 0).tolist() == [True, False, True, False]
    np.testing.assert_allclose(scale.decode(np.nan_to_num(scale.encode(y)))[:2], y[:2], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scale.decode(np.full((1, 4), 50.0)), np.nanmax(y, axis=0)[None, :])


def test_a_short_fit_beats_the_constant(data: Data) -> None:
    (split,) = splits_of("program", data.program_id, data.family)
    train, valid = data.validation("program", split.train_index, 0)
    vocabulary = Vocabulary.of((data.tokens["shapes"][i] for i in train), (data.program_id[i] for i in train))
    sequences = [vocabulary.encode(s) for s in data.tokens["shapes"]]
    labels = Scale.of(data.targets, data.y[train]).encode(data.y)
    fitted = fit("bag_fc", Configuration(32, 3e-3), vocabulary.size, sequences, labels, train, valid, seconds=2, seed=0)
    there = labels[split.test_index]
    error = np.nanmean(np.abs(predict(fitted.network, sequences, split.test_index) - there))
    assert error < 0.5 * np.nanmean(np.abs(np.nanmedian(labels[train], axis=0) - there))


def test_predictions_come_in_the_order_of_the_rows() -> None:
    network = NETWORKS["bag_fc"](9, 2, 8)
    sequences = [np.array([2] * n) for n in (5, 1, 40, 3)]
    one_by_one = [predict(network, sequences, np.array([i]))[0] for i in (2, 0, 3)]
    np.testing.assert_allclose(predict(network, sequences, np.array([2, 0, 3])), one_by_one, rtol=1e-5)


@pytest.mark.parametrize("split", ["random", "program", "family/0"])
def test_validation_rows_are_drawn_as_test_rows_are(data: Data, split: str) -> None:
    train = np.arange(0, len(data.texts), 2)
    inner, outer = data.validation(split, train, 0)
    assert sorted([*inner, *outer]) == train.tolist()
    groups = {"program": data.program_id, "family/0": data.family}.get(split)
    if groups is not None:
        assert not {groups[i] for i in inner} & {groups[i] for i in outer}


def test_relevance_is_the_number_of_worse_labels_in_the_program() -> None:
    y = np.array([5.0, 1, 5, 9, 2])
    assert relevances(y, ["a", "a", "a", "a", "b"]).tolist() == [1, 2, 1, 0, 0]


def test_ranking_orders_variants() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((300, 3), np.float32)
    programs = [f"p{i % 30}" for i in range(300)]
    held_out = np.arange(300) % 30 < 3
    ranking = fit_ranking(X, X[:, 1].astype(np.float64), programs, held_out, {"max_depth": 3}, 0)
    assert np.corrcoef(ranking.predict(X), X[:, 1])[0, 1] > 0.9


def test_a_run_resumes_and_scores_complete_splits_only(data: Data, tmp_path: Path) -> None:
    rivals = [NetworkRival("bag_fc", "ops", 0.4, 0), RankingRival(0)]
    folds = [fold for name in literature.SPLITS for fold in splits_of(name, data.program_id, data.family)]
    train = folds[0].train_index
    fits = literature.plan(rivals, folds)
    literature.run(tmp_path, data, fits[:4], train)  # the random split, one fold of five of the families
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    literature.run(tmp_path, data, fits[:4], train)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    models = literature.results(tmp_path, data, rivals, folds)
    assert {name: set(model["scores"]) for name, model in models.items()} == {
        "bag_fc/ops": {"random"},
        "autotvm_rank/context": {"random"},
    }
    by_target = models["bag_fc/ops"]["scores"]["random"]
    test = folds[0].test_index
    for target, labels in zip(data.targets, data.y[test].T, strict=True):
        assert by_target[target.column]["n"] == np.isfinite(labels).sum()
    ranked = models["autotvm_rank/context"]["scores"]["random"]
    assert set(ranked) == {"x86-64-v3/latency_ns", "x86-64-v3/instructions_executed"}
    assert not {"mape", "rmse_pct"} & set(ranked["x86-64-v3/latency_ns"])
    assert "| bag_fc/ops |" in literature.table(models)


def test_scores_are_of_rounded_values_and_orders_of_raw_ones(data: Data) -> None:
    rows = np.array([0, 1, 2])  # the variants of one program: gpr_used is 1, 3, 5
    values = np.tile(np.array([[1.3], [1.4], [4.6]]), (1, len(data.targets)))
    outcome = literature.Outcome(rows, values, {})
    figures = literature.scores_of(data, [outcome], False)["x86-64-v3/gpr_used"]
    assert figures["exact"] == pytest.approx(2 / 3, abs=1e-4)
    assert figures["kendall"] == 1


def test_test_labels_change_no_ranking(data: Data) -> None:
    (split,) = splits_of("program", data.program_id, data.family)
    changed = data.y.copy()
    changed[split.test_index] = 1e9
    first, other = (RankingRival(0).fit(d, split, {"max_depth": 3}) for d in (data, replace(data, y=changed)))
    np.testing.assert_array_equal(first.values, other.values)
