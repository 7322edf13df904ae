"""A diagnosis in four panels: propensities, weights, the SCAR test and the drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pue.errors import require

if TYPE_CHECKING:
    from pue.diagnosis.found import Diagnosis


def draw(d: Diagnosis) -> Any:
    """A matplotlib figure."""
    require("app", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for panel, part in zip(panels, (_draw_propensity, _draw_weights, _draw_null, _draw_drivers), strict=True):
        part(panel, d)
    return figure


def _draw_propensity(panel: Any, d: Diagnosis) -> None:
    panel.set_title("Chances of a label")
    if d.propensity is None or d.unlabeled_propensity is None:
        panel.text(0.5, 0.5, "not estimated", ha="center", transform=panel.transAxes)
        return
    bins = np.linspace(0, float(max(d.propensity.max(), d.unlabeled_propensity.max())), 31)
    for values, name in ((d.unlabeled_propensity, "unlabeled rows"), (d.propensity, "labeled rows")):
        panel.hist(values.numpy(), bins=bins, density=True, alpha=0.6, label=name)
    panel.set_xlabel("estimated chance of a label")
    panel.legend()


def _draw_weights(panel: Any, d: Diagnosis) -> None:
    panel.set_title("How the weight is spread")
    if d.propensity is None or d.report is None:
        panel.text(0.5, 0.5, "not estimated", ha="center", transform=panel.transAxes)
        return
    weight = (1 / d.propensity).sort(descending=True).values
    panel.plot(np.arange(1, len(weight) + 1) / len(weight), (weight.cumsum(0) / weight.sum()).numpy())
    panel.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    panel.set_xlabel("share of the labeled rows, heaviest first")
    panel.set_ylabel("share of the weight")
    panel.text(0.95, 0.05, f"effective: {d.report.effective_sample_size:.0f} of {d.n_labeled}", ha="right")


def _draw_null(panel: Any, d: Diagnosis) -> None:
    panel.set_title("Are the labels a fair draw (SCAR)?")
    if d.scar is None:
        panel.text(0.5, 0.5, "too few rows", ha="center", transform=panel.transAxes)
        return
    panel.hist(d.scar.null.numpy(), bins=30, color="0.7", label="artificial SCAR labelings")
    panel.axvline(d.scar.statistic, color="C3", label=f"these labels, p = {d.scar.p_value:.2g}")
    panel.set_xlabel("excess of labels where they are densest")
    panel.legend()


def _draw_drivers(panel: Any, d: Diagnosis) -> None:
    panel.set_title("Labeled rows minus estimated positives")
    if not d.drivers:
        panel.text(0.5, 0.5, "no table", ha="center", transform=panel.transAxes)
        return
    top = d.drivers[:10][::-1]
    panel.plot([driver.difference for driver in top], range(len(top)), "o", color="C0")
    panel.hlines(range(len(top)), 0, [driver.difference for driver in top], color="C0", linewidth=1.5)
    panel.set_yticks(range(len(top)), [driver.name for driver in top])
    panel.axvline(0, color="0.3", linewidth=1)
    panel.set_xlabel("standard deviations")
