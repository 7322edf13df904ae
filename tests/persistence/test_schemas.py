"""Estimators of scikit-learn as numbers: they come back to the last bit, and no number of a stranger is believed."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import pue
from pue.errors import ModelError, PueWarning
from pue.persistence import strict_json
from pue.persistence.model import load, save
from pue.persistence.schemas.registry import SCHEMAS

from test_persistence import nodes_of, rewrite, tree_of  # isort: skip

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
S = (X[:, 0] + RNG.normal(size=90) > 0).astype(int)
THREE = S + (X[:, 1] > 1)
ROUND = np.round(abs(X) * 2)
GAPS = np.where(np.arange(270).reshape(90, 3) % 11 == 0, np.nan, ROUND)
TEXTS = ["a bc de", "bc de", "fg hi bc"] * 5
WORDS = np.array([["a", "b"], ["c", "d"], ["a", "d"]] * 4)
SMALL: dict[str, Any] = {"max_iter": 4, "min_samples_leaf": 3}

CASES: dict[str, tuple[Any, Any, Any]] = {
    "scaler": (StandardScaler(), X, None),
    "scaler without mean": (StandardScaler(with_mean=False, with_std=False), X, None),
    "min max": (MinMaxScaler((-1, 1)), X, None),
    "max abs": (MaxAbsScaler(), X, None),
    "robust": (RobustScaler(), X, None),
    "imputer": (SimpleImputer(add_indicator=True), GAPS, None),
    "imputer of zeros": (SimpleImputer(strategy="constant", fill_value=0), GAPS, None),
    "pca": (PCA(2), X, None),
    "svd": (TruncatedSVD(2, random_state=0), X, None),
    "one hot": (OneHotEncoder(sparse_output=False), ROUND, None),
    "one hot, rare": (OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist"), ROUND, None),
    "one hot, few": (OneHotEncoder(drop="first", max_categories=3), ROUND, None),
    "one hot of words": (OneHotEncoder(drop="if_binary", handle_unknown="ignore"), WORDS, None),
    "ordinal": (OrdinalEncoder(), WORDS.astype(object), None),
    "ordinal, gaps": (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), GAPS, None),
    "logistic": (LogisticRegression(class_weight={0: 1.0, 1: 2.0}), X, S),
    "logistic of three": (LogisticRegression(), X, THREE),
    "bayes": (GaussianNB(), X, S),
    "calibrated": (CalibratedClassifierCV(LinearSVC(), cv=2), X, S),
    "calibrated by steps": (CalibratedClassifierCV(GaussianNB(), cv=2, method="isotonic"), X, THREE),
    "boosting": (HistGradientBoostingClassifier(**SMALL), GAPS, S),
    "boosting of three": (HistGradientBoostingClassifier(**SMALL), X, THREE),
    "boosting of categories": (
        HistGradientBoostingClassifier(**SMALL, early_stopping=True, categorical_features=[0, 2]),
        GAPS,
        (ROUND[:, 0] % 2).astype(int),
    ),
    "forest": (RandomForestClassifier(5, random_state=0), GAPS, S),
    "forest, out of bag": (RandomForestClassifier(40, oob_score=True, max_leaf_nodes=7, random_state=0), X, S),
    "extra trees": (ExtraTreesClassifier(5, class_weight="balanced"), X, THREE),
    "tree": (DecisionTreeClassifier(), GAPS, S),
    "extra tree": (ExtraTreeClassifier(), X, S),
    "pipeline": (make_pipeline(SimpleImputer(), "passthrough", PCA(2), LogisticRegression()), GAPS, S),
    "words": (TfidfVectorizer(ngram_range=(1, 2)), TEXTS, None),
    "words, no rarity": (TfidfVectorizer(use_idf=False, stop_words="english"), TEXTS, None),
    "counts": (CountVectorizer(token_pattern=r"(?u)\b\w+\b"), TEXTS, None),
    "words, then scores": (make_pipeline(TfidfVectorizer(), LogisticRegression()), TEXTS, [0, 1, 1] * 5),
}


def fitted(name: str) -> tuple[Any, Any]:
    estimator, rows, labels = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories all of which are rare
        return copy.deepcopy(estimator).fit(rows, labels), rows


def use(estimator: Any, rows: Any) -> Any:
    found = estimator.predict_proba(rows) if hasattr(estimator, "predict_proba") else estimator.transform(rows)
    return found.toarray() if hasattr(found, "toarray") else found


@pytest.mark.parametrize("name", CASES)
def test_estimators_come_back_to_the_last_bit(name: str, tmp_path: Path) -> None:
    before, rows = fitted(name)
    save(before, tmp_path / "model")
    after = load(tmp_path / "model")
    assert use(before, rows).tobytes() == use(after, rows).tobytes()
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "manifest.json", "model.json", "tensors.safetensors",
    ]  # fmt: skip
    save(after, tmp_path / "again")
    for path in (tmp_path / "model").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), "a model is its bytes"
    after.fit(*CASES[name][1:])


def test_the_cases_are_all_that_there_is() -> None:
    kinds = {type(part).__name__ for estimator, _, _ in CASES.values() for part in parts(estimator)}
    assert kinds >= set(SCHEMAS) - {"IsotonicRegression"}


def parts(estimator: Any) -> Iterator[Any]:
    yield estimator
    yield from (step for _, step in getattr(estimator, "steps", []))
    if hasattr(estimator, "estimator"):
        yield estimator.estimator


def test_an_isotonic_regression_comes_back(tmp_path: Path) -> None:
    before = IsotonicRegression(out_of_bounds="clip").fit(X[:, 0], S)
    save(before, tmp_path / "model")
    assert load(tmp_path / "model").predict(X[:, 1]).tobytes() == before.predict(X[:, 1]).tobytes()


def test_a_wrapped_classifier_comes_back(tmp_path: Path) -> None:
    for base in (RandomForestClassifier(5, n_jobs=1, random_state=0), make_pipeline(StandardScaler(), GaussianNB())):
        before = pue.PUWrapper(base, prior=0.5, random_state=0).fit(X, S)
        before.save(tmp_path / "model")
        after = pue.load(tmp_path / "model")
        assert after.predict_proba(X).tobytes() == before.predict_proba(X).tobytes()
        assert after.base_estimator.get_params(deep=False).keys() == base.get_params(deep=False).keys()


# ----------------------------------------------------------------------------------- what is refused when saving


def own_tokenizer(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KNeighborsClassifier().fit(X, S), "KNeighborsClassifier.*Use one of these, alone or in a Pipeline"),
        (lambda: SplineTransformer().fit(X), r"not of sklearn\.preprocessing\._polynomial\.SplineTransformer"),
        (lambda: TfidfVectorizer(token_pattern="(a|aa)+$").fit(["b aaa"]), "one of the token patterns"),
        (lambda: TfidfVectorizer(input="filename"), "should read texts as they are"),
        (lambda: TfidfVectorizer(tokenizer=own_tokenizer, token_pattern=None).fit(["a b"]), "is no plain value"),
        (lambda: OneHotEncoder(categories=[[0, 1, 2]]).fit([[1]]), "should find its own categories"),
        (lambda: SimpleImputer(strategy="most_frequent").fit(WORDS.astype(object)), "of words cannot be saved"),
        (lambda: StandardScaler().set_output(transform="pandas").fit(X), "'_sklearn_output_config' is none that pue"),
        (lambda: HistGradientBoostingClassifier(scoring=print), "is no plain value"),
        (lambda: RandomForestClassifier(2).fit(X, np.column_stack([S, S])), "several outputs"),
        (lambda: LogisticRegression().fit(X, np.array(["a", "b"])[S]), "ndarray"),
    ],
    ids=range(11),
)
def test_what_has_no_schema_is_refused_with_the_remedy(make: Callable[[], Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        save(make(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_lightgbm_is_refused_with_what_to_use_instead(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    with pytest.raises(ModelError, match=r'LGBMClassifier.*PUClassifier\(backbone="boosting"\)'):
        save(lightgbm.LGBMClassifier(), tmp_path / "model")


# ------------------------------------------------------------------------------------------ forged numbers


def forge(folder: Path, entry: str, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Another array in the place of a fitted entry of the first estimator that has one, and a manifest to match."""
    tree = tree_of(folder)
    for path in nodes_of(tree):
        if path[-2:] == ("fitted", entry):
            node = tree
            for key in path:
                node = node[key]
            break
    name = node["value"] if isinstance(node["value"], str) else node["value"]["name"]
    tensors = tensors_from_bytes((folder / "tensors.safetensors").read_bytes())
    rewrite(folder, tensors=tensors_to_bytes({**tensors, name: change(tensors[name].clone()).contiguous()}))


def put(place: int, value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor.view(-1)[place] = value
        return tensor

    return change


LIES: list[tuple[str, str, Callable[[torch.Tensor], torch.Tensor], str]] = [
    ("boosting", "node left", lambda t: t.long().fill_(10**6).to(t.dtype), "leads out of its tree"),
    ("boosting", "node left", lambda t: torch.zeros_like(t), "leads out of its tree"),
    ("boosting", "node right", lambda t: torch.full_like(t, 2**31), "leads out of its tree"),
    ("boosting", "node feature_idx", put(0, 3), "asks for a column it has not"),
    ("boosting", "node feature_idx", put(0, -1), "asks for a column it has not"),
    ("boosting", "node num_threshold", put(0, float("nan")), "without a threshold"),
    ("boosting", "node value", put(0, float("nan")), "lie between"),
    ("boosting", "node left", lambda t: t[:-1], "should be .* long"),
    ("boosting", "node left", lambda t: t.long(), "numbers of type uint32"),
    ("boosting", "sizes", put(0, 2**62), "lie between|as many nodes"),
    ("boosting", "sizes", put(0, 0), "lie between"),
    ("boosting", "bins", put(0, 10**9), "lie between"),
    ("boosting", "bins", put(0, 1), "as many thresholds"),
    ("boosting of categories", "node is_categorical", lambda t: torch.ones_like(t), "set of categories it has not"),
    ("boosting of categories", "node bitset_idx", lambda t: torch.full_like(t, 99), "set of categories it has not"),
    ("boosting of categories", "thresholds", lambda t: torch.full_like(t, 1e6), "unknown categories"),
    ("boosting of categories", "raw sets", lambda t: t[:-1], "should be .* long|as many sets"),
    ("boosting of categories", "sets", put(0, 2**40), "lie between|as many sets"),
    ("boosting of categories", "is_categorical_", lambda t: torch.zeros_like(t), "categories of each such column"),
    ("forest", "node left_child", put(0, 10**9), "leads out of its tree"),
    ("forest", "node left_child", put(0, 0), "leads out of its tree"),
    ("forest", "node right_child", put(0, -1), "a node with one child"),
    ("forest", "node left_child", put(0, -2), "leads out of its tree"),
    ("forest", "node feature", put(0, 3), "a column that is not there"),
    ("forest", "node feature", put(0, -7), "a column that is not there"),
    ("forest", "node threshold", put(0, float("nan")), "without a threshold"),
    ("forest", "shares", lambda t: t[:, :1], "should be .* long"),
    ("forest", "shares", put(0, float("inf")), "finite"),
    ("forest", "depths", put(0, 2**30), "deeper than it has nodes"),
    ("forest", "seeds", lambda t: t[:-1], "should be .* long"),
    ("tree", "classes_", lambda t: t.flip(0), "in order"),
    ("scaler", "scale_", put(0, 0.0), "lie between"),
    ("scaler", "scale_", put(0, float("nan")), "lie between"),
    ("scaler", "mean_", lambda t: t[:2], "should be 3 long; it is 2"),
    ("scaler", "mean_", lambda t: t[None], "should have 1 sides; it has 2"),
    ("scaler", "mean_", lambda t: t.half(), "numbers of type float32 or float64"),
    ("pca", "components_", lambda t: t[:, :1], "should be 1"),
    ("logistic", "coef_", lambda t: t.repeat(5, 1), "should be .* long"),
    ("logistic of three", "coef_", lambda t: t[:1], "should be .* long"),
    ("bayes", "var_", put(0, -1.0), "lie between"),
    ("imputer", "missing", put(0, 99), "marks columns that it does not have"),
    ("words", "rarity", put(0, -1.0), "lie between"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "entry", "change", "message"), LIES)
def test_numbers_that_cannot_be_are_refused_before_anything_is_built(
    name: str, entry: str, change: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(fitted(name)[0], tmp_path / "model")
    forge(tmp_path / "model", entry, change)
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "model")


def change_tree(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    tree = tree_of(folder)
    change(tree["value"])
    rewrite(folder, tree=tree)


TREES: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("scaler", lambda v: v.update(kind="KNeighborsClassifier"), "without a schema"),
    ("scaler", lambda v: v.update(kind="os:system"), "without a schema"),
    ("scaler", lambda v: v.update(kind=["StandardScaler"]), "without a schema"),
    ("scaler", lambda v: v.update(kind="PCA"), "is unknown"),
    ("scaler", lambda v: v["parameters"].update(copy="yes"), "parameters that no StandardScaler takes"),
    ("scaler", lambda v: v["parameters"].update(n_jobs=4), "'n_jobs', which is unknown"),
    ("scaler", lambda v: v["parameters"].update(fit="print"), "'fit', which is unknown"),
    ("scaler", lambda v: v["parameters"].update(copy={"type": "function", "value": "losses.ramp"}), "no parameter"),
    ("scaler", lambda v: v["fitted"].pop("mean_"), "has no 'mean_'"),
    ("scaler", lambda v: v["fitted"].update(transform=1), "'transform', which is unknown"),
    ("scaler", lambda v: v["fitted"].update(n_features_in_=2**40), "whole number between"),
    ("scaler", lambda v: v["fitted"].update(n_features_in_=True), "whole number between"),
    ("pipeline", lambda v: v["parameters"].update(memory="cache"), "'memory', which is unknown"),
    ("pipeline", lambda v: v["parameters"].update(steps=[1]), "Pipeline"),
    ("pipeline", lambda v: v["parameters"].update(steps=[["a", "b"], ["c", "d"]]), "estimators with a name each"),
    ("words", lambda v: v["parameters"].update(token_pattern="(a|a)*$"), "one of the token patterns"),
    ("words", lambda v: v["parameters"].update(input="filename"), "should read texts as they are"),
    ("words", lambda v: v["parameters"].update(ngram_range={"type": "tuple", "value": [1, 10**9]}), "at most 10 words"),
    ("words", lambda v: v["parameters"].update(dtype="object"), "dtype should be one of"),
    ("words", lambda v: v["fitted"]["words"]["value"].append("bc"), "has a word twice|should be .* long"),
    ("one hot", lambda v: v["fitted"].update(dropped=[0, 0, 9]), "drops a category it does not have"),
    ("one hot", lambda v: v["fitted"].update(rare=[None] * 3, places=[None] * 3), "should say which are rare"),
    ("one hot, rare", lambda v: v["fitted"].update(places=None), "should say which are rare"),
    ("one hot, few", lambda v: v["fitted"].update(dropped=[-5, 0, 0]), "drops a category it does not have"),
    ("boosting", lambda v: v["fitted"].update(n_trees_per_iteration_=7), "should be"),
    ("calibrated", lambda v: v["fitted"].update(copies=[]), "estimators and their curves"),
    ("calibrated", lambda v: v["parameters"].update(method="magic"), "parameters that no"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "message"), TREES)
def test_values_that_cannot_be_are_refused(name: str, change: Any, message: str, tmp_path: Path) -> None:
    save(fitted(name)[0], tmp_path / "model")
    change_tree(tmp_path / "model", change)
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "model")


# ----------------------------------------------------- the folders that crashed the interpreter, from their description


def skops_folder(folder: Path, schema: dict[str, Any], arrays: dict[str, bytes]) -> Path:
    """A folder of the format before: a .skops archive beside the tree, and a manifest that vouches for all of it."""
    import hashlib
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("schema.json", json.dumps({"protocol": 2, "_skops_version": "0.16.0", **schema}))
        for name, data in arrays.items():
            archive.writestr(name, data)
    files = {
        "model.json": json.dumps({"type": "skops", "value": "estimator-0.skops"}).encode(),
        "tensors.safetensors": tensors_to_bytes({}),
        "estimator-0.skops": buffer.getvalue(),
    }
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    records = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    manifest = {"format": "pue model", "schema": 1, "versions": {"pue": "0.1.0"}, "files": records}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def node(loader: str, module: str, name: str, **content: Any) -> dict[str, Any]:
    return {"__loader__": loader, "__module__": module, "__class__": name, "__id__": 1, **content}


WORD = node("JsonNode", "builtins", "str", content='"__dict__"', is_json=True)
KEYED_BY_PARTIAL = node(
    "DictNode", "builtins", "dict", content={"a": WORD},
    key_types=node("ListNode", "builtins", "list", content=[
        node("PartialNode", "functools", "partial", content={
            "func": node("TypeNode", "builtins", "str"), "args": node("TupleNode", "builtins", "tuple", content=[WORD]),
        })]),
)  # fmt: skip
KEYED_BY_SPLINE = node(
    "DictNode", "builtins", "dict", content={"a": WORD},
    key_types=node("ListNode", "builtins", "list", content=[
        node("ObjectNode", "scipy.interpolate._bsplines", "BSpline", content={"k": {"content": "10000000"}})]),
)  # fmt: skip
EMPTY_WORDS = b"\x93NUMPY\x01\x00v\x00{'descr': '|S0', 'fortran_order': False, 'shape': (1200000000,), }"
GROWING = node("NdArrayNode", "numpy", "ndarray", type="numpy", file="a.npy")


@pytest.mark.parametrize(
    ("schema", "arrays"),
    [(KEYED_BY_PARTIAL, {}), (KEYED_BY_SPLINE, {}), (GROWING, {"a.npy": EMPTY_WORDS.ljust(127) + b"\n"})],
    ids=["a partial as the type of a key", "an unsound spline as the type of a key", "words without letters"],
)
def test_folders_that_crashed_the_interpreter_are_refused(schema: Any, arrays: Any, tmp_path: Path) -> None:
    """Whatever schema they claim: the old one is not read, and the new one has no such file and no such type."""
    folder = skops_folder(tmp_path / "model", schema, arrays)
    with pytest.raises(ModelError, match=r"has the schema 1 of version '0.1.0' of pue.*Fit the model again"):
        load(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "schema": 2}))
    with pytest.raises(ModelError, match=r"'estimator-0\.skops', which is no name of a model's file"):
        load(folder)
    manifest["files"].pop("estimator-0.skops")
    (folder / "manifest.json").write_text(json.dumps({**manifest, "schema": 2}))
    (folder / "estimator-0.skops").unlink()
    with pytest.raises(ModelError, match="type 'skops', which this version of pue does not know"):
        load(folder)


def test_millions_of_empty_lists_are_refused_at_once(tmp_path: Path) -> None:
    started = time.monotonic()
    for data, message in (
        (b"[" + b"[]," * (5 * 2**20) + b"[]]", "nodes; at most 1000000"),
        (b"[" * (8 * 2**20), "nodes; at most|levels deep"),
        (b'["' + b"\\" * 2**21 + b'"]', "a string of more than"),
    ):
        with pytest.raises(ModelError, match=message):
            strict_json.parse(data, "model.json")
    with pytest.raises(ModelError, match="at most 16777216 are read"):
        strict_json.parse(b"[" + b"[]," * (21 * 2**20) + b"[]]", "model.json")
    assert time.monotonic() - started < 10
    save([], tmp_path / "model")
    header = b'{"__metadata__":' + b"[" * 10**6 + b"}"
    rewrite(tmp_path / "model", tensors=len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelError, match=r"tensors\.safetensors is nested|nodes"):
        load(tmp_path / "model")
    rewrite(tmp_path / "model", tensors=(2**40).to_bytes(8, "little") + b"{}")
    with pytest.raises(ModelError, match="its header would hold 1099511627776 bytes"):
        load(tmp_path / "model")


def test_commas_and_brackets_in_strings_are_no_nodes() -> None:
    text = json.dumps({"a": ["[" * 500, ",,,", 'quoted " and \\ [', "ß" * 10]})
    assert strict_json.parse(text.encode(), "x") == json.loads(text)


def test_another_version_of_scikit_learn_is_warned_of_where_it_matters(tmp_path: Path) -> None:
    save(fitted("scaler")[0], tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "versions": {**manifest["versions"], "scikit-learn": "1.0"}}))
    with pytest.warns(PueWarning, match="written with scikit-learn 1.0; here it is"):
        load(tmp_path / "model")


FUZZED = ("boosting of categories", "forest", "one hot, rare", "calibrated", "words", "imputer")

CODE = """
import random, sys, warnings
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
import numpy as np, torch
from safetensors.torch import load, save
from test_persistence import mutate, rewrite, tree_of
from test_schemas import CASES, use
import pue.persistence.model as model
from pue.errors import ModelError
warnings.simplefilter("ignore")
loaded = 0
for folder in map(Path, sys.argv[3:]):
    rows = CASES[folder.name][1]
    tree, tensors = tree_of(folder), load((folder / "tensors.safetensors").read_bytes())
    for seed in range(int(sys.argv[2])):
        rng = random.Random(seed)
        if rng.random() < 0.4:
            rewrite(folder, tree=mutate(tree, rng), tensors=save(tensors))
        else:
            changed = {name: tensor.clone() for name, tensor in tensors.items()}
            name = rng.choice(list(changed))
            flat = changed[name].view(-1)
            if rng.random() < 0.8 and len(flat):
                lies = [0, 1, -1, 3, 255, 2**31 - 1, 2**62, 1e308, float("nan"), float("inf"), rng.randrange(100)]
                whole = not flat.dtype.is_floating_point
                lies = [int(lie) if whole else lie for lie in lies if not whole or lie == lie and abs(lie) < 2**63]
                try:
                    flat[rng.randrange(len(flat))] = rng.choice(lies)
                except (RuntimeError, OverflowError):
                    flat[rng.randrange(len(flat))] = 0
            else:
                changed[name] = rng.choice([changed[name][:0], changed[name][:-1], changed[name].double()])
            rewrite(folder, tree=tree, tensors=save({name: t.contiguous() for name, t in changed.items()}))
        try:
            found = model.load(folder)
        except ModelError:
            continue
        loaded += 1
        try:
            use(found, rows)
        except (ValueError, AttributeError, IndexError, TypeError):
            pass
print(loaded)
"""


def test_no_altered_number_crashes_the_interpreter(tmp_path: Path) -> None:
    """In a process of its own, predictions of whatever loads included."""
    folders = [tmp_path / name for name in FUZZED]
    for folder in folders:
        save(fitted(folder.name)[0], folder)
    command = [sys.executable, "-c", CODE, str(Path(__file__).parent), "60", *map(str, folders)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert 0 < int(ended.stdout) < 60 * len(folders)


def test_a_pipeline_in_a_pipeline_is_not_endless(tmp_path: Path) -> None:
    estimator: Any = StandardScaler()
    for _ in range(30):
        estimator = Pipeline([("one", estimator)])
    with pytest.raises(ModelError, match="levels deep"):
        save(estimator, tmp_path / "model")
