"""Records of runs that were written before records carried a digest: add it, and so vouch for them as they are.

    python benchmarks/seal.py results

Records that carry one are left alone, right or wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pue.bench.store import as_text
from pue.files import write_text
from pue.persistence.sealed import DIGEST


def seal(folder: Path) -> int:
    """How many records of a folder were sealed."""
    done = 0
    for path in sorted(folder.rglob("*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(body, dict) and {"schema", "key", "spec"} <= set(body) and DIGEST not in body:
            write_text(path, as_text(body))
            done += 1
    return done


if __name__ == "__main__":
    print(sum(seal(Path(folder)) for folder in sys.argv[1:]), "records sealed")
