"""The README's Python runs, and the files it points to exist."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_block_runs(block: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.4
    X = rng.normal(size=(300, 2)) + 2.5 * y[:, None]
    names: dict[str, object] = {"X": X, "s": (y & (rng.random(300) < 0.4)).astype(int), "X_new": X[:7]}
    exec(block, names)
    if "labels, scores" in block:
        assert names["labels"].shape == names["scores"].shape == (7,)  # type: ignore[attr-defined]


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


def test_the_error_shown_is_the_error_raised() -> None:
    from pue import PUClassifier

    shown = " ".join(re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)[0].split())
    with pytest.raises(ValueError, match=re.escape(shown)):
        PUClassifier(prior=0.2).fit(np.arange(8.0)[:, None], [1, 1, 0, 0, 0, 0, 0, 0])
