"""What screening found about a column, and how it is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["leak", "identifier", "order", "copies"]


@dataclass(frozen=True)
class Finding:
    """One column that deserves a look, and why.

    >>> str(Finding("opened", "leak", "it is filled in 98 % of the labeled rows and in 0 % of the others", True))
    "column 'opened' is left out, for it gives the label away: it is filled in 98 % of the labeled rows and in 0 % of \
the others. To learn from it all the same: --keep opened."
    """

    column: str
    """Empty where it is about the rows as a whole."""
    kind: Kind
    evidence: str
    left_out: bool
    """Almost certain; else it is used, and named."""

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        return f"{_WHAT[self.kind]}: {self.evidence}"

    def __str__(self) -> str:
        if not self.column:
            return self.evidence
        if self.left_out:
            beside = f" To keep it beside the results: --id {self.column}." if self.kind == "identifier" else ""
            learn = f" To learn from it all the same: --keep {self.column}."
            return f"column {self.column!r} is left out, for {self.reason}.{beside}{learn}"
        return f"column {self.column!r} is used, but {self.reason}. To leave it out: --ignore {self.column}."


_WHAT = {
    "leak": "it gives the label away",
    "identifier": "it names rows",
    "order": "it orders the table",
    "copies": "",
}


def left_out(findings: Iterable[Finding]) -> dict[str, str]:
    """Columns not to learn from, and why."""
    return {finding.column: finding.reason for finding in findings if finding.left_out}
