"""What people are shown of runs: the live table, tables and pictures beside the paper's, RESULTS.md, the demo."""

from pue.errors import require

require("bench")
