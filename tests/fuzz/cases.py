"""Altered inputs, each a function of a seed, and what may come of them.

A case ends well if the input is refused in words, or taken and everything that comes of it is finite and whole.
Anything else is a failure: another exception, a crash, a hang, a score that is no number, an altered file that is
believed.
Structures are altered where they have meaning, and digests are made right again (`vouch`), so that what is tested is
what a stranger could write and not only what a disk could spoil.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import random
import shutil
import string
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from pyarrow import csv, feather, parquet
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of

import pue
from pue.app import compare
from pue.app.cli import main
from pue.app.compare import Result
from pue.bench.datasets.cache import cached
from pue.bench.record import Record
from pue.bench.spec import SCHEMA, digest
from pue.bench.store import Damaged, as_text, read
from pue.core.data import PUData
from pue.core.risks import nnpu
from pue.core.weights import uniform
from pue.errors import PueError, PueWarning
from pue.persistence.sealed import sealed
from pue.training import Batching, Checkpointing, Training, train

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 0.5, -1.5, 1e308, 1e-320, "", "nan", "t0", "t1", "a" * 5000,
    "os:system", "../../x", "\ud800", [], {}, [[]], {"type": "tuple"}, {"type": "tensor", "value": "t0"},
    {"type": "float", "value": "nan"}, {"type": "dict", "value": {}}, {"type": "function", "value": "losses.ramp"},
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 255, 2**31 - 1, -(2**31), 2**62, 0.5, 1e-300, 1e300, -1e38, np.nan, np.inf, -np.inf]


@dataclass(frozen=True)
class Ground:
    """What the cases alter: made once, by `prepare`."""

    folder: Path

    def fresh(self, name: str) -> Path:
        """A copy to alter, in the place of the one before."""
        target = self.folder / "now" / name
        shutil.rmtree(target, ignore_errors=True)
        target.unlink() if target.is_file() else None
        target.parent.mkdir(exist_ok=True)
        source = self.folder / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        return target


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 5 < 2
    return pd.DataFrame(
        {
            "a": rng.normal(size=n) + 2 * y,
            "b": np.where(np.arange(n) % 7 == 0, np.nan, np.arange(n) % 11),
            "c": np.where(np.arange(n) % 3 == 0, "red", "blue"),
            "d": pd.date_range("2024-01-01", periods=n),
            "s": (np.arange(n) % 5 == 0).astype(int),
        }
    )


RUN = {"schema": SCHEMA, "dataset": "digits", "seed": 0, "method": "nnpu", "propensity": "none"}


def record() -> dict[str, Any]:
    metrics = dict.fromkeys(("accuracy", "precision", "recall", "f1", "auc", "ap", "auc_hard", "ap_hard"), 0.5)
    cost = {"wall_seconds": 1.0, "cpu_seconds": 1.0, "flops": 1, "peak_memory_bytes": 1}
    return {"schema": SCHEMA, "key": digest(RUN), "spec": RUN, "row": "nnPU", "metrics": metrics,
            "history": [{"epoch": 0, "risk": 0.5}], "propensity": None, "prior": 0.4, "n_labeled": 9, "n_unlabeled": 9,
            "data": {"name": "digits", "checksum": "0"}, "warnings": [], "versions": {"pue": "0"}, "cost": cost,
            "finished": "2025-01-01"}  # fmt: skip


def result() -> Result:
    return Result("upu", 1.0, dict.fromkeys(compare.ESTIMATED, (0.5, 0.4, 0.6)))


MODELS = {
    "forest": ["--method", "forest"],
    "network": ["--method", "upu", "--epochs", "1"],
    "linear": ["--method", "logistic"],
    "trees": ["--method", "wrapped_boosting"],
}


def prepare(folder: Path) -> Ground:
    """Models of several kinds (or of those that PUE_FUZZ_MODELS names), a table, a record, a checkpoint and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    table().to_parquet(folder / "t.parquet")
    for name in os.environ.get("PUE_FUZZ_MODELS", "").split() and list(MODELS):
        if name not in os.environ["PUE_FUZZ_MODELS"].split():
            del MODELS[name]
    for name, options in MODELS.items():
        if not (folder / name).exists():
            command(["fit", folder / "t.parquet", "--label", "s", "--prior", "0.4", "--propensity", "none", *options,
                     "-q", "-o", folder / name])  # fmt: skip
    (folder / "record.json").write_text(as_text(record()))
    (folder / "result.json").write_text(json.dumps(sealed(compare._plain(result()))))
    if not (folder / "run").exists():
        trained(folder / "run")
    return Ground(folder)


def command(arguments: list[Any]) -> tuple[int, str]:
    """How a command ends, and what it says; any exception but its exit passes."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return code, err.getvalue()


def trained(folder: Path) -> dict[str, torch.Tensor]:
    """A network after two epochs, with a checkpoint for each."""
    torch.manual_seed(0)
    x = torch.tensor(table()[["a"]].to_numpy(), dtype=torch.float32)
    data = PUData(x, torch.tensor(table()["s"].to_numpy()))
    network = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Linear(2, 1), torch.nn.Flatten(0))
    weights, recipe = uniform(data.labels, prior=0.4), Training(epochs=2, batching=Batching(32))
    train(network, data, weights, nnpu(), recipe, seed=0, checkpointing=Checkpointing(folder))
    return network.state_dict()


# ------------------------------------------------------------------------------------------------ alterations


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


# ------------------------------------------------------------------------------------------------ cases


def model_case(ground: Ground, rng: random.Random) -> str:
    """A folder altered and vouched for: refused, or every score of every row is a probability."""
    folder = ground.fresh(rng.choice(list(MODELS)))
    tree, tensors = folder / "model.json", folder / "tensors.safetensors"
    match rng.choice(["tree", "tree", "tensors", "tensors", "bytes", "manifest"]):
        case "tree":
            tree.write_text(json.dumps(altered(json.loads(tree.read_text()), rng)))
        case "tensors":
            tensors.write_bytes(other_tensors(tensors.read_bytes(), rng))
        case "bytes":
            file = rng.choice([tree, tensors])
            file.write_bytes(spoilt(file.read_bytes(), rng))
        case "manifest":
            path = folder / "manifest.json"
            path.write_text(json.dumps(altered(json.loads(path.read_text()), rng)))
            return taken(lambda: pue.load(folder))
    vouch(folder)
    try:
        found = pue.load(folder)
    except PueError:
        return "refused"
    if not isinstance(found, type(pue.load(ground.folder / "linear"))):
        return "another thing"
    try:
        p = found.predict_proba(table().drop(columns="s"))
    except PueError:
        return "refused to score"
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, RuntimeError) as error:
        raise AssertionError(f"a model that loads does not score: {type(error).__name__}: {error}") from error
    assert ((p >= 0) & (p <= 1)).all(), "scores that are no probabilities"
    return "taken"


def unvouched_case(ground: Ground, rng: random.Random) -> str:
    """A folder spoilt by a disk: refused, always."""
    folder = ground.fresh(rng.choice(list(MODELS)))
    file = folder / rng.choice(["model.json", "tensors.safetensors"])
    file.write_bytes(spoilt(file.read_bytes(), rng))
    try:
        pue.load(folder)
    except PueError:
        return "refused"
    raise AssertionError("a spoilt model was believed")


def record_case(ground: Ground, rng: random.Random) -> str:
    path = ground.fresh("record.json")
    if rng.random() < 0.5:
        path.write_bytes(spoilt(path.read_bytes(), rng))
        try:
            found = read(path, Record)
        except Damaged:
            return "noticed"
        assert found.to_dict() == Record.from_dict(record()).to_dict(), "a spoilt record was believed"
        return "blanks"  # between entries they mean nothing
    body = altered(record(), rng)
    if not isinstance(body, dict):
        return "no record"
    if rng.random() < 0.7 and isinstance(body.get("spec"), dict):
        try:
            body["key"] = digest(body["spec"])
        except (ValueError, TypeError):
            return "no JSON"
    try:
        path.write_text(as_text(body))
    except (ValueError, TypeError):
        return "no JSON"
    try:
        found = read(path, Record)
    except Damaged:
        return "refused"
    assert isinstance(found.seed, int)
    assert np.isfinite(found.percent("accuracy"))
    return "taken"


def checkpoint_case(ground: Ground, rng: random.Random) -> str:
    """Whatever happened to a checkpoint, the run that goes on ends where it should, or says that it cannot."""
    folder = ground.fresh("run")
    newest = sorted(folder.glob("epoch-*"))[-1]
    file = newest / rng.choice(["state.json", "state.safetensors"])
    vouched = rng.random() < 0.5
    if vouched and file.name == "state.json":
        file.write_text(json.dumps(altered(json.loads(file.read_text()), rng)))
    elif vouched:
        file.write_bytes(other_tensors(file.read_bytes(), rng))
        about = json.loads((newest / "state.json").read_text())
        about["tensors"] = hashlib.sha256(file.read_bytes()).hexdigest()
        (newest / "state.json").write_text(json.dumps(about))
    else:
        file.write_bytes(spoilt(file.read_bytes(), rng))
    if vouched:
        text = (newest / "state.json").read_bytes()
        (newest / "state.sha256").write_text(hashlib.sha256(text).hexdigest())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)
        try:
            weights = trained(folder)
        except PueError:
            assert vouched, "a spoilt checkpoint stopped the run"
            return "refused"
    expected = trained(ground.folder / "run")
    same = all(torch.equal(weights[name], expected[name]) for name in expected)
    assert same or vouched, "a spoilt checkpoint went on to another result"
    return "computed anew" if same else "taken as it is"


def cache_case(ground: Ground, rng: random.Random) -> str:
    os.environ["PUE_CACHE"] = str(ground.folder / "now" / "cache")
    array = np.arange(rng.choice([1, 100, 999]), dtype=rng.choice(["u1", "<f4", "<i8"]))
    cached("fuzz", "key", lambda: array)
    (file,) = (ground.folder / "now" / "cache").iterdir()
    file.write_bytes(spoilt(file.read_bytes(), rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PueWarning)
        assert np.array_equal(cached("fuzz", "key", lambda: array), array), "a spoilt cache was believed"
    file.unlink()
    return "made again"


def comparison_case(ground: Ground, rng: random.Random) -> str:
    path = ground.fresh("result.json")
    if rng.random() < 0.5:
        path.write_bytes(spoilt(path.read_bytes(), rng))
        found = compare._read(path)
        assert found is None or found == result(), "a spoilt comparison was believed"
        return "noticed"
    body = altered(compare._plain(result()), rng)
    try:
        path.write_text(json.dumps(sealed(body)) if isinstance(body, dict) else json.dumps(body))
    except ValueError:
        return "no JSON"
    return "refused" if compare._read(path) is None else "taken"


KINDS: list[Callable[[random.Random, int], pa.Array]] = [
    lambda rng, n: pa.array(np.array([rng.choice(NUMBERS) for _ in range(n)], dtype=float)),
    lambda rng, n: pa.array(np.array([rng.choice(NUMBERS) for _ in range(n)]).astype("f4")),
    lambda rng, n: pa.array([None] * n, rng.choice([pa.null(), pa.float32(), pa.string(), pa.timestamp("us")])),
    lambda rng, n: pa.array([None] * n, pa.bool_()),
    lambda rng, n: pa.array([rng.choice([None, -(2**63), 2**63 - 1, 0, 7]) for _ in range(n)], pa.int64()),
    lambda rng, n: pa.array([rng.randrange(2**64) for _ in range(n)], pa.uint64()),
    lambda rng, n: pa.array([rng.choice([None, True, False]) for _ in range(n)], pa.bool_()),
    lambda rng, n: pa.array(["".join(rng.choices(string.printable + "ß€😀", k=rng.randrange(9))) for _ in range(n)]),
    lambda rng, n: pa.array([rng.choice(["red", "blue", "", None, "NA", "1", "-9999", "1e999"]) for _ in range(n)]),
    lambda rng, n: pa.array([rng.randrange(-(2**61), 2**61) for _ in range(n)],
                            pa.timestamp(rng.choice(["s", "ms", "us", "ns"]), rng.choice([None, "UTC", "+05:30"]))),
    lambda rng, n: pa.array([rng.randrange(-(2**30), 2**30) for _ in range(n)], pa.date32()),
    lambda rng, n: pa.array([rng.randrange(-(2**50), 2**50) for _ in range(n)], pa.duration(rng.choice(["s", "ns"]))),
    lambda rng, n: pa.array([rng.randrange(86_400) for _ in range(n)], pa.time32("s")),
    lambda rng, n: pa.array([b"\xff\x00"] * n, pa.binary()),
    lambda rng, n: pa.array([[1, 2]] * n, pa.list_(pa.int8())),
    lambda rng, n: pa.array([{"x": 1}] * n),
    lambda rng, n: pa.array(["a", "b"] * n).slice(0, n).dictionary_encode(),
    lambda rng, n: pa.array([rng.choice([1, None]) for _ in range(n)], pa.decimal128(38, 5)),
    lambda rng, n: pa.array(np.arange(n).astype("f2")),
]  # fmt: skip


def table_case(ground: Ground, rng: random.Random) -> str:
    """Columns of every type under the names a model knows, in every format: refused in words, or finite scores."""
    n = rng.choice([1, 1, 2, 9])
    names = ["a", "b", "c", "d", *rng.choice([[], [], ["e"], ["s"]])]
    good = pa.Table.from_pandas(table(n).iloc[:, :4], preserve_index=False)
    columns = {name: rng.choice(KINDS)(rng, n) if name not in good.column_names or rng.random() < 0.4
               else good[name].combine_chunks() for name in names}  # fmt: skip
    made = pa.table(columns)
    suffix = rng.choice([".parquet", ".feather", ".arrow", ".csv", ".tsv"])
    path, output = ground.folder / "now" / f"rows{suffix}", ground.folder / "now" / "scores.csv"
    path.parent.mkdir(exist_ok=True)
    output.unlink(missing_ok=True)
    try:
        if suffix == ".parquet":
            parquet.write_table(made, path)
        elif suffix in (".csv", ".tsv"):
            csv.write_csv(made, path, csv.WriteOptions(delimiter="," if suffix == ".csv" else "\t"))
        else:
            feather.write_feather(made, path, compression=rng.choice(["zstd", "lz4", "uncompressed"]))
    except (pa.ArrowException, OSError):
        return "Arrow does not write it"
    if rng.random() < 0.25:
        path.write_bytes(spoilt(path.read_bytes(), rng))
    code, said = command(["predict", ground.folder / rng.choice(list(MODELS)), path, "-o", output, "-q"])
    assert code in (0, 2), f"exit {code}: {said[-300:]}"
    if code == 2:
        assert said.startswith("pue: "), said[-300:]
        assert "Traceback" not in said, said[-300:]
        assert not output.exists()
        return "refused"
    scores = pd.read_csv(output)["probability"]
    assert np.isfinite(scores).all(), "scores that are no numbers"
    return "scored"


OPTIONS = ["--label", "--prior", "--method", "--propensity", "--threshold", "--target-precision", "--calibration",
           "--epochs", "--jobs", "--memory", "--engine", "--address", "--workers", "--image-size", "--seed", "--id",
           "--ignore", "--truth", "--scenario", "--nodata", "--labels", "--budget", "--level", "--folds", "--by",
           "--candidates", "--labeling-columns", "--ignore-for-labeling", "--seeds", "--preset", "--set"]  # fmt: skip
WORDS = ["", "0", "-1", "1", "nan", "inf", "-inf", "1e400", "9" * 400, "0.5", "s", "a", "a,b", "auto", "none",
         "x" * 3000, "../..", "/", "/dev/null", "column:", "column:a", "\x00", "é", "0-99999999999", "1-", ",",
         "estimate", "logistic", "local", "f1", "prior"]  # fmt: skip


def options_case(ground: Ground, rng: random.Random) -> str:
    """Commands with options that make no sense; those that would train are stopped by an option that is wrong too."""
    folder = ground.folder
    verb = rng.choice(["fit", "diagnose", "evaluate", "predict", "inspect", "report", "bench", "compare"])
    given: list[Any] = {
        "fit": ["fit", folder / "t.parquet", "-o", folder / "now" / "m", "--method", "no such method"],
        "diagnose": ["diagnose", folder / "t.parquet", "--propensity", "no such estimator"],
        "evaluate": ["evaluate", folder / "linear", folder / "t.parquet"],
        "predict": ["predict", folder / "linear", folder / "t.parquet", "-o", folder / "now" / "scores.csv"],
        "inspect": ["inspect", folder / "linear"],
        "report": ["report", folder / "linear", "-o", folder / "now" / "page.html"],
        "bench": ["bench", "digits", "--dry-run", "--out", folder / "now" / "runs"],
        "compare": ["compare", folder / "t.parquet", "--out", folder / "now" / "c", "--candidates", "no such method"],
    }[verb]
    for _ in range(rng.choice([1, 1, 2, 3])):
        given += [rng.choice(OPTIONS), rng.choice(WORDS)]
    if rng.random() < 0.2:
        given[1] = rng.choice(WORDS)
    given = [str(part).replace("\x00", "\\0") for part in given]
    if "ray" in given:
        return "not asked"
    code, said = command(given)
    assert code in (0, 1, 2), f"exit {code}"
    assert "Traceback" not in said
    return f"exit {code}"


def taken(use: Callable[[], Any]) -> str:
    try:
        use()
    except PueError:
        return "refused"
    return "taken"


CASES: dict[str, Callable[[Ground, random.Random], str]] = {
    "model": model_case,
    "model, not vouched for": unvouched_case,
    "record": record_case,
    "checkpoint": checkpoint_case,
    "cache": cache_case,
    "comparison": comparison_case,
    "table": table_case,
    "options": options_case,
}
WEIGHTS = {"model": 30, "model, not vouched for": 8, "record": 12, "checkpoint": 5, "cache": 8, "comparison": 7,
           "table": 22, "options": 8}  # fmt: skip


def kind_of(seed: int) -> str:
    return random.Random(seed).choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def run_case(ground: Ground, seed: int) -> tuple[str, str]:
    """Which kind a seed is, and how it ended; an exception is a failure."""
    kind = kind_of(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind, CASES[kind](ground, random.Random(f"{kind} {seed}"))
