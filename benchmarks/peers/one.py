"""One tool, one method, one problem, one seed, in a process of its own with one thread; a line of JSON.

python benchmarks/peers/one.py '{"problem": "table", "tool": "pue", "method": "nnPU, linear", "seed": 0}'
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from problems import PROBLEMS, Method, Problem
from sklearn.metrics import roc_auc_score

MODULES = {
    "pue": "with_pue",
    "pulearn": "with_pulearn",
    "pu-toolbox": "with_pu_toolbox",
    "cleanlab": "with_cleanlab",
    "scikit-learn": "with_sklearn",
}


def measure(method: Method, problem: Problem, truth: NDArray[Any], seed: int) -> dict[str, Any]:
    """Accuracy and AUC (%) by the true classes, seconds of the processor and of the clock, peak memory (GB)."""
    problem = method.prepare(problem)
    fitted, fit = _timed(lambda: method.fit(problem, seed))
    calls, predict = _timed(lambda: np.asarray(fitted.calls(problem.new)))
    scores = np.asarray(fitted.scores(problem.new), dtype=np.float64)
    return {
        "accuracy": 100 * float(np.mean((calls > 0) == (truth == 1))),
        "auc": 100 * float(roc_auc_score(truth, scores)),
        "called": 100 * float(np.mean(calls > 0)),
        "fit": fit,
        "predict": predict,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def warm_up() -> None:
    """What the first step of an optimizer imports is not part of anybody's fit."""
    parameter = torch.zeros(1, requires_grad=True)
    parameter.sum().backward()
    torch.optim.Adam([parameter]).step()


def main() -> None:
    job = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (job["limit"], job["limit"] + 5))
    torch.set_num_threads(1)
    method = importlib.import_module(MODULES[job["tool"]]).METHODS[job["method"]]
    problem, truth = PROBLEMS[job["problem"]](job["seed"], job["rows"])
    warm_up()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = measure(method, problem, truth, job["seed"])
    said = [f"{warning.category.__name__}: {' '.join(str(warning.message).split())}" for warning in caught]
    print(json.dumps({**found, "warnings": list(dict.fromkeys(said))[:5]}))


if __name__ == "__main__":
    main()
