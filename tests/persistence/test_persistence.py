"""Models without pickle: every method and propensity comes back bit for bit, and no folder can do harm."""

from __future__ import annotations

import builtins
import copy
import errno
import hashlib
import importlib
import inspect
import json
import math
import os
import pickle
import pkgutil
import random
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

import pue
import pue.methods
import pue.propensity
from pue import METHODS, PROPENSITIES, Augmentation, PUClassifier, Scenario, load
from pue.app.model import PUModel
from pue.app.threshold import HeldOut
from pue.backbones import BACKBONES, InputSpec
from pue.core.losses import LOSSES
from pue.errors import InvalidInput, ModelError, PueWarning
from pue.judging.calibration import Sigmoid
from pue.methods import LatentClass, PUbN
from pue.persistence import PASSING, kept, strict_json
from pue.persistence import folder as folder_module
from pue.persistence.annotations import fits
from pue.persistence.class_codecs import ClassCodec, DataclassCodec, EstimatorCodec
from pue.persistence.model import save
from pue.persistence.registry import TYPES, known_functions
from pue.priors import PriorEstimate
from pue.propensity import (
    LBE,
    SAREM,
    Anchor,
    Auto,
    Boosted,
    CrossFit,
    DeepSAREM,
    DoubleLogistic,
    Groups,
    Known,
    LocalCertainty,
    Logistic,
    Neighbors,
    Network,
    Patches,
    Pool,
)
from pue.propensity import logistic as logistic_module
from pue.training import Batching, EpochRecord, Training

writing_module = importlib.import_module("pue.files.writing")
QUICK = Training(epochs=1, batching=Batching(64, "pooled"), validation=0.2, criterion="likelihood")
SMALL = {"steps": 2, "round_steps": 1, "rounds": 1}
SMALLER: dict[str, Any] = {
    "auto": Auto(folds=2),
    "boosted": Boosted(folds=2, iterations=5),
    "double_logistic": DoubleLogistic(starts=1),
    "lbe": LBE(**SMALL),
    "neighbors": CrossFit(Neighbors(), 3),
    "network": Network(training=QUICK),
    "patches": Patches(folds=2),
    "sarem": SAREM(iterations=3),
    "sarem_deep": DeepSAREM(**SMALL),
}


def table(n: int = 80, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    truth = rng.random(n) < 0.4
    x = (rng.normal(size=(n, 3)) + 2 * truth[:, None]).astype(dtype)
    return x, (truth & (rng.random(n) < 0.5)).astype(int)


def images(n: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    truth = rng.random(n) < 0.5
    x = rng.integers(0, 128, (n, 1, 12, 12)) + 100 * truth[:, None, None, None]
    return x.astype(np.uint8), (truth & (rng.random(n) < 0.6)).astype(int)


def fitted(data: tuple[Any, Any] | None = None, **options: Any) -> PUClassifier:
    x, s = table() if data is None else data
    settings: dict[str, Any] = {"prior": 0.5, "epochs": 2, "batch_size": 32, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)
        return PUClassifier(**settings).fit(x, s)


def same(a: Any, b: Any) -> bool:
    """Equal, to the last bit and type, whatever it is."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and a.stride() == b.stride() and bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.strides == b.strides and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, nn.Module):
        return same(dict(a.state_dict()), dict(b.state_dict()))
    if isinstance(a, partial):
        return a.func is b.func and a.keywords == b.keywords
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if is_dataclass(a):
        kept_fields = [field.name for field in fields(a) if field.metadata != PASSING]
        return all(same(getattr(a, name), getattr(b, name)) for name in kept_fields)
    if isinstance(a, BaseEstimator):
        ours = type(a).__module__.startswith("pue.")  # of others only what users see
        left, right = ({name for name in vars(item) if ours or name.endswith("_")} for item in (a, b))
        return same(a.get_params(), b.get_params()) and left == right
    return bool(a == b) or (isinstance(a, float | np.floating) and math.isnan(a) and math.isnan(b))


def assert_same_classifier(before: PUClassifier, after: PUClassifier, data: tuple[Any, Any]) -> None:
    x, s = data
    check_is_fitted(after)
    for method in ("decision_function", "predict_proba", "predict"):
        assert same(getattr(before, method)(x), getattr(after, method)(x)), method
    assert before.score(x, s) == after.score(x, s)
    assert same(before.get_params(), after.get_params())
    assert set(vars(before)) == set(vars(after))
    for name in vars(before):
        assert same(getattr(before, name), getattr(after, name)), name
    if before._propensity_model is not None:
        rows = torch.from_numpy(np.asarray(x))
        assert torch.equal(before._propensity_model(rows), after._propensity_model(rows))


def round_trip(value: Any, path: Path, **options: Any) -> Any:
    save(value, path / "model")
    return load(path / "model", **options)


# ----------------------------------------------------------------------------------------- what comes back


@pytest.mark.filterwarnings("ignore:at a share of:pue.errors.PueWarning")  # communities of so few rows
@pytest.mark.filterwarnings("ignore:communities of similar rows:pue.errors.PueWarning")
@pytest.mark.filterwarnings("ignore:no grouping of the rows:pue.errors.PueWarning")
@pytest.mark.parametrize("name", METHODS)
def test_every_method_comes_back(name: str, tmp_path: Path) -> None:
    method: Any = METHODS[name]
    if isinstance(method, LatentClass):
        method = replace(method, estimator=replace(method.estimator, **SMALL))
    propensity = Logistic() if name in ("ipw", "nnipw", "nnpu", "pubn") else None
    before = fitted(method=method, propensity=propensity)
    before.save(tmp_path / "model")
    assert_same_classifier(before, pue.load(tmp_path / "model"), table())


def test_a_method_by_name_comes_back(tmp_path: Path) -> None:
    before = fitted(method="upu", loss="logistic", prior="elkan_noto", augmentation=Augmentation(mixup=0.2))
    after = round_trip(before, tmp_path)
    assert_same_classifier(before, after, table())
    assert after.method == "upu"
    assert isinstance(after.prior_estimate_, PriorEstimate)


@pytest.mark.filterwarnings("ignore:communities of similar rows:pue.errors.PueWarning")
@pytest.mark.filterwarnings("ignore:no grouping of the rows:pue.errors.PueWarning")
@pytest.mark.parametrize("name", PROPENSITIES)
def test_every_propensity_comes_back(name: str, tmp_path: Path) -> None:
    before = fitted(propensity=SMALLER.get(name, name), epochs=1)
    assert_same_classifier(before, round_trip(before, tmp_path), table())


@pytest.mark.parametrize(
    "propensity",
    [
        Auto(
            folds=2,
            image_network=Network(alpha=0.0, backbone=partial(BACKBONES["mlp"], depth=1, width=5), training=QUICK),
        ),
        Patches(patterns=8, components=5, folds=2),
        DeepSAREM(backbone=partial(BACKBONES["fast_cnn"], width=2), **SMALL),
    ],
    ids=lambda value: type(value).__name__,
)
def test_propensities_of_images_come_back(propensity: Any, tmp_path: Path) -> None:
    backbone = partial(BACKBONES["fast_cnn"], width=2)
    before = fitted(images(), propensity=propensity, backbone=backbone, epochs=1)
    assert_same_classifier(before, round_trip(before, tmp_path), images())


@pytest.mark.parametrize(
    "propensity",
    [
        Anchor(CrossFit(Logistic(), 2)),
        CrossFit(Logistic(), 2),
        Groups(2, {0.0: 0.5, 1.0: 0.6}),
        Known(2),
        LocalCertainty(Boosted(folds=2, iterations=5)),
        Pool({"linear": CrossFit(Logistic(), 2), "near": CrossFit(Neighbors((1, 2)), 2)}),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("scenario", Scenario)
def test_propensities_by_value_come_back_in_both_scenarios(propensity: Any, scenario: Scenario, tmp_path: Path) -> None:
    x, s = table()
    x[:, 2] = (x[:, 2] > 1) if isinstance(propensity, Groups) else np.linspace(0.1, 1, len(x))
    before = fitted((x, s), propensity=propensity, scenario=scenario, epochs=1)
    assert_same_classifier(before, round_trip(before, tmp_path), (x, s))


def test_two_students_of_images_come_back(tmp_path: Path) -> None:
    before = fitted(images(), method="selfpu", backbone=partial(BACKBONES["fast_cnn"], width=3))
    after = round_trip(before, tmp_path)
    assert_same_classifier(before, after, images())
    assert not any(weight.requires_grad for weight in after.network_.teachers.parameters())


@pytest.mark.parametrize("name", BACKBONES)
def test_every_backbone_by_name_comes_back(name: str, tmp_path: Path) -> None:
    if name == "resnet50":
        pytest.skip("as resnet50_imagenet, which contains it")
    shape = (1, 16, 16) if "cnn" in name or "resnet" in name else (3,)
    model = pue.propensity.network.NetworkModel(
        pue.backbones.build(name, InputSpec(shape), seed=1).eval(), True, None, name, InputSpec(shape)
    )
    rows = torch.rand(2, *shape)
    assert torch.equal(round_trip(model, tmp_path)(rows), model(rows))


def test_a_frame_with_names_comes_back(tmp_path: Path) -> None:
    x, s = table()
    frame = pd.DataFrame(x, columns=["a", "ß", "c"])
    before = fitted((frame, s))
    after = round_trip(before, tmp_path)
    assert_same_classifier(before, after, (frame, s))
    assert after.feature_names_in_.tolist() == ["a", "ß", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        after.predict(frame[["c", "a", "ß"]])


def test_double_precision_known_propensities_and_numpy_settings_come_back(tmp_path: Path) -> None:
    x, s = table(dtype=np.float64)
    before = PUClassifier(np.str_("nnpu"), prior=np.float64(0.5), epochs=np.int64(2), random_state=np.int64(3))
    before.fit(x, s, propensity=np.linspace(0.2, 1, len(x)))
    after = round_trip(before, tmp_path)
    assert after.network_.network[2].weight.dtype == torch.float64
    assert same(before.decision_function(x), after.decision_function(x))
    assert before.get_params() == after.get_params()


def test_what_belongs_to_the_machine_is_not_kept(tmp_path: Path) -> None:
    x, s = table()
    before = PUClassifier(
        prior=0.5, epochs=1, checkpoint_dir=tmp_path / "c", progress=False, random_state=np.random.RandomState(0)
    )
    after = round_trip(before.fit(x, s), tmp_path)
    assert (after.checkpoint_dir, after.progress, after.random_state) == (None, None, None)
    assert str(tmp_path) not in (tmp_path / "model" / "model.json").read_text()


def test_a_model_of_a_gpu_loads_without_one(tmp_path: Path) -> None:
    before = fitted().set_params(device="cuda")
    after = round_trip(before, tmp_path)
    assert after.device == "cuda"
    assert same(before.decision_function(table()[0]), after.decision_function(table()[0]))


def test_an_unfitted_classifier_has_nothing_to_save_but_may_be_part_of_a_model(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        PUClassifier().save(tmp_path / "model")
    before = PUClassifier(PUbN(tau=0.7), propensity=Auto(), loss=LOSSES["savage"], backbone=BACKBONES["mlp"])
    after = round_trip({"base": before}, tmp_path)["base"]
    assert same(before.get_params(), after.get_params())
    assert not hasattr(after, "network_")


def test_a_loaded_classifier_can_be_saved_and_fitted_again(tmp_path: Path) -> None:
    before = fitted(propensity="logistic")
    once = round_trip(before, tmp_path)
    twice = round_trip(once, tmp_path)
    assert_same_classifier(before, twice, table())
    again = twice.fit(*table())
    assert same(again.decision_function(table()[0]), before.decision_function(table()[0]))


numbers = st.floats() | st.integers(-(2**70), 2**70) | st.booleans() | st.none() | st.text(max_size=5)
trees = st.recursive(
    numbers | st.sampled_from([*Scenario, torch.float64, LOSSES["ramp"], np.float32(0.1), np.int8(-3), np.bool_(True)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.dictionaries(st.floats(allow_nan=False), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(value=trees)
def test_plain_values_come_back(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert same(round_trip(value, tmp_path_factory.mktemp("plain")), value)


ARRAYS: dict[str, Any] = {
    "empty": np.zeros((0, 3)),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "channels last": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "transposed": torch.rand(4, 3).T,
    "scalar": torch.tensor(2.5),
    "half": torch.tensor([1.5, math.nan], dtype=torch.bfloat16),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "objects": np.array(["a", "bc"], dtype=object),
    **{kind: np.array([0, 1, 2]).astype(kind) for kind in ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")},
    **{kind: np.array([0.1, np.nan, -np.inf]).astype(kind) for kind in ("f2", "f4", "f8")},
}


def test_arrays_and_tensors_come_back_in_type_and_order(tmp_path: Path) -> None:
    after = round_trip(ARRAYS, tmp_path)
    for name, array in ARRAYS.items():
        assert same(array, after[name]), name


def test_views_come_back_as_values(tmp_path: Path) -> None:
    views = [np.arange(6)[::-2], torch.arange(6.0)[::2], torch.ones(1).expand(3), np.arange(3.0).astype(">f8")]
    readonly = np.arange(3)
    readonly.flags.writeable = False
    for view, after in zip([*views, readonly], round_trip([*views, readonly], tmp_path), strict=True):
        assert np.array_equal(view, after)


# --------------------------------------------------------------------------------------------- backbones


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.register_buffer("shift", torch.ones(()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layer(x) + self.shift
        return scores


@pytest.mark.parametrize("backbone", [Own(), lambda spec: Own(), partial(BACKBONES["mlp"], nn.Linear(2, 2))])
def test_a_users_own_network_needs_an_import_path(backbone: Any, tmp_path: Path) -> None:
    model = fitted(epochs=1).set_params(backbone=backbone)
    with pytest.raises(ModelError, match=r"backbone cannot be saved: .*(import path|does not know how)"):
        model.save(tmp_path / "model")
    before = fitted(epochs=1, propensity=Network(backbone=lambda spec: Own(), training=QUICK)).set_params(
        propensity=None
    )
    pickle.dumps(before)
    with pytest.raises(ModelError, match=r"_propensity_model.* does not know what built it.*import path"):
        before.save(tmp_path / "model")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module with a network, and a file that appears when it is imported."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "networks_for_pue.py").write_text(
        "from pathlib import Path\nfrom torch import nn\nPath(__file__).with_name('imported').touch()\n"
        "def tiny(spec):\n    return nn.Linear(spec.size, 1)\n"
        "def other(spec):\n    return nn.Linear(spec.size, 1, bias=False)\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("networks_for_pue", None)


def test_an_import_path_is_kept_but_not_imported(package: Path, tmp_path: Path) -> None:
    before = fitted(
        (table()[0].astype(np.float32), table()[1]),
        backbone="networks_for_pue:tiny",
        propensity=Network(backbone="networks_for_pue:other", training=QUICK),
    )
    before.save(tmp_path / "model")
    (package / "imported").unlink()
    tiny, other = (lambda spec: nn.Linear(3, 1)), (lambda spec: nn.Linear(3, 1, bias=False))
    sys.modules.pop("networks_for_pue", None)
    with pytest.raises(ModelError, match=r"'networks_for_pue:\w+', which loading does not import.*backbone=factory"):
        load(tmp_path / "model")
    with pytest.raises(ModelError, match="networks_for_pue:other"):
        load(tmp_path / "model", backbone={"networks_for_pue:tiny": tiny})
    with pytest.raises(ModelError, match="does not fit its backbone"):
        load(tmp_path / "model", backbone=tiny)
    after = load(tmp_path / "model", backbone={"networks_for_pue:tiny": tiny, "networks_for_pue:other": other})
    assert not (package / "imported").exists()
    assert_same_classifier(before, after, table())


def test_a_module_may_stand_for_an_import_path(package: Path, tmp_path: Path) -> None:
    before = fitted(backbone="networks_for_pue:tiny")
    before.save(tmp_path / "model")
    after = load(tmp_path / "model", backbone=nn.Linear(3, 1))
    assert same(before.decision_function(table()[0]), after.decision_function(table()[0]))


def test_a_backbone_that_was_changed_after_the_fit_is_noticed(tmp_path: Path) -> None:
    model = fitted(epochs=1).set_params(backbone="mlp")
    with pytest.raises(ModelError, match=r"not saved: .*does not fit its backbone 'mlp'.*fit again"):
        model.save(tmp_path / "model")


# ------------------------------------------------------------------------------------ what cannot be saved


class Sub(PUClassifier):
    pass


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1, 2}, r"builtins\.set"),
        (b"bytes", r"builtins\.bytes"),
        (Path("a"), r"pathlib"),
        (np.array([1j]), r"numpy\.ndarray"),
        (np.array(["a", "b"]), r"numpy\.ndarray"),
        (np.array([object()]), r"numpy\.ndarray"),
        (torch.tensor([1j]), "complex"),
        (torch.eye(2).to_sparse(), "sparse"),
        ({(1, 2): 3}, r"builtins\.dict"),
        (Sub(), r"test_persistence\.Sub"),
        (print, "import path"),
        (Known(lambda x: x[:, 0]), r"Known\.e cannot be saved.*give the index of a column"),
        ([{"deep": [object()]}], r"list\[0\]\['deep'\]\[0\] cannot be saved.*builtins\.object"),
        (partial(print, 1), r"functools\.partial"),
        (partial(BACKBONES["mlp"], depth=2**20), r"functools\.partial"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_not_listed_is_refused(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        save(value, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_list_that_contains_itself_is_refused(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ModelError, match="contains itself"):
        save(endless, tmp_path / "model")
    deep: Any = 0
    for _ in range(150):
        deep = [deep]
    with pytest.raises(ModelError, match="more than 100 levels"):
        save(deep, tmp_path / "model")


def test_settings_of_a_wrong_type_are_refused_when_saved(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"not saved: PUClassifier\.propensity_trim should be of type .*bool.*; it is a int"
    ):
        fitted(epochs=1).set_params(propensity_trim=1).save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"not saved: Neighbors\.labels should be of type tuple"):
        save(Neighbors([1, 2]), tmp_path / "model")  # type: ignore[arg-type]


def test_an_attribute_that_is_not_listed_is_refused(tmp_path: Path) -> None:
    model = fitted(epochs=1)
    model.note = "mine"
    with pytest.raises(ModelError, match="no attribute 'note'"):
        model.save(tmp_path / "model")


# --------------------------------------------------------------------------------------------- registry


def test_every_value_of_the_library_is_registered() -> None:
    """Methods, propensity estimators and their models: dataclasses with `fit` or `__call__`."""
    found = set()
    for package in (pue.methods, pue.propensity):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, kind in vars(importlib.import_module(module.name)).items():
                own = inspect.isclass(kind) and kind.__module__ == module.name
                if own and is_dataclass(kind) and (hasattr(kind, "fit") or "__call__" in vars(kind)):
                    found.add((name, inspect.isabstract(kind)))
    assert {name for name, abstract in found if not abstract} - set(TYPES) == set()
    assert len(found) > 35


NAMES = re.findall(
    r"\w+",
    """
    Anchor AnchorModel Around Augmentation Auto AveragedTeacher Batching Blend Blended Boosted
    BoostedModel BoostedTrees Boosting
    CalibratedTrees Categories Chosen ColumnProfile Communities CommunitiesModel CommunityNames Composition Constant
    ConstantModel CrossFit CrossFitted Dates DeepSAREM Design DistPU DoubleLogistic EpochRecord Forest GroupModel
    Groups HeldOut InputSpec Joint JointModel Known KnownModel LBE LatentClass Likely LikelyModel LinearModel
    LocalCertainty Logistic LogisticModel Monotone Neighbors NeighborsModel Network NetworkModel Numbers
    PUClassifier PUModel PUWrapper PUbN PatchFeatures Patches PatchesModel Pool Pooled PriorEstimate
    PropensityReport Reduction Reference Ridge SAREM SelfPU Sigmoid Steps StoredEncoder Structure Tally Texts
    Thresholded Training Trees VPU Vectorizer View Vote
    array dict estimator float function names number pairs partial precision scenario tensor tuple
    """,
)


def test_these_types_and_no_others_are_built() -> None:
    """A name that goes, or changes, makes folders unreadable that were written before."""
    assert sorted(TYPES) == NAMES
    for name, codec in TYPES.items():
        if isinstance(codec, ClassCodec):
            assert (name, codec.kind.__module__.split(".")[0]) == (codec.kind.__name__, "pue")
            assert is_dataclass(codec.kind) or isinstance(codec, EstimatorCodec)


def in_a_fresh_process(code: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_fresh_process_knows_every_type_that_it_loads(tmp_path: Path) -> None:
    x, s = table()
    fitted(method="selfpu", propensity="auto").save(tmp_path / "classifier")
    pue.PUWrapper(LogisticRegression(), prior=0.5).fit(x, s).save(tmp_path / "wrapper")
    code = """
import sys, pue
print([type(pue.load(folder)).__name__ for folder in sys.argv[1:]], "pue.app" in sys.modules)
"""
    found = in_a_fresh_process(code, tmp_path / "classifier", tmp_path / "wrapper")
    assert found == "['PUClassifier', 'PUWrapper'] False\n"


def test_a_model_of_the_application_says_what_it_needs(tmp_path: Path) -> None:
    one = np.ones(1)
    PUModel(fitted(), Sigmoid(1.0, 0.0), 0.5, "given", HeldOut(one, one, one)).save(tmp_path / "model")
    code = """
import sys, pue
if len(sys.argv) > 2:
    sys.modules["skrub"] = None
try:
    print(type(pue.load(sys.argv[1])).__name__)
except pue.errors.MissingExtra as error:
    print(error)
"""
    assert in_a_fresh_process(code, tmp_path / "model") == "PUModel\n"
    message = in_a_fresh_process(code, tmp_path / "model", tmp_path)
    assert message == 'skrub is not installed. Install it with: pip install "pue[app]"\n'


def test_a_name_belongs_to_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclass(type("Auto", (), {"__module__": "elsewhere"}))
    with pytest.raises(InvalidInput, match=r"'Auto' is a class of pue\.propensity\.auto\. Give this one another name"):
        kept(other)
    assert TYPES["Auto"].owns(Auto())


def test_one_line_registers_a_dataclass_or_an_estimator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pue.core.weights import RowWeights  # a dataclass of pue that no model holds yet

    value = RowWeights(torch.ones(2), torch.zeros(2))
    with pytest.raises(ModelError, match="RowWeights"):
        save(value, tmp_path / "model")
    monkeypatch.setitem(TYPES, "RowWeights", DataclassCodec(RowWeights))
    assert same(round_trip(value, tmp_path), value)


def test_functions_have_one_name_each() -> None:
    known = known_functions()
    for name in METHODS:
        assert all(callable(known[key]) for key in known), name
    assert known["losses.sigmoid"] is LOSSES["sigmoid"]
    assert known["backbones.mlp"] is BACKBONES["mlp"]
    assert known["risk of nnpu"] is METHODS["nnpu"].risk  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "annotation", "answer"),
    [
        (1, int, True),
        (True, int, False),
        (np.int64(1), int, True),
        (1.0, int, False),
        (1, float, True),
        (np.float32(1), float, True),
        (True, float, False),
        (np.bool_(True), bool, True),
        (1, bool, False),
        ("a", str | None, True),
        (None, str | None, True),
        (1, str | None, False),
        ((1, 2), tuple[float, ...], True),
        ((1, "a"), tuple[float, ...], False),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        ([1], tuple[int, ...], False),
        ({"a": 1}, dict[str, int], True),
        ({1: 1}, dict[str, int], False),
        ([1, 2], list[int], True),
        (["1"], list[int], False),
        (len, Callable[..., Any], True),
        (3, Callable[..., Any], False),
        (np.ones(2), np.typing.NDArray[np.float64], True),
        (np.ones(2, int), np.typing.NDArray[np.float64], False),
        (np.ones(2), np.typing.NDArray[Any], True),
        (Logistic(), pue.propensity.PropensityEstimator, True),
        (3, pue.propensity.PropensityEstimator, False),
        (PUbN(), pue.methods.Method, True),
        (PUClassifier(), pue.methods.Method, False),
        ("anything", Any, True),
    ],
    ids=str,
)
def test_values_are_compared_with_annotations(value: Any, annotation: Any, answer: bool) -> None:
    assert fits(value, annotation) is answer


# ------------------------------------------------------------------------------------ all or nothing


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")], ids=["^C", "disk"]
)
@pytest.mark.parametrize("replacing", [False, True], ids=["new", "replacing"])
def test_a_save_that_fails_anywhere_leaves_what_was_there(
    error: BaseException, replacing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    calls = 0
    fail_at = -1

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls - 1 == fail_at:
                raise error
            return function(*args, **options)

        return call

    def attempt(value: Any) -> None:
        nonlocal calls
        calls = 0
        with monkeypatch.context() as patch:
            for owner, name in (
                (os, "fsync"), (os, "replace"), (Path, "mkdir"), (Path, "open"), (writing_module, "exchange"),
            ):  # fmt: skip
                patch.setattr(owner, name, counted(getattr(owner, name)))
            save(value, target)

    attempt({"old": torch.ones(3)})
    steps = calls
    assert steps >= 9  # two folders made, three files opened and flushed, the folder flushed, renamed, flushed
    for fail_at in range(steps):
        if not replacing:
            shutil.rmtree(target)
        expected = ModelError if isinstance(error, OSError) else KeyboardInterrupt
        with pytest.raises(expected, match="No space left on device.*untouched" if expected is ModelError else None):
            attempt({"new": torch.zeros(4)})
        assert [path.name for path in tmp_path.iterdir()] == (["model"] if replacing else []), fail_at
        if replacing:
            assert same(load(target), {"old": torch.ones(3)})
        else:
            save({"old": torch.ones(3)}, target)
    fail_at = -1
    attempt({"new": torch.zeros(4)})
    assert same(load(target), {"new": torch.zeros(4)})
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_only_a_model_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for make, message in (
        (lambda: None, "no model of pue's: .*no manifest.json"),
        (lambda: (folder / "manifest.json").write_text("{}"), "no model of pue's"),
        (lambda: (folder / "manifest.json").write_text("{"), "no model of pue's"),
    ):
        make()
        before = sorted(folder.iterdir())
        with pytest.raises(ModelError, match=message):
            save(1, folder)
        assert sorted(folder.iterdir()) == before
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ModelError, match=r"is a file.*Choose another path"):
        save(1, file)
    assert file.read_text() == "mine"
    save(1, tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match=r"also holds notes\.txt"):
        save(2, tmp_path / "model")
    (tmp_path / "model" / "notes.txt").unlink()
    save(2, tmp_path / "model")
    assert load(tmp_path / "model") == 2


def test_a_damaged_model_may_be_replaced_and_folders_are_made(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    save(1, target)
    (target / "model.json").write_text("cut")
    save(2, target)
    assert load(str(target)) == 2


def test_a_link_to_a_model_stays_a_link(tmp_path: Path) -> None:
    save(1, tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(2, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "real") == load(tmp_path / "link") == 2


def test_a_save_that_was_killed_between_two_renames_is_recovered_by_the_next_load(tmp_path: Path) -> None:
    save(1, tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / ".model.0123.replaced")
    (tmp_path / ".model.lock").touch()
    assert load(tmp_path / "model") == 1
    assert os.listdir(tmp_path) == ["model"]


def test_the_manifest_says_who_wrote_it(tmp_path: Path) -> None:
    save(1, tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["schema"] == folder_module.SCHEMA
    assert manifest["versions"]["pue"] == pue.__version__
    assert {"torch", "numpy", "scikit-learn", "safetensors"} <= set(manifest["versions"])
    assert set(manifest["files"]) == {"model.json", "tensors.safetensors"}


# --------------------------------------------------------------------------------- damaged and hostile


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with something of everything; tests copy it."""
    folder = tmp_path_factory.mktemp("original") / "model"
    backbone = partial(BACKBONES["tabular"], width=4, depth=1)
    rows = pd.DataFrame(table()[0], columns=list("abc")), table()[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logistic_module, "FEW_COLUMNS", 2)  # as if there were many: of scikit-learn then
        fitted(rows, propensity="logistic", backbone=backbone).save(folder)
    return folder


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "model"))


def rewrite(folder: Path, **changed: Any) -> None:
    """Other contents (None: the file is removed), and a manifest that vouches for them."""
    manifest = json.loads((folder / "manifest.json").read_text())
    names = {"tree": "model.json", "tensors": "tensors.safetensors"}
    for key, data in changed.items():
        name = names[key]
        if data is None:
            (folder / name).unlink()
            manifest["files"].pop(name)
            continue
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        (folder / name).write_bytes(data)
        manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def tree_of(folder: Path) -> Any:
    return json.loads((folder / "model.json").read_text())


def change_manifest(folder: Path, **entries: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


FILES = ["model.json", "tensors.safetensors", "manifest.json"]


def test_the_rewriting_of_these_tests_loads(model: Path) -> None:
    assert sorted(path.name for path in model.iterdir()) == sorted(FILES)
    rewrite(model, tree=tree_of(model))
    assert isinstance(load(model), PUClassifier)


@pytest.mark.parametrize("name", FILES[:-1])
def test_an_altered_byte_is_noticed(name: str, model: Path) -> None:
    data = bytearray((model / name).read_bytes())
    for place in random.Random(0).sample(range(len(data)), 5):
        data[place] ^= 1
        (model / name).write_bytes(data)
        with pytest.raises(ModelError, match=f"{name} is not the file that was saved"):
            load(model)
        data[place] ^= 1


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_noticed(name: str, model: Path) -> None:
    data = (model / name).read_bytes()
    for length in (0, 1, *random.Random(0).sample(range(2, len(data)), 5), len(data) - 1):
        (model / name).write_bytes(data[:length])
        with pytest.raises(ModelError, match=r"cut off or altered|manifest\.json is damaged"):
            load(model)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_noticed(name: str, model: Path) -> None:
    (model / name).unlink()
    with pytest.raises(ModelError, match=f"{name} is missing|no {name}"):
        load(model)


@pytest.mark.parametrize("name", ["model.pkl", ".hidden", "estimator-7.skops", "folder"])
def test_an_extra_file_is_noticed(name: str, model: Path) -> None:
    (model / name).mkdir() if name == "folder" else (model / name).write_bytes(b"x")
    with pytest.raises(ModelError, match=f"holds '{name}', which is no part of the model"):
        load(model)


def test_unused_tensors_are_noticed(model: Path) -> None:
    rewrite(model, tensors=tensors_to_bytes({**tensors_of(model), "more": torch.ones(1)}))
    with pytest.raises(ModelError, match="does not use more"):
        load(model)


def tensors_of(folder: Path) -> dict[str, Tensor]:
    return tensors_from_bytes((folder / "tensors.safetensors").read_bytes())


def test_renamed_and_reshaped_tensors_are_noticed(model: Path) -> None:
    tensors = tensors_of(model)
    rewrite(model, tensors=tensors_to_bytes({f"x{name}": tensor for name, tensor in tensors.items()}))
    with pytest.raises(ModelError, match="there is no tensor"):
        load(model)
    weights = next(name for name, tensor in tensors.items() if tensor.shape == (4, 3))
    for lie in (torch.zeros(3, 4), torch.zeros(4, 3).double(), torch.zeros(4, 3, dtype=torch.int64)):
        rewrite(model, tensors=tensors_to_bytes({**tensors, weights: lie}))
        with pytest.raises(ModelError, match="does not fit its backbone"):
            load(model)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], None),
        (b"[]" * 2, "damaged"),
        (b"", "damaged"),
        (b"\xff\xfe", "damaged"),
        (b"NaN", "NaN is no JSON"),
        (b"[-Infinity]", "-Infinity is no JSON"),
        (b"1e999", "too large for a number"),
        (b"1" * 5000, "damaged"),
        (b'{"type": "tuple", "type": "tuple", "value": []}', "a key stands twice"),
        (b"[" * 100_000, "more than 100 levels"),
        (b"[" + b"[]," * 10**6 + b"[]]", "has 2000002 nodes; at most 1000000"),
        (b'"' + b"a" * 2**21 + b'"', "a string of more than 1048576 bytes"),
        (b"[" * 101 + b"]" * 101, "more than 100 levels"),
        ({"type": "float", "value": "NaN"}, "one of nan, inf, -inf"),
        ({"type": "nothing", "value": 1}, "type 'nothing', which this version of pue does not know"),
        ({"type": ["tuple"], "value": 1}, "does not know"),
        ({"type": "os:system", "value": "true"}, "does not know"),
        ({"type": "builtins.eval", "value": "1"}, "does not know"),
        ({"type": "tuple"}, "has no 'value'"),
        ({"type": "tuple", "value": [], "more": 1}, "'more', which is unknown"),
        ({"type": "tuple", "value": {}}, "should be a list"),
        ({"type": "dict", "value": []}, "it is a list"),
        ({"type": "pairs", "value": [[1, 2, 3]]}, "list of 2"),
        ({"type": "pairs", "value": [[[], 2]]}, "neither a number nor a string"),
        ({"type": "function", "value": "os.system"}, "'os.system', which this version of pue does not have"),
        ({"type": "partial", "value": {"function": "losses.ramp", "settings": {}}}, "no backbone with settings"),
        ({"type": "partial", "value": {"function": "backbones.mlp", "settings": {"spec": 1}}}, "'spec', which is unk"),
        ({"type": "partial", "value": {"function": "backbones.mlp", "settings": {"depth": 10**9}}}, "small numbers"),
        ({"type": "tensor", "value": "../../etc/passwd"}, "there is no tensor"),
        ({"type": "tensor", "value": {"name": "t0", "order": [0]}}, "there is no tensor"),
        ({"type": "skops", "value": "estimator-0.skops"}, "type 'skops', which this version of pue does not know"),
        ({"type": "scenario", "value": "none"}, "one of single_sample, case_control"),
        ({"type": "precision", "value": "float16"}, "one of float32, float64"),
        ({"type": "names", "value": [1]}, "should hold names"),
        ({"type": "Logistic", "value": {"C": "1"}}, r"Logistic\.C should be of type .*float.*; it is a str"),
        ({"type": "Logistic", "value": {"D": 1.0}}, "'D', which is unknown"),
        ({"type": "Sigmoid", "value": {"slope": 1.0}}, "has no 'intercept'"),
        ({"type": "Neighbors", "value": {"labels": {"type": "tuple", "value": [-1]}}}, "values that no Neighbors has"),
        ({"type": "PUClassifier", "value": {"parameters": {"checkpoint_dir": "/"}, "fitted": {}}}, "'checkpoint_dir'"),
        ({"type": "PUClassifier", "value": {"parameters": {"backbone": "os:system"}, "fitted": {}}}, "does not import"),
        ({"type": "Network", "value": {"backbone": "os:system"}}, "does not import"),
        ({"type": "PUClassifier", "value": {"parameters": {}, "fitted": {"prior_": 0.5}}}, "has no"),
        ({"type": "PUClassifier", "value": {"parameters": {}, "fitted": []}}, "should hold"),
        ({"type": "PUClassifier", "value": {"parameters": {}, "fitted": {"predict": 1}}}, "has no|unknown"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_a_tree_that_is_none_of_ours_is_refused(tree: Any, message: str | None, tmp_path: Path) -> None:
    save([], tmp_path / "model")
    rewrite(tmp_path / "model", tree=tree)
    if message is None:
        assert load(tmp_path / "model") == []
        return
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "model")


def test_sizes_are_bounded_before_anything_is_read(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "MOST_BYTES", 1000)
    for name in ("model.json", "manifest.json"):
        (model / name).write_bytes(b" " * 1001)
        with pytest.raises(ModelError, match=f"{name} holds 1001 bytes; at most 1000"):
            load(model)
        (model / "manifest.json").write_bytes(b"{}")
    assert strict_json.MOST_LEVELS == 100


def test_a_network_cannot_ask_for_more_than_its_weights(model: Path) -> None:
    tree = tree_of(model)
    for settings, shape, message in (
        ({"width": 60_000, "depth": 2}, [3], "more weights than are stored"),
        ({"width": 4, "depth": 1}, [10**12], "too large for it"),
        ({"width": 4, "depth": 1}, [-3], "does not fit"),
        ({"width": -4, "depth": 1}, [3], "does not fit"),
        ({"width": 4, "depth": 1.5}, [3], "does not fit"),
    ):
        lie = copy.deepcopy(tree)
        lie["value"]["parameters"]["backbone"]["value"]["settings"] = settings
        lie["value"]["fitted"]["input_spec_"]["value"]["shape"]["value"] = shape
        rewrite(model, tree=lie)
        with pytest.raises(ModelError, match=message):
            load(model)
    lie = copy.deepcopy(tree)
    lie["value"]["parameters"]["backbone"] = "fast_cnn"
    lie["value"]["fitted"]["input_spec_"]["value"]["shape"]["value"] = [1, 10**5, 10**5]
    rewrite(model, tree=lie)
    with pytest.raises(ModelError, match="too large for it"):
        load(model)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"schema": 3, "versions": {"pue": "9.1"}}, "written by a newer version '9.1' of pue; upgrade"),
        ({"schema": 3, "versions": None}, "written by a newer version 'unknown' of pue; upgrade"),
        ({"schema": 1}, r"has the schema 1 of version .* of pue; this one writes and reads 2\. Fit the model again"),
        ({"schema": True}, "no model of pue's"),
        ({"schema": "1"}, "no model of pue's"),
        ({"format": "zip"}, "no model of pue's"),
        ({"versions": [1]}, "does not say which versions"),
        ({"versions": {"pue": 1}}, "does not say which versions"),
        ({"more": 1}, "'more', which is unknown"),
        ({"files": []}, "does not list model.json"),
        ({"files": {}}, "does not list model.json"),
        ({"files": {"model.json": 1, "tensors.safetensors": 1}}, "should hold bytes, sha256"),
        ({"files": {"model.json": {"bytes": "1", "sha256": ""}, "tensors.safetensors": {}}}, "no size and hash"),
    ],
    ids=str,
)
def test_a_manifest_that_is_none_of_ours_is_refused(entries: Any, message: str, model: Path) -> None:
    change_manifest(model, **entries)
    with pytest.raises(ModelError, match=message):
        load(model)


@pytest.mark.parametrize(
    "name", ["../evil.json", "/etc/passwd", "a/b.json", "model.json/..", "model.pkl", "estimator-0.skops", "x\n"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, model: Path) -> None:
    files = json.loads((model / "manifest.json").read_text())["files"]
    change_manifest(model, files={**files, name: files["model.json"]})
    with pytest.raises(ModelError, match="is no name of a model's file"):
        load(model)


@pytest.mark.parametrize("name", FILES)
def test_links_and_pipes_are_not_followed(name: str, model: Path, tmp_path: Path) -> None:
    (model / name).rename(tmp_path / "elsewhere")
    (model / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="is a link or no regular file"):
        load(model)
    (model / name).unlink()
    os.mkfifo(model / name)
    with pytest.raises(ModelError, match="is a link or no regular file"):
        load(model)


def test_what_is_no_folder_says_what_to_pass(model: Path, tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none", "there is no .*none. Pass the folder"),
        (model / "model.json", "is no folder. Pass the folder that save"),
        (tmp_path, "has no manifest.json. Pass the folder that save"),
    ):
        with pytest.raises(ModelError, match=message):
            load(path)


def test_another_version_of_scikit_learn_is_warned_of(model: Path) -> None:
    versions = json.loads((model / "manifest.json").read_text())["versions"]
    change_manifest(model, versions={**versions, "scikit-learn": "1.0"})
    with pytest.warns(PueWarning, match="written with scikit-learn 1.0; here it is"):
        load(model)


# ----------------------------------------------------------------------------------------- code smuggled in


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.sentinel}",)


def test_a_pickle_is_not_read(model: Path, tmp_path: Path) -> None:
    sentinel = tmp_path / "ran"
    bomb = pickle.dumps(Bomb(sentinel))
    pickle.loads(bomb)
    assert sentinel.exists()
    sentinel.unlink()
    for name in ("tree", "tensors"):
        folder = Path(shutil.copytree(model, tmp_path / name))
        rewrite(folder, **{name: bomb})
        with pytest.raises(ModelError, match="is damaged"):
            load(folder)
    assert not sentinel.exists()


# ------------------------------------------------------------------------------------------------ fuzz


def nodes_of(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where everything in a tree is."""
    yield path
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from nodes_of(tree[key], (*path, key))


def junk(rng: random.Random, tree: Any) -> Any:
    some = tree
    for key in rng.choice(list(nodes_of(tree))):
        some = some[key]
    typed = {"type": rng.choice(NAMES), "value": rng.choice([None, 0, "t0", [], {}, [[1, 2]], {"a": 1}])}
    plain = [
        None,
        True,
        -1,
        0,
        2**63,
        10**30,
        1.5,
        1e308,
        "",
        "nan",
        "t0",
        "mlp",
        "os:system",
        "../x",
        "\ud800",
        "a" * 9999,
    ]
    return copy.deepcopy(rng.choice([*plain, [], {}, [[]], {"type": "tuple"}, typed, typed, some, some, [some]]))


def mutate(tree: Any, rng: random.Random) -> Any:
    """One or a few places replaced, removed, renamed, doubled or swapped."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        path = rng.choice([path for path in nodes_of(tree) if path] or [()])
        if not path:
            return junk(rng, tree)
        parent = tree
        for key in path[:-1]:
            parent = parent[key]
        key, kind = path[-1], rng.choice(["replace", "replace", "replace", "remove", "rename", "double", "swap"])
        if kind == "remove":
            del parent[key]
        elif kind == "rename" and isinstance(parent, dict):
            parent[rng.choice(["", "type", "__class__", "fitted", f"{key}x"])] = parent.pop(key)
        elif kind == "double" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif kind == "swap" and len(parent) > 1:
            other = rng.choice(list(parent) if isinstance(parent, dict) else list(range(len(parent))))
            parent[key], parent[other] = parent[other], parent[key]
        else:
            parent[key] = junk(rng, tree)
    return tree


def loads_or_says_why(folder: Path) -> bool:
    """Whether it loads; anything but a ModelError is a failure of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)
        try:
            load(folder)
        except ModelError:
            return False
    return True


def values() -> Any:
    """Records of many types, without a network or an estimator, which take long."""
    return {
        "records": [
            EpochRecord(0, math.nan, 0.5, 1.0),
            Augmentation(shift=1),
            QUICK,
            Neighbors(),
            PUbN(rho=0.1),
            Auto(),
        ],
        "groups": Groups(0, {0.0: 0.5}),
        "spec": InputSpec((3,), torch.zeros(3), torch.ones(3), torch.float64),
        "unfitted": PUClassifier(METHODS["tmi"], backbone=partial(BACKBONES["mlp"], depth=2)),
        "arrays": (np.arange(3), np.float32(1), torch.rand(3, 2).T, np.array(["a"], dtype=object)),
        "scenario": Scenario.CASE_CONTROL,
    }


def test_no_mutation_of_the_tree_does_more_than_fail_to_load(tmp_path: Path, model: Path) -> None:
    loaded = 0
    save(values(), tmp_path / "values")
    for folder, count in ((tmp_path / "values", 600), (model, 120)):
        tree = tree_of(folder)
        for seed in range(count):
            rewrite(folder, tree=mutate(tree, random.Random(seed)))
            loaded += loads_or_says_why(folder)
        rewrite(folder, tree=tree)
        assert loads_or_says_why(folder)
    assert 0 < loaded < 400, "mutations should sometimes be harmless, and mostly not"


def test_no_mutation_of_the_manifest_does_more_than_fail_to_load(tmp_path: Path) -> None:
    save(values(), tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    manifest = json.loads(path.read_text())
    loaded = 0
    for seed in range(300):
        path.write_text(json.dumps(mutate(manifest, random.Random(seed))))
        loaded += loads_or_says_why(tmp_path / "model")
    assert loaded < 150


def test_no_flipped_byte_does_more_than_fail_to_load(model: Path) -> None:
    rng = random.Random(0)
    for key, name in (("tensors", FILES[1]), ("tree", FILES[0])):
        data = (model / name).read_bytes()
        for _ in range(40):
            flipped = bytearray(data)
            for place in rng.sample(range(min(len(data), 3000)), rng.choice([1, 3])):
                flipped[place] = rng.randrange(256)
            rewrite(model, **{key: bytes(flipped)})
            loads_or_says_why(model)
        rewrite(model, **{key: data})
    assert loads_or_says_why(model)


def test_loading_imports_and_opens_nothing_it_should_not(
    model: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import system is asked for modules of pue, scikit-learn, numpy and their kin only."""
    asked: list[str] = []
    real = builtins.__import__

    def watch(name: str, *args: Any, **options: Any) -> Any:
        asked.append(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", watch)
    tree = tree_of(model)
    for seed in range(20):
        rewrite(model, tree=mutate(tree, random.Random(1000 + seed)))
        loads_or_says_why(model)
    assert "networks_for_pue" not in asked
    assert not (package / "imported").exists()
