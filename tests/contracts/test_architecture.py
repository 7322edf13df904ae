"""Rules of the house, read off the source: layers, public names, no hidden randomness, no pickle, no print."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pue

SOURCE = Path(pue.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
TREE = re.findall(r"^ ?(\d+)  (\w+) {2,}(\S.*)$", PAGE.read_text(), flags=re.MULTILINE)
LAYER = {module: int(storey) for storey, module, _ in TREE}
"""The storeys, as the page draws them."""

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
    assert modules == set(LAYER), "the tree in docs/architecture.md is not that of src/pue"
    assert len(TREE) == len(LAYER)
    assert list(LAYER.values()) == sorted(LAYER.values())
    assert len([entry for entry in SOURCE.iterdir() if entry.name != "__pycache__"]) <= 22


@every_file
def test_a_module_imports_only_its_own_layer_or_lower(path):
    if top_level(path) in ("__init__", "__main__"):
        return  # the face of the library stands above all layers
    too_high = {name for name in own_imports(path) if LAYER.get(name, 99) > LAYER[top_level(path)]}
    assert too_high == set()


def test_the_layering_rule_can_fail():
    # The rule is only as good as the reading of imports: the classifier must be seen to import the core.
    assert {"core", "errors", "training", "methods"} <= set(own_imports(SOURCE / "estimators" / "classifier.py"))
    assert {"core", "training"} <= set(own_imports(SOURCE / "methods" / "pubn.py"))
    assert set(own_imports(SOURCE / "__init__.py")) >= {"core", "estimators", "bench"}


MODULES = {".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in FILES}
NAMES = re.compile(r"(?<![\w./-])(?:pue\.)?((?:[a-z]\w*\.)*[a-z]\w*)")


def modules_in_strings(tree: ast.AST) -> set[str]:
    """Modules named as "storey.module" or "pue.storey", outside docstrings."""
    said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in said]
    found = set()
    for match in (match for text in texts if isinstance(text, str) for match in NAMES.finditer(text)):
        parts = match[1].split(".")
        paths = {".".join(parts[:length]) for length in range(1 if match[0].startswith("pue.") else 2, len(parts) + 1)}
        found |= paths & MODULES
    return found


@every_file
def test_a_module_names_no_higher_storey_not_even_in_a_string(path):
    if top_level(path) in ("__init__", "__main__"):
        return
    own = LAYER[top_level(path)]
    named = modules_in_strings(ast.parse(path.read_text()))
    assert {name for name in named if LAYER.get(name.split(".")[0], 0) > own} == set()


@pytest.mark.parametrize(
    ("code", "module"),
    [
        ("x = 'propensity.auto:Auto'", "propensity.auto"),
        ("f('pue.app')", "app"),
        ("f(f'python -m pue.bench.run {x}')", "bench.run"),
        ("import_module('pue.estimators.classifier')", "estimators.classifier"),
    ],
)
def test_the_rule_of_strings_can_fail(code, module):
    assert module in modules_in_strings(ast.parse(code))


def test_words_and_docstrings_name_no_module():
    code = "\"\"\"See pue.app.model.\"\"\"\nx = ['app', 'pue.load', 'propensity.folds', 'pue/app/model.py', 'a.b']"
    assert modules_in_strings(ast.parse(code)) == set()


@pytest.mark.parametrize("module", ["losses", "corrections", "theory", "weights", "risks", "decisions"])
def test_the_pure_core_needs_torch_alone(module):
    standard = {"__future__", "collections", "dataclasses", "math", "typing"}
    assert imported_roots(SOURCE / "core" / f"{module}.py") <= standard | {"torch", "pue"}


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
    assert imported | {"load"} == set(pue.__all__)  # load stands above all storeys, there


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


def test_importing_a_classifier_does_not_import_the_application():
    names = "('pue.persistence.model', 'pue.app')"
    code = f"import sys; from pue import PUClassifier; print([m for m in {names} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_importing_the_package_imports_nothing_slow():
    code = "import sys, pue; print([m for m in ('torch', 'sklearn', 'pandas') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# ---------------------------------------------------------------------------------------- what is absent


@every_file
def test_nothing_is_printed(path):
    calls = {dotted(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    assert "print" not in calls


WRITES_OF_ITS_OWN = {
    "files/writing.py",
    "bench/datasets/sources.py",  # a download that a later call continues, and a log in a folder that is thrown away
    "bench/cost.py",  # a switch of the kernel's
}
MOVERS = {"os.replace", "os.rename", "os.renames", "os.link", "os.fsync", "os.fdatasync", "shutil.move"}
WRITERS = {"write_text", "write_bytes", "savefig", "save_file", "to_csv", "to_parquet", "to_json", "save_model"}


def calls_in(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def called(call: ast.Call) -> str:
    """The name of the function or method, without what it belongs to."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def variables(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def partial_paths(function: ast.AST) -> set[str]:
    """The variables that hold what `writing` or `writing_folder` gave, by `with` or by assignment."""
    pairs = [
        (node.context_expr, node.optional_vars) if isinstance(node, ast.withitem) else (node.value, node.targets[0])
        for node in ast.walk(function)
        if isinstance(node, ast.withitem | ast.Assign)
    ]
    given = [target for value, target in pairs if target and variables(value) & {"writing", "writing_folder"}]
    return set().union(*map(variables, given))


def moves(call: ast.Call) -> bool:
    """`path.replace(other)` has one argument, `text.replace(old, new)` two; a column's new name is a constant."""
    if called(call) not in ("rename", "replace") or len(call.args) != 1 or not isinstance(call.func, ast.Attribute):
        return dotted(call.func) in MOVERS
    return not isinstance(call.args[0], ast.Constant)


def writes(call: ast.Call) -> bool:
    if called(call) != "open":
        return called(call) in WRITERS
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    modes = [set(value.value) for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    return any(mode <= set("rwxabt+") and mode & set("wxa+") for mode in modes)


def writes_elsewhere(tree: ast.AST) -> set[str]:
    """Renames and flushes, and calls that write to a path which neither `writing` nor `writing_folder` gave."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    held = {function: partial_paths(function) for function in functions}
    allowed = {call for function in functions for call in calls_in(function) if variables(call) & held[function]}
    ours = {alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "pue.files"
            for alias in (name.name for name in node.names)}  # fmt: skip
    wrong = [call for call in calls_in(tree) if moves(call) or (writes(call) and call not in allowed)]
    return {called(call) for call in wrong if dotted(call.func) not in ours}


@every_file
def test_files_are_written_by_the_one_writer(path):
    if path.relative_to(SOURCE).as_posix() not in WRITES_OF_ITS_OWN:
        assert writes_elsewhere(ast.parse(path.read_text())) == set()


@pytest.mark.parametrize(
    "code",
    [
        "os.replace(a, b)",
        "os.fsync(handle)",
        "path.replace(other)",
        "path.rename(other)",
        "path.write_text(text)",
        "figure.savefig(path)",
        "open(path, 'w')",
        "path.open('xb')",
        "path.open(mode='a')",
        "def f():\n    with writing(path) as partial:\n        path.write_text(text)",
    ],
)
def test_the_rule_of_the_one_writer_can_fail(code):
    assert len(writes_elsewhere(ast.parse(code))) == 1


def test_what_the_writer_gave_may_be_written_to():
    code = "def f():\n    with writing(path) as part, part.open('wb') as file:\n        figure.savefig(part / 'a')"
    assert writes_elsewhere(ast.parse(code)) == set()
    assert writes_elsewhere(ast.parse("from pue.files import write_text\nwrite_text(path, text)")) == set()
    assert writes_elsewhere(ast.parse("text.replace('a', 'b'), path.open('rb')")) == set()


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
    disk = {"Busy", "OSError", ""} if top_level(path) == "files" else set()  # what the system says, with a name added
    assert raised <= {"InvalidInput", "MissingExtra", "ScoreIsNoNumber", "UnknownName"} | disk
