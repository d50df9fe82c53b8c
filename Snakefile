# What is stale is made again, and only that. `make book` is the way in; see the Makefile.
#
#   data sets --> networks, where they are trained ahead --> notebooks (one job each) --> the book
#                                    blocks of a notebook's images, where they are asked ahead ^
#
# What is stale is decided by content: the `params` of a rule hold a hash of what its product is made of, see
# faithstudy.dependencies, and Snakemake makes it again where they have changed.

import functools
import hashlib
import os
import shlex
import sys
from pathlib import Path

from faithstudy import dependencies, pairs, parameters, paths, profiles, weights

PROFILE = config.get("profile", "study")
RECORD = bool(os.environ.get("FAITHLAB_RECORD"))  # make record: the tables of one notebook are measured anew
MEASURED = RECORD or PROFILE != paths.PROFILE  # else pages show what is recorded
BUILD = os.path.relpath(paths.build())
BOOK = f"{BUILD}/{PROFILE}"


def files(*patterns):
    """Files under the repository, without caches, editor backups and the like."""
    return sorted(
        str(path)
        for pattern in patterns
        for path in Path().glob(pattern)
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.parts)
    )


# What the pages of the book show of the library and of what is recorded.
SHOWN = files("book/**/*", "_config.yml", "CHANGELOG.md", "lib/**/*.py", "data/**/*", "requirements.lock")
NOTEBOOKS = paths.pages()
RECORDED = {name for name in NOTEBOOKS if paths.recorded(name, paths.PROFILE).is_dir()}

# Or one notebook with parameters of your own, which the Makefile puts into the environment.
ONE = os.environ.get("FAITHLAB_NOTEBOOK", "")


def resolved(name, run):
    """All parameters of a notebook: the profile's, and in a run of your own those that were given."""
    return profiles.resolve(name, PROFILE, {} if run == BASE else parameters.given(GIVEN))


def given(wildcards):
    """Parameters as they are written in a command: those of a run of your own, every word in quotes."""
    return "" if wildcards.run == BASE else shlex.join(x for name, text in GIVEN for x in ("-p", name, text))


def fetched(name, run):
    """Markers of what a notebook needs from elsewhere: it is fetched here, because the nodes of a cluster see no network."""
    networks = weights.named(name, resolved(name, run))
    needs = profiles.needs(name)
    sets = dict.fromkeys(needs.data + (needs.papers if PROFILE == "paper" else ()))
    return [f"{BUILD}/data/{data}" for data in sets] + [f"{BUILD}/pretrained/{n}" for n in networks]


def threads(alone=False):
    """Two jobs at a time: small models do not fill many cores, and a notebook spends much of its time on one.

    On a cluster the profile in notebooks/cluster says how many.
    """
    cores = workflow.resource_settings.cores or 1
    return cores if alone else max(1, cores // 2)


# What is wrong with the parameters is said in a few lines, before Snakemake says anything.
try:
    GIVEN = parameters.split(os.environ.get("FAITHLAB_PARAMS", ""))
    BASE = paths.RECORDING if RECORD else PROFILE  # the folder of runs whose parameters are the profile's
    MEASURED = MEASURED or bool(GIVEN)
    if ONE:
        RUN = BASE if RECORD else profiles.label(ONE, PROFILE, resolved(ONE, "own"), parameters.given(GIVEN))
        GOAL = f"{BUILD}/{RUN}/executed/{ONE}.ipynb"
    else:
        GOAL = f"{BOOK}/html/index.html"
    if workflow.is_main_process:
        CHOSEN = {name: resolved(name, "own") for name in ([ONE] if ONE else NOTEBOOKS)}
        if unheard := pairs.unheard(CHOSEN):
            raise ValueError("\n".join(unheard))
except (ValueError, FileNotFoundError) as error:
    print(error, file=sys.stderr)
    sys.exit(2)


@functools.cache
def made_of(of, name, run):
    """A hash of what a product is made of. The processes that Snakemake starts for single jobs need not know it."""
    return hashlib.sha256(of(name, resolved(name, run)).encode()).hexdigest() if workflow.is_main_process else ""


onstart:
    # Everything that is missing, at once, before anything is trained.
    try:
        profiles.require_files({name: of for name, of in CHOSEN.items() if MEASURED or name not in RECORDED})
    except ValueError as error:
        print(error, file=sys.stderr)
        if not ONE:
            print(f"What needs none of these runs alone: make notebook NAME=... PROFILE={PROFILE}", file=sys.stderr)
        sys.exit(2)


wildcard_constraints:
    run="[^/]+",
    network="[^/]+",
    part="[0-9]+",
    parts="[0-9]+",


localrules:
    all,
    data,
    pretrained,
    book,


rule all:
    input:
        GOAL,
    message:
        "everything is up to date"


# The marker says that a data set is in the cache; the files themselves are shared by all clones of a user.
rule data:
    output:
        touch(f"{BUILD}/data/{{dataset}}"),
    message:
        "data set {wildcards.dataset}"
    shell:
        "python -m faithstudy.data.datasets fetch {wildcards.dataset}"


rule pretrained:
    output:
        touch(f"{BUILD}/pretrained/{{network}}"),
    message:
        "pretrained network {wildcards.network}"
    shell:
        "python -m faithstudy.weights {wildcards.network:q}"


# A part of a notebook's networks; only where profiles.yml asks for jobs of their own. See faithstudy.train.
rule train:
    input:
        data=lambda w: ancient(fetched(w.name, w.run)),
    params:
        given=given,
        made_of=lambda w: made_of(dependencies.networks, w.name, w.run),
    output:
        touch(f"{BUILD}/{{run}}/trained/{{name}}/{{part}}-of-{{parts}}"),
    threads: lambda w: threads()
    resources:
        gpu=1 if os.environ.get("FAITHLAB_GPUS") else 0,
        mem_mb=lambda w: profiles.needs(w.name).memory,
    message:
        "networks of {wildcards.name} ({wildcards.run}), part {wildcards.part} of {wildcards.parts}"
    # Before notebooks: others wait for these.
    priority: 10
    shell:
        "python -m faithstudy.train {wildcards.name:q} --profile {PROFILE:q}"
        " --part {wildcards.part} {wildcards.parts} {params.given}"


@functools.cache
def waiting(name, run, parts):
    """Which of the jobs have a network to train; to know the networks of a notebook takes seconds."""
    if not parts:
        return []
    from faithstudy import train

    return train.waiting(name, resolved(name, run), parts)


def trained(name, run):
    """Markers of the jobs that train a notebook's networks in this profile, in a build also those that it shares.

    Networks that ship need none.
    """
    needs = profiles.needs(name)
    parts = needs.jobs.get(PROFILE, 0) if MEASURED else 0
    own = [f"{BUILD}/{run}/trained/{name}/{part}-of-{parts}" for part in waiting(name, run, parts)]
    return own + (trained(needs.shares, run) if needs.shares and not ONE else [])


def asked(name, run):
    """Markers of the jobs that ask about a notebook's images in this profile, a part each, and of one before them."""
    parts = profiles.needs(name).parts.get(PROFILE) if MEASURED else None
    return [f"{BUILD}/{run}/asked/{name}/{part}-of-{parts}" for part in range(parts + 1)] if parts else []


# A part of what a notebook asks about its images; only where profiles.yml says parts. See faithstudy.run.Run.table.
# The first one, 0, has no images: it trains what is not trained ahead, and makes other steps that all parts need.
rule ask:
    input:
        lambda w: trained(w.name, w.run),
        lambda w: asked(w.name, w.run)[: 0 if w.part == "0" else 1],
        data=lambda w: ancient(fetched(w.name, w.run)),
    params:
        given=given,
        made_of=lambda w: made_of(dependencies.notebook, w.name, w.run),
    output:
        # What it has made goes away when the notebook is finished, and so does the marker.
        temp(touch(f"{BUILD}/{{run}}/asked/{{name}}/{{part}}-of-{{parts}}")),
    threads: lambda w: threads()
    resources:
        gpu=1 if os.environ.get("FAITHLAB_GPUS") else 0,
        mem_mb=lambda w: profiles.needs(w.name).memory,
    message:
        "images of {wildcards.name} ({wildcards.run}), part {wildcards.part} of {wildcards.parts}"
    # Others may wait for networks; a notebook waits for these.
    priority: 5
    shell:
        "python -m faithstudy.execute {wildcards.name:q} --profile {PROFILE:q}"
        " --part {wildcards.part} {wildcards.parts} {params.given}"


rule notebook:
    input:
        lambda w: trained(w.name, w.run),
        lambda w: asked(w.name, w.run),
        data=lambda w: ancient(fetched(w.name, w.run)),
    params:
        given=given,
        # The resolved values count, not profiles.yml: editing that file reruns only the notebooks that it changes.
        made_of=lambda w: made_of(dependencies.notebook, w.name, w.run),
    output:
        executed=f"{BUILD}/{{run}}/executed/{{name}}.ipynb",
        provenance=f"{BUILD}/{{run}}/results/{{name}}/provenance.json",
    threads: lambda w: threads(profiles.needs(w.name).alone and (MEASURED or w.name not in RECORDED))  # it measures times
    resources:
        gpu=1 if os.environ.get("FAITHLAB_GPUS") else 0,
        mem_mb=lambda w: profiles.needs(w.name).memory,
    message:
        "notebook {wildcards.name} ({wildcards.run}, {threads} threads)"
    shell:
        "python -m faithstudy.execute {wildcards.name:q} --profile {PROFILE:q} {params.given}"


rule book:
    input:
        executed=[f"{BOOK}/executed/{name}.ipynb" for name in NOTEBOOKS],
        provenance=[f"{BOOK}/results/{name}/provenance.json" for name in NOTEBOOKS],
    output:
        page=f"{BOOK}/html/index.html",
    params:
        made_of=lambda w: hashlib.sha256(dependencies.listed(SHOWN, docstrings=True).encode()).hexdigest(),
    log:
        f"{BOOK}/book.log",
    message:
        "the book"
    shell:
        "python book/build.py --profile {PROFILE:q} 2>&1 | tee {log:q}"
