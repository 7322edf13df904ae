"""A light install: what an extra brings, and what is said where something is missing."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pue
from pue.app.cli import main
from pue.errors import EXTRAS, MissingExtra, require
from pue.training.progress import step_progress

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = PROJECT["optional-dependencies"]
MODULES = {
    "python-calamine": "python_calamine",
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "scikit-network": "sknetwork",
}
"""Where a library is not called as its module is."""


def modules(extra: str) -> set[str]:
    """The modules that an extra brings, those of the extras it names included."""
    found: set[str] = set()
    for requirement in OPTIONAL[extra]:
        name, inner = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        found |= set.union(*map(modules, inner.split(","))) if name == "pue" else {MODULES.get(name, name)}
    return found


def without(*names: str) -> str:
    """Code that hides these modules, as if they were not installed."""
    return f"import sys; sys.modules.update(dict.fromkeys({names!r}));"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


# ------------------------------------------------------------------------------------------------- extras


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_modules_that_the_code_asks_for(extra):
    assert set(EXTRAS[extra]) <= modules(extra)


def test_everything_is_in_all_and_all_is_in_dev():
    assert modules("all") == set.union(*(modules(extra) for extra in OPTIONAL if extra not in ("dev", "docs")))
    assert modules("all") <= modules("dev")


def test_the_library_alone_is_small():
    assert len(PROJECT["dependencies"]) <= 7
    names = {re.match(r"[\w-]+", requirement).group() for requirement in PROJECT["dependencies"]}
    assert {MODULES.get(name, name) for name in names} & modules("all") == set()


# ------------------------------------------------------------------------------------- what is loaded


def test_the_classifier_loads_little_beside_torch_and_scikit_learn():
    # Modules, not seconds, which depend on the machine: `benchmarks/imports.py` has the ratio of times.
    code = "import sys, torch, sklearn; before = set(sys.modules); import pue; pue.PUClassifier; "
    found = run(code + "print(*(set(sys.modules) - before))").stdout.split()
    assert "pue.estimators.classifier" in found
    packages = {name.split(".")[0] for name in found} - sys.stdlib_module_names
    assert packages <= {"pue", "safetensors", "scipy", "sklearn", "torch"}
    assert {name.split(".")[1] for name in found if name.startswith("sklearn.")} <= {"utils"}
    later = ("pue.app", "pue.bench", "pue.persistence.model", "pue.persistence.schemas")
    assert [name for name in found if name.startswith(later)] == []


# ------------------------------------------------------------------------------------- what is missing is named


@pytest.fixture
def hide(monkeypatch):
    def hidden(*names: str) -> None:
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hidden


def test_what_is_missing_is_named_with_the_command_that_installs_it(hide):
    require("app")
    hide("pandas", "skrub")
    with pytest.raises(MissingExtra) as error:
        require("app")
    assert str(error.value) == 'pandas, skrub are not installed. Install them with: pip install "pue[app]"'
    require("app", "rich")


def test_a_search_needs_optuna(hide):
    hide("optuna")
    with pytest.raises(MissingExtra, match=r'optuna is not installed.*pip install "pue\[search\]"'):
        pue.search(lambda trial: pue.PUClassifier(), np.zeros((4, 1)), [1, 0, 0, 0], n_trials=1)


def test_a_picture_needs_matplotlib(hide):
    rng = np.random.default_rng(0)
    found = pue.diagnose(rng.normal(size=(60, 2)), (np.arange(60) < 20).astype(int), prior=0.5, propensity=None)
    hide("matplotlib")
    with pytest.raises(MissingExtra, match=r'matplotlib is not installed.*pip install "pue\[app\]"'):
        found.plot()


@pytest.mark.parametrize(
    ("module", "extra"),
    [("app.model", "app"), ("app.cli", "app"), ("bench.report.plots", "bench"), ("bench.report.demo", "bench")],
)
def test_a_door_names_the_extra_behind_it(module, extra):
    found = run(without(*EXTRAS[extra]) + f"import pue.{module}")
    assert found.stderr.splitlines()[-1].endswith(f'are not installed. Install them with: pip install "pue[{extra}]"')


def test_a_model_of_the_command_line_needs_the_command_lines_libraries(tmp_path):
    number = np.arange(60)
    frame = pd.DataFrame({"a": number + 0.5, "s": ((number < 40) & (number % 2 == 0)).astype(int)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(SystemExit, match="0"):
        main(["fit", str(tmp_path / "rows.csv"), "--label", "s", "--prior", "0.5", "--propensity", "none",
              "--method", "logistic", "-o", str(tmp_path / "model")])  # fmt: skip
    found = run(without("pandas") + f"import pue; pue.load({str(tmp_path / 'model')!r})")
    assert found.stderr.splitlines()[-1].endswith('pandas is not installed. Install it with: pip install "pue[app]"')


def test_scans_need_pillow(hide):
    hide("PIL")
    with pytest.raises(MissingExtra, match=r'PIL is not installed.*pip install "pue\[bench\]"'):
        pue.DATASETS["alzheimer"]()


@pytest.mark.parametrize("arguments", [["fit", "rows.csv"], ["--help"], []])
def test_the_command_says_what_it_needs_in_one_line(arguments):
    found = run(
        without("pandas", "typer")
        + f"sys.argv[1:] = {arguments!r}; import runpy; runpy.run_module('pue', run_name='__main__')"
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == 'pue: pandas, typer are not installed. Install them with: pip install "pue[app]"\n'


def test_without_rich_training_is_silent(hide, capsys):
    hide("rich", "rich.console")
    with step_progress(2, "epoch", title="training", show=True) as move:
        move(1, status="risk 0.5")
    assert capsys.readouterr() == ("", "")


def test_every_name_of_the_library_is_there_without_the_extras():
    extras = sorted({module for names in EXTRAS.values() for module in names})
    found = run(without(*extras) + "import pue; print([name for name in pue.__all__ if not hasattr(pue, name)])")
    assert (found.stdout, found.stderr) == ("[]\n", "")


def test_a_command_leaves_with_its_code_its_output_and_its_clean_up() -> None:
    program = (
        "import atexit, threading, time, pue.__main__ as command; atexit.register(print, 'cleaned up', end='');"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); print('done', end=' ');"
        "command._leave(3)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (3, "done cleaned up", "")
