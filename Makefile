# Two commands are enough: `make demo` and `make test`. Each sets up what it needs first.
.DEFAULT_GOAL := help
SHELL := /bin/bash
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PYTHON ?= $(firstword $(foreach each,python3.11 python3.12 python3.13,$(shell command -v $(each))))
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/installed: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "fedsynth needs Python 3.11, 3.12 or 3.13, and none is on the PATH. Install one (for example: apt-get install python3.11 python3.11-venv), or say where it is: make setup PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

setup: $(VENV)/installed  ## Create .venv with everything pinned

# A real PostgreSQL for the tests of SQL sources; installed only where it is missing.
postgresql:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends postgresql; }

# A browser for report.html and the consoles, and what clicks in it; installed only where they are missing.
chromium:
	@{ command -v chromium || command -v google-chrome; } >/dev/null && command -v chromedriver >/dev/null || \
	  { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends chromium chromium-driver; }

# A real nginx for the tests of the edge; the image's own will do, else it is installed.
nginx:
	@command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || docker image inspect fedsynth/edge:dev >/dev/null 2>&1 || \
	  { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends nginx; }

demo: setup  ## Three parties make a synthetic census table together (under 5 minutes)
	$(BIN)/fedsynth simulate examples/adult.yaml --data examples/data/adult-train.csv.gz --partition iid \
	  --test examples/data/adult-test.csv.gz --out runs/demo --seed 1 --overwrite

test: setup postgresql chromium nginx check  ## Everything a change must pass, without a cluster
	$(BIN)/pytest -n 2 -m "not slow and not kind and not chaos" tests tests/fedsynth/report_shots.py tests/e2e/console_clicks.py

test-slow: setup  ## What takes longer than a change should wait and needs no cluster; for every night
	$(BIN)/pytest -n 2 -m slow tests

report-shots: setup chromium  ## report.html in a browser: light, dark, telephone, A4 (pictures in runs/report-shots)
	$(BIN)/pytest tests/fedsynth/report_shots.py

FUZZ_SECONDS ?= 600
fuzz: setup postgresql  ## Damaged documents for ten minutes (FUZZ_SECONDS), nasty tables in engines; for every night
	$(BIN)/python -m tests.fuzz.campaign --seconds $(FUZZ_SECONDS) --first $$(( $$(date +%j) * 1000000 ))
	ENGINE_EXAMPLES=100 $(BIN)/pytest -q tests/fed_node/test_engines.py
	HYPOTHESIS_PROFILE=searching $(BIN)/pytest -q -n 2 tests/crypto tests/fed_node tests/synth/encoding tests/synth/privacy

check: setup  ## Style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Every benchmark is one module of benchmarks/, and its last words are the figures: `make bench-ctgan` and so on.
bench-%: setup  ## One benchmark: adversary doors first-hour ctgan neural central nominal dpsgd secure-sum party forecast marginals tables odd-tables sequences selection large vertical bayes evaluate peers (hours)
	$(BIN)/python -m benchmarks.$(subst -,_,$*)

bench-cluster: setup  ## What a federation in a cluster costs beside the computing (images as for test-kind)
	@[ -n "$(KUBECONFIG)" ] || $(MAKE) images TAG=dev
	$(BIN)/python -m benchmarks.cluster

crosscheck-metrics: setup  ## Our metrics beside sdmetrics and anonymeter, each in its own environment
	$(BIN)/python -m benchmarks.crosscheck

# The base image is the pinned one. Where no registry can be reached, one that somebody put here under its tag is taken,
# and that is said: such images are for trying, not for release.
TAG ?= 0.2.0
VERSION ?= $(TAG)
LOCK ?= cpu
TORCH_INDEX ?=
PINNED_BASE := $(shell sed -n 's/^ARG PYTHON=//p' Dockerfile)
BASE_IMAGE ?= $(shell docker pull -q $(PINNED_BASE) >/dev/null 2>&1 && echo $(PINNED_BASE) || echo $(firstword $(subst @, ,$(PINNED_BASE))))
BUILD = docker build $(BUILD_FLAGS)
images:  ## Build the container images
	@base="$(BASE_IMAGE)"; [ "$$base" = "$(PINNED_BASE)" ] || echo "NOT FOR RELEASE: the base is $$base of this machine, not the pinned digest" && \
	set -ex && \
	$(BUILD) -t fedsynth/base:$(TAG) --build-arg PYTHON=$$base --build-arg VERSION=$(VERSION) --build-arg LOCK=$(LOCK) --build-arg TORCH_INDEX=$(TORCH_INDEX) . && \
	$(BUILD) -t fedsynth/aggregator:$(TAG) --build-arg BASE=fedsynth/base:$(TAG) --build-arg VERSION=$(VERSION) -f images/aggregator/Dockerfile . && \
	$(BUILD) -t fedsynth/fed-node:$(TAG) --build-arg BASE=fedsynth/base:$(TAG) --build-arg VERSION=$(VERSION) -f images/fed-node/Dockerfile . && \
	$(BUILD) -t fedsynth/edge:$(TAG) --build-arg DEBIAN=$$base --build-arg VERSION=$(VERSION) -f images/edge/Dockerfile .

images-twice:  ## Build every image twice from nothing and compare digests (an hour; needs a machine with docker)
	$(MAKE) images TAG=first VERSION=0 BUILD_FLAGS=--no-cache
	$(MAKE) images TAG=second VERSION=0 BUILD_FLAGS=--no-cache
	for image in base aggregator fed-node edge; do $(PYTHON) images/normalise.py fedsynth/$$image:first fedsynth/$$image:second || exit 1; done

TORCH_CPU ?= https://download.pytorch.org/whl/cpu/torch
sbom:  ## What is in the images of TAG and in the Python tree: CycloneDX files in build/sbom
	$(PYTHON) -m venv build/sbom-tools && build/sbom-tools/bin/pip install --quiet cyclonedx-bom==7.5.0
	mkdir -p build/sbom
	build/sbom-tools/bin/cyclonedx-py requirements --pyproject pyproject.toml --of JSON -o build/sbom/python.cdx.json images/locks/$(LOCK).txt
	for image in aggregator fed-node edge; do $(PYTHON) images/sbom.py fedsynth/$$image:$(TAG) > build/sbom/$$image.cdx.json || exit 1; done

# One file for sites without a network; KEY signs it: a federation's authority/federation.key, or `fedsynth airgap keygen`.
PARCEL ?= build/fedsynth-$(TAG).parcel
airgap: setup images sbom docs  ## Pack images, charts, wheels, documents and SBOM into one signed file (KEY=…; 2 GB)
	@[ -n "$(KEY)" ] || { echo "say whose key signs it: make airgap KEY=federation/authority/federation.key"; exit 1; }
	$(BIN)/pip download --quiet --require-hashes --only-binary :all: --no-deps $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -d build/wheels -r images/locks/$(LOCK).txt
	$(BIN)/pip wheel --quiet --no-deps -w build/wheels .
	$(BIN)/fedsynth airgap make --key $(KEY) --out $(PARCEL) --docs build/site $(foreach each,aggregator fed-node edge,--image fedsynth/$(each):$(TAG))

lock: setup  ## Resolve what the images install, by hash (TORCH_CPU: a page or folder with PyTorch's CPU wheels)
	$(PYTHON) images/lock.py $(BIN)/uv "$(TORCH_CPU)"

# The images must be of the very tree that the tests run from: a plan's digest depends on the code. With KUBECONFIG the
# cluster is somebody's, and its registry must have them: build, push, and give FEDSYNTH_TAG.
test-kind: setup  ## A real federation on kind, or on the cluster of KUBECONFIG (images built unless KUBECONFIG is set)
	@[ -n "$(KUBECONFIG)" ] || $(MAKE) images TAG=dev
	$(BIN)/pytest -m "kind and not nightly" -v --durations=20 tests/e2e/test_kind.py

test-kind-nightly: setup  ## The same and what takes longer: plans by columns, more kills, certificates, GPU, parcels, leaving
	@[ -n "$(KUBECONFIG)" ] || $(MAKE) images TAG=dev
	$(BIN)/pytest -m kind -v --durations=20 tests/e2e/test_kind.py tests/e2e/test_parcel.py

# Hours for all of it; CHAOS_RUNS, CHAOS_FAULTS, CHAOS_SEED, and CHAOS_FIRST to go on where it was cut short.
test-chaos: setup  ## A dozen runs and a hundred faults on kind, nobody at the keyboard
	@[ -n "$(KUBECONFIG)" ] || $(MAKE) images TAG=dev
	$(BIN)/pytest -m chaos -v -s --durations=20 tests/e2e/test_chaos.py

docs: setup  ## The documentation as a site in build/site; reading it needs no network
	$(BIN)/mkdocs build --quiet --site-dir build/site

clean:  ## Remove what runs left behind
	rm -rf runs build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help docs nginx images-twice sbom airgap lock setup postgresql chromium report-shots demo test test-slow fuzz check crosscheck-metrics bench-cluster images test-kind test-kind-nightly test-chaos clean
