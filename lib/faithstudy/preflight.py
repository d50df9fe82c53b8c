"""What a build would miss, said before it starts: ``python -m faithstudy.preflight --profile paper``."""

import argparse
import importlib.util
import os
import shutil
import sys

from faithstudy import paths, profiles

COMMANDS = {"slurm": "sbatch"}
"""By kind of cluster, which is what Snakemake's plugin is called after: a command that must be there."""


def missing(profile: str, cluster: str = "") -> list[str]:
    """What a build would miss, a line or a few for each, with what to do; none where nothing is.

    Args:
        profile: of the build.
        cluster: the kind of cluster that runs the jobs, a key of `COMMANDS`; none: this machine does.
    """
    lines, command = [], COMMANDS.get(cluster)
    if cluster and not command:
        lines = [
            f"Cluster: no profile for {cluster!r}; there are {', '.join(COMMANDS)}, see notebooks/cluster/README.md."
        ]
    elif cluster and not (importlib.util.find_spec(f"snakemake_executor_plugin_{cluster}") and shutil.which(command)):
        lines = [f"Cluster: jobs need {command}, where they are submitted, and  pip install -e '.[cluster]'"]
    elif not cluster and profile == "paper" and not os.environ.get("FAITHLAB_GPUS"):
        lines = [
            "GPU: none was found. FAITHLAB_GPUS=0 names one; or CLUSTER=slurm, or PROFILE=study, which takes hours."
        ]
    try:
        measured = [n for n in paths.pages() if profile != paths.PROFILE or not paths.recorded(n, profile).is_dir()]
        profiles.require_files({name: profiles.resolve(name, profile) for name in measured})
    except ValueError as error:
        lines += [str(error), "  Put them there, or change the paths in notebooks/profiles.yml."]
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`missing`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.preflight", description=__doc__)
    parser.add_argument("--profile", default="study", choices=profiles.PROFILES)
    parser.add_argument("--cluster", default="", help="slurm; none: this machine")
    options = parser.parse_args(arguments)
    lines = missing(options.profile, options.cluster)
    print("\n".join(lines) if lines else f"Nothing is missing for make book PROFILE={options.profile}.")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
