"""The training loop: batches → one forward pass → weighted sums → reduce → correct → step.

Labeled and unlabeled rows of a batch go through the network **together**: two separate passes would let batch norm
tell them apart by their statistics. All randomness of an epoch is a function of (seed, epoch), so a run that was
stopped between two epochs continues to the very same parameters.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pue.core.criteria import CRITERIA
from pue.core.data import PUData, as_float
from pue.core.randomness import derive, seeded
from pue.core.risks import Reduce, Risk, no_reduction
from pue.core.weights import RowWeights
from pue.errors import CheckpointMismatch, TrainingDiverged
from pue.training.augment import mixup
from pue.training.checkpoints import Checkpointing, Snapshot, flatten_optimizer, load_latest, restore_optimizer, save
from pue.training.divergence import not_finite, require_finite
from pue.training.feeds import Draw, Feed, InMemory
from pue.training.objectives import Batch, Objective, RiskObjective
from pue.training.processes import add_gradients, join, place, total
from pue.training.progress import describe, step_progress
from pue.training.schedules import SCHEDULES
from pue.training.scoring import layout, score
from pue.training.settings import OPTIMIZERS, EpochRecord, Training
from pue.training.streamed import RowStream, Streamed


def train(
    network: nn.Module,
    data: PUData,
    weights: RowWeights,
    risk: Risk | Objective,
    training: Training,
    *,
    seed: int,
    device: str | torch.device = "cpu",
    checkpointing: Checkpointing | None = None,
    progress: bool | float | None = None,
    reduce: Reduce = no_reduction,
    stream: RowStream | None = None,
    on_epoch: Callable[[EpochRecord, nn.Module], None] | None = None,
) -> list[EpochRecord]:
    """Train `network` in place (it ends on `device`, in eval mode) and return one record an epoch.

    What is minimised is a risk of the scores or, for methods that need the network and the rows too, an `Objective`.
    `on_epoch` is called after every epoch with its record and the network that would be the result if it were the last.
    In a process group (`pue.training.processes`) every process calls this with the same arguments and ends with the
    same network; the first one writes checkpoints and shows progress. With a `stream`, `data` are its rows in memory.
    """
    dtype = next(network.parameters()).dtype
    feed: Feed
    if stream is None:
        feed = InMemory(data, weights, training, seed=seed, dtype=dtype)
    else:
        feed = Streamed(stream, data, weights, training, dtype=dtype)
    return train_on(
        network, feed, risk, training, seed=seed, device=device,
        checkpointing=checkpointing, progress=progress, reduce=reduce, on_epoch=on_epoch,
    )  # fmt: skip


def train_on(
    network: nn.Module,
    feed: Feed,
    risk: Risk | Objective,
    training: Training,
    *,
    seed: int,
    device: str | torch.device = "cpu",
    checkpointing: Checkpointing | None = None,
    progress: bool | float | None = None,
    reduce: Reduce = no_reduction,
    on_epoch: Callable[[EpochRecord, nn.Module], None] | None = None,
) -> list[EpochRecord]:
    """`train` with batches from anywhere: rows without labels, say."""
    run = _Run(network, feed, risk, training, seed, torch.device(device), reduce)
    written = None  # the epoch that is on the disk already
    if checkpointing is not None:
        found = load_latest(checkpointing.folder, run.fingerprint)
        if found is not None:
            written = found.epoch
            try:
                run.restore(found)
            except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
                raise CheckpointMismatch(
                    f"the checkpoint epoch-{found.epoch:05d} in {checkpointing.folder} is damaged ({error}). Delete it "
                    "to start again."
                ) from error
    last = run.snapshot() if checkpointing is not None else None
    try:
        show = progress if run.first else False
        with step_progress(training.epochs, "epoch", title="training", done=run.epoch, show=show) as move:
            while not run.finished():
                record = run.one_epoch(move)
                move(run.epoch, status=describe(record))
                if on_epoch is not None:
                    on_epoch(run.history[-1], run.result())
                if checkpointing is not None:
                    last = run.snapshot()
                    if run.epoch % checkpointing.every == 0 or run.finished():
                        if run.first:
                            save(checkpointing.folder, last)
                        written = last.epoch
    except KeyboardInterrupt:
        if checkpointing is not None and last is not None and last.epoch != written and run.first:
            save(checkpointing.folder, last)
        raise
    run.finish()
    return run.history


def _average(network: nn.Module, decay: float) -> AveragedModel:
    return AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)  # type: ignore[no-untyped-call]


class _Run:
    """One training run between two epochs: everything that changes, and how to advance it."""

    def __init__(
        self,
        network: nn.Module,
        feed: Feed,
        risk: Risk | Objective,
        training: Training,
        seed: int,
        device: torch.device,
        reduce: Reduce,
    ) -> None:
        self.rank, self.size = place()
        if self.size > 1:
            network = join(network.to(device), device)
            reduce = total if reduce is no_reduction else reduce
        self.network = network.to(device).to(memory_format=layout(network))  # type: ignore[call-overload]
        self.feed, self.training = feed, training
        self.objective = (risk if isinstance(risk, Objective) else RiskObjective(risk)).to(device)
        self.seed, self.device, self.reduce = seed, device, reduce
        self.dtype = next(network.parameters()).dtype
        self.layout = layout(network) if len(feed.shape) == 4 else torch.contiguous_format
        options = {} if training.optimizer == "sgd" else {"fused": device.type in ("cpu", "cuda")}
        self.optimizer = OPTIMIZERS[training.optimizer](
            network.parameters(), lr=training.lr, weight_decay=training.weight_decay, **options
        )
        self.average = None if training.ema is None else _average(network, training.ema)
        self.epoch = 0
        self.history: list[EpochRecord] = []
        self.best: dict[str, Tensor] | None = None
        self.best_validation = -math.inf
        self.best_epoch = -1

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and shows."""
        return self.rank == 0

    def finished(self) -> bool:
        patience = self.training.patience
        stalled = patience is not None and self.best_epoch >= 0 and self.epoch - 1 - self.best_epoch >= patience
        return self.epoch >= self.training.epochs or stalled

    def one_epoch(self, move: Callable[[float], None]) -> EpochRecord:
        start = time.perf_counter()
        generator = torch.Generator().manual_seed(derive(self.seed, self.epoch))
        self.objective.start_epoch(self.epoch, self.training.epochs, self.network)
        self.network.train()
        total, corrected = 0.0, 0
        with seeded(derive(self.seed, self.epoch, 1 + self.rank), self.device):  # for dropout and the like
            for step, draw in enumerate(self.feed.epoch(generator)):
                self._set_learning_rate(step)
                value, was_corrected = self._step(step, draw, generator)
                total += value
                corrected += was_corrected
                move(self.epoch + (step + 1) / self.feed.steps)
            validation = self._validate()
        steps, seconds = self.feed.steps, time.perf_counter() - start
        record = EpochRecord(self.epoch, total / steps, corrected / steps, seconds, validation)
        self.epoch += 1
        self.history.append(record)
        return record

    def _step(self, step: int, draw: Draw, generator: torch.Generator) -> tuple[float, bool]:
        part, augmentation = draw.part, self.training.augmentation
        x = as_float(draw.x.to(self.device), self.dtype).contiguous(memory_format=self.layout)
        weights, share = draw.weights.to(self.device, self.dtype), draw.share.to(self.device)
        x = augmentation.images(x, generator, part)
        if augmentation.mixup:
            x, weights = mixup(x, weights, augmentation.mixup, generator, part)
        now = self.epoch, self.training.epochs
        risk = self.objective(Batch(self.network, x, draw.rows, weights, share, *now, generator, self.reduce, part))
        value = risk.value.item()
        if not math.isfinite(value):
            raise not_finite(self.objective.terms, risk.sums, step=step, epoch=self.epoch, lr=self.training.lr)
        self.optimizer.zero_grad(set_to_none=True)
        risk.value.backward()
        if self.size > 1:
            add_gradients(self.network.parameters())
        self.optimizer.step()
        if self.average is not None:
            self.average.update_parameters(self.network)
        return value, risk.corrected

    def _set_learning_rate(self, step: int) -> None:
        done = (self.epoch * self.feed.steps + step) / (self.training.epochs * self.feed.steps)
        factor = SCHEDULES[self.training.schedule](self.epoch, self.training.epochs, done)
        for group in self.optimizer.param_groups:
            group["lr"] = self.training.lr * factor

    def _validate(self) -> float | None:
        held_out = self.feed.held_out
        if held_out is None:
            return None
        scores = score(self.result(), held_out.x, held_out.rows)
        if not bool(torch.isfinite(scores).all()):
            raise TrainingDiverged(
                f"the scores of held-out rows are not finite after epoch {self.epoch + 1}. Try a smaller learning rate "
                f"(now lr={self.training.lr:g})."
            )
        validation = CRITERIA[self.training.criterion](scores, held_out.weights)
        if validation > self.best_validation:
            self.best_validation, self.best_epoch = validation, self.epoch
            if self.training.keeps_best:
                self.best = {name: tensor.detach().clone() for name, tensor in self.result().state_dict().items()}
        return validation

    def result(self) -> nn.Module:
        """What the run has come to: the network, or its average."""
        return self.network if self.average is None else self.average.module

    def finish(self) -> None:
        self._require_finite_parameters()
        self.network.load_state_dict(self.result().state_dict() if self.best is None else self.best)
        self.network.eval()

    def _require_finite_parameters(self) -> None:
        require_finite(self.network, step=self.feed.steps, epoch=self.epoch, lr=self.training.lr)

    def snapshot(self) -> Snapshot:
        self._require_finite_parameters()
        parts: dict[str, dict[str, Tensor]] = {
            "network": dict(self.network.state_dict()),
            "optimizer": flatten_optimizer(self.optimizer),
            "average": {} if self.average is None else dict(self.average.state_dict()),
            "best": self.best or {},
            "objective": dict(self.objective.state_dict()),
        }
        tensors = {
            f"{part}/{name}": tensor.detach().cpu().clone()
            for part, entries in parts.items()
            for name, tensor in entries.items()
        }
        record = {
            "history": [asdict(entry) for entry in self.history],
            "best_validation": None if math.isinf(self.best_validation) else self.best_validation,
            "best_epoch": self.best_epoch,
        }
        return Snapshot(self.epoch, tensors, record, self.fingerprint)

    def restore(self, snapshot: Snapshot) -> None:
        parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for key, tensor in snapshot.tensors.items():
            part, _, name = key.partition("/")
            parts[part][name] = tensor
        self.network.load_state_dict(parts["network"])
        restore_optimizer(self.optimizer, parts["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(parts["average"])
        self.objective.load_state_dict(parts["objective"])
        self.best = parts["best"] or None
        best, self.best_epoch = snapshot.record["best_validation"], snapshot.record["best_epoch"]
        self.history = [EpochRecord(**entry) for entry in snapshot.record["history"]]
        numbers = [best, self.best_epoch, *(value for entry in self.history for value in vars(entry).values())]
        if not all(value is None or isinstance(value, int | float) for value in numbers):
            raise TypeError("its record holds what is no number")
        self.best_validation = -math.inf if best is None else best
        self.epoch = snapshot.epoch

    @cached_property
    def fingerprint(self) -> str:
        """A hash of settings, seed, the network's shape, the risk's terms, all weights and a sample of the rows."""
        shapes = {name: list(tensor.shape) for name, tensor in self.network.state_dict().items()}
        what = self.objective.terms, str(self.dtype), list(self.feed.shape), self.objective.settings()
        settings = [asdict(self.training), self.seed, shapes, *what]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=lambda number: number.item()).encode())
        self.feed.fingerprint(digest)
        return digest.hexdigest()
