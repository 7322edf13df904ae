"""Every mutant still finds the text it replaces, exactly once; whether it is killed is for `make mutants` to say."""

import mutants
import pytest


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.breaks)
def test_mutant_applies(mutant: mutants.Mutant) -> None:
    text = (mutants.SOURCE / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    assert mutant.new not in (mutant.old, "")
