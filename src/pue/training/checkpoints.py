"""Checkpoints: a folder `epoch-00010` with tensors (safetensors) and everything else (JSON), whole or not there.

What a killed run leaves half written, the next run removes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from pue.errors import CheckpointMismatch, InvalidInput, PueWarning
from pue.files import recover, unfinished, writing_folder
from pue.persistence import strict_json

_FORMAT = 2


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
    tensors = to_bytes({name: tensor.contiguous() for name, tensor in snapshot.tensors.items()})
    body = {"format": _FORMAT, **about, "tensors": hashlib.sha256(tensors).hexdigest()}
    text = json.dumps(body, indent=1)
    with writing_folder(final) as partial:  # our own writes, so that a full disk is an error that names the folder
        (partial / "state.safetensors").write_bytes(tensors)
        (partial / "state.json").write_text(text)
        (partial / "state.sha256").write_text(hashlib.sha256(text.encode()).hexdigest())
    for old in folder.glob("epoch-*"):
        if old != final:
            shutil.rmtree(old, ignore_errors=True)
    return final


def load_latest(folder: Path, fingerprint: str) -> Snapshot | None:
    """The newest snapshot of this very run, None when there is none, an error when it belongs to another run.

    One that is damaged or was altered is not used: a warning says so, and the run begins anew.
    """
    for cut_off in unfinished(folder, "epoch-*"):
        recover(cut_off)
    folders = sorted(folder.glob("epoch-*"))
    if not folders:
        return None
    newest = folders[-1]
    try:
        found, written_as = _read(newest)
    except (OSError, ValueError, KeyError, TypeError, MemoryError, SafetensorError) as error:
        warnings.warn(
            f"the checkpoint {newest.name} in {folder} is damaged or was altered ({error}). It is not used; the run "
            "begins anew.",
            PueWarning,
            stacklevel=2,
        )
        return None
    if written_as != _FORMAT or found.fingerprint != fingerprint:
        raise CheckpointMismatch(
            f"the checkpoint {newest.name} in {folder} belongs to another run (other data, settings, network or seed). "
            "Use another checkpoint folder, or delete this one."
        )
    return found


def _read(folder: Path) -> tuple[Snapshot, object]:
    """A snapshot and its format, every byte the one that was written."""
    text = (folder / "state.json").read_bytes()
    if (folder / "state.sha256").read_text() != hashlib.sha256(text).hexdigest():
        raise ValueError("the digest of state.json is another")
    strict_json.measure(text, "state.json")
    document = json.loads(text)
    data = (folder / "state.safetensors").read_bytes()
    if document["tensors"] != hashlib.sha256(data).hexdigest():
        raise ValueError("the digest of state.safetensors is another")
    epoch, record, fingerprint = document["epoch"], document["record"], document["fingerprint"]
    named = type(epoch) is int and folder.name == f"epoch-{epoch:05d}"
    if not named or not isinstance(record, dict) or not isinstance(fingerprint, str):
        raise TypeError("state.json holds values that no snapshot has")
    return Snapshot(epoch, from_bytes(data), record, fingerprint), document["format"]


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
