"""`make fuzz` and `make crash`: many seeded cases in processes of their own, resumable, with a report.

    python tests/fuzz/run.py fuzz --cases 100000 --out fuzz_output
    python tests/fuzz/run.py crash --cases 600 --out fuzz_output

A worker writes a line for every case before and after it. When it dies or takes too long, the case is a failure, and a
new worker goes on with the next one. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOST_SECONDS = 20
"""Of processor time; a process that waits, on a machine that is not quiet, may take …"""
MOST_WAITING = 6
"""… so many times as long by the clock."""
MOST_BYTES = 2 * 10**9


def work(what: str, out: Path, first: int, stop: int) -> None:
    """The worker: cases `first` to before `stop`, a line each."""
    sys.path.insert(0, str(HERE))
    module = __import__("cases" if what == "fuzz" else "crashes")
    ground = module.prepare(out / "ground")
    for seed in range(first, stop):
        say({"seed": seed, "begins": True})
        started = time.monotonic()
        try:
            kind, end = module.run_case(ground, seed)
            line = {"seed": seed, "kind": kind, "end": end}
        except Exception:
            line = {"seed": seed, "kind": module.kind_of(seed), "failed": traceback.format_exc()[-1500:]}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak > MOST_BYTES and "failed" not in line:
            line["failed"] = f"the process took {peak / 1e9:.1f} GB"
        say({**line, "seconds": round(time.monotonic() - started, 3), "peak": peak})


def say(line: dict[str, object]) -> None:
    sys.__stdout__.write(json.dumps(line) + "\n")
    sys.__stdout__.flush()


def drive(what: str, out: Path, cases: int, *, again: bool = False) -> list[dict[str, object]]:
    """All cases that have no line yet; every line is on the disk before the next case begins. `again`: those that
    failed count as not yet run."""
    out.mkdir(parents=True, exist_ok=True)
    log = out / f"{what}.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    done = {line["seed"]: line for line in lines if not (again and "failed" in line)}
    with log.open("a") as file:
        while missing := sorted(set(range(cases)) - set(done)):
            first, stop = missing[0], next((seed for seed in range(missing[0], cases) if seed in done), cases)
            for line in _watched(what, out, first, stop):
                file.write(json.dumps(line) + "\n")
                file.flush()
                done[line["seed"]] = line
    return [done[seed] for seed in sorted(done)]


def _watched(what: str, out: Path, first: int, stop: int):
    """What a worker says; if it dies or is silent for too long, that is what its case ends in."""
    command = [sys.executable, str(HERE / "run.py"), "work", what, str(out), str(first), str(stop)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    with (out / "stderr.txt").open("w") as errors:
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        assert worker.stdout is not None
        os.set_blocking(worker.stdout.fileno(), False)
        now, since, spent, rest = None, time.monotonic(), 0.0, b""
        while True:
            chunk = worker.stdout.read()
            if chunk:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in map(json.loads, lines):
                    since, spent = time.monotonic(), processor_seconds(worker.pid)
                    if "begins" in line:
                        now = line["seed"]
                    else:
                        now = None
                        yield line
                continue
            ended = worker.poll()
            patience = MOST_SECONDS if now is not None else 600  # to prepare takes longer than a case
            passed, worked = time.monotonic() - since, processor_seconds(worker.pid) - spent
            if ended is None and (passed < patience or (passed < MOST_WAITING * patience and worked < patience)):
                time.sleep(0.005)
                continue
            if ended is None:
                worker.kill()
                worker.wait()
            worker.stdout.close()
            if now is not None:
                why = f"no end after {MOST_SECONDS} s" if ended is None else f"the process ended with {ended}"
                said = (out / "stderr.txt").read_text()[-1500:]
                yield {"seed": now, "kind": "?", "failed": f"{why}\n{said}"}
            elif ended not in (0, None) or first == stop:
                raise RuntimeError((out / "stderr.txt").read_text()[-3000:])
            return


def processor_seconds(process: int) -> float:
    """What a process has used so far, without its children; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(what: str, lines: list[dict[str, object]]) -> str:
    failed = [line for line in lines if "failed" in line]
    counts = Counter((str(line["kind"]), str(line.get("end", "FAILED"))) for line in lines)
    text = [f"{what}: {len(lines)} cases, {len(failed)} failed"]
    slow = max((float(str(line.get("seconds", 0))) for line in lines), default=0.0)
    peak = max((int(str(line.get("peak", 0))) for line in lines), default=0)
    text.append(f"slowest case {slow:.1f} s, largest process {peak / 1e9:.2f} GB")
    text += [f"  {kind:28} {end:24} {n:7}" for (kind, end), n in sorted(counts.items())]
    text += [f"\nseed {line['seed']} ({line['kind']}):\n{line['failed']}" for line in failed[:20]]
    return "\n".join(text)


def main() -> int:
    if sys.argv[1] == "work":
        work(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fuzz", "crash"])
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--again", action="store_true", help="run the cases that failed once more")
    given = parser.parse_args()
    lines = drive(given.what, given.out, given.cases, again=given.again)
    text = report(given.what, lines)
    (given.out / f"{given.what}.txt").write_text(text + "\n")
    print(text)
    return int(any("failed" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
