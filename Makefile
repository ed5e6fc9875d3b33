# The commands of the project; each sets up what it needs in a virtual environment of its own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench fuzz docs links clean

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# The environment is made anew when the dependencies change.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "topksvm needs Python 3.11 or newer; set PYTHON=python3.12, say." >&2; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

setup: $(VENV)/.installed ## make the virtual environment

# What only the site needs: tests do not wait for it.
$(VENV)/.docs-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

demo: setup ## see what it does
	$(BIN)/topksvm demo --out demo

# Two processes with one thread each; a file's tests stay together, as they share compiled kernels.
test: setup ## run the whole test suite
	OMP_NUM_THREADS=1 TOPKSVM_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: setup ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.bench-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]' \
		|| echo "Some peers could not be installed; they are skipped." >&2
	touch $@

# The first command fails if the solver has become slow, measured in matrix products.
bench: $(VENV)/.bench-installed ## measure the speed on this machine, beside that of others
	$(BIN)/python -m benchmarks guard
	rm -rf bench/quick
	$(BIN)/python -m benchmarks peers --quick --out bench/quick
	$(BIN)/python -m benchmarks projections --out bench
	$(BIN)/python -m benchmarks solver

# Two processes for ten minutes; make fuzz SECONDS=60 is shorter.
fuzz: SECONDS := 600
fuzz: setup ## look for wrong certificates and lost work at random, for SECONDS=600
	OMP_NUM_THREADS=1 TOPKSVM_NUM_THREADS=1 $(BIN)/python tools/fuzz.py --seconds $(SECONDS)

# Every warning is an error, and so is a reference that leads nowhere.
docs: $(VENV)/.docs-installed ## build the site: docs/_build/html
	$(BIN)/sphinx-build -M html docs docs/_build --fail-on-warning --nitpicky
	@echo "The site is docs/_build/html/index.html."

links: docs ## build the site and follow its links to elsewhere
	$(BIN)/sphinx-build -M linkcheck docs docs/_build

clean: ## remove everything that can be made again
	rm -rf $(VENV) build dist demo bench reproduce .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
