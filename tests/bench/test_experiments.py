"""Specs, presets, suites and runs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace

import pytest
import toml_text
import torch
from hypothesis import given
from hypothesis import strategies as st
from same_run import comparable

from pue.backbones import BACKBONES
from pue.bench.datasets import DATASETS, LabeledSplit
from pue.bench.execute import Place, Watch, execute
from pue.bench.hidden import hide, load
from pue.bench.presets import LABELS, PRESETS, SEVERITY
from pue.bench.propensities import propensity_identity, share_distance
from pue.bench.record import DataId
from pue.bench.run import run
from pue.bench.spec import Labels, Settings, Spec, digest, read_spec
from pue.bench.store import Store
from pue.bench.suites import DISPLAY, SUITES, changed, resolve, row_name
from pue.errors import InvalidInput, UnknownName
from pue.methods import METHODS

TINY = Spec(
    "digits",
    "nnpu",
    Labels("mix", 40, (0.65, 0.15, 0.10, 0.07, 0.03)),
    Settings(backbone="linear", epochs=2, batch_size=64, rows=300),
    preset="smoke",
)

# ------------------------------------------------------------------------------------------------ specs

numbers = st.floats(1e-6, 1e3)
text = st.text(st.characters(blacklist_categories=["Cs"]), max_size=5)
labels = st.one_of(
    st.builds(Labels, st.just("scar"), st.integers(1, 5000)),
    st.builds(Labels, st.just("severity"), st.integers(1, 5000), st.lists(numbers, min_size=1).map(tuple)),
)
settings = st.builds(
    Settings,
    backbone=st.sampled_from([*BACKBONES, "auto"]),
    epochs=st.integers(1, 500),
    lr=numbers,
    weight_decay=numbers,
    schedule=st.sampled_from(["cosine", "one_cycle"]),
    ema=st.none() | st.floats(0.01, 0.99),
    flip=st.none() | st.booleans(),
    shift=st.none() | st.integers(0, 5),
    rows=st.none() | st.integers(2, 10**6),
)
specs = st.builds(
    Spec,
    dataset=st.sampled_from(list(DATASETS)),
    method=st.just("pubn"),
    labels=labels,
    settings=settings,
    propensity=st.just("network"),
    seed=st.integers(0, 2**32),
    preset=text,
    prior=st.just("data") | st.floats(0.01, 0.99),
    method_options=st.fixed_dictionaries({}, optional={"tau": numbers, "weight_sigma": st.booleans()}),
    propensity_options=st.fixed_dictionaries({}, optional={"alpha": numbers, "form": st.just("mean"), "lr": numbers}),
)


@given(specs)
def test_toml_gives_back_the_very_same_spec(spec):
    again = Spec.from_toml(toml_text.dumps(spec.to_dict()))
    assert again == spec
    assert again.key == spec.key


@given(specs, st.randoms(use_true_random=False))
def test_the_order_of_fields_does_not_matter(spec, random):
    def shuffled(table):
        names = list(table)
        random.shuffle(names)
        return {name: shuffled(table[name]) if isinstance(table[name], dict) else table[name] for name in names}

    assert Spec.from_dict(shuffled(spec.to_dict())).key == spec.key
    assert digest(shuffled(spec.to_dict())) == spec.key


def test_whole_numbers_are_numbers_and_options_have_one_spelling():
    assert (
        replace(TINY, settings=replace(TINY.settings, lr=1)).key
        == replace(TINY, settings=replace(TINY.settings, lr=1.0)).key
    )
    spellings = [{"alpha": 15}, {"alpha": 15.0}, (("alpha", 15),)]
    assert len({replace(TINY, propensity="network", propensity_options=options).key for options in spellings}) == 1


def test_every_part_of_a_spec_changes_its_key():
    others = [
        replace(TINY, seed=1),
        replace(TINY, method="upu"),
        replace(TINY, propensity="true"),
        replace(TINY, preset="fast"),
        replace(TINY, prior=0.5),
        replace(TINY, labels=replace(TINY.labels, n_labeled=41)),
        replace(TINY, settings=replace(TINY.settings, lr=2e-3)),
    ]
    assert len({spec.key for spec in [TINY, *others]}) == 1 + len(others)


def test_keys_are_stable():
    # Records on disks are found by these. A change here makes all of them strangers: raise SCHEMA and say so.
    assert TINY.key == "51232bdf6bfd4adbfc9de81aa828bbde751c325e4e9de8fee7f1dad9e249db05"
    assert TINY.name == f"digits-nnpu-none-s0-{TINY.key[:12]}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("dataset = 3", "dataset must be text; got 3"),
        ('dataset = "mnst"', "Did you mean 'mnist'"),
        ('method = "nnpuu"', "Did you mean 'nnpu'"),
        ('propensity = "nework"', "Did you mean 'network'"),
        ("seed = -1", "seed must not be negative"),
        ("seed = 1.5", "seed must be a whole number; got 1.5"),
        ("seed = true", "seed must be a whole number; got True"),
        ("prior = 2.0", "prior must be"),
        ('prior = "guess"', "prior must be"),
        ("sed = 1", "unknown field of a spec 'sed'"),
        ("schema = 99", "schema 99"),
        ("labels = 3", "labels must be a table"),
        ('labels = {kind = "scar"}', "labels needs the field 'n_labeled'"),
        ('labels = {kind = "scar", n_labeled = 0}', "at least 1"),
        ('labels = {kind = "scar", n_labeled = 5, mix = [1.0]}', "no mix"),
        ('labels = {kind = "mix", n_labeled = 5}', "one number a class"),
        ('labels = {kind = "mix", n_labeled = 5, mix = [0.5]}', "sum to 1"),
        ('labels = {kind = "mix", n_labeled = 5, mix = 1}', "list of numbers"),
        ('labels = {kind = "sar", n_labeled = 5}', "unknown kind of labels"),
        ("settings = {epochs = 0}", "epochs must be at least 1"),
        ("settings = {lr = nan}", "lr must be a finite number"),
        ('settings = {lr = "fast"}', "lr must be a finite number; got 'fast'"),
        ("settings = {epoch = 1}", "unknown field of settings 'epoch'. Did you mean 'epochs'"),
        ('settings = {backbone = "vgg"}', "unknown backbone"),
        ('settings = {loss = "l7"}', "unknown loss"),
        ('settings = {schedule = "cos"}', "unknown schedule"),
        ('settings = {batching = "all"}', "batching must be"),
        ("settings = {rows = 1}", "rows must be at least 2"),
        ("method_options = {tau = 1}", "unknown option of nnpu 'tau'"),
        ("method_options = [1]", "must be a table"),
        ("propensity_options = {alpha = 1}", "has no options"),
        ('propensity = "network"\npropensity_options = {alfa = 1}', "unknown option of network 'alfa'"),
        ('propensity = "network"\npropensity_options = {alpha = [1]}', "alpha must be text"),
        ('method = "supervised"\npropensity = "true"', "ceiling"),
        ("seed = ", "not valid TOML"),
    ],
)
def test_a_wrong_spec_is_refused_with_its_reason(tmp_path, change, message):
    table = TINY.to_dict()
    names = [line.split(" = ")[0] for line in change.splitlines()]
    kept = {name: value for name, value in table.items() if name not in names}
    file = tmp_path / "spec.toml"
    file.write_text(change + "\n" + toml_text.dumps(kept))
    with pytest.raises(InvalidInput, match=r"spec\.toml") as error:
        read_spec(file)
    assert message in str(error.value)


def test_a_missing_file_and_a_missing_field_are_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"none\.toml"):
        read_spec(tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match="a spec needs the field 'method'"):
        Spec.from_toml('dataset = "digits"')


# --------------------------------------------------------------------------------- presets and suites

EVERY = [
    (suite, dataset, preset)
    for suite, found in SUITES.items()
    for dataset in found.datasets
    for preset in ("paper", "fast", "smoke", *["best"] * ((dataset, "best") in PRESETS))
]


@pytest.mark.parametrize(("suite", "dataset", "preset"), EVERY)
def test_every_suite_resolves_with_every_preset(suite, dataset, preset):
    found = resolve(suite, dataset=dataset, preset=preset, seeds=[0, 1])
    assert {spec.dataset for spec in found} == {dataset}
    assert len({spec.key for spec in found}) == len(found) > 0
    assert [Spec.from_toml(toml_text.dumps(spec.to_dict())) for spec in found] == found
    rows = {(row_name(spec), spec.labels) for spec in found}
    assert len(rows) == len(found) / 2  # no two rows of a table have the same name


def test_the_paper_s_tables_are_complete():
    sizes = {suite: len(resolve(suite)) for suite in SUITES}
    assert sizes == {
        "alpha-ablation": 7,
        "alzheimer": 8 + 1 + 3,
        "alzheimer-severity": 12 + 3,
        "alzheimer-subjects": 8 + 1 + 3,
        "cifar10": 12 + 3 + 3,
        "digits": 20 + 3,
        "mix-ablation": 16,
        "mnist": 20 + 3,
        "negatives": 3,
        "structure": 9,
        "supplement": 6,
    }
    names = [row_name(spec) for spec in resolve("cifar10")]
    bases = ["uPU", "nnPU", "PUbN", "Dist-PU"]
    assert names[:12] == bases + [f"{name}e" for name in bases] + [f"{name}e'" for name in bases]
    assert names[12:] == ["TeachPU", "TeachPUe", "TeachPUe'", "naive", "quantile", "supervised"]
    assert [row_name(spec) for spec in resolve("supplement")] == [
        "LRe",
        "nnPUe",
        "nnPU w/o normalisation",
        "Self-PU",
        "anchor",
        "nnPUe (anchor)",
    ]
    assert set(DISPLAY) >= set(METHODS), "give new methods a name for tables"


def test_the_paper_preset_is_the_paper_s():
    for dataset, backbone, batch in (
        ("mnist", "mlp", 256),
        ("cifar10", "cnn13_imagenet", 256),
        ("alzheimer", "resnet50_imagenet", 128),
    ):
        for spec in resolve(dataset, preset="paper"):
            s = spec.settings
            assert (s.lr, s.weight_decay, s.epochs, s.schedule, s.optimizer) == (5e-3, 5e-3, 120, "cosine", "adam")
            assert (s.backbone, s.batch_size, s.rows) == (backbone, batch, None)
            assert s.batching == ("pooled" if spec.method == "supervised" else "joint")
            assert s.image_size == (224 if dataset == "alzheimer" else None)
            if spec.method == "distpu":
                assert dict(spec.method_options) == {"lr_factor": 1, "decay_factor": 1, "schedule": "cosine"}
            if spec.estimates:
                assert spec.propensity == "network"
                assert dict(spec.propensity_options)["alpha"] == 15
    assert METHODS["distpu"].warm_up == 0.5
    assert LABELS["mnist"] == Labels("mix", 2500, (0.65, 0.15, 0.10, 0.07, 0.03))
    assert LABELS["cifar10"] == Labels("mix", 1000, (0.72, 0.15, 0.10, 0.03))
    assert LABELS["alzheimer"] == Labels("scar", 769)


def test_every_dataset_has_every_preset():
    every = {(dataset, preset) for dataset in DATASETS for preset in ("paper", "fast", "smoke")}
    assert set(PRESETS) == every | {("cifar10", "best"), ("alzheimer", "best")}


def test_what_repairs_upu_and_pubn_reaches_their_rows_alone():
    """Shifted images and a sharp first step; with labeled negatives ρ and τ stay the authors'."""
    for spec in resolve("mnist"):
        assert spec.settings.shift == (1 if spec.method in ("upu", "pubn") else None), spec.name
        assert dict(spec.method_options) == ({"sharpness": 10} if spec.method == "pubn" else {})
    for spec in resolve("negatives", dataset="mnist"):
        assert dict(spec.method_options) == {"sharpness": 10, "rho": 0.2, "tau": 0.7}


def test_rows_are_chosen_by_method_or_by_name():
    assert [row_name(spec) for spec in resolve("mnist", methods=["nnpu"])] == ["nnPU", "nnPUe", "nnPUe'"]
    assert [row_name(spec) for spec in resolve("mnist", methods=["nnPUe", "tmi"])] == ["nnPUe", "tMI"]
    assert [row_name(spec) for spec in resolve("mnist", methods=["nnPU"])] == ["nnPU"]
    assert [row_name(spec) for spec in resolve("mnist", methods=["NNPUE'"])] == ["nnPUe'"]
    with pytest.raises(UnknownName, match="Did you mean"):
        resolve("mnist", methods=["nnPUx"])
    with pytest.raises(UnknownName, match="unknown suite"):
        resolve("mnst")
    with pytest.raises(UnknownName, match="unknown preset of mnist"):
        resolve("mnist", preset="slow")
    with pytest.raises(InvalidInput, match="runs on cifar10, mnist, digits"):
        resolve("mix-ablation", dataset="alzheimer")


def test_changes_reach_the_rows_that_have_them():
    found = changed(
        resolve("digits", methods=["pubn", "nnpu", "supervised"]),
        {"epochs": 3, "labels.n_labeled": 50, "method.tau": 0.7, "propensity.folds": 5, "prior": 0.5, "rows": None}
        | {"batching": "joint"},
    )
    assert {(s.settings.epochs, s.labels.n_labeled, s.prior, s.settings.rows) for s in found} == {(3, 50, 0.5, None)}
    assert {s.method for s in found if dict(s.method_options).get("tau") == 0.7} == {"pubn"}
    assert {row_name(s) for s in found if dict(s.propensity_options).get("folds") == 5} == {"PUbNe", "nnPUe"}
    assert {s.settings.batching for s in found if s.method == "supervised"} == {"pooled"}
    for wrong in ("epoch", "method.taw", "propensity.fold", "labels.kinds"):
        with pytest.raises(UnknownName, match="unknown setting"):
            changed(found, {wrong: 1})


# ----------------------------------------------------------------------------------------------- runs


def test_the_same_spec_gives_the_same_record(tmp_path):
    spec = replace(TINY, propensity="logistic")
    first, second = run(spec), run(spec, store=Store(tmp_path))
    again = run(spec, store=Store(tmp_path))  # its propensities come from the store
    assert comparable(first) == comparable(second) == comparable(again)
    assert second.propensity.seconds == again.propensity.seconds > 0
    assert comparable(first) != comparable(run(replace(spec, seed=1)))
    assert Spec.from_dict(first.spec) == spec


def test_a_record_says_what_was_done():
    record = run(replace(TINY, propensity="true"))
    split = load("digits", None, None, 300)
    assert record.key == replace(TINY, propensity="true").key
    assert record.row == "nnPUe'"
    assert (record.n_labeled, record.n_unlabeled) == (40, 300)
    assert record.prior == pytest.approx(float(split.train_y.double().mean()))
    assert record.data == DataId("digits", split.checksum)
    assert record.propensity.source == "true"
    assert record.propensity.effective_sample_size < 40
    assert all(0 <= value <= 1 for value in record.metrics.as_dict().values())
    assert [epoch["epoch"] for epoch in record.history] == [0, 1]
    assert set(record.versions) == {"pue", "python", "torch", "numpy", "sklearn"}
    assert record.cost.peak_memory_bytes > 10**7
    # A linear network: 2·64 operations there, as many back; 4 batches of 64 + 24… rows an epoch, then 300 test rows.
    trained, rest = divmod(record.cost.flops - (300 + 2) * 128, 256)
    assert rest == 0
    assert 2 * 300 <= trained <= 2 * 450
    assert record.finished.endswith("+00:00")


def test_the_supervised_ceiling_is_above_plain_pu():
    good = replace(TINY, settings=replace(TINY.settings, epochs=30, lr=1e-2))
    plain, ceiling = run(good), run(replace(good, method="supervised"))
    assert ceiling.metrics.auc > plain.metrics.auc + 0.05
    assert ceiling.propensity is None


SHAPES = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32), "alzheimer": (1, 224, 224)}


@pytest.mark.parametrize("dataset", SHAPES)
def test_the_paper_preset_runs_for_a_few_steps(monkeypatch, dataset):
    """Its networks, batches and two stages, on noise of the right shape."""
    positive = {"mnist": (0, 2, 4, 6, 8), "cifar10": (0, 1, 8, 9), "alzheimer": (1, 2, 3)}[dataset]

    def noise(folder, size=None):
        shape = SHAPES[dataset] if size is None else (1, size, size)
        images = torch.randint(0, 256, (20, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        return LabeledSplit(dataset, images, torch.arange(20) % 10, images, torch.arange(20) % 10, positive)

    monkeypatch.setitem(DATASETS, dataset, noise)
    load.cache_clear()
    (spec,) = changed(
        resolve(dataset, preset="paper", methods=["Dist-PUe"]),
        {"epochs": 2, "batch_size": 16, "propensity.epochs": 1, "propensity.batch_size": 16}
        | ({"image_size": 32} if dataset == "alzheimer" else {}),
    )
    spec = replace(spec, labels=Labels("scar", 6))
    record = run(spec)
    load.cache_clear()
    assert [epoch["epoch"] for epoch in record.history] == [0, 0]
    assert record.row == "Dist-PUe"
    assert record.cost.flops > 10**7


def test_method_options_reach_the_method():
    spec = replace(TINY, method="distpu", settings=replace(TINY.settings, epochs=4))
    assert comparable(run(spec)) != comparable(run(replace(spec, method_options={"warm_up": 1})))


def test_labels_follow_the_mix_and_severity_the_sizes_of_classes():
    split = load("digits", None, None, None)
    hidden = hide(split, Labels("mix", 100, (1.0, 0, 0, 0, 0)), 0)
    assert hidden.classes.tolist() == [0] * 100
    assert torch.equal(hidden.data.x[100:], split.train_x)
    severity = hide(split, Labels("severity", 100, (1, 1, 1, 1, 6)), 0)
    counts = torch.bincount(severity.classes, minlength=9)
    assert 5 * counts[0] < counts[8] < 7 * counts[0]
    assert severity.propensity[severity.classes == 8].mean() / severity.propensity[
        severity.classes == 0
    ].mean() == pytest.approx(6, rel=0.1)
    scar = hide(split, Labels("scar", 100), 0)
    assert scar.propensity.unique().numel() == 1
    with pytest.raises(InvalidInput, match="each of the 5 positive classes"):
        hide(split, Labels("mix", 100, (0.5, 0.5)), 0)
    with pytest.raises(InvalidInput, match="cannot be resized"):
        load("digits", None, 32, None)


def test_severity_leaves_some_of_every_grade_unlabeled():
    sizes = torch.tensor([1792, 717, 52])  # very mild, mild, moderate
    expected = 769 * sizes * torch.tensor(SEVERITY.mix) / (sizes * torch.tensor(SEVERITY.mix)).sum()
    assert (expected / sizes).tolist() == pytest.approx([0.18, 0.55, 0.91], abs=0.01)


def test_true_propensities_repair_the_shares_of_classes():
    split = load("digits", None, None, None)
    hidden = hide(split, LABELS["digits"], 0)
    biased = share_distance(torch.ones(130, dtype=torch.float64), hidden.classes, split)
    repaired = share_distance(1 / hidden.propensity, hidden.classes, split)
    assert biased == pytest.approx(0.45, abs=0.05)
    assert repaired < 0.15


def test_propensities_are_shared_by_methods_but_not_by_seeds():
    spec = replace(TINY, propensity="logistic")
    same = [replace(spec, method="upu"), replace(spec, settings=replace(spec.settings, epochs=9))]
    other = [
        replace(spec, seed=1),
        replace(spec, labels=Labels("scar", 40)),
        replace(spec, settings=replace(spec.settings, rows=400)),
        replace(spec, propensity_options={"C": 2}),
        replace(spec, propensity="constant"),
    ]
    assert {digest(propensity_identity(s)) for s in [spec, *same]} == {digest(propensity_identity(spec))}
    assert digest(propensity_identity(spec)) not in {digest(propensity_identity(s)) for s in other}


# ------------------------------------------------------------------------------------------- execution


def test_runs_that_fail_are_reported_and_the_others_go_on(tmp_path):
    bad = replace(TINY, labels=replace(TINY.labels, n_labeled=140))
    place = Place("suite", Store(tmp_path))
    outcomes = execute([bad, TINY], place, jobs=0)
    assert [outcome.state for outcome in outcomes] == ["failed", "computed"]
    assert "InvalidInput" in outcomes[0].error
    assert "\n" not in outcomes[0].error
    assert [outcome.state for outcome in execute([bad, TINY], place, jobs=0)] == ["failed", "found"]
    assert len(list((tmp_path / "suite").iterdir())) == 1


def test_a_damaged_record_is_computed_anew(tmp_path):
    place = Place("suite", Store(tmp_path))
    (outcome,) = execute([TINY], place, jobs=0)
    path = place.store.run("suite", TINY).path
    path.write_text(path.read_text()[:200])
    (again,) = execute([TINY], place, jobs=0)
    assert again.state == "computed"
    assert comparable(again.record) == comparable(outcome.record)
    path.write_text(path.read_text().replace('"accuracy": 0.', '"accuracy": 0.9', 1))
    (last,) = execute([TINY], place, jobs=0)
    assert last.state == "computed"
    assert comparable(last.record) == comparable(outcome.record)


def test_a_killed_worker_is_reported_and_replaced(tmp_path):
    endless = replace(TINY, settings=replace(TINY.settings, epochs=10**6))
    place = Place("suite", Store(tmp_path))
    before = {child.pid for child in multiprocessing.active_children()}  # of other tests in this process
    children = []

    def kill() -> None:
        lock = tmp_path / "suite" / f".{endless.name}.lock"
        while not lock.exists():
            time.sleep(0.01)
        children.extend(child.pid for child in multiprocessing.active_children() if child.pid not in before)
        os.kill(children[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    started = []
    outcomes = execute([endless, TINY], place, jobs=1, watch=Watch(started=started.append))
    thread.join()
    assert started == [endless, TINY]
    assert [outcome.state for outcome in outcomes] == ["failed", "computed"]
    assert outcomes[0].error == "its process was killed by SIGKILL; the run stays undone."
    assert not place.store.run("suite", endless).path.exists()
    assert {child.pid for child in multiprocessing.active_children()} <= before


def test_labeled_negatives_are_copies_by_class_with_their_own_propensities() -> None:
    labels = Labels("mix", 50, (0.6, 0.1, 0.1, 0.1, 0.1), n_negative=40, negative_mix=(0.5, 0.5, 0.0, 0.0, 0.0))
    split = load("digits", None, None, None)
    hidden = hide(split, labels, 0)
    negative = hidden.data.labels == -1
    assert int(negative.sum()) == 40
    copies = hidden.data.x[negative]
    originals = split.train_x[(split.train_classes == 1) | (split.train_classes == 3)]
    assert bool((torch.cdist(copies, originals).min(1).values == 0).all())
    ones, threes = (int((split.train_classes == name).sum()) for name in (1, 3))
    assert hidden.negative_propensity is not None
    assert set(hidden.negative_propensity.tolist()) == {20 / ones, 20 / threes}
    alone = hide(split, Labels("mix", 50, (0.6, 0.1, 0.1, 0.1, 0.1)), 0)  # the positives do not change
    assert torch.equal(alone.data.x[alone.data.labeled], hidden.data.x[hidden.data.labeled])
    with pytest.raises(InvalidInput, match="a number for each of the 5 negative classes of digits; got 2"):
        hide(split, Labels("mix", 50, (0.6, 0.1, 0.1, 0.1, 0.1), n_negative=40, negative_mix=(0.5, 0.5)), 0)
    with pytest.raises(InvalidInput, match="both their number"):
        Labels("scar", 50, n_negative=40)


def test_pubn_with_negatives_runs_with_every_source_of_propensities(tmp_path) -> None:
    rows = {}
    for spec in resolve("negatives", preset="smoke", dataset="digits"):
        rows[row_name(spec)] = run(spec, None, Store(tmp_path)).metrics.accuracy
    assert list(rows) == ["PUbN + N", "PUbNe + N", "PUbNe' + N"]
    assert len(set(rows.values())) > 1
