"""A resumed run ends where an uninterrupted one does, bit for bit; whatever happens to the files is told apart."""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pue import PUClassifier
from pue.backbones import InputSpec, build
from pue.core.data import PUData, Scenario
from pue.core.losses import logistic
from pue.core.risks import Risk, dist_pu, nnpu, upu
from pue.core.weights import RowWeights, uniform
from pue.errors import CheckpointMismatch, InvalidInput, PueWarning
from pue.training import Augmentation, Batching, Checkpointing, EpochRecord, Training, train
from pue.training.checkpoints import load_latest

PLAIN = Training(epochs=6, batching=Batching(16), lr=0.01)


def table(n: int = 70, *, seed: int = 7) -> PUData:
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    x = torch.randn(n, 3, generator=g) + y[:, None]
    labeled = x[(y == 1) & (torch.rand(n, generator=g) < 0.5)]
    labels = torch.cat([torch.ones(len(labeled)), torch.zeros(n)])
    return PUData(torch.cat([labeled, x]), labels, Scenario.CASE_CONTROL)


def pictures(n: int = 48) -> PUData:
    g = torch.Generator().manual_seed(3)
    x = torch.randint(0, 256, (n, 1, 8, 8), generator=g, dtype=torch.uint8)
    return PUData(x, (torch.arange(n) % 3 == 0).int())


def weights_of(data: PUData, prior: float = 0.5) -> RowWeights:
    return uniform(data.labels, prior=prior, scenario=data.scenario)


def network(data: PUData, *extra: nn.Module, width: int = 8) -> nn.Module:
    def make(spec: InputSpec) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(spec.size, width), *extra, nn.ReLU(), nn.Linear(width, 1))

    return build(make, InputSpec(tuple(data.x.shape[1:])), seed=0)


def stop_at(module: nn.Module, call: int, exception: type[BaseException]) -> nn.Module:
    """The module raises inside its forward pass at the given training step, counted from 1."""
    calls = iter(range(1, 10**9))

    def hook(hooked: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if hooked.training and next(calls) == call:
            raise exception("stop")

    module.register_forward_pre_hook(hook)
    return module


def steps_of_an_epoch(data: PUData, training: Training) -> int:
    module, calls = network(data), []
    module.register_forward_pre_hook(lambda hooked, inputs: calls.append(1) if hooked.training else None)
    train(module, data, weights_of(data), upu(), replace(training, epochs=1), seed=0)
    return len(calls)


def result(module: nn.Module, history: list[EpochRecord]) -> tuple[dict[str, Tensor], list[EpochRecord]]:
    return dict(module.state_dict()), [replace(record, seconds=0.0) for record in history]


def assert_same(
    one: tuple[dict[str, Tensor], list[EpochRecord]], other: tuple[dict[str, Tensor], list[EpochRecord]]
) -> None:
    assert one[0].keys() == other[0].keys()
    for name in one[0]:
        assert torch.equal(one[0][name], other[0][name]), name
    assert one[1] == other[1]


CASES: dict[str, tuple[Callable[[], PUData], Training, list[Callable[[], nn.Module]]]] = {
    "adam": (table, PLAIN, []),
    "adamw": (table, replace(PLAIN, optimizer="adamw"), []),
    "sgd": (table, replace(PLAIN, optimizer="sgd"), []),
    "one_cycle": (table, replace(PLAIN, schedule="one_cycle"), []),
    "batch norm": (table, PLAIN, [lambda: nn.BatchNorm1d(8)]),
    "dropout": (table, PLAIN, [lambda: nn.Dropout(0.5)]),
    "ema": (table, replace(PLAIN, ema=0.8), [lambda: nn.BatchNorm1d(8)]),
    "joint": (table, replace(PLAIN, batching=Batching(16, "joint")), []),
    "drawn": (table, replace(PLAIN, batching=Batching(16, labeled_rows="drawn")), []),
    "early stopping": (table, replace(PLAIN, epochs=30, lr=0.1, validation=0.25, patience=3), []),
    "best by proxy AUC": (table, replace(PLAIN, validation=0.25, criterion="pauc", keep="best"), []),
    "augmentation": (
        pictures,
        replace(PLAIN, augmentation=Augmentation(shift=1, flip=True, rotate=20.0, mixup=0.5)),
        [lambda: nn.BatchNorm1d(8)],
    ),
    "everything": (
        pictures,
        replace(
            PLAIN,
            optimizer="adamw",
            schedule="one_cycle",
            ema=0.8,
            validation=0.25,
            patience=5,
            augmentation=Augmentation(shift=1, mixup=0.5),
        ),
        [lambda: nn.BatchNorm1d(8), lambda: nn.Dropout(0.3)],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("exception", "every"),
    [(KeyboardInterrupt, 100), (RuntimeError, 1), (RuntimeError, 2)],
    ids=["ctrl-c", "crash", "crash-2"],
)
def test_a_resumed_run_ends_with_the_parameters_of_an_uninterrupted_one(
    case: str, exception: type[BaseException], every: int, tmp_path: Path
) -> None:
    # Ctrl-C in the midst of epoch 4 writes the end of epoch 3; a crash leaves what was there, epoch 3 or epoch 2.
    make_data, training, extra = CASES[case]
    data = make_data()
    weights = weights_of(data)

    def fresh() -> nn.Module:
        return network(data, *[layer() for layer in extra])

    whole = fresh()
    expected = result(whole, train(whole, data, weights, nnpu(), training, seed=5))

    checkpointing = Checkpointing(tmp_path, every)
    steps = steps_of_an_epoch(data, training)
    assert steps > 1
    broken = stop_at(fresh(), 3 * steps + 2, exception)
    with pytest.raises(exception, match="stop"):
        train(broken, data, weights, nnpu(), training, seed=5, checkpointing=checkpointing)
    assert [folder.name for folder in tmp_path.iterdir()] == [f"epoch-0000{2 if every == 2 else 3}"]

    resumed = fresh()
    assert_same(
        result(resumed, train(resumed, data, weights, nnpu(), training, seed=5, checkpointing=checkpointing)), expected
    )


def test_early_stopping_in_these_tests_stops_early_and_not_at_the_last_epoch() -> None:
    data, training, _ = CASES["early stopping"]
    history = train(network(data()), data(), weights_of(data()), nnpu(), training, seed=5)
    assert 4 < len(history) < training.epochs


@pytest.mark.parametrize("step", [1, 2])
def test_ctrl_c_in_the_first_epoch_leaves_the_start(step: int, tmp_path: Path) -> None:
    data = table()
    whole, resumed = network(data), network(data)
    expected = result(whole, train(whole, data, weights_of(data), nnpu(), PLAIN, seed=0))
    broken = stop_at(network(data), step, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        train(broken, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))
    assert [folder.name for folder in tmp_path.iterdir()] == ["epoch-00000"]
    history = train(resumed, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))
    assert_same(result(resumed, history), expected)


def test_ctrl_c_without_checkpoints_is_just_ctrl_c() -> None:
    data = table()
    with pytest.raises(KeyboardInterrupt):
        train(stop_at(network(data), 2, KeyboardInterrupt), data, weights_of(data), nnpu(), PLAIN, seed=0)


def test_a_run_interrupted_twice_still_ends_the_same(tmp_path: Path) -> None:
    data = table()
    whole, resumed = network(data), network(data)
    expected = result(whole, train(whole, data, weights_of(data), nnpu(), PLAIN, seed=0))
    steps = steps_of_an_epoch(data, PLAIN)
    for call in (steps + 2, 2 * steps + 1):
        broken = stop_at(network(data), call, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            train(broken, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))
    history = train(resumed, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))
    assert_same(result(resumed, history), expected)


def test_checkpoints_do_not_change_the_run(tmp_path: Path) -> None:
    data = table()
    without, having = network(data), network(data)
    expected = result(without, train(without, data, weights_of(data), nnpu(), PLAIN, seed=0))
    history = train(having, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))
    assert_same(result(having, history), expected)


# --------------------------------------------------------------------------------------------------- on the disk


def finished(
    folder: Path, *, training: Training = PLAIN, every: int = 1
) -> tuple[dict[str, Tensor], list[EpochRecord]]:
    data = table()
    module = network(data)
    history = train(
        module, data, weights_of(data), nnpu(), training, seed=0, checkpointing=Checkpointing(folder, every)
    )
    return result(module, history)


def test_a_finished_run_is_read_and_not_trained_again(tmp_path: Path) -> None:
    expected = finished(tmp_path)
    data = table()
    module = stop_at(network(data), 1, AssertionError)
    history = train(module, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))
    assert_same(result(module, history), expected)
    assert not module.training


@pytest.mark.parametrize("every", [1, 4, 10])
def test_only_the_newest_checkpoint_is_kept_and_the_last_epoch_always_has_one(every: int, tmp_path: Path) -> None:
    finished(tmp_path / "deep" / "folder", every=every)
    assert [entry.name for entry in (tmp_path / "deep" / "folder").iterdir()] == ["epoch-00006"]


def test_there_is_no_pickle_in_the_folder(tmp_path: Path) -> None:
    finished(tmp_path)
    files = {file.name: file for file in tmp_path.rglob("*") if file.is_file()}
    assert sorted(files) == ["state.json", "state.safetensors", "state.sha256"]
    document = json.loads(files["state.json"].read_text())
    assert document["epoch"] == 6
    assert len(document["record"]["history"]) == 6
    # A safetensors file starts with the length of its JSON header; reading it runs no code.
    raw = files["state.safetensors"].read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert "network/network.1.weight" in header


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    # Also one of an epoch that this run will never write.
    for name in (".epoch-00004.0123.partial", ".epoch-00099.4567.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text("{")
    finished(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["epoch-00006"]


def fail_on_call(function: Callable[..., object], call: int, before: Callable[..., object]) -> Callable[..., object]:
    """`function`, but the given call does only `before` and then fails as a full disk does."""
    calls = iter(range(1, 10**9))

    def wrapper(*args: object, **kwargs: object) -> object:
        if next(calls) == call:
            before(*args)
            raise OSError("no space left on device")
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize("place", ["rename", "tensors"])
def test_a_crash_while_writing_leaves_the_older_checkpoint(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table()
    whole, resumed = network(data), network(data)
    expected = result(whole, train(whole, data, weights_of(data), nnpu(), PLAIN, seed=0))
    with monkeypatch.context() as patch:
        if place == "rename":
            patch.setattr(os, "replace", fail_on_call(os.replace, 3, lambda *paths: None))
        else:
            half = fail_on_call(Path.write_bytes, 3, lambda path, data: path.write_text("half"))
            patch.setattr(Path, "write_bytes", half)
        with pytest.raises(OSError, match="no space left"):
            finished(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["epoch-00002"]
    history = train(resumed, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))
    assert_same(result(resumed, history), expected)
    assert [entry.name for entry in tmp_path.iterdir()] == ["epoch-00006"]


@pytest.mark.parametrize("resumed", [False, True])
def test_a_crash_while_ctrl_c_is_handled_leaves_the_checkpoint(
    resumed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The impatient press Ctrl-C twice. Epoch 2 is on the disk already, from this run or from the one it resumes;
    # writing it again must not remove it first.
    data = table()
    steps = steps_of_an_epoch(data, PLAIN)

    def interrupted(call: int) -> None:
        broken = stop_at(network(data), call, KeyboardInterrupt)
        train(broken, data, weights_of(data), nnpu(), PLAIN, seed=0, checkpointing=Checkpointing(tmp_path))

    if resumed:
        with pytest.raises(KeyboardInterrupt):
            interrupted(2 * steps + 1)
    with monkeypatch.context() as patch:
        renames = fail_on_call(os.replace, 1 if resumed else 3, lambda *paths: None)
        patch.setattr(os, "replace", renames)
        with pytest.raises((KeyboardInterrupt, OSError)):
            interrupted(2 if resumed else 2 * steps + 2)
    assert "epoch-00002" in [entry.name for entry in tmp_path.iterdir()]


# --------------------------------------------------------------------------------------- checkpoints of other runs


def attempt(
    folder: Path,
    *,
    data: PUData | None = None,
    prior: float = 0.5,
    risk: Risk | None = None,
    training: Training = PLAIN,
    seed: int = 0,
    width: int = 8,
) -> list[EpochRecord]:
    data = table() if data is None else data
    module = network(data, width=width)
    return train(
        module, data, weights_of(data, prior), risk or nnpu(), training, seed=seed, checkpointing=Checkpointing(folder)
    )


def other_features() -> PUData:
    data = table()
    data.x[17, 1] += 1e-3
    return data


OTHERS: dict[str, Callable[[], dict[str, object]]] = {
    "learning rate": lambda: {"training": replace(PLAIN, lr=0.02)},
    "epochs": lambda: {"training": replace(PLAIN, epochs=7)},
    "batches": lambda: {"training": replace(PLAIN, batching=Batching(16, "joint"))},
    "augmentation": lambda: {"training": replace(PLAIN, augmentation=Augmentation(mixup=0.1))},
    "ema": lambda: {"training": replace(PLAIN, ema=0.9)},
    "criterion": lambda: {"training": replace(PLAIN, criterion="pa")},
    "seed": lambda: {"seed": 1},
    "prior": lambda: {"prior": 0.4},
    "one feature": lambda: {"data": other_features()},
    "rows": lambda: {"data": table(72)},
    "network": lambda: {"width": 9},
    "terms": lambda: {"risk": dist_pu(0.5)},
    # The parts of a risk have the same names whatever the loss and the correction; another method is another run.
    "correction": lambda: {"risk": upu()},
    "loss": lambda: {"risk": nnpu(logistic)},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_another_run_is_refused(other: str, tmp_path: Path) -> None:
    attempt(tmp_path)
    with pytest.raises(
        CheckpointMismatch, match=r"epoch-00006 .*belongs to another run .*Use another checkpoint folder"
    ):
        attempt(tmp_path, **OTHERS[other]())


def test_a_refused_checkpoint_is_left_alone(tmp_path: Path) -> None:
    attempt(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(CheckpointMismatch):
        attempt(tmp_path, seed=1)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_classifier_does_not_take_the_network_of_another_method_for_its_own(tmp_path: Path) -> None:
    data = table()
    options = {"prior": 0.5, "scenario": "case_control", "epochs": 2, "checkpoint_dir": tmp_path, "random_state": 0}
    PUClassifier("upu", **options).fit(data.x, data.labels)
    with pytest.raises(CheckpointMismatch, match="belongs to another run"):
        PUClassifier("nnpu", **options).fit(data.x, data.labels)


def test_settings_out_of_a_numpy_grid_can_be_checkpointed(tmp_path: Path) -> None:
    # GridSearchCV over np.arange or np.logspace passes NumPy scalars, which JSON does not know.
    training = replace(PLAIN, epochs=np.int64(2), lr=np.float32(0.01), batching=Batching(np.int64(16)))
    assert len(attempt(tmp_path, training=training)) == 2


# --------------------------------------------------------------------------------------------------- damaged files


def damage_json(change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        document = json.loads((folder / "state.json").read_text())
        change(document)
        (folder / "state.json").write_text(json.dumps(document))

    return damage


def vouched(change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    """Altered, and the digest with it."""

    def damage(folder: Path) -> None:
        damage_json(change)(folder)
        text = (folder / "state.json").read_bytes()
        (folder / "state.sha256").write_text(hashlib.sha256(text).hexdigest())

    return damage


def truncate(name: str, share: float) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        raw = (folder / name).read_bytes()
        (folder / name).write_bytes(raw[: int(share * len(raw))])

    return damage


def drop_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "state.safetensors")
    save_file(dict(list(tensors.items())[1:]), folder / "state.safetensors")


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{
        f"{name} cut at {share}": truncate(name, share)
        for name in ("state.json", "state.safetensors")
        for share in (0, 0.01, 0.5, 0.999)
    },
    "no json": lambda folder: (folder / "state.json").unlink(),
    "no tensors": lambda folder: (folder / "state.safetensors").unlink(),
    "no files": lambda folder: (shutil.rmtree(folder), folder.mkdir()),
    "noise for json": lambda folder: (folder / "state.json").write_bytes(b"\xff\xfe\x00\x9c" * 9),
    "a list for json": lambda folder: (folder / "state.json").write_text("[1, 2]"),
    "noise for tensors": lambda folder: (folder / "state.safetensors").write_bytes(b"\x07" * 400),
    "no epoch": damage_json(lambda document: document.pop("epoch")),
    "no fingerprint": damage_json(lambda document: document.pop("fingerprint")),
    "no format": damage_json(lambda document: document.pop("format")),
    "no history": damage_json(lambda document: document["record"].pop("history")),
    "a tensor short": drop_a_tensor,
    "no digest": lambda folder: (folder / "state.sha256").unlink(),
    "an epoch that is no number": vouched(lambda document: document.update(epoch="6")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_not_used_and_the_run_begins_anew(damage: str, tmp_path: Path) -> None:
    whole = finished(tmp_path)
    DAMAGES[damage](tmp_path / "epoch-00006")
    with pytest.warns(PueWarning, match=r"epoch-00006 .*damaged or was altered .*It is not used; the run begins anew"):
        again = finished(tmp_path)
    assert whole[0].keys() == again[0].keys()
    assert all(torch.equal(whole[0][name], again[0][name]) for name in whole[0])


def test_no_flipped_bit_of_a_checkpoint_goes_unnoticed(tmp_path: Path) -> None:
    finished(tmp_path)
    newest, rng = tmp_path / "epoch-00006", random.Random(0)
    for name in ("state.json", "state.safetensors", "state.sha256"):
        raw = (newest / name).read_bytes()
        for _ in range(25):
            flipped = bytearray(raw)
            flipped[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
            (newest / name).write_bytes(flipped)
            with pytest.warns(PueWarning, match="damaged or was altered"):
                assert load_latest(tmp_path, "any") is None
        (newest / name).write_bytes(raw)


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    finished(tmp_path)
    vouched(lambda document: document.update(format=99))(tmp_path / "epoch-00006")
    with pytest.raises(CheckpointMismatch, match="epoch-00006"):
        finished(tmp_path)


@pytest.mark.parametrize("every", [0, -1])
def test_checkpoints_come_every_epoch_or_more_rarely(every: int, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=f"at least 1 epoch; got {every}"):
        Checkpointing(tmp_path, every)


def test_a_checkpoint_that_says_another_epoch_than_its_name_is_not_used(tmp_path: Path) -> None:
    """Forged, with right digests: an epoch of -1 once went on to a traceback."""
    train(*finished_arguments(), seed=0, checkpointing=Checkpointing(tmp_path))
    (newest,) = tmp_path.glob("epoch-*")
    about = json.loads((newest / "state.json").read_text())
    text = json.dumps({**about, "epoch": -1})
    (newest / "state.json").write_text(text)
    (newest / "state.sha256").write_text(hashlib.sha256(text.encode()).hexdigest())
    with pytest.warns(PueWarning, match="values that no snapshot has"):
        assert load_latest(tmp_path, about["fingerprint"]) is None


def finished_arguments() -> tuple[nn.Module, PUData, RowWeights, Risk, Training]:
    data = table()
    return network(data), data, weights_of(data), nnpu(), Training(epochs=1)
