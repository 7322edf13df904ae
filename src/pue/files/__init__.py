"""Files and folders that are there whole or not at all: the one place of `pue` that writes to the disk.

What is new is written under a hidden name beside the old, flushed to the disk, and then takes its place in one step;
the old stands until the new one does. Errors and Ctrl-C leave no hidden name behind. A process that is killed may:
whoever next makes the same thing (`making`) removes it, and brings back a folder that was about to be replaced.
"""

from pue.files.locks import hold, making
from pue.files.writing import recover, set_aside, unfinished, write_bytes, write_text, writing, writing_folder

__all__ = [
    "hold",
    "making",
    "recover",
    "set_aside",
    "unfinished",
    "write_bytes",
    "write_text",
    "writing",
    "writing_folder",
]
