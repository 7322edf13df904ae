"""`pue explain`: why does a row score as it does, and which columns matter at all?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pue.app.cli import shared
from pue.app.cli.shared import Voice


def explain(
    model: Annotated[Path, typer.Argument(help="Folder of the model.", show_default=False)],
    data: shared.Data,
    row: Annotated[
        str | None, typer.Option(help="The row's id, or its number from 0; without it, the columns over all rows.")
    ] = None,
    row_id: shared.Id = None,
    top: Annotated[int, typer.Option(help="How many columns to show.", min=1)] = 10,
    rows: Annotated[int, typer.Option(help="Without --row: at most so many rows, the first ones.", min=2)] = 1000,
    seed: shared.Seed = 0,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Say what each column adds to a row's score; or, without --row, how much each moves scores on the whole.

    Exact Shapley values for forests, boosting and their blend, sampled ones for other models. They say what the model
    looks at, not what causes what. Where the rows have labels, also by how much the ranking suffers if a column is
    shuffled.

    [bold]Examples[/bold]

      pue explain model claims.parquet --row C0042

      pue explain model claims.parquet
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    from pue.app.cli.terminal import importance_view, reasons_view
    from pue.app.explain import columns_of, find_row, importance_by_labels, shown
    from pue.app.explain import explain as explained
    from pue.app.model import load_model
    from pue.app.sources.problems import require_column

    with voice.notes():
        fitted = load_model(model)
        source = shared.open_data(data, None, None, fitted)
        columns = columns_of(fitted)
        if row_id is not None:
            require_column(row_id, source.columns)
        if row is not None:
            frame = find_row(source, row, columns, row_id if row_id is not None else fitted.facts.get("id"))
            found = explained(fitted, frame, seed=seed)
            cells = {name: shown(frame[name].iloc[0]) for name in columns}
            parts = [{"column": name, "value": cells[name], "effect": size} for name, size in found.top(0, top)]
            p = float(fitted.probabilities(fitted.features(frame))[0])
            voice.show(*reasons_view(row, p, found, parts))
            voice.give({"row": row, "probability": p, "base": found.base, "scale": found.scale, "reasons": parts})
            return
        label = fitted.facts.get("label")
        frame = source.read([*columns, *([label] if label in source.columns else [])], rows=rows)
        found = explained(fitted, frame, seed=seed)
        falls = importance_by_labels(fitted, frame, label, seed=seed)
    voice.show(*importance_view(found, falls, top, len(frame)))
    voice.give({"rows": len(frame), "scale": found.scale, "mean_effect": found.importance, "fall_of_auc": falls})
