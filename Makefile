# Every target makes its own virtual environment on first use; a second run installs nothing.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS   := $(VENV)/.docs
BARE   := $(VENV)-bare
PIP    := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Two processes with two threads each wait for each other on two cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test check bare mutants fuzz crash bench docs clean

demo: $(READY)  ## train on biased digits, print the table, write the plots
	$(BIN)/python -m pue demo

test:  ## style, types, the library without its extras, and all tests
	$(MAKE) --jobs 2 check bare
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -q

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bare: $(BARE)/.pue  ## README's Python in an environment that holds the library alone
	$(ONE_THREAD) $(BARE)/bin/python -I tests/bare.py

mutants: $(READY)  ## break the code on purpose; every mutant must be killed
	$(BIN)/python tests/mutants.py

CASES   ?= 100000
CRASHES ?= 800

fuzz: $(READY)  ## altered models, records, checkpoints, caches, tables and options; goes on where it was stopped
	$(ONE_THREAD) $(BIN)/python -W ignore tests/fuzz/run.py fuzz --cases $(CASES) --out fuzz_output

crash: $(READY)  ## commands that fail or are killed at successive operations on the disk, one in six by the clock
	$(ONE_THREAD) $(BIN)/python -W ignore tests/fuzz/run.py crash --cases $(CRASHES) --out fuzz_output

bench: $(READY)  ## speed and memory as ratios
	$(BIN)/python benchmarks/run.py

docs: $(DOCS)  ## the documentation as a site, in site/; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --editable '.[dev]'
	touch $@

$(BARE)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(BARE)
	$(BARE)/bin/python $(PIP) --no-compile .
	touch $@

$(BARE)/.pue: $(BARE)/.ready $(shell find src -name '*.py')
	$(BARE)/bin/python $(PIP) --no-compile --no-deps .
	touch $@

$(DOCS): $(READY)
	$(BIN)/python $(PIP) --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) $(BARE) demo_output fuzz_output site
