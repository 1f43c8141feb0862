# Every target sets up what it needs in .venv first; nothing has to be installed by hand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test lint bench numbers docs clean

help:
	@echo "make demo    set up, then show what memory and a large batch are worth on the embedded stream (demo/demo.png; a minute or two)"
	@echo "make test    set up, then lint, type-check and run all tests"
	@echo "make lint    ruff, mypy --strict and the import contract"
	@echo "make bench   speed and scaling, as tables of ratios (a few minutes, wants a quiet machine)"
	@echo "make numbers make the generated numbers of README and docs anew from docs/results"
	@echo "make docs    build the documentation into site/"
	@echo "make clean   remove .venv and everything built"

demo: $(VENV)/.base
	$(BIN)/python examples/demo.py --out demo

test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

numbers: $(VENV)/.base
	$(BIN)/python -m pres.paper.experiments.generated docs/results README.md docs/*.md

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "pres needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $@
