"""Tasks on a cluster, at most as many at once as it has workers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from pue.engines.cluster import Cluster
from pue.errors import EngineError

RETRIES = 3
"""How often a task is begun again whose worker died."""
Key = TypeVar("Key", bound=Hashable)


class Tasks(Generic[Key]):
    """One processor each; what a task raises itself is raised here, a worker lost for good becomes its result."""

    def __init__(self, cluster: Cluster, function: Callable[..., Any]) -> None:
        self._ray, self._most = cluster.ray, cluster.workers
        self._task = cluster.ray.remote(num_cpus=1, max_retries=RETRIES)(function)
        self._running: dict[Any, Key] = {}

    def __len__(self) -> int:
        return len(self._running)

    @property
    def full(self) -> bool:
        return len(self) >= self._most

    def start(self, key: Key, *arguments: Any) -> None:
        self._running[self._task.remote(*arguments)] = key

    def ended(self, seconds: float | None = None) -> Iterator[tuple[Key, Any]]:
        """Key and result of those that end within some seconds; an `EngineError` where the worker is lost."""
        if not self._running:
            return
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        for reference in ready:
            key = self._running.pop(reference)
            try:
                yield key, self._ray.get(reference)
            except self._ray.exceptions.RayTaskError:
                raise
            except self._ray.exceptions.RayError as error:
                reason = type(error).__name__
                yield key, EngineError(f"its worker died {RETRIES + 1} times ({reason}); it stays undone.")
