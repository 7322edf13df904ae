"""docs/lab/fuzz.md: what `make fuzz` and `make crash` have run, from their logs.

    python tests/fuzz/page.py --out fuzz_output

writes the counts to docs/results/fuzz.json and makes the page from them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
TITLES = {"fuzz": "Altered inputs", "crash": "Crashes"}


def counts(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """How many cases of each kind ended how; the last line of a seed counts."""
    last = {line["seed"]: line for line in lines}
    ends = Counter((str(line["kind"]), str(line.get("end", "FAILED"))) for line in last.values())
    return {
        "cases": len(last),
        "seeds": [min(last), max(last)],
        "failed": sum("failed" in line for line in last.values()),
        "failed before": len({line["seed"] for line in lines if "failed" in line}),
        "seconds": max(float(line.get("seconds", 0)) for line in last.values()),
        "peak": max(int(line.get("peak", 0)) for line in last.values()),
        "ends": [[kind, end, n] for (kind, end), n in sorted(ends.items())],
    }


def page(found: dict[str, dict[str, Any]]) -> str:
    return "\n".join([HEAD, *(line for what in TITLES if what in found for line in _section(what, found[what]))]) + "\n"


def _section(what: str, found: dict[str, Any]) -> Iterator[str]:
    first, last = found["seeds"]
    yield f"## {TITLES[what]}\n"
    yield (
        f"{found['cases']:,} cases, seeds {first} to {last}: **{found['failed']} failed**. The slowest took "
        f"{found['seconds']:.1f} s by the clock of a busy machine, the largest process {found['peak'] / 1e9:.2f} GB."
    )
    if found["failed before"]:
        yield f"{found['failed before']} seeds had failed before, and what they found was mended."
    yield ""
    yield "| kind | end | cases |"
    yield "|---|---|---|"
    for kind, end, n in found["ends"]:
        yield f"| {kind} | {end} | {n:,} |"
    yield ""


HEAD = """# Lab notebook: fuzzing and crashes

What was run of the machinery that [the page on safety](../security.md) describes. Every case is a function of its seed.

    make fuzz CASES=100000
    make crash CRASHES=800
    python tests/fuzz/page.py --out fuzz_output

Both commands go on where they were stopped (`--again` of `tests/fuzz/run.py` runs cases that failed once more); the
last one makes this page. A case fails on anything but words or whole, finite results: a traceback, a signal, more than
20 s of processor time, more than 2 GB, a score that is no number, a spoilt file that is believed. Of crashes, *killed*,
*full*, *broken* and *no memory* say what happened at an operation on the disk (or, *by the clock*, at any moment); *not
met* is a command that had no such operation. The cases below are those of one state of the code, 180b044.
What earlier runs of the same seeds found is mended, and listed in the changelog.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    logs = {what: given.out / f"{what}.jsonl" for what in TITLES}
    found = {
        what: counts([json.loads(line) for line in log.read_text().splitlines()])
        for what, log in logs.items()
        if log.exists()
    }
    (DOCS / "results" / "fuzz.json").write_text(json.dumps(found, indent=1) + "\n")
    (DOCS / "lab" / "fuzz.md").write_text(page(found))


if __name__ == "__main__":
    main()
