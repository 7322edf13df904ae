"""Estimators of scikit-learn and libraries like it, each in a .skops file that is read before it is believed."""

from __future__ import annotations

import io
import json
import tomllib
import warnings
import zipfile
from collections.abc import Iterator
from importlib import resources
from reprlib import repr as short
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from pue.errors import ModelError, require
from pue.persistence import strict_json
from pue.persistence.estimator_checks import require_sound
from pue.persistence.lightgbm_text import check_text
from pue.persistence.tree import Reader, Writer

PROTOCOL = 2
"""Of skops' format. Nodes of older protocols say elsewhere what they load, where `audit` would not look."""
NODES: dict[str, list[str]] = tomllib.loads(resources.files(__package__).joinpath("trusted.toml").read_text("utf-8"))
"""Loader → types."""
_LIBRARIES = ("sklearn", "skrub", "lightgbm")


class SkopsCodec:
    def owns(self, value: Any) -> bool:
        return isinstance(value, BaseEstimator) and type(value).__module__.split(".")[0] in _LIBRARIES

    def encode(self, value: Any, writer: Writer, at: str) -> Any:
        require("save")
        import skops.io

        try:
            return writer.file(skops.io.dumps(value))
        except Exception as error:  # whatever the parts of an estimator raise that skops cannot write
            raise ModelError(
                f"{at} cannot be saved: skops does not write this {type(value).__name__} ({error})."
            ) from error

    def decode(self, payload: Any, reader: Reader, at: str) -> Any:
        data = reader.file(payload, at)
        require("save")
        import skops.io

        try:
            found = audit(data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InconsistentVersionWarning)  # said once, by the manifest's versions
                estimator = skops.io.loads(data, trusted=found)
            require_sound(estimator)
        except ModelError as error:
            raise ModelError(f"{at} ({payload}): {error}") from error
        except Exception as error:  # skops, and what it constructs, may raise anything
            raise ModelError(f"{at} ({payload}) is damaged: {error}") from error
        if not self.owns(estimator):
            raise ModelError(f"{at} ({payload}) holds a {type(estimator).__name__}, not an estimator.")
        return estimator


def audit(data: bytes) -> list[str]:
    """The types in a file, all of them in `trusted.toml`; nothing is imported or constructed on the way."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        sizes = {entry.filename: entry.file_size for entry in entries}
        if len(sizes) < len(entries):
            raise ModelError("a name stands twice in the archive.")
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries) or sum(sizes.values()) > len(data):
            raise ModelError("it is compressed, so its size is unknown; pue stores estimators as they are.")
        schema = strict_json.parse(archive.read("schema.json"), "schema.json", most_bytes=len(data), most_levels=1000)
    if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL:
        raise ModelError(
            f"it is not of skops' protocol {PROTOCOL}. Save it again with the version of skops installed here."
        )
    nodes = list(_nodes(schema))
    for node in nodes:
        loader = node["__loader__"]
        if not isinstance(loader, str) or _type(node) not in NODES.get(loader, ()):
            raise ModelError(f"the type {short(_type(node))} ({short(loader)}) is not one that pue loads from a file.")
        _check_content(node)
    if sum(sizes.get(node["file"], 0) for node in _distinct(nodes) if "file" in node) > len(data):
        raise ModelError("it reads the same numbers again and again.")
    return sorted({_type(node) for node in nodes})


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _type(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _distinct(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The nodes that skops constructs. It takes the first of a number for all that have it, so these must agree."""
    by_number: dict[Any, dict[str, Any]] = {}
    without = []
    for node in nodes:
        if not node.get("__id__"):
            without.append(node)
            continue
        first = by_number.setdefault(node["__id__"], node)
        text = ["content"] if first["__loader__"] == "JsonNode" else []
        kind = ["__loader__", "__module__", "__class__", "file", *text]
        if any(first.get(key) != node.get(key) for key in kind):
            raise ModelError("two different objects have the same number.")
    return [*by_number.values(), *without]


def _check_content(node: dict[str, Any]) -> None:
    """What compiled code gets while objects are put together, wherever it stands: the trees of LightGBM, and how large
    the state of a generator of random numbers is.
    """
    content = node.get("content")
    if not isinstance(content, dict):
        return
    if "_handle" in content:
        check_text(_text(content["_handle"]))
    if "handle" in content or ("pool_size" in content and content["pool_size"].get("content") != "4"):
        raise ModelError("it holds a booster or a generator of random numbers that no library wrote.")


def _text(node: dict[str, Any]) -> str:
    text = json.loads(node["content"]) if node["__loader__"] == "JsonNode" else None
    if not isinstance(text, str):
        raise ModelError("a LightGBM booster has no trees.")
    return text
