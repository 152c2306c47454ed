# Two commands are enough: `make demo` and `make test`. Each sets up what it needs first.
.DEFAULT_GOAL := help
SHELL := /bin/bash
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

# Every benchmark is one module of benchmarks/, and its last words are the figures: `make bench-ctgan` and so on.
bench-%: setup  ## One benchmark: adversary ctgan dpsgd secure-sum party marginals tables bayes evaluate peers (hours)
	$(BIN)/python -m benchmarks.$(subst -,_,$*)

bench-cluster: setup  ## What a federation in a cluster costs beside the computing (images as for test-kind)
	@[ -n "$(KUBECONFIG)" ] || $(MAKE) images TAG=dev
	$(BIN)/python -m benchmarks.cluster

crosscheck-metrics: setup  ## Our metrics beside sdmetrics and anonymeter, each in its own environment
	$(BIN)/python -m benchmarks.crosscheck

TAG ?= 0.2.0
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

.PHONY: help setup postgresql chromium report-shots demo test check crosscheck-metrics bench-cluster images test-kind clean
