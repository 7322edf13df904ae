"""The published rows of the PUe paper, as printed: mean and standard deviation over 6 seeds, in percent.

Their AUC and average precision come in two flavours: `H` from hard 0/1 predictions (AUC is then the balanced accuracy),
`S` from scores. Which one a row printed follows from its precision and recall: AUC_hard = (TPR + TNR) / 2 and
AP_hard = P·R + (1 − R)·π hold for every `H` row and for no `S` row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pue.report.spread import Spread

SEEDS = 6
METRICS = ("accuracy", "precision", "recall", "f1", "auc", "ap")
Flavor = Literal["hard", "score"]

MIXES: dict[str, tuple[float, ...] | None] = {
    "mnist": (0.65, 0.15, 0.10, 0.07, 0.03),
    "cifar10": (0.72, 0.15, 0.10, 0.03),
    "alzheimer": None,
}
"""Share of each positive class among the labels of the main tables; None: not told, read as SCAR."""
LABELED = {"mnist": 2500, "cifar10": 1000, "alzheimer": 769}
"""How many positives are labeled."""


@dataclass(frozen=True)
class PaperRow:
    """One printed row."""

    suite: str
    """The suite that repeats its table."""
    dataset: str
    name: str
    mix: tuple[float, ...] | None
    regularized: bool | None
    """Whether the α_e term was on; None where the table does not say."""
    metrics: dict[str, Spread]
    flavor: Flavor
    """How `auc` and `ap` were computed."""
    note: str = ""


# data set, row, then mean and sd of accuracy, precision, recall, F1, AUC and AP, then the flavour
_MAIN = """
mnist     uPU        85.17  1.90  78.38  2.36  96.69  1.33  86.55  1.50  85.34  1.87  77.41  2.26  H
mnist     nnPU       87.81  1.65  83.78  2.14  93.40  1.68  88.31  1.51  87.89  1.63  81.62  2.28  H
mnist     PUbN       87.07  1.73  83.43  2.74  92.21  2.55  87.55  1.55  87.14  2.74  80.70  2.59  H
mnist     Dist-PU    89.79  0.59  92.22  1.67  88.86  1.48  90.49  0.47  96.60  0.30  96.92  0.21  S
mnist     uPUe       92.28  1.32  89.41  1.87  95.71  1.43  92.44  1.25  92.33  1.31  87.69  1.92  H
mnist     nnPUe      92.45  1.61  90.45  2.26  94.73  1.24  92.53  1.55  92.48  1.60  88.29  2.43  H
mnist     PUbNe      94.70  0.63  97.16  1.59  91.33  1.58  94.46  0.71  94.66  0.50  93.18  0.55  H
mnist     Dist-PUe   92.57  0.78  93.02  0.86  90.58  1.47  92.77  0.84  97.13  0.57  97.43  0.44  S
mnist     uPUe'      92.39  1.36  89.33  1.87  96.07  1.70  92.56  1.30  92.44  1.87  87.76  1.93  H
mnist     nnPUe'     92.94  1.27  91.11  1.84  94.98  2.38  92.98  1.29  92.96  1.27  89.00  1.77  H
mnist     PUbNe'     94.48  0.93  97.74  0.46  90.90  2.10  94.18  1.06  94.43  0.95  93.45  1.00  H
mnist     Dist-PUe'  91.73  0.95  93.34  0.42  89.60  2.38  91.41  1.11  96.48  1.54  96.60  1.37  S
cifar10   uPU        76.33  1.76  83.59  0.65  50.81  5.57  63.01  4.35  84.40  3.12  78.68  2.22  S
cifar10   nnPU       82.47  0.69  75.30  1.35  83.68  1.64  79.25  0.75  90.01  0.73  85.22  0.73  S
cifar10   PUbN       84.54  0.54  82.18  1.38  78.40  2.70  80.20  0.99  91.62  0.27  87.31  0.40  S
cifar10   Dist-PU    84.45  1.00  80.90  1.51  80.04  1.62  80.46  1.26  90.89  1.20  85.67  1.54  S
cifar10   uPUe       79.31  0.90  81.37  2.16  62.86  5.02  70.73  2.58  86.76  0.82  80.07  1.56  S
cifar10   nnPUe      83.33  1.04  76.83  2.75  83.88  2.86  80.11  0.85  90.53  0.79  85.33  1.36  S
cifar10   PUbNe      85.66  0.58  83.18  1.63  80.52  2.29  81.79  0.66  92.69  0.74  89.41  1.24  S
cifar10   Dist-PUe   86.97  0.62  82.11  1.69  86.46  2.00  84.19  0.76  93.50  0.66  89.38  1.78  S
cifar10   uPUe'      79.11  1.75  85.11  1.58  57.92  4.96  68.80  3.61  86.57  1.56  81.56  2.18  S
cifar10   nnPUe'     84.24  0.67  78.40  0.86  83.66  2.35  80.92  1.02  91.35  0.99  87.15  1.83  S
cifar10   PUbNe'     87.02  0.47  83.84  1.44  83.78  2.68  83.76  0.82  93.80  0.42  90.69  0.65  S
cifar10   Dist-PUe'  86.17  2.52  80.97  3.20  85.57  3.32  83.19  3.06  92.65  2.20  88.22  3.19  S
alzheimer uPU        63.46  1.72  66.80  3.45  55.06  9.83  59.65  4.70  68.08  2.16  67.78  2.22  S
alzheimer nnPU       69.19  0.85  65.46  1.06  81.46  5.22  72.48  1.62  73.50  0.84  68.74  1.83  S
alzheimer PUbN       68.75  0.96  66.65  2.04  75.64  5.58  70.68  1.52  72.57  0.63  66.99  0.80  S
alzheimer Dist-PU    69.74  0.50  67.74  1.57  75.69  4.72  71.37  1.33  74.34  1.10  69.53  1.39  S
alzheimer uPUe       65.30  3.36  68.53  1.99  56.73 11.93  61.32  7.58  70.49  3.99  70.28  3.09  S
alzheimer nnPUe      69.38  0.56  65.97  0.68  80.06  2.77  72.30  0.91  74.49  0.34  69.98  0.60  S
alzheimer PUbNe      69.52  0.85  68.28  1.28  72.95  1.99  70.51  0.82  74.68  1.08  70.33  0.98  S
alzheimer Dist-PUe   70.51  0.62  68.91  1.00  75.02  2.26  71.81  0.83  75.19  0.69  71.23  2.08  S
"""

# row, α_e term, labeled mix over airplane, automobile, ship and truck, then as above; all from scores
_MIX_ABLATION = """
Dist-PUe yes .25/.25/.25/.25  91.79  0.86  89.02  2.63  90.78  1.81  89.84  0.92  97.11  0.52  95.38  1.18
Dist-PUe no  .25/.25/.25/.25  91.30  0.80  89.22  1.56  89.05  1.93  89.11  1.03  96.64  0.53  94.85  0.77
Dist-PU  -   .25/.25/.25/.25  91.88  0.52  89.87  1.09  89.84  0.81  89.85  0.62  96.92  0.45  95.49  0.72
Dist-PUe yes .10/.10/.30/.50  91.50  0.32  89.07  1.15  89.78  0.97  89.41  0.34  96.67  0.14  95.64  0.26
Dist-PUe no  .10/.10/.30/.50  90.40  0.66  88.86  3.15  87.14  0.74  87.89  0.74  95.71  0.40  94.19  0.65
Dist-PU  -   .10/.10/.30/.50  90.79  0.72  91.31  1.54  85.12  2.44  88.07  1.07  95.81  0.83  91.28  2.35
Dist-PUe yes .72/.15/.10/.03  86.97  0.62  82.11  1.69  86.46  2.00  84.19  0.76  93.50  0.66  89.38  1.78
Dist-PUe no  .72/.15/.10/.03  86.44  0.67  82.19  1.54  84.45  1.78  83.28  0.82  92.90  0.63  88.39  1.32
Dist-PU  -   .72/.15/.10/.03  84.45  1.00  80.90  1.51  80.04  1.62  80.46  1.26  90.89  1.20  85.67  1.54
Dist-PUe yes .08/.86/.02/.04  88.15  1.22  88.05  2.69  81.70  5.41  84.56  2.23  94.46  1.01  92.79  1.09
Dist-PUe no  .08/.86/.02/.04  86.39  2.11  84.47  3.51  81.05  4.32  82.62  2.77  92.42  2.25  89.84  2.40
Dist-PU  -   .08/.86/.02/.04  86.74  1.58  86.56  2.51  79.30  4.60  82.65  2.48  93.30  1.32  91.08  1.69
"""

_SUPPLEMENT = """
LRe                     86.19  0.75  92.94  0.64  77.89  1.38  84.75  0.93  88.06  0.93  88.72  1.09  S
nnPUe                   92.45  1.61  90.45  2.26  94.73  1.24  92.53  1.55  92.48  1.60  88.29  2.43  H
nnPU_without_normalize  90.95  1.61  88.18  2.40  94.38  2.74  91.13  1.56  91.00  1.61  85.98  2.25  H
Self-PU                 90.08  0.47  90.08  0.47  89.35  1.17  90.70  1.73  90.00  0.53  85.61  0.69  H
anchor                  88.22  0.95  94.66  1.41  80.70  3.15  87.06  1.37  92.36  1.92  93.37  2.33  S
"""

_SAME = "the same numbers as in the main table"
_NOTES: dict[tuple[object, ...], str] = {
    ("mnist", "Dist-PU"): "printed precision and recall imply an accuracy of 90.8, not 89.79",
    ("mnist", "Dist-PUe"): "printed precision and recall imply F1 91.8 and accuracy 92.0, not 92.77 and 92.57",
    ("mnist", "PUbNe"): "printed precision and recall imply an accuracy and F1 0.3 below the printed ones",
    ("alzheimer", "uPU"): "printed F1 is 0.7 from that of the mean precision and recall; recall varies widely",
    ("alzheimer", "uPUe"): "printed F1 is 0.7 from that of the mean precision and recall; recall varies widely",
    ("supplement", "nnPUe"): _SAME,
    ("supplement", "Self-PU"): "printed F1 exceeds precision and recall; read in the order accuracy, AUC, precision, "
    "recall, F1, AP the six numbers agree",
    ("mix-ablation", "Dist-PU", (0.72, 0.15, 0.10, 0.03), None): _SAME,
    ("mix-ablation", "Dist-PUe", (0.72, 0.15, 0.10, 0.03), True): _SAME,
}


def _lines(block: str) -> Iterator[list[str]]:
    return (line.split() for line in block.strip().splitlines())


def _metrics(cells: list[str]) -> dict[str, Spread]:
    numbers = [float(cell) for cell in cells]
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return {metric: Spread(mean, sd, SEEDS) for metric, (mean, sd) in zip(METRICS, pairs, strict=True)}


def _flavor(letter: str) -> Flavor:
    return "hard" if letter == "H" else "score"


def _main() -> Iterator[PaperRow]:
    for dataset, name, *cells, letter in _lines(_MAIN):
        note = _NOTES.get((dataset, name), "")
        yield PaperRow(dataset, dataset, name, MIXES[dataset], None, _metrics(cells), _flavor(letter), note)


def _mix_ablation() -> Iterator[PaperRow]:
    for name, term, shares, *cells in _lines(_MIX_ABLATION):
        mix = tuple(float(share) for share in shares.split("/"))
        regularized = {"yes": True, "no": False}.get(term)
        note = _NOTES.get(("mix-ablation", name, mix, regularized), "")
        yield PaperRow("mix-ablation", "cifar10", name, mix, regularized, _metrics(cells), "score", note)


def _supplement() -> Iterator[PaperRow]:
    for name, *cells, letter in _lines(_SUPPLEMENT):
        name = name.replace("_", " ")
        note = _NOTES.get(("supplement", name), "")
        yield PaperRow("supplement", "mnist", name, MIXES["mnist"], None, _metrics(cells), _flavor(letter), note)


PAPER: tuple[PaperRow, ...] = (*_main(), *_mix_ablation(), *_supplement())
"""All 49 rows, table by table, in the paper's order."""

PRINTED = {"nnPU w/o normalisation": "nnPU without normalize", "nnPUe (anchor)": "anchor"}
"""Rows that go by another name in the paper; its anchor can be read as a classifier or as propensities in nnPUe."""


def printed_name(row: str) -> str:
    """The paper's name of a row of ours: the source of an e-row's propensities is not part of it.

    >>> printed_name("Dist-PUe (α=15)"), printed_name("nnPU w/o normalisation"), printed_name("Dist-PU (warm-up)")
    ('Dist-PUe', 'nnPU without normalize', 'Dist-PU (warm-up)')
    """
    stem, bracket, _ = row.partition(" (")
    return PRINTED.get(row, stem if bracket and stem.endswith("e") else row)


def plain_name(row: str) -> str | None:
    """
    >>> plain_name("Dist-PUe'"), plain_name("Dist-PUe (α=15)"), plain_name("uPU")
    ('Dist-PU', 'Dist-PU', None)
    """
    stem = printed_name(row).removesuffix("'")
    return stem[:-1] if stem.endswith("e") else None
