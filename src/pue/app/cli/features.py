"""`pue features`: learn features of images without labels, or compute them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pue.app.cli import shared
from pue.app.cli.places import claim, require_apart
from pue.app.cli.shared import Voice

features = typer.Typer(help="Learn features of images without labels, or compute them.", no_args_is_help=True)

Images = Annotated[
    Path, typer.Argument(help="A folder of images, or an array of them (.npy, .npz).", show_default=False)
]
Named = Annotated[
    Path,
    typer.Argument(
        help="A folder of images, an array of them (.npy, .npz), or a data set of `pue data list`.", show_default=False
    ),
]


@features.command("fit")
def fit(
    images: Named,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the encoder.")],
    epochs: Annotated[int, typer.Option(help="Passes over the images.", min=1)] = 60,
    agreement: Annotated[str, typer.Option(help="simclr or vicreg.")] = "simclr",
    view_size: Annotated[
        int | None, typer.Option(help="Pixels a side of what it is shown.", show_default="3/4 of an image", min=16)
    ] = None,
    flip: Annotated[bool, typer.Option("--flip/--no-flip", help="Whether mirrored images mean the same.")] = True,
    image_size: shared.ImageSize = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets.", show_default="PUE_DATA")] = None,
    seed: shared.Seed = 0,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Train an encoder on images alone: two views of an image shall look alike, and unlike all others.

    It takes about a minute of one core for two passes over 50,000 images of 32 × 32 pixels. A training that was
    stopped continues with the same command.

    [bold]Examples[/bold]

      pue features fit scans -o features --image-size 32 --epochs 100

      pue features apply scans -o scans.parquet --encoder features

      pue fit scans.parquet --label s -o model
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    require_apart(output, images)
    claim(output)
    from pue.app.features import fit_features, images_of
    from pue.features import Recipe, Views

    with voice.notes():
        pixels = images_of(images, image_size, data)
        size = view_size or max(16, round(0.75 * min(pixels.shape[2:])))
        recipe = Recipe(agreement, epochs=epochs, views=Views(size=size, flip=flip), seed=seed)
        found = fit_features(pixels, recipe, output, progress=voice.progress)
    cpu = float(found.facts["cpu_seconds"])
    voice.show(f"{found.widths[-1]} features, learnt from {len(pixels):,} images in {cpu:.0f} CPU seconds: {output}")
    voice.give({"features": found.widths[-1], "key": found.key, **found.facts})


@features.command("apply")
def apply(
    images: Images,
    output: Annotated[Path, typer.Option("--output", "-o", help=".parquet, .feather, .csv or .csv.gz.")],
    encoder: Annotated[
        str,
        typer.Option(
            help="A folder of `pue features fit`; or a .onnx or TorchScript file, or package.module:factory. The last "
            "two run code: use only what you trust."
        ),
    ],
    labels: shared.Labels = None,
    image_size: shared.ImageSize = None,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Write a table of features, one row an image, for any method: what stands beside the images comes along.

    [bold]Examples[/bold]

      pue features apply scans --labels known.csv -o scans.parquet --encoder features

      pue features apply scans -o scans.parquet --encoder mynetwork:make --image-size 224
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    require_apart(output, images)
    claim(output)
    from pue.app.features import apply_features
    from pue.app.sources.opening import open_source
    from pue.features import open_encoder

    columns = (TextColumn("encoding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    silent = voice.progress is False or not voice.err.is_terminal
    with voice.notes(), Progress(*columns, console=voice.err, transient=True, disable=silent) as bar:
        source = open_source(images, labels=labels, image_size=image_size)
        task = bar.add_task("", total=source.n_rows)
        rows, width = apply_features(
            source, open_encoder(encoder), output, progress=lambda done: bar.update(task, completed=done)
        )
    voice.show(f"{rows:,} rows of {width} features: {output}")
    voice.give({"rows": rows, "features": width})
