"""Results on the terminal: lines and tables made of a model's summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Column, Table

from pue.app.page.ranges import in_words
from pue.judging.estimates import ESTIMATED

if TYPE_CHECKING:
    from pue.app.compare import Result
    from pue.app.evaluate import Evaluation
    from pue.app.explain import Explanation
    from pue.app.model import PUModel


UNSEEN = "no sign of bias, though overlap with the negatives may hide one"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def interval(found: Mapping[str, float | None]) -> str:
    value, low, high = (found[name] for name in ("value", "low", "high"))
    return percent(None) if value is None or low is None or high is None else f"{percent(value)}  {_range(low, high)}"


def _range(low: float, high: float) -> str:
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def model_lines(model: PUModel) -> Iterator[str]:
    """What was learnt from, with what, and what follows."""
    s = model.summary
    data, prior, scar, propensity = s["data"], s["prior"], s.get("scar"), s.get("propensity")
    yield f"{data['source']}: {data['n_rows']:,} rows, {data['n_labeled']:,} labeled positive in {data['label']!r}"
    yield from left_out_lines(data)
    yield from prior_lines(prior)
    if scar is not None:
        fewer = "biased, or fewer positives than estimated" if scar.get("or_fewer") else UNSEEN
        yield f"Labels: {'biased' if scar['rejected'] else fewer} (p = {scar['p_value']:.2g})"
    if data["columns"] and scar is not None and (scar["rejected"] or scar.get("or_fewer")):
        named = ", ".join(f"{driver['name']} ({driver['difference']:+.1f} sd)" for driver in s["drivers"][:3])
        yield f"Labeled rows differ from other positives most in: {named or 'no column by itself'}"
    if propensity is not None:
        yield (
            f"Weights: {propensity['n_labeled']:,} labeled rows are worth {propensity['effective_sample_size']:,.0f}; "
            f"{propensity['source']}"
        )
    took = f", {s['method']['seconds']:.0f} s" if "seconds" in s["method"] else ""  # a saved model holds no times
    yield f"Method: {s['method']['display']}{took}"
    if s["method"].get("why"):
        yield f"It is {s['method']['why']}."
    yield f"Threshold: {model.threshold:.3f} ({model.rule})"


def left_out_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Columns that were not learnt from, and why."""
    for dropped in data.get("dropped", []):
        yield f"Left out: {dropped['name']} ({dropped['reason']})"


def prior_lines(prior: Mapping[str, Any]) -> Iterator[str]:
    """The share of positives: given, or a choice inside a range, with what single assumptions give."""
    if prior["method"] == "given":
        yield f"Share of positives: {prior['value']:.3f} (given)"
        return
    if prior["method"] == "audit":
        ends = f"{prior['level']:.0%} interval {prior['low']:.3f} to {prior['high']:.3f}"
        yield f"Share of positives: {prior['value']:.3f}, {ends}, by the answers of an audit"
        return
    yield (
        f"Share of positives: {prior['value']:.3f}, {prior['level']:.0%} interval {prior['low']:.3f} to "
        f"{prior['high']:.3f}. Labels alone do not say it; a hundred answers would (pue audit plan)."
    )
    if prior.get("readings"):
        yield "  If " + "; if ".join(f"{name}: {value:.3f}" for name, value in prior["readings"].items())
    if prior.get("range"):
        yield "  " + in_words(prior["range"])


def metrics_table(metrics: Mapping[str, Any], scar: Mapping[str, Any] | None = None) -> Table:
    """Estimated metrics with intervals, and beside them what they would be if labels were unbiased."""
    note = f"; this predictor {metrics['trivial']}" if metrics.get("trivial") else ""
    note += f"; they contradict each other: {metrics['contradiction']}" if metrics.get("contradiction") else ""
    headings = ["estimate"] if scar is None else ["estimate", "if labels were unbiased"]
    table = table_of(f"Estimated without negatives, {metrics['level']:.0%} intervals{note}", "", *headings)
    for name, title in ESTIMATED.items():
        beside = [] if scar is None else [interval(scar["values"][name])]
        table.add_row(title, interval(metrics["values"][name]), *beside)
    table.caption = f"from {metrics['n_labeled']:,} labeled rows among {metrics['n_population']:,}; {metrics['how']}"
    return table


def evaluation_table(found: Evaluation) -> Table:
    """Exact metrics where there is truth, estimates where there are PU labels."""
    estimated, scar, truth = found.estimated, found.scar, found.truth
    headings = {"exact": truth, "estimate": estimated, "if labels were unbiased": scar}
    table = table_of(_title(found), "", *(heading for heading, there in headings.items() if there is not None))
    for name, title in ESTIMATED.items():
        cells = [title]
        if truth is not None:
            cells.append(percent(truth.as_dict().get(name)))
        cells += [interval(vars(getattr(m, name))) for m in (estimated, scar) if m is not None]
        table.add_row(*cells)
    if found.calibration_error is not None:
        table.caption = f"expected calibration error {percent(found.calibration_error)}"
    return table


def _title(found: Evaluation) -> str:
    parts = [f"{found.n_rows:,} rows"]
    if found.estimated is not None:
        parts.append(
            f"estimates without negatives, {found.estimated.level:.0%} intervals, if {found.estimated.assumption}"
        )
        if found.estimated.trivial:
            parts.append(f"this predictor {found.estimated.trivial}")
        if found.estimated.contradiction:
            parts.append(f"they contradict each other: {found.estimated.contradiction}")
    return "; ".join(parts)


def comparison_table(results: Sequence[Result], names: Sequence[str], by: str) -> Table:
    """Candidates, best first, with the metrics of these names."""
    headings = [ESTIMATED[name] + (" ↓" if name == by else "") for name in names]
    title = f"Estimated without negatives, in percent, best {ESTIMATED[by]} first"
    table = table_of(title, "candidate", *headings, "seconds")
    for result in results:
        if result.failed is not None:
            empty = [""] * (len(names) - 1)
            table.add_row(result.candidate, f"failed: {result.failed}", *empty, f"{result.seconds:.0f}")
            continue
        found = [result.metrics[name] for name in names]
        cells = [f"{100 * value:.1f} {_range(low, high)}" for value, low, high in found]
        name = result.candidate + (f" ({result.trivial})" if result.trivial else "")
        table.add_row(name, *cells, f"{result.seconds:.0f}")
    return table


def table_of(title: str, first: str, *headings: str) -> Table:
    """Names at the left, numbers at the right."""
    return Table(first, *(Column(name, justify="right") for name in headings), title=title, title_justify="left")


def two_columns(rows: Iterable[tuple[str, Any]]) -> Table:
    table = Table(Column(style="bold"), Column(), show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in rows:
        table.add_row(name, str(value))
    return table


def reasons_view(row: str, p: float, found: Explanation, parts: Sequence[Mapping[str, Any]]) -> list[str | Table]:
    """The columns of one row that move its score most."""
    score = found.base + float(found.values[0].sum())
    table = Table("column", "value", Column("effect", justify="right"))
    for part in parts:
        table.add_row(part["column"], part["value"], f"{part['effect']:+.3f}")
    if len(parts) < len(found.columns):
        rest = score - found.base - sum(part["effect"] for part in parts)
        table.add_row(f"{len(found.columns) - len(parts)} others", "", f"{rest:+.3f}")
    how = "Exact" if found.exact else "Sampled"
    return [
        f"Row {row}: P(positive) {p:.3f}; {found.scale} {score:.3f}, on average {found.base:.3f}",
        table,
        f"{how} Shapley values: what the model looks at, not what causes what.",
    ]


def importance_view(found: Explanation, falls: Mapping[str, float] | None, top: int, n: int) -> list[str | Table]:
    """Columns by how much they move scores, and by how much the ranking suffers without them."""
    headings = ["mean effect", *([] if falls is None else ["fall of AUC if shuffled"])]
    table = Table("column", *(Column(name, justify="right") for name in headings))
    for name, size in list(found.importance.items())[:top]:
        table.add_row(name, f"{size:.3f}", *([] if falls is None else [percent(falls[name])]))
    return [f"{n:,} rows; effects in {found.scale}", table]
