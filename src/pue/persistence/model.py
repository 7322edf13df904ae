"""`save` and `load`: a value ⇄ its folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import sklearn
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, nn

from pue.errors import ModelError, PueWarning
from pue.files.paths import real
from pue.persistence import strict_json
from pue.persistence.folder import MODEL, TENSORS, read_folder, require_replaceable, write_folder
from pue.persistence.registry import TYPES
from pue.persistence.schemas.codec import SchemaCodec
from pue.persistence.tree import Backbones, Reader, Writer
from pue.persistence.value_codecs import VALUES

Factory = nn.Module | Callable[..., Any]
Given = Factory | Mapping[str, Factory] | None

TYPES |= {**VALUES, "estimator": SchemaCodec()}  # beside what the storeys register


def _nothing(name: str) -> None:
    """A type that is not known stays unknown."""


def save(value: Any, path: str | PathLike[str]) -> None:
    """Write a model to a folder, without pickle. A model that is there is replaced as a whole, or not at all.

    Before anything is written the model is read back in memory: what cannot be loaded again is not saved.
    """
    target = real(path)
    require_replaceable(target)
    writer = Writer(TYPES)
    name = type(value).__name__
    try:
        tree = json.dumps(writer.encode(value, name)).encode()
    except RecursionError as error:
        raise ModelError("the model cannot be saved: it contains itself, or is nested too deep.") from error
    files = {MODEL: tree, TENSORS: tensors_to_bytes(writer.tensors)}
    try:
        _decode(files, name, lambda path: path, _nothing)
    except ModelError as error:
        raise ModelError(f"this model could not be loaded again, so it is not saved: {error}") from error
    write_folder(target, files)


def load(path: str | PathLike[str], *, backbone: Given = None, unknown: Callable[[str], None] = _nothing) -> Any:
    """The model that `save` wrote, if its types are registered; `unknown` gets the name of one that is not, and may
    import the module that registers it.
    """
    folder = Path(path)
    files, written_by = read_folder(folder)
    _warn_of_another_version(files, written_by, folder)
    return _decode(files, "the model", _given(backbone), unknown)


def _decode(files: Mapping[str, bytes], name: str, backbones: Backbones, unknown: Callable[[str], None]) -> Any:
    tree = strict_json.parse(files[MODEL], MODEL)
    reader = Reader(TYPES, _tensors(files[TENSORS]), backbones, unknown)
    value = reader.decode(tree, name)
    reader.finish()
    return value


def _tensors(data: bytes) -> dict[str, Tensor]:
    header = int.from_bytes(data[:8], "little")
    if header > strict_json.MOST_BYTES:
        raise ModelError(f"{TENSORS} is damaged: its header would hold {header} bytes.")
    try:
        strict_json.measure(data[8 : 8 + header], TENSORS)
        return tensors_from_bytes(data)
    except ModelError:
        raise
    except Exception as error:  # an AssertionError or a KeyError too, where a header is not what it should be
        raise ModelError(f"{TENSORS} is damaged ({error}). Restore the folder from a copy, or save again.") from error


def _given(backbone: Given) -> Backbones:
    def find(path: str) -> Factory:
        found = backbone.get(path) if isinstance(backbone, Mapping) else backbone
        if found is None:
            raise ModelError(
                f"the model was built by {path!r}, which loading does not import or open, for a file should name no "
                "code and no place on your disk. Pass it yourself: load(path, backbone=factory), or for a folder of "
                "features load(path, backbone=pue.Pretrained(folder))."
            )
        return found

    return find


def _warn_of_another_version(files: Mapping[str, bytes], written_by: Mapping[str, str], folder: Path) -> None:
    there, here = written_by.get("scikit-learn"), sklearn.__version__
    if there != here and b'"estimator"' in files[MODEL]:
        warnings.warn(
            f"{folder} was written with scikit-learn {there}; here it is {here}. Check some predictions, or fit and "
            "save the model again.",
            PueWarning,
            stacklevel=4,
        )
