"""What a build would miss, said before it starts: ``python -m faithstudy.preflight --profile paper``."""

import argparse
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import psutil

from faithstudy import paths, profiles

PLUGINS = {"slurm": "sbatch"}
"""By kind of cluster, which is what Snakemake's plugin is called after: a command that must be there."""
ROOM = 5
"""Gigabytes that should be free: a build of the profile quick takes 0.6 for data and networks."""


def missing(profile: str, cluster: str = "") -> list[str]:
    """What a build would miss, a line or a few for each, with what to do; none where nothing is.

    Args:
        profile: of the build.
        cluster: the kind of cluster that runs the jobs, a key of `PLUGINS`; none: this machine does.
    """
    lines = _cluster(cluster) if cluster else [*_memory(), *_gpu(profile)]
    measured = [n for n in paths.pages() if profile != paths.PROFILE or not paths.recorded(n, profile).is_dir()]
    try:
        profiles.require_files({name: profiles.resolve(name, profile) for name in measured})
    except ValueError as error:
        lines += [*str(error).splitlines(), "  Put them there, or change the paths in notebooks/profiles.yml."]
        lines += [f"  What needs none of these runs alone: make notebook NAME=... PROFILE={profile}"]
    return lines + _disk()


def _cluster(kind: str) -> list[str]:
    if kind not in PLUGINS:
        return [f"Cluster: no profile for {kind!r}; there are {', '.join(PLUGINS)}, see notebooks/cluster/README.md."]
    lines = []
    if not importlib.util.find_spec(f"snakemake_executor_plugin_{kind}"):
        lines = [f"Plugin: Snakemake's for {kind} is not installed. {sys.executable} -m pip install -e '.[cluster]'"]
    if not shutil.which(PLUGINS[kind]):
        lines += [f"Cluster: there is no {PLUGINS[kind]} here. Start the build where jobs are submitted."]
    return lines


def _memory() -> list[str]:
    needed = sorted(profiles.needs(name).memory for name in paths.pages())
    one, two, have = needed[-1], sum(needed[-2:]), round(psutil.virtual_memory().total / 2**20)
    if have < one:
        return [f"Memory: a page expects {one} MB, and there are {have}. A larger machine, or CLUSTER=slurm."]
    if have < two:
        return [f"Memory: two pages expect {two} MB, and there are {have}. One at a time: make book CORES=1"]
    return []


def _gpu(profile: str) -> list[str]:
    if profile != "paper" or os.environ.get("FAITHLAB_GPUS"):
        return []
    return [
        "GPU: none was found, and the papers' settings want one. A machine with one (FAITHLAB_GPUS=0 names it),"
        " CLUSTER=slurm, or PROFILE=study, which takes hours on a processor."
    ]


def _disk() -> list[str]:
    cache, lines = Path(os.environ.get("FAITHLAB_CACHE", "~")).expanduser(), []
    for variable, folder in (("FAITHLAB_BUILD", paths.build()), ("FAITHLAB_CACHE", cache)):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if (free := shutil.disk_usage(there).free / 1e9) < ROOM:
            lines.append(f"Disk: {free:.1f} GB are free at {there}, and {ROOM} are safe; {variable} moves it.")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`missing`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.preflight", description=__doc__)
    parser.add_argument("--profile", default="study", choices=profiles.PROFILES)
    parser.add_argument("--cluster", default="", help="slurm; none: this machine")
    options = parser.parse_args(arguments)
    lines = missing(options.profile, options.cluster)
    print("\n".join(lines) if lines else f"Nothing is missing for make book PROFILE={options.profile}.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
