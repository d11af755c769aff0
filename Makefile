# Every task of the workshop. Each target prepares what it needs: see tools/set-up.sh.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# ARGS goes to the tool behind the target (`make test-fast ARGS="-k pool"`), ONLY names one part of the benchmarks.
ARGS ?=
ONLY ?=

BIN := .venv/bin
# The stamp's name carries what .venv was made from: switching branches back and forth installs only what differs.
MADE_FROM := $(shell cat requirements.lock pyproject.toml tools/set-up.sh | sha256sum | cut -c 1-16)
READY := .venv/ready-$(MADE_FROM)
# To run podtide takes a sixth of what it takes to develop it. Where the latter is there, so is the former.
READY_TO_RUN := $(or $(wildcard $(READY)),.venv/ready-to-run-$(MADE_FROM))

# Tests start podtide hundreds of times: without bytecode beside the sources, every start would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

# A log has no cursor to move: in CI nothing draws progress.
ifdef CI
export UV_NO_PROGRESS := 1
export PIP_PROGRESS_BAR := off
PYTEST_OUTPUT := --override-ini=console_output_style=classic
endif
PYTEST_PARALLEL := $(BIN)/pytest -n auto $(PYTEST_OUTPUT)
# Groups keep the tests on a real Kubernetes to two workers: see tests/real_kubernetes.py.
PYTEST := $(PYTEST_PARALLEL) --dist loadgroup
CONTROL_PLANE := PYTHONPATH=tools $(BIN)/python -m control_plane

.PHONY: help
help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: demo
demo: $(READY_TO_RUN) plugin ## Show podtide at work: a whole cluster, told as a story; ARGS="--story exact-fit" for another
	@$(BIN)/podtide demo $(ARGS)

.PHONY: plugin
plugin: ## Build the CNI plugin in Rust; where that cannot be, the script beside it is used
	@if ! cargo --version >/dev/null 2>&1; then why="there is no cargo on this machine"; \
	elif ! uname -m | grep -qE '^(x86_64|aarch64)$$'; then why="it has none for $$(uname -m)"; fi; \
	if [ -n "$$why" ]; then echo "plugin: $$why, so the portable script plugin/podtide.py is used"; \
	else cd plugin && cargo build --release --locked --offline && echo "plugin: plugin/target/release/podtide"; fi

# The core is proved by its own tests; to count lines in all the others would take them a fifth more time.
.PHONY: test
test: $(READY) real-parts-if-possible ## Run every test; core/ must be covered to the last line
	$(PYTEST) tests/core --cov=podtide.core --cov-report=term-missing:skip-covered --cov-fail-under=100 $(ARGS)
	$(PYTEST) --ignore=tests/core $(ARGS)

# What tests run podtide on and beside. What cannot be had is named at the end of their run (and fails in CI).
.PHONY: real-parts-if-possible
real-parts-if-possible: rust-if-possible plugin control-plane-if-possible helm-if-possible cni-programs-if-possible \
	postgresql-if-possible cni-plugins-if-possible prometheus-if-possible nodes-if-possible chromium-if-possible shells-if-possible

.PHONY: test-nodes
test-nodes: $(READY) real-parts-if-possible ## Run the tests on real kubelets alone
	$(PYTEST) tests/nodes $(ARGS)

.PHONY: test-kubernetes
VERSION ?= 1.32
test-kubernetes: export KUBERNETES_RELEASE := $(VERSION)
test-kubernetes: $(READY) real-parts-if-possible ## Run what needs Kubernetes on another release of it: make test-kubernetes VERSION=1.32
	$(PYTEST) -m real_kubernetes $(ARGS)

.PHONY: test-fast
test-fast: $(READY) plugin ## Run the tests that are neither slow nor in need of a real Kubernetes
	$(PYTEST_PARALLEL) --dist worksteal -m "not slow and not real_kubernetes" --hypothesis-profile=fast $(ARGS)

.PHONY: kube
kube: $(READY) ## Run a Kubernetes control plane with podtide's CRDs, until Ctrl-C
	@$(CONTROL_PLANE) run

.PHONY: node
NODES ?= node-a
node: $(READY) ## Run a real Kubernetes node with podtide on it, until Ctrl-C; NODES="node-a node-b" for two
	@PYTHONPATH=tools $(BIN)/python -m node_bench run $(NODES)

.PHONY: control-plane
control-plane: $(READY) ## Build etcd and Kubernetes into the user's cache, if they are not there
	@$(CONTROL_PLANE) build

# Where it cannot be built, the tests that need it say so at the end of their run (and fail in CI).
.PHONY: control-plane-if-possible
control-plane-if-possible: $(READY)
	@$(CONTROL_PLANE) build || true

.PHONY: helm-if-possible
helm-if-possible: $(READY)
	@PYTHONPATH=tools $(BIN)/python -m helm_binary || true

# Prometheus and promtool, which alerting rules and the dashboard's queries are tried on.
.PHONY: prometheus-if-possible
prometheus-if-possible: $(READY)
	@PYTHONPATH=tools $(BIN)/python -m prometheus_programs || true

# Whereabouts and cnitool, which end-to-end tests run podtide beside and by.
.PHONY: cni-programs-if-possible
cni-programs-if-possible: $(READY)
	@PYTHONPATH=tools $(BIN)/python -m cni_programs || true

.PHONY: images
images: $(READY) ## Build podtide's container image into the user's cache, without Docker or a registry (Debian 12, as root)
	@PYTHONPATH=tools $(BIN)/python -m container_images

# kubelet, containerd and what else a real node runs, with podtide's image.
.PHONY: nodes-if-possible
nodes-if-possible: $(READY)
	@PYTHONPATH=tools $(BIN)/python -m node_bench build || true

.PHONY: manifests
manifests: $(READY) ## Write what is generated under deploy/: CRDs, the chart's README, and the chart as plain manifests
	@PYTHONPATH=tools $(BIN)/python -m manifests

.PHONY: reference
reference: $(READY) ## Write docs/reference/ from the code: commands, kinds, metrics, Events, HTTP paths
	@PYTHONPATH=tools $(BIN)/python -m reference

.PHONY: rust-if-possible
rust-if-possible:
	@bash tools/install-rust.sh

.PHONY: postgresql-if-possible
postgresql-if-possible:
	@bash tools/install-postgresql.sh

.PHONY: cni-plugins-if-possible
cni-plugins-if-possible:
	@bash tools/install-cni-plugins.sh

.PHONY: chromium-if-possible
chromium-if-possible:
	@bash tools/install-chromium.sh

.PHONY: shells-if-possible
shells-if-possible:
	@bash tools/install-shells.sh

.PHONY: lint
lint: $(READY) lint-plugin lint-site ## Check style, format, types, layers, and that the site builds
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Not --quiet: what it does not print, --strict does not count. The variable turns off a notice about the tool.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: lint-site
lint-site: $(READY)
	@directory=$$(mktemp --directory) && trap 'rm -rf "$$directory"' EXIT && $(MKDOCS) --site-dir "$$directory"

.PHONY: site
site: $(READY) ## Build the documentation's site into build/site, without a network
	@$(MKDOCS) --clean && echo "site: build/site/index.html"

# Its Rust, where Rust and its tools are.
.PHONY: lint-plugin
lint-plugin:
	@if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then cd plugin && cargo fmt --check && \
		cargo clippy --locked --offline --quiet --all-targets -- -D warnings; \
	else echo "lint: cargo fmt and clippy are not on this machine, so the plugin's Rust is not looked at"; fi

.PHONY: format
format: $(READY) ## Fix what style and format can fix by themselves
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	@if cargo fmt --version >/dev/null 2>&1; then cd plugin && cargo fmt; fi

.PHONY: bench
# Only the part that compares plugins needs plugins.
bench: $(READY) $(if $(filter-out plugin,$(ONLY)),,plugin cni-plugins-if-possible) ## Measure everything, or one part: make bench ONLY=core; ARGS=--record keeps the figures to compare with
	@PYTHONPATH=tools $(BIN)/python bench/run.py $(ONLY) $(ARGS)

.PHONY: peers
peers: $(READY) plugin control-plane-if-possible cni-programs-if-possible cni-plugins-if-possible ## Run podtide beside host-local and Whereabouts on one API server, for docs/benchmarks.md; ARGS=--small for a trial
	@PYTHONPATH=tools $(BIN)/python -m peers $(ARGS)

.PHONY: comparison
comparison: $(READY) ## Run the comparison of docs/comparison.md anew, and draw its picture
	@PYTHONPATH=tools $(BIN)/python -m comparison

.PHONY: diagrams
diagrams: $(READY) chromium-if-possible ## Draw the pages' Mermaid diagrams that changed, for the site
	@PYTHONPATH=tools $(BIN)/python tools/diagrams.py

.PHONY: screenshots
screenshots: $(READY) chromium-if-possible ## Take the pictures of the page in docs/images anew; ARGS=dark for one of them
	@PYTHONPATH=tools $(BIN)/python tools/screenshots.py $(ARGS)

.PHONY: newcomer
newcomer: $(READY) chromium-if-possible ## Time a newcomer's first minutes: clone, make demo, the page, the burst, a node clicked
	@PYTHONPATH=tools $(BIN)/python tools/newcomer.py

.PHONY: batch-table
batch-table: $(READY) ## Work out anew how far the batch comes back after a peak, for docs/decisions.md
	@PYTHONPATH=tools $(BIN)/python -m batch_table

.PHONY: soak
MINUTES ?= 10
soak: $(READY) ## Simulate clusters in trouble on all cores, a new seed each: make soak MINUTES=10
	@$(BIN)/python tools/soak.py --minutes $(MINUTES) $(ARGS)

.PHONY: coverage
coverage: $(READY) real-parts-if-possible ## Show which lines of podtide no test reaches; core/ must have none
	$(PYTEST) --cov=podtide --cov-report= $(ARGS)
	$(BIN)/coverage report
	$(BIN)/coverage report --include='src/podtide/core/*' --fail-under=100

.PHONY: mutation
mutation: $(READY) ## Break scaling and exhaustion in every small way; a test must notice each
	$(BIN)/python tools/mutation.py

.PHONY: mutants
mutants: $(READY) ## Break one line at a time, and let the simulation find it; ARGS=--pin keeps the seeds
	@PYTHONPATH=tools $(BIN)/python -m mutants $(ARGS)

.PHONY: mutant-score
mutant-score: $(READY) ## Break a sample of 200 places by machine, and see who notices: tests, seeds, nobody
	@PYTHONPATH=tools $(BIN)/python -m mutants.score $(ARGS)

.PHONY: lock
lock: $(READY) ## Write requirements.lock from pyproject.toml; ARGS=--upgrade takes new releases
	$(BIN)/uv pip compile pyproject.toml --extra plots --group dev --group mutation --universal --generate-hashes \
		--no-header --no-emit-index-url --quiet --output-file requirements.lock $(ARGS)

$(READY):
	@bash tools/set-up.sh
	@rm -f .venv/ready-* && touch $@

.venv/ready-to-run-%:
	@bash tools/set-up.sh to-run
	@rm -f .venv/ready-* && touch $@
