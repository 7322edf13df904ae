"""The offline demo: `python -m pue.demo`."""
