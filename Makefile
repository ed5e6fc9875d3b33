# The commands of the project; each sets up what it needs in a virtual environment of its own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench clean

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

demo: setup ## see what it does
	$(BIN)/topksvm demo --out demo

# Two processes with one thread each; a file's tests stay together, as they share compiled kernels.
test: setup ## run the whole test suite
	OMP_NUM_THREADS=1 TOPKSVM_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: setup ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## measure the speed on this machine
	$(BIN)/topksvm bench projections --out bench
	$(BIN)/topksvm bench solver

clean: ## remove everything that can be made again
	rm -rf $(VENV) build dist demo bench reproduce .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
