# Two commands are enough: `make demo` and `make test`. Each sets up what it needs first.
.DEFAULT_GOAL := help
SHELL := /bin/bash
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

setup: $(VENV)/installed  ## Create .venv with everything pinned

# A real PostgreSQL for the tests of SQL sources; installed only where it is missing.
postgresql:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends postgresql; }

# A browser for the pictures of report.html; installed only where it is missing.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends chromium; }

demo: setup  ## Three parties make a synthetic census table together (under 5 minutes)
	$(BIN)/fedsynth simulate examples/adult.yaml --data examples/data/adult-train.csv.gz --partition iid \
	  --test examples/data/adult-test.csv.gz --out runs/demo --seed 1 --overwrite

test: setup postgresql chromium check  ## Everything a change must pass, without a cluster
	$(BIN)/pytest -n 2 -m "not kind" tests tests/fedsynth/report_shots.py

report-shots: setup chromium  ## report.html in a browser: light, dark, telephone, A4 (pictures in runs/report-shots)
	$(BIN)/pytest tests/fedsynth/report_shots.py

check: setup  ## Style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-ctgan: setup  ## Adult, 3 parties, ε = 3: quality of `ctgan`
	$(BIN)/python -m benchmarks.ctgan
bench-dpsgd: setup  ## Cost of a private step over a plain one
	$(BIN)/python -m benchmarks.dpsgd
bench-secure-sum: setup  ## Masked and encrypted sums beside Flower's SecAgg+
	$(BIN)/python -m benchmarks.secure_sum
bench-party: setup  ## Ledger, worker and loading at one party
	$(BIN)/python -m benchmarks.party
bench-marginals: setup  ## Adult, credit default, obesity: quality of `marginals`
	$(BIN)/python -m benchmarks.marginals
bench-tables: setup  ## Heaped, long-tailed, small, weak and wide tables: quality of `marginals`
	$(BIN)/python -m benchmarks.tables
bench-bayes: setup  ## Adult, 3 parties: quality of `bayes`, private and as published
	$(BIN)/python -m benchmarks.bayes

bench-evaluate: setup  ## Time and memory of a full evaluation, and whether it can tell good from bad
	$(BIN)/python -m benchmarks.evaluate
bench-peers: setup  ## Other makers of synthetic tables beside ours (hours; goes on where it stopped)
	$(BIN)/python -m benchmarks.peers

crosscheck-metrics: setup  ## Our metrics beside sdmetrics and anonymeter, each in its own environment
	$(BIN)/python -m benchmarks.crosscheck

bench-cluster: setup  ## What a federation in a cluster costs beside the computing (images as for test-kind)
	@[ -n "$(KUBECONFIG)" ] || $(MAKE) images TAG=dev
	$(BIN)/python -m benchmarks.cluster

TAG ?= 0.1.0
TORCH_INDEX ?=
images:  ## Build the container images
	docker build -t fedsynth/base:$(TAG) --build-arg VERSION=$(TAG) --build-arg TORCH_INDEX=$(TORCH_INDEX) .
	docker build -t fedsynth/aggregator:$(TAG) --build-arg BASE=fedsynth/base:$(TAG) -f images/aggregator/Dockerfile .
	docker build -t fedsynth/fed-node:$(TAG) --build-arg BASE=fedsynth/base:$(TAG) -f images/fed-node/Dockerfile .
	docker build -t fedsynth/edge:$(TAG) -f images/edge/Dockerfile .

# The images must be of the very tree that the tests run from: a plan's digest depends on the code. With KUBECONFIG the
# cluster is somebody's, and its registry must have them: build, push, and give FEDSYNTH_TAG.
test-kind: setup  ## A real federation on kind, or on the cluster of KUBECONFIG (images built unless KUBECONFIG is set)
	@[ -n "$(KUBECONFIG)" ] || $(MAKE) images TAG=dev
	$(BIN)/pytest -m kind -v --durations=20 tests/e2e/test_kind.py

clean:  ## Remove what runs left behind
	rm -rf runs build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help setup postgresql chromium report-shots demo test check bench-ctgan bench-dpsgd bench-secure-sum bench-party bench-marginals bench-tables bench-bayes bench-evaluate bench-peers crosscheck-metrics bench-cluster images test-kind clean
