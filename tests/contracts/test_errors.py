"""The exception tree: one base to catch, Python's own types beside it, names that come with suggestions."""

from __future__ import annotations

import inspect

import pytest

from pue import errors
from pue.errors import (
    CheckpointMismatch,
    InvalidInput,
    MissingData,
    MissingExtra,
    ModelError,
    PueError,
    PueWarning,
    TrainingDiverged,
    UnknownName,
)


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (InvalidInput, ValueError),
        (UnknownName, InvalidInput),
        (MissingData, FileNotFoundError),
        (TrainingDiverged, ArithmeticError),
        (CheckpointMismatch, RuntimeError),
        (MissingExtra, ImportError),
        (ModelError, ValueError),
    ],
)
def test_every_error_is_also_the_type_that_python_users_expect(error, also):
    assert issubclass(error, PueError)
    assert issubclass(error, also)


def test_the_tree_in_the_docstring_is_complete():
    defined = [name for name, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, Exception)]
    assert [name for name in defined if name not in (errors.__doc__ or "")] == []
    assert issubclass(PueWarning, UserWarning)


def test_a_near_miss_gets_a_suggestion():
    message = str(UnknownName("loss", "Sigmoidd", ["sigmoid", "logistic"]))
    assert message == "unknown loss 'Sigmoidd'. Did you mean 'sigmoid'? Available: logistic, sigmoid."


def test_a_wild_guess_gets_the_list_only():
    message = str(UnknownName("loss", "xyz", ["sigmoid", "logistic"]))
    assert message == "unknown loss 'xyz'. Available: logistic, sigmoid."


def test_anything_may_be_an_unknown_name():
    assert str(UnknownName("method", None, ["upu"])).startswith("unknown method None.")
