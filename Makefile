# Every target installs what it needs into .venv from nothing; `make` alone lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
JOBS ?= $(shell nproc)
TRACK ?= kernel

.DEFAULT_GOAL := help
.PHONY: help setup bindings dataset dataset-npu train tune evaluate report test lint bench bench-featurize bench-engines \
  bench-ablation bench-literature versions golden corpus-check fuzz clean system-tools

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  %-15s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv .venv

# One stamp per set of extras; a change of pyproject.toml installs again.
.venv/.with-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

system-tools:
	@command -v valgrind >/dev/null && command -v g++ >/dev/null || { \
	  echo "installing valgrind, gcc and g++ (labels are counted and linked with them; the C++ client is compiled)"; \
	  $$([ "$$(id -u)" = 0 ] || echo sudo) sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq valgrind gcc g++ libc6-dev'; }

# The NPU tools in an environment of their own: they need older libraries than the rest.
.venv/npu/.with-npu: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv .venv/npu
	.venv/npu/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[npu]"
	@touch $@

setup: .venv/.with-dev .venv/npu/.with-npu system-tools ## install everything, the labelling toolchain included

bindings: .venv/.with-bindings ## install the MLIR libraries whose objects the tests read; 500 MB to download

dataset: .venv/.with-dev system-tools ## build data/sets/kernel.parquet; resumes where it stopped
	$(BIN)/irgauge dataset build kernel --jobs $(JOBS)

dataset-npu: .venv/.with-dev .venv/npu/.with-npu ## build data/sets/npu.parquet; resumes where it stopped
	$(BIN)/irgauge dataset build npu --jobs $(JOBS)

dataset-sample: .venv/.with-dev system-tools ## build a small dataset in build/: a program of each family, as many as 2.5 minutes allow
	$(BIN)/irgauge dataset build kernel --jobs $(JOBS) --limit 1 --stop-after 2.5 --log build/sample.sqlite --output build/sample.parquet

train: .venv/.with-report ## train on a track's committed dataset and write its models/pretrained/*.joblib; TRACK=kernel or npu
	$(BIN)/irgauge train $(TRACK) --jobs $(JOBS)

tune: .venv/.with-tune ## search hyper-parameters, a minute a target, and write models/tuned/*.json; then train and evaluate
	$(BIN)/irgauge tune $(TRACK) --jobs $(JOBS)

evaluate: .venv/.with-report ## judge on all splits and write the scores into the file of the track's model
	$(BIN)/irgauge evaluate $(TRACK) --jobs $(JOBS) --into models/pretrained/$(TRACK).joblib

report: .venv/.with-report ## train, evaluate, write reports/out/index.html and print the headline table
	$(BIN)/irgauge report $(TRACK) --jobs $(JOBS)

test: setup ## run the tests, the real toolchain's included
	$(BIN)/python -m pytest

lint: .venv/.with-dev ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p .venv/checkout && ln -sfn "$(CURDIR)" .venv/checkout/irgauge  # mypy finds a package by its folder's name
	MYPYPATH=.venv/checkout $(BIN)/mypy -p irgauge

bench: setup ## time prediction; figures to quote need a quiet machine
	$(BIN)/python benchmarks/predict.py

bench-featurize: setup bindings .venv/.with-bench ## compare reading with MLIR's own parsers; takes FORMAT=json
	$(BIN)/python benchmarks/featurize.py --format $(or $(FORMAT),table)

bench-engines: setup .venv/.with-bench ## the same trees in ten engines
	$(BIN)/python benchmarks/engines.py

bench-ablation: .venv/.with-report ## each feature group left out, and the other choices; half an hour, resumes
	$(BIN)/python benchmarks/ablation.py --jobs $(JOBS)

bench-literature: setup .venv/.with-bench ## train the literature's models on the kernel track and judge them; MINUTES of a core for each of 56 fits
	$(BIN)/python benchmarks/literature.py --minutes $(or $(MINUTES),3)

versions: $(BIN)/python ## the model file under the lowest supported NumPy and the newest
	$(BIN)/python tests/models/library_versions.py

golden: .venv/.with-dev ## rewrite the golden vectors and docs/features.md; read the difference before committing
	$(BIN)/python tests/featurize/test_golden.py
	$(BIN)/python -c 'from irgauge.featurize.describe import markdown; print(markdown(), end="")' > docs/features.md.new && mv docs/features.md.new docs/features.md

corpus-check: setup ## compare the reader with mlir-opt over ../shared/corpus, and the features of each form of a program
	@mkdir -p build
	$(BIN)/python tests/featurize/corpus_check.py --corpus ../shared/corpus --forms --list build/corpus-check.tsv

fuzz: setup ## feed the reader 200,000 broken programs and hostile texts; build/fuzz gets the first that fails
	$(BIN)/python tests/featurize/fuzz.py --corpus ../shared/corpus

clean: ## remove what was made here; the committed datasets and models stay
	rm -rf .venv build dist reports/out irgauge.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
