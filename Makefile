# make book    everything: environment, data, notebooks, the book
# make help    the other targets

PYTHON ?= python3
# What is yours is measured, on few inputs unless a profile is named; all else shows what is recorded.
PROFILE ?= $(if $(filter examine,$(MAKECMDGOALS))$(PARAMS),quick,study)
# The environment. VENV=none uses the one that is active and installs nothing; VENV=$CONDA_PREFIX installs into conda's.
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
# Images of containers set it; each of the hundreds of processes of a build would compile the library for itself.
unexport PYTHONDONTWRITEBYTECODE

# PyTorch: the build without 4 GB of GPU libraries, where no GPU is found. TORCH=cuda where it is the other machines that have
# them, such as a cluster's.
ifeq ($(origin TORCH),undefined)
TORCH := $(if $(shell nvidia-smi -L 2>/dev/null),cuda,cpu)
endif
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

# As they are written: nothing in them is expanded by make, and recipes read them from the environment, as one word.
WORDS := NAME PARAMS TABLES METRIC EXPLAINER MODEL DATA TAKE
$(foreach word,$(WORDS),$(eval override $(word) := $$(value $(word))))
export $(WORDS)

ifeq ($(VENV),none)
READY :=
else
READY := $(VENV)/.ready-$(TORCH)
export PATH := $(abspath $(VENV))/bin:$(PATH)
export VIRTUAL_ENV := $(abspath $(VENV))
endif

# One word of a recipe, whatever is in it.
quoted = '$(subst ','\'',$(1))'
HTML = $(call quoted,$(FAITHLAB_BUILD)/$(PROFILE)/html)
PAIRS = $(shell find notebooks -name '*.py' -not -path '*/.*')
comma := ,
# slurm: jobs run there, see notebooks/cluster. They see the GPUs that the cluster gives them.
CLUSTER ?=
ifneq ($(CLUSTER),)
unexport FAITHLAB_GPUS
WHERE = --workflow-profile $(call quoted,notebooks/cluster/$(CLUSTER))
else
WHERE = --workflow-profile none --cores $(CORES) \
	--resources gpu=$(words $(subst $(comma), ,$(FAITHLAB_GPUS)))
endif
# One notebook, its parameters and the tables to record are told in the environment: Snakemake would read them as YAML.
SNAKEMAKE = snakemake $(WHERE) --rerun-triggers mtime params --rerun-incomplete --keep-going --quiet host \
	--config profile=$(call quoted,$(PROFILE))

.DEFAULT_GOAL := help
.PHONY: help environment book preflight notebook record examine retrain test test-foreign check lint sync lab lock unlock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
	@echo 'Variables: PROFILE=study|quick|smoke|paper  CORES=all  CLUSTER=slurm  PYTHON=python3  VENV=.venv|none' \
		' FAITHLAB_GPUS=0,1  TORCH=cpu|cuda'

# Lines of requirements.lock, with their hashes: $(1) says of which packages.
locked = awk '/^[^ ]/ {wanted = ($(1))} wanted' requirements.lock >$(VENV)/locked.txt
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check
INSTALL = $(PIP) install --no-deps
HAS_CPU_TORCH = $(VENV)/bin/python -c 'import importlib.metadata as m; [m.version(n).index("+cpu") for n in ("torch", "torchvision")]' 2>/dev/null
# Of PyPI's PyTorch, which wants a GPU's libraries at its import: what a processor never loads.
IDLE := triton|cuda-(bindings|pathfinder|toolkit)|nvidia-(cusolver|nvtx)

# Installed again when a lock, the package description or PyTorch's build changes. --no-deps: the locks alone say what is
# installed. What has no wheel is built by the setuptools of the lock, so that everything has a known hash.
$(READY): requirements.lock requirements-cpu.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:3]; sys.exit(v < (3, 11, 4) and \
		f"faithlab needs Python 3.11.4 or newer, $(PYTHON) is {v[0]}.{v[1]}.{v[2]}. Try: make PYTHON=python3.12 ...")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@rm -f $(VENV)/.ready*
	@$(call locked,/^(setuptools|wheel)=/)
	$(INSTALL) --requirement $(VENV)/locked.txt
ifeq ($(TORCH),cpu)
	$(INSTALL) --retries 1 --timeout 20 --index-url $(TORCH_INDEX) --requirement requirements-cpu.lock || true
	@if $(HAS_CPU_TORCH); then $(call locked,!/^((torch|torchvision)=|triton|cuda-|nvidia-)/); else \
		echo 'PyTorch comes from PyPI: its build without GPU libraries is not to be had for this Python and system.'; \
		$(call locked,!/^($(IDLE))=/); fi
else
	@if $(HAS_CPU_TORCH); then $(PIP) uninstall --yes torch torchvision; fi
	@$(call locked,1)
endif
	$(INSTALL) --no-build-isolation --requirement $(VENV)/locked.txt
	$(INSTALL) --no-build-isolation --editable .
	@touch $@

environment: $(READY)  ## the environment alone

# Snakemake looks for free cores as often as the timespan says, once more for every job that has ended: at its default of a
# second that took a fifth of a core towards the end of a book.
book: $(READY)  ## run what is stale and build the book (PROFILE=study)
	@$(SNAKEMAKE) --max-jobs-per-timespan 100/5s
	@echo 'The book:' $(HTML)/index.html

preflight: $(READY)  ## say what a build would miss, before it starts: make preflight PROFILE=paper (CLUSTER=slurm)
	@python -m faithstudy.preflight --profile $(call quoted,$(PROFILE)) --cluster $(call quoted,$(CLUSTER))

notebook: $(READY)  ## run one: make notebook NAME=f-fidelity/images PARAMS="images=32 seed=1"
	@test -n "$$NAME" || { echo 'Which one? make notebook NAME=<one of these>:' $(patsubst notebooks/%.py,%,$(PAIRS)); exit 2; }
	@FAITHLAB_NOTEBOOK="$$NAME" FAITHLAB_PARAMS="$$PARAMS" $(SNAKEMAKE)

record: $(READY)  ## measure a page's tables anew, and record them: make record NAME=saco/random (TABLES="scores ends")
	@test -n "$$NAME" || { echo 'Which one? make record NAME=f-fidelity/images'; exit 2; }
	@FAITHLAB_NOTEBOOK="$$NAME" FAITHLAB_RECORD="$${TABLES:-all}" $(SNAKEMAKE)
	@python -m faithstudy.records promote "$$NAME"

examine: $(READY)  ## what is yours: make examine METRIC=path/to/file.py:function (EXPLAINER=..., MODEL=... DATA=...)
	@python -m faithstudy.examine --profile $(call quoted,$(PROFILE)) --metric "$$METRIC" --explainer "$$EXPLAINER" \
		--model "$$MODEL" --data "$$DATA" --params "$$PARAMS"

retrain: $(READY)  ## train a network that ships anew and compare: make retrain NAME=cifar10-resnet9-...
	@python -m faithstudy.ship retrain "$$NAME"

test: $(READY)  ## the test suite
	@python -m pytest -n auto --dist worksteal

# Older instructions, and every product rounded by its shape: what AMX does to a batch, on any processor.
FOREIGN := $(patsubst %,tests/test_%.py,engine search conformance saco mufidelity consistency explainers peers optimum)

test-foreign: $(READY)  ## what rounding could decide, tested with the rounding of another processor
	@ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 python -m pytest -n auto --dist worksteal --foreign $(FOREIGN)

check: $(READY)  ## open every page of the built book in a browser (needs chromium; ONLY=book)
	@python tests/check_book.py $(HTML) --only $(call quoted,$(ONLY))

lint: $(READY)  ## style, format, and that imports point downward
	@ruff check lib tests notebooks book
	@ruff format --check lib tests notebooks book/*.py
	@lint-imports --no-cache --no-logo >/dev/null || lint-imports --no-cache --no-logo

sync: $(READY)  ## bring the .py and .ipynb of every notebook together, without outputs
	@python -m faithstudy.pairs $${TAKE:+--take "$$TAKE"} $${NAME:+"$$NAME"}

lab: $(READY)  ## open the notebooks in JupyterLab
	@jupyter lab --notebook-dir=. notebooks

lock:  ## resolve requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra explainers --extra study --extra book --extra peers --extra test \
		--universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --quiet --output-file requirements.lock
	sed -nE "s/^(torch|torchvision)==([0-9.]+).*/\1==\2+cpu ; sys_platform == 'linux'/p" requirements.lock | \
		uv pip compile - --no-deps --universal --python-version 3.11 --default-index $(TORCH_INDEX) --upgrade \
		--generate-hashes --no-header --no-annotate --quiet --output-file requirements-cpu.lock

unlock: $(READY)  ## after a build was killed, where Snakemake says that the folder is locked
	@$(SNAKEMAKE) --unlock

clean:  ## remove everything that was built; data sets and trained weights stay in the cache
	rm -rf $(FAITHLAB_BUILD) .snakemake
