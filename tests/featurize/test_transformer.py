"""`Featurizer` as scikit-learn, pandas and SciPy meet it."""

from __future__ import annotations

import doctest
import pickle
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from irgauge import Featurizer, ReadError, SchemaError
from irgauge.featurize import main_features, read, transformer
from irgauge.featurize.describe import FIXED

TEN = [
    "conditional",
    "linalg_matmul",
    "matmul",
    "reduction",
    "scf_subview",
    "straight_line",
    "tiled",
    "triangular",
    "unknown_bounds",
    "vectors",
]
GOLDEN = [(Path(__file__).parent / "golden" / f"{name}.mlir").read_text() for name in TEN]
SETS = Path(__file__).parents[2] / "data" / "sets"


# --- scikit-learn's own checks


class RowsAsPrograms(Featurizer):
    """Writes a program for each row of numbers. scikit-learn runs no check on estimators that do not take a table of
    numbers (its own text vectorizers included), so this one does, and what it passes on is `Featurizer`'s."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags

    def fit(self, X: Any, y: Any = None) -> RowsAsPrograms:
        super().fit(self._programs(X, reset=True))
        return self._seen(X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        made = super().fit_transform(self._programs(X, reset=True))
        self._seen(X)
        return made

    def transform(self, X: Any) -> Any:
        return super().transform(self._programs(X, reset=False) if hasattr(self, "schema_") else X)

    def _seen(self, X: Any) -> RowsAsPrograms:
        self.n_features_in_ = np.asarray(X).shape[1]
        return self

    def _programs(self, X: Any, reset: bool) -> Iterable[str]:
        for row in validate_data(self, X, reset=reset).tolist():
            body = "".join(
                f"%x{i} = arith.constant {abs(x)!r} : f64\n"
                f"%y{i} = arith.{'mulf' if x > 0 else 'addf'} %x{i}, %x{i} : f64\n"
                for i, x in enumerate(row)
            )
            yield f"func.func @f() {{\n{body}return }}"


@parametrize_with_checks([RowsAsPrograms(), RowsAsPrograms(min_df=0.1, sparse_output=True)])
def test_scikit_learn_checks(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


def test_tags_say_a_column_of_strings() -> None:
    tags = get_tags(Featurizer())
    assert (tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array) == (True, True, False)
    assert tags.requires_fit
    assert not tags.target_tags.required
    assert tags.transformer_tags.preserves_dtype == []


def test_clone_and_parameters() -> None:
    copy = clone(Featurizer(min_df=3, sparse_output=True))
    assert copy.get_params() == {"min_df": 3, "max_vocabulary": 1500, "sparse_output": True, "n_jobs": None}
    assert repr(copy) == "Featurizer(min_df=3, sparse_output=True)"
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        copy.set_params(depth=2)


def test_doctests() -> None:
    assert doctest.testmod(transformer) == (0, 4)


def test_the_page_about_it_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    page = str(root / "docs" / "featurizer.md")
    assert doctest.testfile(page, module_relative=False, optionflags=doctest.ELLIPSIS) == (0, 13)


# --- the vocabulary


def test_columns_are_fixed_first_then_sorted() -> None:
    fitted = Featurizer(min_df=1).fit(GOLDEN)
    names = tuple(fitted.get_feature_names_out())
    assert names[: len(FIXED)] == FIXED
    assert list(names[len(FIXED) :]) == sorted(names[len(FIXED) :])
    assert len(names) > len(FIXED)


@pytest.mark.parametrize("parameters", [{"min_df": 1}, {"min_df": 2, "max_vocabulary": 20}])
def test_vocabulary_is_the_same_for_any_order(parameters: dict[str, Any]) -> None:
    expected = Featurizer(**parameters).fit(GOLDEN).schema_
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(GOLDEN))
        assert Featurizer(**parameters).fit([GOLDEN[i] for i in order]).schema_ == expected


def test_a_learned_name_occurs_in_enough_programs() -> None:
    rows = [main_features(text) for text in GOLDEN]
    frequency = {name: sum(bool(row.get(name)) for row in rows) for name in set().union(*rows) - set(FIXED)}
    for min_df, least in ((1, 1), (3, 3), (0.3, 3), (0.25, 2.5), (1.0, len(GOLDEN)), (len(GOLDEN) + 1, 99)):
        names = Featurizer(min_df=min_df, max_vocabulary=None).fit(GOLDEN).get_feature_names_out()
        assert set(names) - set(FIXED) == {name for name, count in frequency.items() if count >= least}


def test_the_most_frequent_names_stay() -> None:
    rows = [main_features(text) for text in GOLDEN]
    frequency = {name: sum(bool(row.get(name)) for row in rows) for name in set().union(*rows) - set(FIXED)}
    kept = set(Featurizer(min_df=1, max_vocabulary=5).fit(rows).get_feature_names_out()) - set(FIXED)
    assert kept == set(sorted(frequency, key=lambda name: (-frequency[name], name))[:5])
    assert not set(Featurizer(min_df=1, max_vocabulary=0).fit(rows).get_feature_names_out()) - set(FIXED)


def test_unseen_operations_are_named_and_counted() -> None:
    text = 'func.func @f() { "vendor.a"() : () -> ()\n"vendor.b"() : () -> ()\n"vendor.a"() : () -> ()\nreturn }'
    for sparse in (False, True):
        fitted = Featurizer(min_df=1, sparse_output=sparse).fit(GOLDEN)
        assert fitted.unseen_ops(text) == {"vendor.a": 2, "vendor.b": 1}
        made = fitted.transform([text])
        row = (made.toarray() if sparse else made)[0]
        assert row[list(fitted.get_feature_names_out()).index("ops.unknown")] == 3


# --- what goes in


def test_texts_programs_paths_objects_and_dicts_give_the_same_rows(tmp_path: Path) -> None:
    class Module:
        def __init__(self, text: str) -> None:
            self.text = text
            self.lock = Lock()  # cannot be pickled, as a compiler's own objects

        def __str__(self) -> str:
            return self.text

    paths = [tmp_path / f"{i}.mlir" for i in range(len(GOLDEN))]
    for path, text in zip(paths, GOLDEN, strict=True):
        path.write_text(text)
    fitted = Featurizer(min_df=1).fit(GOLDEN)
    expected = fitted.transform(GOLDEN)
    for form in (
        [read(text) for text in GOLDEN],
        [main_features(text) for text in GOLDEN],
        [text.encode() for text in GOLDEN],
        [Module(text) for text in GOLDEN],
        paths,
        (text for text in GOLDEN),
        np.array(GOLDEN),
        np.array(GOLDEN, dtype=object)[:, None],
        type("OnlyAnArray", (), {"__array__": lambda self, dtype=None, copy=None: np.array(GOLDEN)})(),
        pandas.Series(GOLDEN),
        pandas.DataFrame({"mlir": GOLDEN}),
    ):
        np.testing.assert_array_equal(fitted.transform(form), expected)
    parallel = fitted.set_params(n_jobs=2)
    for form in ([Module(text) for text in GOLDEN], [*paths[:5], *(read(text) for text in GOLDEN[5:])]):
        np.testing.assert_array_equal(parallel.transform(form), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(GOLDEN), expected)


def test_processes_change_nothing() -> None:
    serial = Featurizer(min_df=2)
    expected = serial.fit_transform(GOLDEN)
    for sparse in (False, True):
        parallel = Featurizer(min_df=2, n_jobs=2, sparse_output=sparse)
        made = parallel.fit_transform(GOLDEN)
        np.testing.assert_array_equal(made.toarray() if sparse else made, expected)
        assert parallel.schema_ == serial.schema_


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_the_first_unreadable_program_is_named(n_jobs: int | None, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"^<program 10>:1:15: the text ends") as caught:
        Featurizer(n_jobs=n_jobs).fit([*GOLDEN, "func.func @f( {", "worse"])
    assert (caught.value.line, caught.value.column, caught.value.path) == (1, 15, "<program 10>")
    fitted = Featurizer(n_jobs=n_jobs).fit(GOLDEN)
    with pytest.raises(ReadError, match=r"^<program 1>: expected MLIR text, got nan$"):
        fitted.transform([GOLDEN[0], float("nan"), "worse"])
    (tmp_path / "bad.mlir").write_text("func.func @f( {")
    with pytest.raises(ReadError, match=r"bad\.mlir:1:15: "):
        fitted.transform([GOLDEN[0], tmp_path / "bad.mlir"])


def test_bad_arguments_are_errors() -> None:
    for min_df in (0, -1, 0.0, 1.5, True, "2", float("nan"), None):
        with pytest.raises(ValueError, match="min_df must be"):
            Featurizer(min_df=min_df).fit(GOLDEN)
    for most in (-1, 2.5, False):
        with pytest.raises(ValueError, match="max_vocabulary must be"):
            Featurizer(max_vocabulary=most).fit_transform(GOLDEN)
    for one in (GOLDEN[0], GOLDEN[0].encode(), Path("a.mlir"), read(GOLDEN[0]), main_features(GOLDEN[0])):
        with pytest.raises(ValueError, match="wrap it in a list"):
            Featurizer().fit(one)
    with pytest.raises(ValueError, match="expected a sequence of programs, got int"):
        Featurizer().fit(3)
    with pytest.raises(ValueError, match="expected one column of programs, got 10x2"):
        Featurizer().fit(pandas.DataFrame({"mlir": GOLDEN, "n": 1}))
    with pytest.raises(ValueError, match="expected one column of programs, got a single value"):
        Featurizer().fit(np.array(GOLDEN[0]))
    with pytest.raises(ValueError, match="no programs to fit on"):
        Featurizer().fit([])
    assert Featurizer().fit(GOLDEN).transform([]).shape == (0, len(FIXED))


def test_use_before_fit_is_an_error() -> None:
    for use in (
        lambda f: f.transform(GOLDEN),
        lambda f: f.get_feature_names_out(),
        lambda f: f.unseen_ops(GOLDEN[0]),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use(Featurizer())


@pytest.mark.parametrize("sparse", [False, True])
def test_a_feature_that_is_not_finite_is_an_error(sparse: bool) -> None:
    row = {**main_features(GOLDEN[0]), "work.flops": float("inf")}
    with pytest.raises(SchemaError, match=r"^<program 1>: feature 'work\.flops' is not a finite number"):
        Featurizer(sparse_output=sparse).fit_transform([main_features(GOLDEN[1]), row])


# --- what comes out


def test_data_frames_keep_the_index() -> None:
    series = pandas.Series(GOLDEN, index=list("abcdefghij"))
    expected = Featurizer(min_df=1).fit_transform(GOLDEN)
    fitted = Featurizer(min_df=1).set_output(transform="pandas").fit(series)
    for frame in (fitted.transform(series), fitted.transform(series.to_frame("mlir"))):
        assert list(frame.index) == list("abcdefghij")
        assert list(frame.columns) == list(fitted.get_feature_names_out())
        np.testing.assert_array_equal(frame.to_numpy(), expected)
    assert list(fitted.transform(GOLDEN).index) == list(range(10))
    assert isinstance(fitted.set_output(transform="default").transform(GOLDEN), np.ndarray)


def test_polars_frames() -> None:
    polars = pytest.importorskip("polars")
    fitted = Featurizer(min_df=1).set_output(transform="polars")
    frame = fitted.fit_transform(polars.DataFrame({"mlir": GOLDEN}))
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == list(fitted.get_feature_names_out())
    np.testing.assert_array_equal(frame.to_numpy(), Featurizer(min_df=1).fit_transform(GOLDEN))


def test_sparse_output_holds_the_same_values() -> None:
    dense = Featurizer(min_df=1).fit_transform(GOLDEN)
    sparse = Featurizer(min_df=1, sparse_output=True)
    made = sparse.fit_transform(GOLDEN)
    assert scipy.sparse.issparse(made)
    assert made.format == "csr"
    assert made.dtype == np.float64
    assert made.has_canonical_format
    assert made.nnz == np.count_nonzero(dense)
    np.testing.assert_array_equal(made.toarray(), dense)
    assert sparse.transform([]).shape == (0, dense.shape[1])
    if "sparse_interface" in sklearn.get_config():
        with sklearn.config_context(sparse_interface="sparray"):
            assert isinstance(sparse.transform(GOLDEN), scipy.sparse.csr_array)


def test_sparse_data_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="outputs a scipy sparse matrix"):
        Featurizer(sparse_output=True).set_output(transform="pandas").fit_transform(GOLDEN)


# --- in larger estimators


def test_column_transformer_beside_other_columns() -> None:
    frame = pandas.DataFrame({"size": np.arange(10.0), "mlir": GOLDEN}, index=list("abcdefghij"))
    for columns in ("mlir", ["mlir"]):
        both = ColumnTransformer([("ir", Featurizer(min_df=1), columns), ("n", "passthrough", ["size"])])
        both.set_output(transform="pandas")
        table = both.fit_transform(frame)
        assert list(table.columns) == list(both.get_feature_names_out())
        assert list(table.columns[-2:]) == [f"ir__{both.named_transformers_['ir'].schema_.names[-1]}", "n__size"]
        assert list(table.index) == list(frame.index)
        np.testing.assert_array_equal(table.iloc[:, :-1], Featurizer(min_df=1).fit_transform(GOLDEN))


def test_feature_union_of_dense_and_sparse() -> None:
    lengths = FunctionTransformer(lambda texts: np.array([[len(text)] for text in texts]))
    union = FeatureUnion([("ir", Featurizer(min_df=1, sparse_output=True)), ("length", lengths)])
    table = union.fit_transform(GOLDEN)
    assert scipy.sparse.issparse(table)
    assert table.toarray()[:, -1].tolist() == [len(text) for text in GOLDEN]
    np.testing.assert_array_equal(table.toarray()[:, :-1], Featurizer(min_df=1).fit_transform(GOLDEN))


def test_grid_search_learns_a_real_target() -> None:
    """Labelled kernels: the search finds a vocabulary, and beats the mean on programs that it has not seen."""
    columns = ["mlir", "program_id", "x86-64-v3/static_instructions"]
    frame = pandas.read_parquet(SETS / "kernel.parquet", columns=columns)
    frame = frame[frame["mlir"].str.len() < 2000].sample(200, random_state=0)
    y = np.log1p(frame["x86-64-v3/static_instructions"])
    trees = ExtraTreesRegressor(n_estimators=20, random_state=0)
    pipe = make_pipeline(Featurizer(sparse_output=True), MaxAbsScaler(), trees)
    grid = {"featurizer__min_df": [2, 0.5], "featurizer__max_vocabulary": [0, 50]}
    folds = list(GroupKFold(2).split(frame, y, frame["program_id"]))
    search = GridSearchCV(pipe, grid, cv=folds, error_score="raise").fit(frame["mlir"], y)
    baseline = cross_val_score(DummyRegressor(), frame[["program_id"]], y, cv=folds).mean()
    assert search.best_score_ > 0.3 > baseline
    assert len({tuple(p.values()) for p in search.cv_results_["params"]}) == 4
    assert len(set(search.cv_results_["mean_test_score"])) == 3  # without a vocabulary min_df changes nothing
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(frame["mlir"]), search.predict(frame["mlir"]))
