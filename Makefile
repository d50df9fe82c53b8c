# make book    everything: environment, data, notebooks, the book
# make help    the other targets

PYTHON ?= python3
PROFILE ?= quick
# The environment. VENV=none uses the one that is active (conda, for example) and installs nothing.
VENV ?= .venv
CORES ?= all
# GPUs to hand out, such as 0,1. Empty: run on the processor.
export FAITHLAB_GPUS ?= $(shell nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | paste -sd, -)
export FAITHLAB_BUILD ?= build
# The C library (glibc) gives a forward's activations back to the system, and asks for them again, page by page, for the
# next forward. Kept, ResNet-9 ran a quarter faster with another notebook beside it, and a third faster alone in float32; the
# page that needs most memory takes half as much again. Elsewhere than with glibc these say nothing.
export MALLOC_MMAP_MAX_ ?= 0
export MALLOC_TOP_PAD_ ?= 268435456
export MALLOC_TRIM_THRESHOLD_ ?= 4294967296

# As they are written: nothing in them is expanded by make, and recipes read them from the environment, as one word.
WORDS := NAME PARAMS METRIC EXPLAINER TAKE
$(foreach word,$(WORDS),$(eval override $(word) := $$(value $(word))))
export $(WORDS)

ifeq ($(VENV),none)
READY :=
else
READY := $(VENV)/.ready
export PATH := $(abspath $(VENV))/bin:$(PATH)
export VIRTUAL_ENV := $(abspath $(VENV))
endif

HTML := $(FAITHLAB_BUILD)/$(PROFILE)/html
PAIRS = $(shell find notebooks -name '*.py' -not -path '*/.*')
comma := ,
# slurm: jobs run there, see notebooks/cluster. They see the GPUs that the cluster gives them.
CLUSTER ?=
ifneq ($(CLUSTER),)
unexport FAITHLAB_GPUS
WHERE = --workflow-profile notebooks/cluster/$(CLUSTER)
else
# It looks for free cores as often as the timespan says, and once more for every job that has ended: at its default of one
# second that took a fifth of a core towards the end of a build.
WHERE = --workflow-profile none --max-jobs-per-timespan 100/5s --cores $(CORES) \
	--resources gpu=$(words $(subst $(comma), ,$(FAITHLAB_GPUS)))
endif
SNAKEMAKE = python -m faithlab.study.pipeline $(WHERE) --rerun-incomplete --keep-going --quiet host --config profile=$(PROFILE)

.DEFAULT_GOAL := help
.PHONY: help book preflight notebook examine retrain test test-foreign check lint sync lab lock unlock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
	@echo 'Variables: PROFILE=smoke|quick|study|paper  CORES=all  CLUSTER=slurm  PYTHON=python3  VENV=.venv|none  FAITHLAB_GPUS=0,1'

# Installed again when the lock or the package description changes. --no-deps: the lock alone says what is installed.
$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:3]; sys.exit(v < (3, 11, 4) and \
		f"faithlab needs Python 3.11.4 or newer, $(PYTHON) is {v[0]}.{v[1]}.{v[2]}. Try: make PYTHON=python3.12 ...")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --disable-pip-version-check --no-deps --requirement requirements.lock
	$(VENV)/bin/python -m pip install --disable-pip-version-check --no-deps --editable .
	@touch $@

book: $(READY)  ## run what is stale and build the book (PROFILE=quick)
	@$(SNAKEMAKE)
	@echo 'The book: $(HTML)/index.html'

preflight: $(READY)  ## say what a build would miss, before it starts: make preflight PROFILE=paper (CLUSTER=slurm)
	@python -m faithlab.study.preflight --profile $(PROFILE) --cluster '$(CLUSTER)'

notebook: $(READY)  ## run one: make notebook NAME=f-fidelity/images PARAMS="images=32 seed=1"
	@test -n "$$NAME" || { echo 'Which one? make notebook NAME=<one of these>:' $(patsubst notebooks/%.py,%,$(PAIRS)); exit 2; }
	@$(SNAKEMAKE) notebook="$$NAME" params="$$PARAMS"

examine: $(READY)  ## a metric or an explainer of yours: make examine METRIC=path/to/file.py:function (or EXPLAINER=...)
	@python -m faithlab.study.examine --profile $(PROFILE) --metric "$$METRIC" --explainer "$$EXPLAINER"

retrain: $(READY)  ## train a network that ships anew and compare: make retrain NAME=cifar10-resnet9-...
	@python -m faithlab.study.ship retrain "$$NAME"

test: $(READY)  ## the test suite
	@python -m pytest -n auto --dist worksteal

# Older instructions, and every product rounded by its shape: what AMX does to a batch, on any processor.
FOREIGN := $(patsubst %,tests/test_%.py,engine search conformance saco mufidelity consistency explainers peers optimum)

test-foreign: $(READY)  ## what rounding could decide, tested with the rounding of another processor
	@ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 python -m pytest -n auto --dist worksteal --foreign $(FOREIGN)

check: $(READY)  ## open every page of the built book in a browser (needs chromium)
	@python tests/check_book.py $(HTML)

lint: $(READY)  ## style, format, and that imports point downward
	@ruff check lib tests notebooks book
	@ruff format --check lib tests notebooks book/*.py
	@lint-imports --no-cache --no-logo >/dev/null || lint-imports --no-cache --no-logo

sync: $(READY)  ## bring the .py and .ipynb of every notebook together, without outputs
	@python -m faithlab.study.pairs $${TAKE:+--take "$$TAKE"} $${NAME:+"$$NAME"}

lab: $(READY)  ## open the notebooks in JupyterLab
	@jupyter lab --notebook-dir=. notebooks

lock:  ## resolve requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra book --extra peers --extra test --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --quiet --output-file requirements.lock

unlock: $(READY)  ## where Snakemake itself says that the folder is locked (make book needs no lock of its)
	@snakemake --cores 1 --config profile=$(PROFILE) --unlock

clean:  ## remove everything that was built; data sets and trained weights stay in the cache
	rm -rf $(FAITHLAB_BUILD) .snakemake
