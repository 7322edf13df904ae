"""Suites: the tables of the paper and a few of our own, as lists of rows. A row × a seed is a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pue.bench.conform import Scalar
from pue.bench.options import estimator_options, method_options
from pue.bench.presets import LABELS, PRESETS, SEVERITY, Preset, find_preset
from pue.bench.spec import SUPERVISED, Labels, Settings, Spec
from pue.errors import InvalidInput, UnknownName


@dataclass(frozen=True)
class SuiteRow:
    """A method and where its propensities come from: "none", "estimated" (the preset's way), "true", or by name."""

    method: str
    propensity: str = "none"
    options: Mapping[str, Scalar] = field(default_factory=dict)
    """Of the propensity estimator."""
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    """Fields of the method's value that differ from the preset's."""
    labels: Labels | None = None
    """None: those of the data set's main table."""
    prior: str = "data"
    """The share of positives in the training set, or the estimator that must find it."""
    disjoint: bool | None = None
    """Whether no person is in both parts."""


@dataclass(frozen=True)
class Suite:
    """A table: its title, the data sets it can be made of (the first is the default), and its rows in their order."""

    title: str
    datasets: tuple[str, ...]
    rows: Callable[[str], list[SuiteRow]]


BASES = ("upu", "nnpu", "pubn", "distpu")
KINDS = ("none", "estimated", "true")
"""Where propensities come from."""
BASELINES = ("naive", "quantile", "supervised")
"""Labeled against the rest, as it is and with a share π called positive; and the ceiling, all true classes."""
OTHERS = ("imbpu", "pusb", "sarem", "vpu", "naive", "quantile", "supervised", "tmi")
ALPHAS = (0, 1, 2, 5, 10, 15, 20)
MIXES = {
    4: ((0.25, 0.25, 0.25, 0.25), (0.10, 0.10, 0.30, 0.50), (0.72, 0.15, 0.10, 0.03), (0.08, 0.86, 0.02, 0.04)),
    5: (
        (0.20, 0.20, 0.20, 0.20, 0.20),
        (0.08, 0.08, 0.14, 0.30, 0.40),
        (0.65, 0.15, 0.10, 0.07, 0.03),
        (0.08, 0.84, 0.02, 0.04, 0.02),
    ),
}
"""The paper's four mixes of CIFAR-10's vehicles, and mixes like them for five even digits."""


def table(propensities: Iterable[str], labels: Labels | None = None) -> list[SuiteRow]:
    """The four base methods, once for each source of propensities."""
    return [SuiteRow(method, propensity, labels=labels) for propensity in propensities for method in BASES]


def baselines(labels: Labels | None = None) -> list[SuiteRow]:
    return [SuiteRow(method, labels=labels) for method in BASELINES]


def main_table(dataset: str) -> list[SuiteRow]:
    return table(KINDS) + of_teacher() + [SuiteRow(method) for method in OTHERS]


def of_teacher() -> list[SuiteRow]:
    return [SuiteRow("teacher", propensity) for propensity in KINDS]


def mix_ablation(dataset: str) -> list[SuiteRow]:
    usual = LABELS[dataset]
    sources: list[tuple[str, dict[str, Scalar]]] = [("none", {}), ("estimated", {})]
    sources += [("network", {"alpha": alpha}) for alpha in (0, 15)]
    return [
        SuiteRow("distpu", propensity, options, labels=replace(usual, mix=mix))
        for mix in MIXES[len(usual.mix or ())]
        for propensity, options in sources
    ]


def supplement(dataset: str) -> list[SuiteRow]:
    return [
        SuiteRow("nnpu", "logistic"),
        SuiteRow("nnpu", "estimated"),
        SuiteRow("nnipw", "network", {"alpha": 15}),
        SuiteRow("selfpu"),
        SuiteRow("anchor"),
        SuiteRow("nnpu", "anchor"),
    ]


def scans(dataset: str) -> list[SuiteRow]:
    return [*table(("none", "estimated")), SuiteRow("communities"), *baselines()]


def structure(dataset: str) -> list[SuiteRow]:
    """Communities as classifier, with the prior known and estimated, and as propensities, on three mixes."""
    usual = LABELS[dataset]
    mix = usual.mix or ()
    mixes = (mix, mix[::-1], tuple(1 / len(mix) for _ in mix))
    rows = (SuiteRow("communities"), SuiteRow("communities", prior="communities"), SuiteRow("nnpu", "communities"))
    return [replace(row, labels=replace(usual, mix=shares)) for shares in mixes for row in rows]


def with_negatives(dataset: str) -> list[SuiteRow]:
    """The mixes, shares and thresholds of PUbN's authors, with as many labeled negatives as positives."""
    mix, rho, tau = NEGATIVES[dataset]
    usual = LABELS[dataset]
    labels = replace(usual, n_negative=usual.n_labeled, negative_mix=mix)
    return [SuiteRow("pubn", kind, labels=labels, settings={"rho": rho, "tau": tau}) for kind in KINDS]


NEGATIVES = {
    "mnist": ((0.03, 0.15, 0.3, 0.02, 0.5), 0.2, 0.7),
    "digits": ((0.03, 0.15, 0.3, 0.02, 0.5), 0.2, 0.7),
    "cifar10": ((0.1, 0.02, 0.2, 0.08, 0.2, 0.4), 0.25, 0.5),
}
"""Shares of the labeled negatives by class, ρ and τ (Hsieh et al. 2019)."""
DIGITS, ABLATED = ("mnist", "digits", "cifar10"), ("cifar10", "mnist", "digits")
SUITES: dict[str, Suite] = {
    "mnist": Suite("MNIST", ("mnist",), main_table),
    "supplement": Suite("MNIST, the supplement's rows", DIGITS, supplement),
    "cifar10": Suite("CIFAR-10", ("cifar10",), lambda _: table(KINDS) + of_teacher() + baselines()),
    "mix-ablation": Suite("Label mixes", ABLATED, mix_ablation),
    "alpha-ablation": Suite("Strength of the propensity network's regularizer", ABLATED,
                            lambda _: [SuiteRow("distpu", "network", {"alpha": alpha}) for alpha in ALPHAS]),
    "structure": Suite("Structure first: communities", ("mnist", "digits"), structure),
    "alzheimer": Suite("Alzheimer", ("alzheimer",), scans),
    "alzheimer-subjects": Suite("Alzheimer, no person in both parts", ("alzheimer",),
                                lambda name: [replace(row, disjoint=True) for row in scans(name)]),
    "alzheimer-severity": Suite("Alzheimer, severe cases labeled more often", ("alzheimer",),
                                lambda _: table(KINDS, SEVERITY) + baselines(SEVERITY)),
    "negatives": Suite("PUbN with biased labeled negatives", DIGITS, with_negatives),
    "digits": Suite("Digits", ("digits",), main_table),
}  # fmt: skip
"""In the order in which a reader meets them; the rows of each too."""

DISPLAY = {
    "anchor": "anchor",
    "communities": "communities",
    "distpu": "Dist-PU",
    "distpu_warmup": "Dist-PU (warm-up)",
    "imbpu": "ImbPU",
    "ipw": "IPW",
    "lbe": "LBE",
    "naive": "naive",
    "nnipw": "nnPU w/o normalisation",
    "nnpu": "nnPU",
    "pubn": "PUbN",
    "pusb": "PUSB",
    "quantile": "quantile",
    "sarem": "SAR-EM",
    "selfpu": "Self-PU",
    "supervised": "supervised",
    "teacher": "TeachPU",
    "tmi": "tMI",
    "upu": "uPU",
    "vpu": "VPU",
}


def row_name(spec: Spec) -> str:
    """The name of a run's row: uPU, uPUe (estimated the preset's way), uPUe' (true propensities), …

    >>> from pue.bench.spec import Settings
    >>> row_name(Spec("mnist", "upu", LABELS["mnist"], Settings(), propensity="auto", preset="fast"))
    'uPUe'
    """
    if spec.labels.n_negative is not None:
        return f"{row_name(replace(spec, labels=LABELS[spec.dataset]))} + N"
    if isinstance(spec.prior, str) and spec.prior != "data":
        return f"{row_name(replace(spec, prior='data'))} (prior estimated)"
    name = DISPLAY.get(spec.method, spec.method)
    usual = _usual(spec)
    if spec.method == "nnipw":  # never without propensities, so they do not show in its name
        return name if usual or spec.propensity == "network" else f"{name} ({_source(spec)})"
    if spec.propensity == "none":
        return name
    if spec.propensity == "true":
        return f"{name}e'"
    if usual:
        return f"{name}e"
    if (spec.method, spec.propensity) == ("nnpu", "logistic"):
        return "LRe"
    return f"{name}e ({_source(spec)})"


def _usual(spec: Spec) -> bool:
    preset = PRESETS.get((spec.dataset, spec.preset), Preset(spec.settings))
    name, options = preset.estimator("estimated")
    given = dict(spec.propensity_options)
    return spec.propensity == name and given.get("alpha") == options.get("alpha")


def _source(spec: Spec) -> str:
    alpha = dict(spec.propensity_options).get("alpha")
    return spec.propensity if alpha is None else f"α={alpha:g}"


def title_of(name: str) -> str:
    """The title of a suite or of the data set of that name; the name itself where there is none."""
    return SUITES[name].title if name in SUITES else name


def resolve(
    suite: str,
    *,
    preset: str = "fast",
    dataset: str | None = None,
    methods: Collection[str] = (),
    seeds: Sequence[int] = (0,),
    changes: Mapping[str, Any] | None = None,
) -> list[Spec]:
    """Every run of a suite, seed by seed.

    `methods` keeps some rows, by method ("nnpu") or by name ("nnPUe"); `changes` are those of `changed`.
    """
    if suite not in SUITES:
        raise UnknownName("suite", suite, SUITES)
    chosen = SUITES[suite]
    dataset = dataset or chosen.datasets[0]
    if dataset not in chosen.datasets:
        raise InvalidInput(f"the suite {suite} runs on {', '.join(chosen.datasets)}; got {dataset!r}.")
    specs = _select([_spec(row, dataset, preset) for row in chosen.rows(dataset)], methods)
    return with_seeds(changed(specs, changes or {}), seeds)


def with_seeds(specs: Sequence[Spec], seeds: Sequence[int]) -> list[Spec]:
    """Each spec with each seed, seed by seed, nothing twice."""
    every = [replace(spec, seed=seed) for seed in seeds for spec in specs]
    return list({spec.key: spec for spec in every}.values())


def changed(specs: Sequence[Spec], changes: Mapping[str, Any]) -> list[Spec]:
    """The specs with other settings ("lr"), labels ("labels.n_labeled"), options ("method.tau", "propensity.alpha") or
    prior. An option changes those rows that have it.

    >>> changed(resolve("digits", methods=["nnpu"]), {"epochs": 1})[0].settings.epochs
    1
    """
    for name, value in changes.items():
        fitting = [_changed(spec, name, value) for spec in specs]
        if all(new is None for new in fitting) and specs:
            names = [field.name for field in fields(Settings)]
            raise UnknownName("setting", name, [*names, "labels.n_labeled", "labels.mix", "prior", "method.…"])
        specs = [new or old for new, old in zip(fitting, specs, strict=True)]
    return list(specs)


def _changed(spec: Spec, name: str, value: Any) -> Spec | None:
    """The spec with one thing changed, or None where it has no such thing."""
    part, _, inner = name.rpartition(".")
    if part == "labels" and inner in ("n_labeled", "mix"):
        return replace(spec, labels=replace(spec.labels, **{inner: value}))
    if part == "method" and inner in method_options(spec.method):
        return replace(spec, method_options={**dict(spec.method_options), inner: value})  # type: ignore[arg-type]
    if part == "propensity" and spec.estimates and inner in estimator_options(spec.propensity):
        return replace(spec, propensity_options={**dict(spec.propensity_options), inner: value})  # type: ignore[arg-type]
    if name == "prior":
        return replace(spec, prior=value)
    if name not in {field.name for field in fields(Settings)}:
        return None
    if spec.method == SUPERVISED and name in ("batching", "labeled_per_batch", "labeled_rows"):
        return spec
    return replace(spec, settings=replace(spec.settings, **{name: value}))


def _select(specs: list[Spec], wanted: Collection[str]) -> list[Spec]:
    if not wanted:
        return specs
    kept = {spec for name in wanted for spec in _named(specs, name)}
    return [spec for spec in specs if spec in kept]


def _named(specs: list[Spec], wanted: str) -> list[Spec]:
    """The row of exactly that name ("nnPU"), else all rows of that method ("nnpu"), else whatever the case."""
    names = {spec: row_name(spec) for spec in specs}
    for found in (
        [spec for spec in specs if names[spec] == wanted],
        [spec for spec in specs if spec.method == wanted],
        [spec for spec in specs if wanted.lower() in (names[spec].lower(), spec.method)],
    ):
        if found:
            return found
    raise UnknownName("method of this suite", wanted, {*names.values(), *(spec.method for spec in specs)})


def _spec(row: SuiteRow, dataset: str, preset_name: str) -> Spec:
    preset = find_preset(dataset, preset_name)
    labels = row.labels or LABELS[dataset]
    if preset.n_labeled is not None:
        fewer = None if labels.n_negative is None else preset.n_labeled
        labels = replace(labels, n_labeled=preset.n_labeled, n_negative=fewer)
    propensity, options = preset.estimator(row.propensity, **row.options)
    return Spec(
        dataset,
        row.method,
        labels,
        replace(preset.settings_of(row.method), disjoint=row.disjoint),
        propensity=propensity,
        preset=preset_name,
        prior=row.prior,
        method_options={**preset.options.get(row.method, {}), **row.settings},  # type: ignore[arg-type]
        propensity_options=options,  # type: ignore[arg-type]
    )
