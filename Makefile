# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# on all cores, the tests of a file together: they share what they make
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo extras bench test check unit coverage slow release-check clean

demo: $(VENV)/installed ## fuzz the shipped aircraft networks for a minute
	@$(BIN)/policyfuzz fuzz acasxu --max-time 60s || [ $$? -eq 1 ]  # 1: findings, which is what we want

extras: $(VENV)/installed ## the simulators that are optional, and MP4 films
	@echo "installing the optional packages into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable '.[all]'

bench: $(VENV)/installed ## list the benchmarks: make bench NAME="density --json" runs one
	@$(BIN)/python -m benchmarks $(or $(NAME),--list)

test: check unit slow ## everything that must hold

check: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/installed-dev
	$(PYTEST) -m "not slow" $(if $(CI),--cov)  # CI also holds the floor of coverage, which takes half as long again

coverage: $(VENV)/installed-dev ## the unit tests, and how much of the package they run; fails below the floor
	$(PYTEST) -m "not slow" --cov

slow: $(VENV)/installed-dev
	$(PYTEST) -m slow

release-check: ## build sdist and wheel, and try the wheel on every supported Python that is found
	PYTHONS="$(PYTHONS)" scripts/check_wheel.sh

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "PolicyFuzz needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing PolicyFuzz into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "installing the development tools into $(VENV)"
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@# only a build of torch without CUDA is small enough to be fetched for tests: the machine's own wheels may hold it
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(PIP) install --no-index --no-deps torch==2.13.0 2>/dev/null || true
	@if $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; then \
	  $(PIP) install --constraint constraints.txt --editable '.[dev,sb3]'; else \
	  echo "no torch in $(VENV): tests of stable-baselines3, TorchScript and training are skipped"; fi
	@touch $@

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* dist
