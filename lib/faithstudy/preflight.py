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
    try:
        measured = [n for n in paths.pages() if profile != paths.PROFILE or not paths.recorded(n, profile).is_dir()]
        profiles.require_files({name: profiles.resolve(name, profile) for name in measured})
    except ValueError as error:
        lines += [
            *str(error).splitlines(),
            "  Put them there, or change the paths in notebooks/profiles.yml. What needs none of these runs alone:"
            f" make notebook NAME=... PROFILE={profile}",
        ]
    return lines + _disk()


def _cluster(kind: str) -> list[str]:
    if kind not in PLUGINS:
        return [
            f"Cluster: no profile for {kind!r}; there are {', '.join(PLUGINS)}, in notebooks/cluster. Its README.md"
            " says what was tried of others."
        ]
    command, lines = PLUGINS[kind], []
    if not importlib.util.find_spec(f"snakemake_executor_plugin_{kind}"):
        lines.append(
            f"Plugin: Snakemake's for {kind} is not installed. {sys.executable} -m pip install -e '.[cluster]'"
        )
    if not shutil.which(command):
        lines.append(f"Cluster: there is no {command} here. Start the build where jobs are submitted, on a login node.")
    return lines


def _memory() -> list[str]:
    needed = {name: profiles.needs(name).memory for name in paths.pages()}
    least, most = sorted(needed, key=needed.get)[-2:] if len(needed) > 1 else [*needed, *needed]
    have = psutil.virtual_memory().total / 2**20
    if have < needed[most]:
        return [
            f"Memory: {most} expects {needed[most]} MB, and there are {have:.0f}. A larger machine, or CLUSTER=slurm."
        ]
    if have < needed[most] + needed[least]:
        return [
            f"Memory: {most} and {least} beside each other expect {needed[most] + needed[least]} MB, and there are"
            f" {have:.0f}. One at a time: make book CORES=1"
        ]
    return []


def _gpu(profile: str) -> list[str]:
    if profile != "paper" or os.environ.get("FAITHLAB_GPUS"):
        return []
    return [
        "GPU: none was found, and the papers' settings want one. A machine with one (FAITHLAB_GPUS=0 names it),"
        " CLUSTER=slurm, or PROFILE=study, which takes hours on a processor."
    ]


def _disk() -> list[str]:
    named = os.environ.get("FAITHLAB_CACHE")
    wanted = {"build folder (FAITHLAB_BUILD moves it)": paths.build()}
    wanted["cache (FAITHLAB_CACHE moves it)"] = Path(named).expanduser() if named else Path.home()
    lines = []
    for what, folder in wanted.items():
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free / 1e9
        if free < ROOM:
            lines.append(f"Disk: {free:.1f} GB are free at {there} for the {what}; {ROOM} are safe.")
        if not os.access(there, os.W_OK):
            lines.append(f"Disk: {there} cannot be written to, for the {what}.")
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
