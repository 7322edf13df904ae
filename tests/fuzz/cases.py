"""Altered inputs, each a function of a seed, and what may come of them.

A case ends well if the input is refused in words, or taken and everything that comes of it is finite and whole.
Anything else is a failure: another exception, a crash, a hang, a score that is no number, an altered file that is
believed.
Structures are altered where they have meaning, and digests are made right again (`vouch`), so that what is tested is
what a stranger could write and not only what a disk could spoil.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from alterations import altered, other_tensors, spoilt, vouch
from command_cases import options_case, require_words, table_case, training_case
from ground import MODELS, Ground, command, prepare, record, result, table, trained

import pue
from pue.app import compare
from pue.bench.datasets.cache import cached
from pue.bench.record import Record
from pue.bench.spec import digest
from pue.bench.store import Damaged, as_text, read
from pue.errors import PueError, PueWarning
from pue.persistence.sealed import sealed

__all__ = ["kind_of", "prepare", "run_case"]


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


def audit_case(ground: Ground, rng: random.Random) -> str:
    """A sheet and its plan, one of them altered: refused in words, or findings inside of what is possible."""
    sheet, plan = ground.fresh("sheet.csv"), ground.fresh("sheet.plan.json")
    way = rng.choice(["plan", "plan", "plan, not vouched for", "sheet", "cells"])
    if way == "plan":
        body = altered({k: v for k, v in json.loads(plan.read_text()).items() if k != "digest"}, rng)
        try:
            plan.write_text(json.dumps({**body, "digest": plan_digest(body)} if isinstance(body, dict) else body))
        except (ValueError, TypeError, KeyError):
            return "no JSON"
    elif way == "cells":
        sheet.write_text(other_cells(sheet.read_text(), rng), errors="replace")
    else:
        file = plan if way.startswith("plan") else sheet
        file.write_bytes(spoilt(file.read_bytes(), rng))
    verb: list[Any] = rng.choice(
        [["read", ground.folder / "linear", sheet, "--json"], ["page", sheet, "-o", ground.now / "a.html"]]
    )
    code, said = command(["audit", *verb, "-q"])
    require_words(code, said)
    return f"{way}: {'refused' if code else 'taken'}"


def plan_digest(body: dict[str, Any]) -> str:
    """What `Record.digest` would be, for whoever forges a plan."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


ANSWERS = ["yes", "no", "?", "", "1", "0", "true", "ja", "\ufeff", "=1+1", "2", "nan", "\x00", "y" * 9999, '"', ",",
           "\r"]  # fmt: skip


def other_cells(text: str, rng: random.Random) -> str:
    """Cells replaced, rows doubled, dropped or shuffled, separators changed: what people and spreadsheets do."""
    head, *rows = text.splitlines()
    for _ in range(rng.choice([1, 2, 5])):
        at = rng.randrange(len(rows)) if rows else 0
        match rng.choice(["cell", "cell", "cell", "double", "drop", "shuffle", "head"]):
            case "double" if rows:
                rows.insert(at, rows[at])
            case "drop" if rows:
                rows.pop(at)
            case "shuffle":
                rng.shuffle(rows)
            case "head":
                head = head.replace(rng.choice(["row", "answer", "inclusion"]), rng.choice(ANSWERS))
            case _ if rows:
                cells = rows[at].split(",")
                cells[rng.randrange(len(cells))] = rng.choice(ANSWERS)
                rows[at] = ",".join(cells)
    return "\n".join([head, *rows]).replace(",", rng.choice([",", ",", ";", "\t"]))


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
    "training": training_case,
    "options": options_case,
    "audit": audit_case,
}
WEIGHTS = {"model": 29, "model, not vouched for": 7, "record": 11, "checkpoint": 5, "cache": 6, "comparison": 6,
           "table": 20, "training": 2, "options": 8, "audit": 6}  # fmt: skip


def kind_of(seed: int) -> str:
    return random.Random(seed).choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def run_case(ground: Ground, seed: int) -> tuple[str, str]:
    """Which kind a seed is, and how it ended; an exception is a failure."""
    kind = kind_of(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind, CASES[kind](ground, random.Random(f"{kind} {seed}"))
