"""Several processes take the steps of one: sums are added up before they are corrected, gradients after."""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, distributed

from pue import PUClassifier
from pue.app.cli import main
from pue.app.model import load_model
from pue.core.data import PUData
from pue.core.risks import Risk, dist_pu, nnpu, upu
from pue.core.weights import normalized_inverse_propensity
from pue.errors import InvalidInput, PueWarning
from pue.estimators.held_out import out_of_fold
from pue.propensity import CrossFit, Logistic
from pue.training import Augmentation, Batching, Checkpointing, Training, train
from pue.training.processes import Part, alone, on_first, place, share_out

SECONDS = 300


def rows(n: int = 240, seed: int = 0) -> tuple[PUData, Tensor]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, 3)) + 1.5 * y[:, None]
    e = 1 / (1 + np.exp(1 - x[:, 0]))
    s = y & (rng.random(n) < e)
    return PUData(torch.from_numpy(x), torch.from_numpy(s.astype(np.int64))), torch.from_numpy(e[s])


def linear(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    layers = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1), torch.nn.Flatten(0))
    return layers.double()


def flat(network: torch.nn.Module) -> list[float]:
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()]).tolist()


# ------------------------------------------------------------------------------- what the processes do


def methods() -> dict[str, list[float]]:
    """Parameters after 50 steps of every method, labeled rows weighted."""
    data, e = rows()
    common: dict[str, Any] = {
        "prior": 0.4, "random_state": 0, "backbone": "tabular", "batch_size": 50, "epochs": 10, "progress": False,
    }  # fmt: skip
    found = {}
    for method in ("upu", "nnpu", "pubn", "distpu", "teacher", "vpu"):
        clf = PUClassifier(method, **common).fit(data.x, data.labels, propensity=e)
        found[method] = flat(clf.network_)
    mixing = PUClassifier("nnpu", augmentation=Augmentation(mixup=0.5), **common).fit(data.x, data.labels, propensity=e)
    found["nnpu with mixup"] = flat(mixing.network_)
    return found


def risks(size: int) -> dict[str, list[float]]:
    """One risk, reduced as it should be and naively: each process corrects its own part, gradients are averaged."""
    data, e = rows()
    weights = normalized_inverse_propensity(data.labels, e, prior=0.4, scenario="single_sample")
    settings = Training(epochs=10, batching=Batching(50), lr=0.5, optimizer="sgd")

    def parameters(risk: Risk, **options: Any) -> list[float]:
        network = linear(1)
        train(network, data, weights, risk, settings, seed=3, progress=False, **options)
        return flat(network)

    def local(risk: Risk) -> Risk:
        return Risk(risk.terms, risk.sums, lambda sums: risk.combine(size * sums) / size)

    found = {}
    for name, risk in {"upu": upu(), "nnpu": nnpu(), "distpu": dist_pu(0.4)}.items():
        found[name] = parameters(risk)
        found[f"naive {name}"] = parameters(local(risk), reduce=lambda sums: sums)
    return found


def images() -> dict[str, list[float]]:
    """Random shifts, flips and turns are those of the whole batch."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(60, 1, 6, 6, generator=generator, dtype=torch.float64)
    labels = (torch.arange(60) % 4 == 0).long()
    data = PUData(x, labels)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 1), torch.nn.Flatten(0)).double()
    settings = Training(epochs=5, batching=Batching(20), augmentation=Augmentation(shift=1, flip=True, rotate=10.0))
    weights = normalized_inverse_propensity(labels, torch.ones(15), prior=0.4, scenario="single_sample")
    train(network, data, weights, nnpu(), settings, seed=1, progress=False)
    return {"images": flat(network)}


def checkpoints(size: int, folder: Path) -> dict[str, list[float]]:
    """Half of the epochs, then all of them: the second run goes on from the first one's checkpoint."""
    data, e = rows()
    weights = normalized_inverse_propensity(data.labels, e, prior=0.4, scenario="single_sample")
    settings = Training(epochs=6, batching=Batching(50))
    place = folder / f"checkpoints-{size}"

    def stop(record: Any, network: Any) -> None:
        if record.epoch == 2:
            raise KeyboardInterrupt

    network = linear(1)
    with pytest.raises(KeyboardInterrupt):
        train(network, data, weights, nnpu(), settings, seed=3, checkpointing=Checkpointing(place), on_epoch=stop)
    if size > 1:
        distributed.barrier()
    again = linear(1)
    train(again, data, weights, nnpu(), settings, seed=3, checkpointing=Checkpointing(place), progress=False)
    straight = linear(1)
    train(straight, data, weights, nnpu(), settings, seed=3, progress=False)
    assert flat(again) == flat(straight)
    return {"checkpoints": flat(straight), "files": [float(len(list(place.iterdir())))]}


def refusals() -> None:
    data, _ = rows()
    common: dict[str, Any] = {"prior": 0.4, "random_state": 0, "epochs": 1, "progress": False}
    with pytest.raises(InvalidInput, match="Self-PU cannot be trained by several processes"):
        PUClassifier("selfpu", **common).fit(data.x, data.labels)
    with pytest.warns(PueWarning, match="batch norm sees only the rows of its own process"):
        PUClassifier("nnpu", backbone="mlp", **common).fit(data.x, data.labels)


def gathered(rank: int, size: int) -> None:
    for n in (1, 4, 7):
        part, values = Part(rank, size, n), torch.arange(2 * n).view(n, 2)
        assert torch.equal(part.whole(part.of(values)), values)


# -------------------------------------------------------------------------------------- running them

Work = Callable[[int, int, Path], dict[str, list[float]]]


def _process(work: Work, rank: int, size: int, folder: Path, answers: Any) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    try:
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder / 'meeting'}",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=SECONDS),
        )
        answers.put((rank, work(rank, size, folder)))
        distributed.barrier()
        distributed.destroy_process_group()
    except BaseException:
        answers.put((rank, traceback.format_exc()))


def together(work: Work, size: int, folder: Path) -> list[dict[str, list[float]]]:
    """The answers of `size` processes that work in one group."""
    folder.mkdir(exist_ok=True)
    context = multiprocessing.get_context("forkserver")
    answers = context.Queue()
    started = [context.Process(target=_process, args=(work, rank, size, folder, answers)) for rank in range(size)]
    for process in started:
        process.start()
    try:
        found = dict(_answer(answers, started) for _ in started)
    finally:
        for process in started:
            process.join(SECONDS if process.exitcode is None else 0)
            process.kill()
    for answer in found.values():
        assert not isinstance(answer, str), answer
    return [found[rank] for rank in range(size)]


def _answer(answers: Any, started: list[Any]) -> tuple[int, Any]:
    """The next answer; no waiting for processes that ended without one."""
    for _ in range(SECONDS):
        try:
            return answers.get(timeout=1)
        except queue.Empty:
            assert not any(process.exitcode for process in started), "a process died"
    raise TimeoutError("the processes do not answer")


def everything(rank: int, size: int, folder: Path) -> dict[str, list[float]]:
    if size > 1:
        gathered(rank, size)
        refusals()
    return {
        **methods(), **images(), **checkpoints(size, folder), **{f"risk {k}": v for k, v in risks(size).items()}
    }  # fmt: skip


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    return everything(0, 1, tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize("size", [2, 4])
def test_several_processes_end_with_the_parameters_of_one(
    one: dict[str, list[float]], size: int, tmp_path: Path
) -> None:
    answers = together(everything, size, tmp_path)
    for answer in answers:
        assert answer.keys() == one.keys()
        for name, parameters in one.items():
            if "naive" not in name:
                np.testing.assert_allclose(answer[name], parameters, rtol=0, atol=1e-5, err_msg=name)

    # So the check can fail: correcting each part by itself and averaging is something else, except for a risk without
    # a correction, which is linear.
    def apart(name: str) -> float:
        return float(np.abs(np.subtract(answers[0][f"risk naive {name}"], one[f"risk {name}"])).max())

    assert apart("upu") < 1e-8
    assert apart("nnpu") > 1e-3
    assert apart("distpu") > 1e-3


# --------------------------------------------------------------------------------------- work that is no training


def shared_out(rank: int, size: int, folder: Path) -> dict[str, list[float]]:
    """Made by one for all, shared out, and errors that reach everybody."""
    assert on_first(lambda: (rank, *place())) == (0, 0, 1)
    done = share_out(lambda item: [float(item), float(rank), float(place()[1])], [10, 20, 30, 40, 50])
    assert done == [[10.0 * (k + 1), k % size, 1.0] for k in range(5)]
    seen = share_out(lambda item: [item, rank, place()[1]], [1])
    assert seen == [[1, rank, size]]  # fewer items than processes: all work on each
    with pytest.raises(InvalidInput, match="of the first process"):
        on_first(lambda: _fail("of the first process"))
    with pytest.raises(InvalidInput, match="of item 3"):
        share_out(lambda item: _fail(f"of item {item}") if item == 3 else item, [1, 2, 3, 4])
    data, e = rows()
    common: dict[str, Any] = {"prior": 0.4, "random_state": 0, "backbone": "linear", "epochs": 2, "progress": False}
    scores = out_of_fold(PUClassifier(**common), data, prior=0.4, propensity=e, folds=4)
    crossed = CrossFit(Signed(rank), 3).fit(data, prior=0.4)
    assert [model.function.rank for model in crossed.models] == [number % size for number in range(3)]
    return {"scores": scores.tolist(), "e": crossed.held_out.tolist()}


@dataclass(frozen=True)
class Signed:
    """An estimator whose models say which process made them."""

    rank: int

    def fit(self, data: PUData, *, prior: float, seed: int = 0) -> Any:
        assert place() == (0, 1)  # what a process does for all is its own affair
        return SignedModel(Logistic().fit(data, prior=prior, seed=seed), self.rank)


@dataclass(frozen=True)
class SignedModel:
    model: Any
    rank: int

    def __call__(self, x: Any) -> Tensor:
        return self.model(x)


def _fail(text: str) -> Any:
    raise InvalidInput(text)


def test_one_works_for_all_and_all_share_the_folds(tmp_path: Path) -> None:
    answers = together(shared_out, 2, tmp_path)
    data, e = rows()
    common: dict[str, Any] = {"prior": 0.4, "random_state": 0, "backbone": "linear", "epochs": 2, "progress": False}
    straight = out_of_fold(PUClassifier(**common), data, prior=0.4, propensity=e, folds=4).tolist()
    assert [answer["scores"] for answer in answers] == [straight, straight]
    e = CrossFit(Logistic(), 3).fit(data, prior=0.4).held_out.tolist()
    assert [answer["e"] for answer in answers] == [e, e]
    with alone():
        assert place() == (0, 1)
    assert on_first(lambda: 3) == 3
    assert share_out(float, [1, 2]) == [1.0, 2.0]


# ------------------------------------------------------------------------------------------------- torchrun


def torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "pue"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_torchrun_fits_the_model_of_one_process(tmp_path: Path) -> None:
    data, _ = rows()
    frame = pd.DataFrame(data.x.numpy(), columns=["a", "b", "c"]).assign(s=data.labels.numpy())
    path = tmp_path / "t.parquet"
    frame.to_parquet(path, row_group_size=40)
    given = (
        "fit",
        path,
        "--label",
        "s",
        "--prior",
        "0.4",
        "--propensity",
        "none",
        "--method",
        "nnpu",
        "--epochs",
        "10",
        "--json",
        "-o",
    )
    two = torchrun(*given, tmp_path / "two")
    assert two.returncode == 0, two.stderr
    assert json.loads(two.stdout)["data"]["n_rows"] == 240  # one process speaks
    with pytest.raises(SystemExit, match="0"):
        main([*map(str, given), str(tmp_path / "one")])
    ours, theirs = (flat(load_model(tmp_path / name).classifier.network_) for name in ("one", "two"))
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-5)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["one", "t.parquet", "two"]


def test_of_many_processes_that_end_in_an_error_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        with pytest.raises(SystemExit, match="2"):
            main(["fit", str(tmp_path / "nothing.csv"), "--label", "s", "-o", str(tmp_path / "model")])
        said.append(capsys.readouterr().err)
    assert "there is no" in said[0]
    assert said[1] == ""
