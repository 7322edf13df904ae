"""Runs on features: learnt once from the training images, kept, and named in the record."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pue.bench import hidden
from pue.bench.datasets import DATASETS, LabeledSplit
from pue.bench.features import RECIPES, FeatureSet, seen_by_encoder
from pue.bench.propensities import propensity_identity
from pue.bench.record import Record
from pue.bench.run import run
from pue.bench.spec import Labels, Settings, Spec
from pue.errors import InvalidInput, UnknownName
from pue.features import fit as fitting
from pue.features.relatives import Relatives

SPEC = Spec(
    "cifar10",
    "nnpu",
    Labels("mix", 12, (0.4, 0.3, 0.2, 0.1)),
    Settings(backbone="linear", epochs=1, batch_size=32, features="smoke"),
)


def images(n: int, seed: int) -> torch.Tensor:
    return torch.randint(0, 256, (n, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path) -> LabeledSplit:
    """A CIFAR-10 of 100 + 40 images, and a cache of its own."""
    train, test = torch.arange(100) % 10, torch.arange(40) % 10
    split = LabeledSplit("cifar10", images(100, 0), train, images(40, 1), test, (0, 1, 8, 9))
    monkeypatch.setitem(DATASETS, "cifar10", lambda folder=None: split)
    monkeypatch.setenv("PUE_CACHE", str(tmp_path))
    for memory in (hidden.load, seen_by_encoder):
        memory.cache_clear()
    yield split
    for memory in (hidden.load, seen_by_encoder):
        memory.cache_clear()


def test_a_run_sees_features_and_its_record_says_so(tiny: LabeledSplit) -> None:
    record = run(SPEC)
    seen = seen_by_encoder("smoke", hidden.load("cifar10", None, None, None))
    assert seen.train_x.shape == (100, 8 + 16)
    assert seen.test_x.shape == (40, 8 + 16)
    for part in seen.train_x.split([8, 16], dim=1):
        assert float(part.var(0).mean()) == pytest.approx(1, abs=1e-4)
    assert record.features == seen.features
    assert record.features.cpu_seconds > 0
    assert record.data.checksum == tiny.checksum  # that of the images
    assert Record.from_dict(record.to_dict()) == record
    assert "features" not in run(replace(SPEC, settings=Settings(backbone="linear", epochs=1))).to_dict()


def test_features_are_learnt_once_and_never_from_test_images(
    tiny: LabeledSplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    train = fitting.fit_encoder

    def watched(x: torch.Tensor, *options, **more):
        shown.append(x)
        return train(x, *options, **more)

    monkeypatch.setattr(fitting, "fit_encoder", watched)
    first = seen_by_encoder("smoke", tiny)
    seen_by_encoder.cache_clear()
    again = seen_by_encoder("smoke", tiny)
    assert len(shown) == 1
    assert torch.equal(shown[0], tiny.train_x)
    assert torch.equal(first.test_x, again.test_x)
    assert torch.equal(first.train_x, again.train_x)
    assert not torch.equal(first.test_x, first.train_x[:40])


def test_estimates_on_features_are_other_estimates() -> None:
    plain = replace(SPEC, settings=replace(SPEC.settings, features=None))
    assert propensity_identity(SPEC) != propensity_identity(plain)
    with pytest.raises(UnknownName, match="recipe of features"):
        Settings(features="simclr-1")


def test_a_recipe_that_changes_has_another_key(tiny: LabeledSplit) -> None:
    encoders = {wanted.encoder for wanted in RECIPES.values() if isinstance(wanted, FeatureSet)}
    keys = {recipe.key(tiny.train_x) for recipe in encoders}
    assert len(keys) == len(encoders)
    assert RECIPES["smoke"].encoder.key(tiny.test_x) not in keys


def people(n: int, scans: int, seed: int, start: int = 0) -> torch.Tensor:
    """`scans` images of each of n people, alike but for a little noise."""
    faces = torch.rand(n + start, 1, 1, 12, 12, generator=torch.Generator().manual_seed(0))[start:]
    noise = torch.rand(n, scans, 1, 12, 12, generator=torch.Generator().manual_seed(seed))
    return (255 * (0.9 * faces + 0.1 * noise)).byte().flatten(0, 1)


def test_scans_are_seen_by_family_and_a_row_is_not_its_own_relative() -> None:
    who = torch.arange(120).repeat_interleave(5)
    split = LabeledSplit("alzheimer", people(120, 5, 1), who % 2, people(120, 2, 2), who[::5].repeat(2) % 2, (1,))
    seen = seen_by_encoder("families", split)
    own = seen.train_x.argmax(1).view(120, 5)
    assert seen.train_x.shape == (600, 120)
    assert seen.train_x.sum(1).allclose(torch.ones(600))
    assert bool((own == own[:, :1]).all())
    assert len(own[:, 0].unique()) == 120
    assert torch.equal(seen.test_x.argmax(1).view(120, 2), own[:, :2])
    assert seen.features is not None
    assert seen.features.cpu_seconds > 0
    assert seen.checksum == split.checksum
    # each training row is compared with the others alone: as a new row it would be nearer to its family
    found = Relatives.fit(split.train_x)
    elsewhere = [shares.scatter(1, own.view(-1, 1), 0.0).sum(1) for shares in (found.own, found(split.train_x))]
    assert bool((elsewhere[0] > elsewhere[1]).all())


def test_images_without_families_are_refused() -> None:
    with pytest.raises(InvalidInput, match="do not form families"):
        Relatives.fit(torch.rand(300, 1, 12, 12, generator=torch.Generator().manual_seed(0)))
