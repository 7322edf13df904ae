"""`pue inspect`: what is this model?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pue.app.cli import shared
from pue.app.cli.shared import Voice


def inspect(
    model: Annotated[Path, typer.Argument(help="Folder of the model.", show_default=False)],
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Say what a model is, what it was trained on and how, and what it is estimated to be worth.

    [bold]Examples[/bold]

      pue inspect model

      pue inspect model --json
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    from pue.app.cli.terminal import metrics_table, model_lines, two_columns
    from pue.app.model import load_model

    with voice.notes():
        fitted = load_model(model)
    summary = fitted.summary
    with shared.showing(model):
        table = metrics_table(summary["metrics"], summary.get("scar_metrics"))
        columns = ", ".join(f"{column['name']} ({column['kind']})" for column in summary["data"]["columns"])
        facts = [
            ("made", f"{summary['created']} by pue {summary['version']}, seed {summary['method']['seed']}"),
            ("columns", columns or "images"),
            *summary["method"]["settings"].items(),
            *(("warning", text) for text in summary["warnings"]),
        ]
        voice.show(*model_lines(fitted), table, two_columns(facts))
    voice.give(summary)
