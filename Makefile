# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# on all cores, the tests of a file or class together: they share what they make
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadscope
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# refuses a file that is not, by its SHA-256, one that `make lock` has seen; builds with the tools in requirements/build.txt.
# The files name everything that is needed: without --no-deps, old versions of pip look for a newer coverage[toml]
LOCKED := $(PIP) install --require-hashes --no-deps --no-build-isolation

.PHONY: demo extras bench docs test check unit coverage slow lock release-check clean

demo: $(VENV)/installed ## fuzz the shipped aircraft networks for a minute, and explain what was found
	@$(BIN)/policyfuzz fuzz acasxu --max-time 60s || [ $$? -eq 1 ]  # 1: findings, which is what we want
	@echo
	@$(BIN)/policyfuzz triage "$$(ls -td campaigns/acasxu-*/ | head -n 1 | sed 's:/$$::')" --max-time 60s || [ $$? -eq 1 ]

extras: $(VENV)/installed ## the simulators that are optional, and MP4 films
	@echo "installing the optional packages into $(VENV)"
	@$(LOCKED) --requirement requirements/extras.txt

bench: $(VENV)/installed ## list the benchmarks: make bench NAME="density --json" runs one
	@$(BIN)/python -m benchmarks $(or $(NAME),--list)

docs: $(VENV)/installed-dev ## the documentation site, into site/: open site/index.html
	@# the variable silences an advertisement, which would hide a warning of ours
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

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

lock: ## write requirements/ anew, from pyproject.toml and the versions in constraints.txt
	$(PYTHON) scripts/lock.py

release-check: ## build sdist, wheel and SBOM, and try the wheel on every supported Python that is found
	PYTHONS="$(PYTHONS)" scripts/check_wheel.sh

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "PolicyFuzz needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml requirements/build.txt requirements/run.txt
	@echo "installing PolicyFuzz into $(VENV)"
	@$(LOCKED) --requirement requirements/build.txt --requirement requirements/run.txt
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements/dev.txt requirements/torch.txt
	@echo "installing the development tools into $(VENV)"
	@$(LOCKED) --requirement requirements/dev.txt
	@# only a build of torch without CUDA is small enough to be fetched for tests: the machine's own wheels may hold it.
	@# It is the one package without a hash, as each maker's build has another.
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(PIP) install --no-index --no-deps torch==2.13.0 2>/dev/null || true
	@if $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; then \
	  $(LOCKED) --requirement requirements/torch.txt; else \
	  echo "no torch in $(VENV): tests of stable-baselines3, TorchScript and training are skipped"; fi
	@touch $@

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* dist site
