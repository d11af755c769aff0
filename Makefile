# Every task of the workshop. Each target prepares what it needs: see tools/set-up.sh.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# ARGS goes to the tool behind the target (`make test-fast ARGS="-k pool"`), ONLY names one part of the benchmarks.
ARGS ?=
ONLY ?=

BIN := .venv/bin
# The stamp's name carries what .venv was made from: switching branches back and forth installs only what differs.
READY := .venv/ready-$(shell cat requirements.lock pyproject.toml tools/set-up.sh | sha256sum | cut -c 1-16)

# A log has no cursor to move: in CI nothing draws progress.
ifdef CI
export UV_NO_PROGRESS := 1
export PIP_PROGRESS_BAR := off
PYTEST_OUTPUT := --override-ini=console_output_style=classic
endif
PYTEST := $(BIN)/pytest -n auto $(PYTEST_OUTPUT)

.PHONY: help
help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: demo
demo: $(READY) ## Show what podtide decides, and why, by example
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash tools/demo.sh

.PHONY: test
test: $(READY) ## Run every test; core/ must be covered to the last line
	$(PYTEST) --cov=podtide.core --cov-report=term-missing:skip-covered --cov-fail-under=100 $(ARGS)

.PHONY: test-fast
test-fast: $(READY) ## Run the tests that are not marked slow
	$(PYTEST) -m "not slow" $(ARGS)

.PHONY: lint
lint: $(READY) ## Check style, format, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(READY) ## Fix what style and format can fix by themselves
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: bench
bench: $(READY) ## Measure everything, or one part: make bench ONLY=core
	@$(BIN)/python bench/run.py $(ONLY)

.PHONY: coverage
coverage: $(READY) ## Show which lines of podtide no test reaches; core/ must have none
	$(PYTEST) --cov=podtide --cov-report= $(ARGS)
	$(BIN)/coverage report
	$(BIN)/coverage report --include='src/podtide/core/*' --fail-under=100

.PHONY: mutation
mutation: $(READY) ## Break scaling and exhaustion in every small way; a test must notice each
	$(BIN)/python tools/mutation.py

.PHONY: lock
lock: $(READY) ## Write requirements.lock from pyproject.toml; ARGS=--upgrade takes new releases
	$(BIN)/uv pip compile pyproject.toml --group dev --group mutation --universal --generate-hashes \
		--no-header --no-emit-index-url --quiet --output-file requirements.lock $(ARGS)

$(READY):
	@bash tools/set-up.sh
	@rm -f .venv/ready-* && touch $@
