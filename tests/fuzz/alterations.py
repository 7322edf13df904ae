"""One input becomes another: places of a tree, bytes, numbers of a tensor, by seed.

Structures are altered where they have meaning, and digests are made right again (`vouch`), so that what is tested is
what a stranger could write and not only what a disk could spoil.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 0.5, -1.5, 1e308, 1e-320, "", "nan", "t0", "t1", "a" * 5000,
    "os:system", "../../x", "\ud800", [], {}, [[]], {"type": "tuple"}, {"type": "tensor", "value": "t0"},
    {"type": "float", "value": "nan"}, {"type": "dict", "value": {}}, {"type": "function", "value": "losses.ramp"},
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**62, 0.5, 1e-300, 1e300, -1e38, np.nan, np.inf, -np.inf]


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            found += places(tree[key], (*path, key))
    return found


def altered(tree: Any, rng: random.Random) -> Any:
    """One or a few places of a tree replaced, removed, renamed, doubled or swapped."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        path = rng.choice(places(tree)[1:] or [()])
        if not path:
            return copy.deepcopy(rng.choice(VALUES))
        parent = tree
        for key in path[:-1]:
            parent = parent[key]
        key = path[-1]
        match rng.choice(["value", "value", "value", "number", "remove", "rename", "double", "swap"]):
            case "remove":
                del parent[key]
            case "rename" if isinstance(parent, dict):
                parent[rng.choice(["", "type", "value", "fitted", f"{key}x"])] = parent.pop(key)
            case "double" if isinstance(parent, list):
                parent.insert(key, copy.deepcopy(parent[key]))
            case "swap" if isinstance(parent, dict | list) and len(parent) > 1:
                other = rng.choice(list(parent) if isinstance(parent, dict) else list(range(len(parent))))
                parent[key], parent[other] = parent[other], parent[key]
            case "number" if isinstance(parent[key], int | float):
                parent[key] = rng.choice([n for n in NUMBERS if np.isfinite(n)])
            case _:
                parent[key] = copy.deepcopy(rng.choice(VALUES))
    return tree


def spoilt(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, bytes cut off, doubled or replaced; never the same."""
    while True:
        found = bytearray(data)
        match rng.choice(["flip", "flip", "cut", "insert", "zero", "tail"]):
            case "flip":
                for _ in range(rng.choice([1, 1, 3, 20])):
                    found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
            case "cut":
                found = found[: rng.randrange(len(found))]
            case "insert":
                found[rng.randrange(len(found)) : 0] = rng.randbytes(rng.choice([1, 8, 100]))
            case "zero":
                at = rng.randrange(len(found))
                found[at : at + 64] = bytes(min(64, len(found) - at))
            case "tail":
                found += rng.randbytes(5)
        if bytes(found) != data:
            return bytes(found)


def other_tensors(data: bytes, rng: random.Random) -> bytes:
    tensors = {name: tensor.clone() for name, tensor in tensors_of(data).items()}
    for _ in range(rng.choice([1, 1, 3])):
        name = rng.choice(list(tensors))
        tensor = tensors[name]
        match rng.choice(["number", "number", "number", "cut", "type", "shape", "rename", "drop"]):
            case "number" if tensor.numel():
                flat = tensor.reshape(-1).clone()
                try:
                    flat[rng.randrange(len(flat))] = rng.choice(NUMBERS)
                except (RuntimeError, OverflowError, ValueError):
                    flat[rng.randrange(len(flat))] = 1
                tensors[name] = flat.reshape(tensor.shape)
            case "cut" if tensor.ndim:
                tensors[name] = tensor[: rng.randrange(len(tensor) + 1)]
            case "type":
                tensors[name] = tensor.to(
                    rng.choice([torch.float64, torch.float32, torch.int64, torch.int8, torch.bool])
                )
            case "shape":
                tensors[name] = rng.choice([tensor.reshape(-1), tensor[None], tensor.reshape(-1, 1)])
            case "rename":
                tensors[f"x{name}"] = tensors.pop(name)
            case _ if len(tensors) > 1:
                tensors.pop(name)
    return bytes_of({name: tensor.contiguous() for name, tensor in tensors.items()})


def vouch(folder: Path) -> None:
    """A manifest that is right about what is there."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for name in manifest["files"]:
        data = (folder / name).read_bytes()
        manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_text(json.dumps(manifest))
