# `make run` and `make test` need Python >= 3.11 and nothing else: they set up .venv on their first call.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run test test-all lint types pytest pytest-all oldest fuzz filecheck format mlir-tools emulators tosa-tools browser smollm2 tflite-models node-tests-on-targets docs pictures dist clean distclean

# Without bytecode, each child of a test would compile the package.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

, := ,

# Installs the extras $(1): on a terminal, one line shows what pip is at; elsewhere, one line says what is installed.
define INSTALL
if [ -t 1 ]; then \
    set -o pipefail; \
    $(PIP) install --progress-bar off --editable '.[$(1)]' \
        | while IFS= read -r line; do printf '\r\033[K%.79s' "$$line"; done || { echo; exit 1; }; \
    printf '\r\033[K'; \
else \
    echo "Installing glow-mlir[$(1)] ..."; \
    $(PIP) --quiet install --editable '.[$(1)]'; \
fi
endef

# An environment knows its own path, and so does an editable install: a checkout that was copied or moved starts afresh.
HERE := .venv/.created-$(shell pwd -P | cksum | cut -d ' ' -f 1)
FOR_RUN := .venv/.installed-for-run
FOR_TEST := .venv/.installed-for-test
FOR_ALL := .venv/.installed-for-test-all
FOR_DOCS := .venv-docs/.installed
FOR_OLDEST := .venv-oldest/.installed

# The oldest PyTorch that pyproject.toml admits.
OLDEST_TORCH := $(shell sed -n 's/^torch = \["torch>=\([0-9.]*\).*/\1/p' pyproject.toml)

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: $(FOR_RUN) ## Train, compile and run a small network (examples/digits.py)
	$(BIN)/python examples/digits.py

test: lint pytest ## What has to pass before each commit: lint, then a short run of the tests

test-all: $(FOR_ALL) mlir-tools emulators tosa-tools browser smollm2 tflite-models lint types pytest-all filecheck node-tests-on-targets fuzz ## All that there is, with all extras: hours

lint: $(FOR_TEST) ## Style, format, import order of the rooms, types of the package but for what needs JAX or PyTorch
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/basedpyright --pythonpath $(BIN)/python $(filter-out glow_mlir/jax glow_mlir/torch %/__pycache__,$(wildcard glow_mlir/*))

types: $(FOR_ALL) ## Types of the tests, benchmarks and examples as well, which use all extras
	$(BIN)/basedpyright --pythonpath $(BIN)/python

pytest: $(FOR_TEST) ## A short run of the tests, FileCheck files in process among them, with small packages alone
	$(BIN)/pytest -n 2 --short

pytest-all: $(FOR_ALL) ## All tests, which fail where an extra is missing
	$(BIN)/pytest -n 2 --extras

oldest: $(FOR_OLDEST) ## The tests of PyTorch with the oldest one that is admitted, in an environment of its own
	.venv-oldest/bin/pytest tests/torch

fuzz: $(FOR_TEST) ## Random cases in child processes, 1000 of each kind; FUZZ='mutants --count 5000' says which
	$(BIN)/python tests/fuzz.py $(FUZZ)

node-tests-on-targets: $(FOR_ALL) ## All of ONNX's node tests on five other processors, by emulators: 20 minutes
	$(BIN)/pytest -n 2 tests/bundle/test_nodes_on_targets.py --all-node-tests

filecheck: $(FOR_TEST) ## The FileCheck files with real lit, one process per tool: slower, same answer
	$(BIN)/lit -v tests/filecheck

format: $(FOR_TEST) ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

mlir-tools: ## Unpack Debian's mlir-opt and mlir-translate into .mlir-tools, for the tests that compare with MLIR
	@.ci/mlir-tools

emulators: ## Unpack Debian's QEMU and GCC for Cortex-M into .emulators, for the tests on other processors
	@.ci/emulators

tosa-tools: ## Install Arm's tools for TOSA into .tosa-tools, for the tests of examples/tosa_backend
	@.ci/tosa-tools

browser: ## Unpack Debian's Chromium into .browser, for the tests of pages
	@.ci/browser

smollm2: ## Download a small language model into .smollm2, for the test of docs/generation.md
	@.ci/smollm2

tflite-models: ## Download trained models of TensorFlow Lite into .tflite-models, for the tests that compare with LiteRT
	@.ci/tflite-models

docs: $(FOR_DOCS) ## Build the site of the documentation into build/site, with warnings as errors
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet

pictures: $(FOR_ALL) ## Draw the pictures of the documentation: charts, and the page in the browser of `make browser`
	$(BIN)/python benchmarks/draw.py
	$(BIN)/python benchmarks/screenshots.py

dist: $(FOR_TEST) ## Build wheel and source distribution into dist/
	$(PIP) --quiet wheel --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -c "from setuptools.build_meta import build_sdist; build_sdist('dist')"

clean: ## Remove what builds and checks leave behind
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## Remove the environments and MLIR's tools as well
	rm -rf .venv .venv-docs .venv-oldest .mlir-tools .mlir-tools.partial .emulators .emulators.partial .tosa-tools .browser .browser.partial \
	    .smollm2 .smollm2.partial .tflite-models .tflite-models.partial

$(HERE):
	@python=$${PYTHON:-$$(.ci/find-python)} && test -n "$$python" && \
	    echo "Setting up .venv with $$python (once; about a minute) ..." && \
	    "$$python" -m venv --clear .venv
	@touch $@

$(FOR_RUN): pyproject.toml $(HERE)
	@$(call INSTALL,tools$(,)examples)
	@touch $@

$(FOR_TEST): pyproject.toml $(HERE)
	@echo "Installing what the tests need (again whenever pyproject.toml changes) ..."
	@$(call INSTALL,test)
	@touch $@

$(FOR_ALL): pyproject.toml $(HERE)
	@echo "Installing what all tests need (again whenever pyproject.toml changes) ..."
	@$(call INSTALL,test-all)
	@touch $@ $(FOR_TEST) $(FOR_RUN)

$(FOR_DOCS): pyproject.toml
	@echo "Setting up .venv-docs ..."
	@"$${PYTHON:-$$(.ci/find-python)}" -m venv --clear .venv-docs
	@.venv-docs/bin/python -m pip --disable-pip-version-check --quiet install --editable '.[docs]'
	@touch $@

$(FOR_OLDEST): pyproject.toml
	@echo "Setting up .venv-oldest with PyTorch $(OLDEST_TORCH) ..."
	@"$${PYTHON:-$$(.ci/find-python)}" -m venv --clear .venv-oldest
	@.venv-oldest/bin/python -m pip --disable-pip-version-check --quiet install --editable '.[test,torch]' 'torch==$(OLDEST_TORCH).*'
	@touch $@
