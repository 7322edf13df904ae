"""Rules of the house, read off the source: layers, public names, no hidden randomness, no pickle, no print."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pue

SOURCE = Path(pue.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

LAYERS = [
    {"errors", "data", "randomness", "threads", "memory"},
    {
        "losses",
        "weights",
        "corrections",
        "risks",
        "theory",
        "decisions",
        "metrics",
        "folds",
        "criteria",
        "patches",
        "probabilities",
        "reduction",
        "sensitivity",
    },
    {"backbones", "training", "conversion", "engines"},
    {"priors", "propensity", "labeling", "scar"},
    {"methods", "estimation", "estimators", "persistence", "wrapper", "crossval", "diagnostics", "trials", "sweep"},
    {"datasets", "tables"},
    {"model"},
    {"demo", "experiments"},
    {"report"},
    {"cli"},
]
LAYER = {module: number for number, layer in enumerate(LAYERS) for module in layer}

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
packages = [path for path in FILES if path.name == "__init__.py"]


def top_level(path: Path) -> str:
    """The module or package directly under `pue` that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def own_imports(path: Path) -> Iterator[str]:
    """Which modules and packages directly under `pue` a file imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            names = [f"pue.{alias.name}" for alias in node.names] if node.module == "pue" else [node.module or ""]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "pue":
                yield name.split(".")[1] if "." in name else "__init__"


def dotted(node: ast.AST) -> str:
    """`a.b.c` as a string, or an empty one for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def used_names(path: Path) -> set[str]:
    return {
        dotted(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name | ast.Attribute)
    }


def imported_names(path: Path) -> set[str]:
    """`package.module` of every import, and `package.module.name` of every name imported from one."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported_names(path)}


def test_the_source_was_found():
    assert {"losses.py", "weights.py", "risks.py"} <= {path.name for path in FILES}


# ----------------------------------------------------------------------------------------------- layers


def test_every_module_has_a_layer():
    modules = {top_level(path) for path in FILES} - {"__init__", "__main__"}
    assert modules - set(LAYER) == set(), "give new modules a layer, in LAYERS above and in the design"


@every_file
def test_a_module_imports_only_its_own_layer_or_lower(path):
    if top_level(path) in ("__init__", "__main__"):
        return  # the face of the library stands above all layers
    too_high = {name for name in own_imports(path) if LAYER.get(name, 99) > LAYER[top_level(path)]}
    assert too_high == set()


def test_the_layering_rule_can_fail():
    # The rule is only as good as the reading of imports: the classifier must be seen to import the core.
    assert {"data", "errors", "training", "methods"} <= set(own_imports(SOURCE / "estimators.py"))
    assert {"risks", "weights"} <= set(own_imports(SOURCE / "methods" / "pubn.py"))
    assert set(own_imports(SOURCE / "__init__.py")) >= {"data", "estimators", "losses"}


@pytest.mark.parametrize("module", ["losses", "corrections", "theory", "weights", "risks", "decisions"])
def test_the_pure_core_needs_torch_alone(module):
    standard = {"__future__", "collections", "dataclasses", "math", "typing"}
    assert imported_roots(SOURCE / f"{module}.py") <= standard | {"torch", "pue"}


# ----------------------------------------------------------------------------------------- public names


def isort_order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions; each by name: the order that ruff's RUF022 keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("path", packages, ids=lambda path: path.parent.relative_to(SOURCE.parent).as_posix())
def test_all_is_sorted_and_every_name_can_be_imported(path):
    module = importlib.import_module(".".join(path.parent.relative_to(SOURCE.parent).parts))
    names = getattr(module, "__all__", [])
    assert list(names) == sorted(set(names), key=isort_order)
    assert [name for name in names if not hasattr(module, name)] == []


def test_all_names_exactly_what_the_package_imports():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    imported = {
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If)  # TYPE_CHECKING
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(pue.__all__)


def test_every_public_name_comes_from_where_type_checkers_think():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    for block in tree.body:
        for node in block.body if isinstance(block, ast.If) else []:
            assert isinstance(node, ast.ImportFrom)
            for alias in node.names:
                assert getattr(pue, alias.name) is getattr(importlib.import_module(str(node.module)), alias.name)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'PUClasifier'"):
        pue.PUClasifier  # noqa: B018


def test_importing_the_package_imports_nothing_slow():
    code = "import sys, pue; print([m for m in ('torch', 'sklearn', 'pandas', 'skops') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# ---------------------------------------------------------------------------------------- what is absent


@every_file
def test_nothing_is_printed(path):
    if top_level(path) == "demo":
        return
    calls = {dotted(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    assert "print" not in calls


@every_file
def test_global_generators_are_not_touched(path):
    used = used_names(path)
    assert used & {"torch.manual_seed", "torch.seed", "np.random.seed", "numpy.random.seed", "random.seed"} == set()
    # Of numpy.random only generators that are values of their own.
    allowed = {
        "np.random",
        "np.random.Generator",
        "np.random.SeedSequence",
        "np.random.default_rng",
        "np.random.RandomState",
    }
    assert {name for name in used if name.startswith("np.random")} <= allowed


@every_file
def test_nothing_is_pickled(path):
    assert imported_roots(path) & {"pickle", "dill", "cloudpickle", "shelve"} == set()
    loaders = {"torch.load", "torch.save", "np.load", "numpy.load", "joblib.load", "joblib.dump", "eval", "exec"}
    assert (used_names(path) | imported_names(path)) & loaders == set()


@every_file
def test_the_core_raises_only_errors_of_its_own(path):
    if LAYER.get(top_level(path), 99) > 1:
        return
    raised = {
        dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise) and node.exc is not None
    }
    assert raised <= {"InvalidInput", "UnknownName"}
