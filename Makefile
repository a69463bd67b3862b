# Two commands do everything: `make run` starts the app, `make test` runs every check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CI),--no-compile)  # most is never imported
export PYTHONDONTWRITEBYTECODE :=  # the tests start hundreds of processes, each of which would compile what it imports

.PHONY: run test check lint style contracts types unit quick docs screenshots wheel lock samples samples-analysis clean

run: $(VENV)/.installed
	$(BIN)/streamlit run app.py

# Contracts and types are checked while the first test process compiles and the tests are collected, which leaves a core idle.
test: $(VENV)/.installed-dev style
	@$(MAKE) --no-print-directory --jobs=3 contracts types unit

lint: style contracts

style: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

contracts: $(VENV)/.installed-dev
	$(BIN)/lint-imports

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# Temporary files lie in memory where there is room: tests write many small files anew, which a disk writes at once.
unit quick: export TMPDIR := $(or $(TMPDIR),$(shell df -BG --output=avail /dev/shm 2>/dev/null | awk 'int($$1) >= 8 {print "/dev/shm"}'))

# Two processes more than cores: a test of the app or of a job waits a third of its time for other processes.
unit: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses=$$(($$(getconf _NPROCESSORS_ONLN) + 2)) --maxprocesses=4 --dist=loadgroup --durations=10

# What needs neither TensorFlow nor a browser and takes no time: for every change, within a minute.
check: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory --jobs=2 lint types quick

quick: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q --numprocesses=logical --maxprocesses=4 -m "not slow and not tensorflow and not server and not browser"

docs: $(VENV)/.installed-dev
	$(BIN)/mkdocs build --strict

screenshots: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.screenshots

wheel: $(VENV)/bin/python
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 13)))' || \
	  { echo "Pipeline Lab needs Python 3.11, 3.12 or 3.13; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip  # the one that comes with Python 3.11 takes twice as long

$(VENV)/.installed: $(VENV)/bin/python requirements.txt pyproject.toml
	$(INSTALL) -r requirements.txt
	$(INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	$(INSTALL) -r requirements-dev.txt
	@touch $@

lock:
	uv pip compile pyproject.toml --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header --upgrade -o requirements.txt
	uv pip compile pyproject.toml --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header --extra gpu -c requirements.txt -o requirements-gpu.txt
	uv pip compile pyproject.toml --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header --group dev -c requirements.txt -o requirements-dev.txt

samples: $(VENV)/.installed
	$(BIN)/python -m benchmarks.record_samples

samples-analysis: $(VENV)/.installed
	$(BIN)/python -m benchmarks.record_samples --diagnose

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build site
