"""Checkpoints: a folder `epoch-00010` with tensors (safetensors) and everything else (JSON), whole or not there.

What a killed run leaves half written, the next run removes.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from pue.errors import CheckpointMismatch, InvalidInput
from pue.files import recover, unfinished, writing_folder

_FORMAT = 1


@dataclass(frozen=True)
class Checkpointing:
    """Where checkpoints lie, and after how many epochs there is a new one. A run continues from the newest."""

    folder: Path
    every: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))
        if self.every < 1:
            raise InvalidInput(f"checkpoint_every must be at least 1 epoch; got {self.every}.")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a run between two epochs."""

    epoch: int
    """Epochs done."""
    tensors: dict[str, Tensor]
    record: dict[str, Any]
    fingerprint: str
    """Hash of all that must be the same for a run to be the continuation of another."""


def save(folder: Path, snapshot: Snapshot) -> Path:
    """Write a snapshot, then remove the older ones."""
    final = folder / f"epoch-{snapshot.epoch:05d}"
    about = {"epoch": snapshot.epoch, "fingerprint": snapshot.fingerprint, "record": snapshot.record}
    tensors = {name: tensor.contiguous() for name, tensor in snapshot.tensors.items()}
    with writing_folder(final) as partial:
        save_file(tensors, partial / "state.safetensors")
        (partial / "state.json").write_text(json.dumps({"format": _FORMAT, **about}, indent=1))
    for old in folder.glob("epoch-*"):
        if old != final:
            shutil.rmtree(old, ignore_errors=True)
    return final


def load_latest(folder: Path, fingerprint: str) -> Snapshot | None:
    """The newest snapshot of this very run, None when there is none, an error when it belongs to another run."""
    for cut_off in unfinished(folder, "epoch-*"):
        recover(cut_off)
    folders = sorted(folder.glob("epoch-*"))
    if not folders:
        return None
    newest = folders[-1]
    try:
        document = json.loads((newest / "state.json").read_text())
        tensors = load_file(newest / "state.safetensors")
        found = Snapshot(document["epoch"], tensors, document["record"], document["fingerprint"])
        written_as = document["format"]
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointMismatch(
            f"the checkpoint {newest.name} in {folder} is damaged ({error}). Delete it to start again."
        ) from error
    if written_as != _FORMAT or found.fingerprint != fingerprint:
        raise CheckpointMismatch(
            f"the checkpoint {newest.name} in {folder} belongs to another run (other data, settings, network or seed). "
            "Use another checkpoint folder, or delete this one."
        )
    return found


def flatten_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as named tensors."""
    state: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value)
        for index, entries in state.items()
        for name, value in entries.items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
