# `make run` is enough on a machine with Python, make and access to a package index.

PYTHON ?= python3
ENVIRONMENT := .venv
BIN := $(ENVIRONMENT)/bin
# Modified after each installation, so that nothing is installed twice.
INSTALLED := $(ENVIRONMENT)/installed
# The last file that the script for notebooks writes.
EXECUTED := build/notebooks/plotly.min.js

# uv does not read pip settings: use the package index of pip if uv has none of its own.
UV = UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${UV_INDEX_URL:-$${PIP_INDEX_URL:-$$( \
	$(BIN)/python -m pip config get global.index-url 2>/dev/null)}}}" $(BIN)/uv

# Settings of the user that would redirect the installation or the commands below.
unexport PIP_PREFIX PIP_REQUIRE_HASHES PIP_ROOT PIP_TARGET PIP_USER
unexport PYTHONHOME PYTHONPATH

.DEFAULT_GOAL := help
.PHONY: help install core lowest release run test random coverage test-slow lint format viz docs check-docs lock sbom bench bench-table gpu gpu-paper clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

install: $(INSTALLED) ## create .venv from requirements.lock (again only after a change)

$(INSTALLED): installer.lock requirements.lock pyproject.toml bundled/pyproject.toml
	@$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info < (3, 15) or sys.exit( \
		"Python 3.11 to 3.14 is needed, this is %d.%d: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(ENVIRONMENT)
	@echo "installing requirements.lock into $(ENVIRONMENT)"
	@$(BIN)/python -m pip install --quiet --require-hashes -r installer.lock
	@$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes \
		-r requirements.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e ./bundled -e .
	@touch $@

run: $(INSTALLED) ## run the benchmark on the bundled data, by two workers
	$(BIN)/kedro run --pipelines=robust_fairness \
		--runner=robust_fairness.runs.runners.DaskRunner --runner-params=workers=2

# Two workers with one thread each: more threads only wait for each other. Tests that run whole
# processes take minutes: an idle worker takes them over from the other one.
test: export OMP_NUM_THREADS := 1
test: $(INSTALLED) ## run all tests except the slow ones
	$(BIN)/pytest -m "not slow" -n 2 --dist worksteal -ra --durations=40

# An environment with the core alone, in the versions of the lock.
CORE := build/core
CORE_PYTHON ?= $(BIN)/python
core: $(INSTALLED) ## install the core, then the extra features: count packages and megabytes, and test
	@rm -rf $(CORE) && mkdir -p build
	@sed '/--hash/d; s/ *\\$$//; /^ *#/d' requirements.lock > build/versions.txt
	@$(UV) venv --quiet --python $(CORE_PYTHON) $(CORE)
	@$(UV) pip install --quiet --python $(CORE)/bin/python --constraints build/versions.txt .
	@packages=$$($(UV) pip list --quiet --format freeze --python $(CORE)/bin/python | wc -l); \
		megabytes=$$(du -sm $(CORE)/lib | cut -f1); \
		echo "$$packages packages, $$megabytes MB (at most 20 and 260)"; \
		test $$packages -le 20 && test $$megabytes -le 260
	@$(UV) pip install --quiet --python $(CORE)/bin/python --constraints build/versions.txt pytest
	$(CORE)/bin/python -m pytest -q -c /dev/null --rootdir . --noconftest -p no:cacheprovider \
		--import-mode importlib tests/test_core.py
	@$(UV) pip install --quiet --python $(CORE)/bin/python --constraints build/versions.txt \
		".[features]"
	@megabytes=$$(du -sm $(CORE)/lib | cut -f1); \
		echo "with the extra features: $$megabytes MB (at most 500)"; test $$megabytes -le 500
	$(CORE)/bin/python -m pytest -q -c /dev/null --rootdir . --noconftest -p no:cacheprovider \
		--import-mode importlib tests/test_core.py -k scikit_learn

# An environment with the lowest versions that pyproject.toml promises.
LOWEST := build/lowest
lowest: export OMP_NUM_THREADS := 1
lowest: $(INSTALLED) ## install the lowest promised versions: test the core, then run the benchmark once
	@rm -rf $(LOWEST) && mkdir -p build
	@$(UV) venv --quiet --python $(BIN)/python $(LOWEST)
	@$(UV) pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct ".[features]" "pytest>=8.3"
	$(LOWEST)/bin/python -m pytest -q -c /dev/null --rootdir . --noconftest -p no:cacheprovider \
		--import-mode importlib tests/test_core.py
	@$(UV) pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct ./bundled ".[all]"
	$(LOWEST)/bin/kedro run --env=smoke

# What a test leaves behind shows in another order; the seed in the output repeats it.
random: export OMP_NUM_THREADS := 1
random: SEED ?= $(shell date +%j)
random: $(INSTALLED) ## run the tests in random order (SEED=7; by default that of the day)
	@echo "SEED=$(SEED)"
	$(BIN)/pytest -m "not slow" -n 2 --dist worksteal -ra --order=$(SEED)

coverage: export OMP_NUM_THREADS := 1
coverage: $(INSTALLED) ## the same with the share of lines that they run and types of all calls
	$(BIN)/pytest --types-of-all -m "not slow" -n 2 --dist worksteal -ra --cov --cov-fail-under=85

test-slow: $(INSTALLED) ## run the tests that need minutes, a browser or a server
	$(BIN)/pytest --types-of-all -m slow -ra

lint: $(INSTALLED) ## check style, types and import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml

format: $(INSTALLED) ## apply ruff fixes and formatting
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

viz: $(INSTALLED) ## build a static site of the pipeline and serve it
	$(BIN)/kedro site
	@echo "http://127.0.0.1:4141 shows build/ (interrupt to stop)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build 4141

docs: $(EXECUTED) check-docs ## build the documentation with executed notebooks, build/site/index.html

check-docs: $(INSTALLED) ## build the documentation without executing notebooks
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

$(EXECUTED): $(INSTALLED) $(wildcard notebooks/*.ipynb)
	$(BIN)/python -m tools.execute_notebooks $(@D)

lock: $(INSTALLED) ## resolve pyproject.toml into requirements.lock (UPGRADE=1: newest versions)
	$(UV) pip compile pyproject.toml --quiet $(if $(UPGRADE),--upgrade) \
		--extra dev --extra docs --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--no-emit-package robust-fairness-data --output-file requirements.lock
	@echo "# The installer of the packages in requirements.lock; written by \`make lock\`." > installer.new
	@echo uv | $(UV) pip compile - --quiet --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate >> installer.new
	@mv installer.new installer.lock

sbom: $(INSTALLED) ## list the installed packages (CycloneDX) and their licences, in build/
	@mkdir -p build
	$(BIN)/cyclonedx-py environment --no-validate --output-reproducible \
		--pyproject pyproject.toml --output-file build/sbom.json $(BIN)/python
	$(BIN)/python -m tools.licences build/sbom.json > build/licences.md

bench: $(INSTALLED) ## measure speed and memory
	@set -e; for script in benchmarks/[a-z]*.py; do \
		echo "== $$script"; $(BIN)/python "$$script"; done

# Those that take less than four minutes each.
QUICK := bias_mitigation commands growth own_table peers randaugment report scoring training

bench-table: $(INSTALLED) ## run the quick benchmarks and write their figures into docs/performance.md
	@set -e; for script in $(QUICK); do \
		echo "== $$script"; $(BIN)/python benchmarks/$$script.py; done
	$(BIN)/python -m tools.benchmark_tables

gpu: $(INSTALLED) ## check and measure the training loop on a GPU, in less than ten minutes
	$(BIN)/python benchmarks/gpu.py

gpu-paper: $(INSTALLED) ## train a slice of the papers' tables (MINUTES=20 WORKERS=1; again: continue)
	$(BIN)/python -m studies.bias_mitigation.papers_size build/paper --minutes $(or $(MINUTES),20) \
		--workers $(or $(WORKERS),1)

release: $(INSTALLED) ## build sdist and wheel in dist/ from the last commit, reproducibly, and install them
	@mkdir -p build
	.ci/release

clean: ## remove the environment and all caches; data and results stay
	rm -rf $(ENVIRONMENT) .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache .viz build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
