"""A connection to Ray: started for a command or joined, checked before work begins, given back at the end.

Every wait is bounded. How a cluster authenticates is Ray's own business and set in its environment.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pue.errors import EngineError, InvalidInput, UnknownName

ENGINES = ("local", "ray")
CONNECT = 10.0
"""Seconds until an address that does not answer is given up."""
ANSWER = 20.0
"""Seconds until something that answers, but not as Ray does, is given up."""
CHECK = 60.0
"""Seconds that workers have to start and say which version they have."""


@dataclass(frozen=True)
class Cluster:
    """A Ray that is connected, and how many tasks it is given at once."""

    ray: Any
    workers: int


@contextmanager
def open_engine(name: str, address: str | None = None, workers: int | None = None) -> Iterator[Cluster | None]:
    """The engine of a command: None for "local", a connected cluster for "ray"."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if name == "local":
        if address is not None or workers is not None:
            raise InvalidInput("--address and --workers are of the engine ray. Add --engine ray, or leave them out.")
        yield None
    else:
        with ray_cluster(address, workers) as cluster:
            yield cluster


@contextmanager
def ray_cluster(address: str | None = None, workers: int | None = None) -> Iterator[Cluster]:
    """The Ray at `address`; without one, a Ray of this machine that ends with the context, however that is left.

    A Ray that this process is connected to already is used and left as it is.
    """
    if workers is not None and workers < 1:
        raise InvalidInput(f"workers must be at least 1; got {workers}.")
    ray = _import_ray()
    if address is not None:
        require_ray_at(address)
    if ray.is_initialized():
        if address is not None:
            raise EngineError("this process is connected to a Ray already. Leave the address out to use that one.")
        yield _checked(ray, workers)
        return
    try:
        _connect(ray, address, workers)
        yield _checked(ray, workers)
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise EngineError(f"Ray cannot be imported ({error}). Install it: pip install 'pue[ray]'") from error


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError, ImportError, ray.exceptions.RayError) as error:
        raise EngineError(f"cannot connect to the Ray at {address}: {_first_line(error)}") from error


def require_ray_at(address: str) -> None:
    """An error where nothing answers at `address`, or not as Ray does: `ray.init` would wait for minutes."""
    if address == "auto":  # Ray looks for one on this machine and says at once if there is none
        return
    if address.startswith("ray://"):
        raise InvalidInput(
            f"{address} is the address of Ray's client, through which Ray Data and Ray Train cannot be driven. Run the "
            "command on a machine of the cluster with --address auto (or host:port), or hand it in: ray job submit."
        )
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65_536):
        raise InvalidInput(f"an address is host:port or auto; got {address!r}.")
    remedy = "Start one with `ray start --head`, or leave --address out for a Ray of this machine."
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT).close()
    except OSError as error:
        raise EngineError(f"there is no Ray at {address} ({error.strerror or error}). {remedy}") from error
    try:  # only its end matters: what it has to complain about, ray.init says too
        subprocess.run(
            [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=ANSWER,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"what answers at {address} is not Ray. {remedy}") from error


def _checked(ray: Any, workers: int | None) -> Cluster:
    """The cluster, once every node of it has shown that it has this version of the package and a processor."""
    require_package(ray, _version_there())
    processors = int(ray.cluster_resources().get("CPU", 0))
    if processors < 1:
        raise EngineError("the Ray cluster has no processors (CPU) for tasks. Add a worker node to it.")
    return Cluster(ray, workers or processors)


def require_package(ray: Any, version_there: Callable[[], str]) -> None:
    """An error that names the remedy where a node lacks the package or has another version."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    task, ours = ray.remote(num_cpus=0, max_retries=0)(version_there), version("pue")
    nodes = [node for node in ray.nodes() if node["Alive"]]
    placed = [strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
    answers = [task.options(scheduling_strategy=place).remote() for place in placed]
    for node, answer in zip(nodes, answers, strict=True):
        name = node["NodeManagerHostname"]
        remedy = f"Install it there: pip install 'pue[ray]=={ours}'"
        try:
            theirs = ray.get(answer, timeout=CHECK)
        except ImportError as error:
            raise EngineError(f"workers on {name} lack the package pue. {remedy}") from error
        except ray.exceptions.GetTimeoutError as error:
            raise EngineError(f"workers on {name} did not start within {CHECK:.0f} s. Look at its logs.") from error
        except ray.exceptions.RayError as error:
            raise EngineError(f"workers on {name} cannot run tasks: {_first_line(error)}") from error
        if theirs != ours:
            raise EngineError(f"workers on {name} have pue {theirs}, this is {ours}. {remedy}")


def _version_there() -> Callable[[], str]:
    def version_there() -> str:  # no function of the module: Ray sends it whole, for the package may not be there
        import importlib
        import importlib.metadata

        importlib.import_module("pue")
        return importlib.metadata.version("pue")

    return version_there


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
