"""Where work is done: by this machine's processes (local), or by Ray, on this machine or a cluster."""

from pue.engines.cluster import Cluster, open_engine, ray_cluster

__all__ = ["Cluster", "open_engine", "ray_cluster"]
