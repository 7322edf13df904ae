"""`pue inspect`: what is this model?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pue.cli import shared
from pue.cli.shared import Voice

HELP = """Say what a model is, what it was trained on and how, and what it is estimated to be worth.

[bold]Examples[/bold]

  pue inspect model

  pue inspect model --json
"""


def inspect(
    model: Annotated[Path, typer.Argument(help="Folder of the model.", show_default=False)],
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    voice = Voice(as_json=as_json, quiet=quiet)
    from pue.cli.tables import metrics_table, model_lines, two_columns
    from pue.model.files import load_model

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


inspect.__doc__ = HELP
