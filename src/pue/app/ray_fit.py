"""`fit_source` by the workers of a Ray cluster: one process group, the same code, the model brought back.

A worker that dies takes the group down; Ray starts it again, up to `RETRIES` times, and since randomness is a function
of the seed it ends with the same model. Rows must lie where every worker finds them.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pue import errors
from pue.app.fit_source import fit_source
from pue.app.model import PUModel, load_model
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.app.sources.relabeled import as_labeled
from pue.core.machine import one_thread
from pue.engines import Cluster
from pue.engines.tasks import RETRIES
from pue.errors import EngineError, InvalidInput, PueError
from pue.files import write_text
from pue.training.processes import place

MODEL, ERROR = "model", "error.json"


@dataclass(frozen=True)
class Job:
    """Everything about a fit, with the rows by name."""

    data: Path
    roles: Roles
    recipe: Recipe
    memory: int | None = None
    labels: Path | None = None
    image_size: int | None = None


def fit_on(cluster: Cluster, job: Job, scratch: Path) -> PUModel:
    """The model of a job; `scratch` is a folder that workers and this process share, for the model to travel."""
    train, torch_train = (importlib.import_module(name) for name in ("ray.train", "ray.train.torch"))
    logging.getLogger("ray.train").setLevel(logging.CRITICAL)
    os.environ.setdefault("TORCH_PROCESS_GROUP_SHUTDOWN_TIMEOUT_S", "5")  # after a worker died; Ray: 30
    processors = int(cluster.ray.cluster_resources().get("CPU", 0))
    if cluster.workers > processors:
        raise EngineError(f"{cluster.workers} workers need as many CPUs, but the cluster has {processors}.")
    recipe, labels = replace(job.recipe, progress=False, jobs=1), job.labels and job.labels.absolute()
    job = replace(job, data=job.data.absolute(), labels=labels, recipe=recipe)
    folder = Path(tempfile.mkdtemp(prefix=".pue-fit-", dir=scratch.absolute()))
    try:
        trainer = torch_train.TorchTrainer(
            _work,
            train_loop_config={"job": job},
            torch_config=torch_train.TorchConfig(backend="gloo"),
            scaling_config=train.ScalingConfig(num_workers=cluster.workers, resources_per_worker={"CPU": 1}),
            run_config=train.RunConfig(
                name="fit", storage_path=str(folder), failure_config=train.FailureConfig(max_failures=RETRIES)
            ),
        )
        try:
            result = trainer.fit()
        except (cluster.ray.exceptions.RayError, RuntimeError) as error:
            raise EngineError(f"the workers of Ray could not train: {error}") from error
        with result.checkpoint.as_directory() as found:
            return brought_back(Path(found))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def brought_back(folder: Path) -> PUModel:
    """The model that the workers left there, or the error that they all ended in."""
    if (refused := folder / ERROR).exists():
        kind, message = json.loads(refused.read_text())
        raise getattr(errors, kind)(message)
    return load_model(folder / MODEL)


def _work(config: dict[str, Any]) -> None:
    """What every worker does, inside a group that Ray has made; the first one hands the model over.

    An error that all workers end in is handed over instead: to begin again would not help.
    """
    train = importlib.import_module("ray.train")
    job: Job = config["job"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            with one_thread():
                opened = open_source(job.data, labels=job.labels, image_size=job.image_size)
                source = as_labeled(opened, job.roles.label, job.roles.positive)
                fit_source(source, job.roles, job.recipe, memory=job.memory).save(Path(folder) / MODEL)
        except PueError as error:
            kind = InvalidInput if isinstance(error, InvalidInput) else type(error)  # a subclass may ask for more
            write_text(Path(folder) / ERROR, json.dumps([kind.__name__, str(error)]))
        first = place()[0] == 0
        train.report({}, checkpoint=train.Checkpoint.from_directory(folder) if first else None)
