"""`pue` in a process that can be killed, forked from a server that has imported everything once."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["pytest", "pue.app.cli.bench", "pue.bench.report.live", "pue.bench.run", "torch._dynamo"]
)


def command(arguments: Sequence[str], log: str) -> None:
    from pue.app.cli import main

    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    main(arguments)


def start(arguments: Sequence[str], log: Path) -> BaseProcess:
    process = CONTEXT.Process(target=command, args=(list(arguments), str(log)))
    process.start()
    return process
