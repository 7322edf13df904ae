"""Encoders from elsewhere: a folder of ours, a file that others exported, or a function of the user's.

A folder of ours is data alone. A TorchScript file and an import path are programs: they run what they hold, with all
rights of whoever loads them.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pue.backbones.encoder import require_images
from pue.backbones.stored import BLOCK, load_encoder
from pue.core.data import as_float
from pue.errors import InvalidInput, MissingData, require

Encode = Callable[[Tensor], Tensor]
"""Images (n, channels, height, width), bytes or floats in [0, 1] → features (n, d)."""
TORCHSCRIPT = (".pt", ".pth", ".ts", ".torchscript")


def open_encoder(source: str | Path) -> Encode:
    """What turns images into features: a folder of `pue features fit`, a .onnx or TorchScript file, or
    "package.module:factory", a function without arguments that gives a module or a function.

    All but the first get images as floats in [0, 1]; what else they want (a mean to subtract, another size) is for the
    factory to do.

    >>> open_encoder("torch.nn:Flatten")(torch.zeros(2, 1, 16, 16)).shape
    torch.Size([2, 256])
    """
    path = Path(source)
    if path.is_dir():
        return load_encoder(path)
    if path.suffix == ".onnx":
        return _in_blocks(_onnx(_there(path)))
    if path.suffix in TORCHSCRIPT:
        return _in_blocks(_torchscript(_there(path)))
    if ":" in str(source):
        return _in_blocks(_imported(str(source)))
    raise InvalidInput(
        f"{source} is no encoder: pass a folder of `pue features fit`, a .onnx or TorchScript (.pt) file, or an import "
        "path package.module:factory."
    )


def _there(path: Path) -> Path:
    if not path.is_file():
        raise MissingData(f"there is no file {path}. Pass the encoder's file, a folder, or package.module:factory.")
    return path


def _onnx(path: Path) -> Callable[[Tensor], Any]:
    require("onnx")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own kinds of errors, which are no public class
        raise InvalidInput(f"{path} is no ONNX file that can be run: {str(error).splitlines()[0]}") from error
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x.numpy()})[0]


def _torchscript(path: Path) -> Callable[[Tensor], Any]:
    try:
        with warnings.catch_warnings():  # torch would rather have files of torch.export; people have these
            warnings.simplefilter("ignore", DeprecationWarning)
            found: Callable[[Tensor], Any] = torch.jit.load(path, map_location="cpu").eval()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise InvalidInput(
            f"{path} is no TorchScript file ({str(error).splitlines()[0]}). Write one with torch.jit.script(module)."
            "save(path); weights alone say nothing about their network."
        ) from error
    return found


def _imported(path: str) -> Callable[[Tensor], Any]:
    module, _, attribute = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"cannot make the encoder {path!r}: {error}. Write 'package.module:factory', a function without arguments."
        ) from error
    if isinstance(found, torch.nn.Module):
        found.eval()
    if not callable(found):
        raise InvalidInput(f"the encoder {path!r} gave a {type(found).__name__}, which cannot be called with images.")
    return found  # type: ignore[no-any-return]


def _in_blocks(encode: Callable[[Tensor], Any]) -> Encode:
    """Some images at a time, and what comes back checked: one row of finite numbers for each."""

    @torch.no_grad()
    def whole(images: Tensor) -> Tensor:
        require_images(images)
        parts = [_vectors(encode(as_float(block)), len(block)) for block in torch.split(images, BLOCK)]
        return torch.cat(parts)

    return whole


def _vectors(found: Any, n: int) -> Tensor:
    values = torch.as_tensor(np.asarray(found) if not isinstance(found, Tensor) else found)
    if values.ndim != 2 or len(values) != n:
        raise InvalidInput(
            f"an encoder must give one vector an image, shape ({n}, d); it gave {tuple(values.shape)}. Average over "
            "what is left of height and width."
        )
    if not bool(torch.isfinite(values).all()):
        raise InvalidInput("the encoder gave features that are not finite. Check what it expects of its images.")
    return values.float()
