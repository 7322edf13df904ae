"""Experiments: a spec, its run, its record, and suites of them."""

from pue.experiments.execute import Outcome, Place, Watch, execute
from pue.experiments.presets import PRESETS, Preset
from pue.experiments.spec import Labels, Settings, Spec, read_spec
from pue.experiments.store import Busy, Damaged, Store, comparable
from pue.experiments.suites import SUITES, Row, Suite, resolve, row_name

__all__ = [
    "PRESETS",
    "SUITES",
    "Busy",
    "Damaged",
    "Labels",
    "Outcome",
    "Place",
    "Preset",
    "Row",
    "Settings",
    "Spec",
    "Store",
    "Suite",
    "Watch",
    "comparable",
    "execute",
    "read_spec",
    "resolve",
    "row_name",
]
