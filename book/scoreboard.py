"""What the whole study says, put together from the results of a build: what no single notebook owns.

The pages include what `write` leaves, so that no number on them is typed.
"""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asked
import choices
import forest
import judged
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow.parquet
import reader
import seaborn as sns
import yaml

from faithlab import stats
from faithlab.metrics import METRICS
from faithlab.metrics.size import holds
from faithlab.scores import COLUMNS, Scores
from faithstudy import paths, plots, profiles, provenance, published
from faithstudy.claims import PARTLY, REPRODUCED
from faithstudy.regression import NOT_COMPARED
from faithstudy.run import UNHASHED, Recorded, recorded, recorded_runs
from faithstudy.tables import SOURCES
from faithstudy.trials import examination
from faithstudy.trials.comparisons import in_one_sign

INPUTS = (
    *("images", "series", "texts", "vehicles", "photographs", "photographs_judged", "test_limit"),
    *("fidelity_images", "split_images", "classifiers", "more_photographs", "sentences"),
    *("attained_images", "reason_images", "same_images", "studies"),
)
"""Parameters that say how many inputs are evaluated, where they are numbers."""

CALLED = {
    "photographs_judged": "photographs",
    "more_photographs": "photographs from a folder",
    "attained_images": "images for the best order",
    "reason_images": "images for reasons",
    "fidelity_images": "images for Fidelity",
    "split_images": "of them for the split of the variance",
    "test_limit": "test pictures",
}
"""What the page of recorded runs calls inputs that a parameter counts, where its name does not say it by itself."""

TELLING = f"{examination.BUILT} and one of {', '.join(examination.TELLING[:-1])} and {examination.TELLING[-1]}"
"""The trials that a metric has to pass to be used, in words."""

BLIND = "../notebooks/across/controls.html"
"""What the trials say of controls, from a page in `book`."""

FAULTS = "../notebooks/cost/peers.html#what-else-was-found"
"""What was found when other libraries' metrics were run, from a page in `book`."""
NETWORKS = ("network", "pretrained")
"""Kinds of provenance that are networks; others are explanations and orders that were shipped."""


def write(results: Path, target: Path, pages: Sequence[judged.Page] | None = None) -> None:
    """Write the claim scoreboard, the answer figure and the table of sizes into a folder.

    A part whose notebook is not in the build is left out; a page that includes it then fails to build, by name.

    Args:
        results: the results of a build, `<notebook>/<table>.csv`.
        target: a folder, made if need be: `asked.md`, `claims.md`, `claims-<paper>.md`, `choices-<paper>.md`,
            `answer.svg`, `matrix.md`, `examination.md`, `sizes.md`, `ones.md`, `robustness.md`, `reco-rates.md`,
            `recorded.md`, `columns.md`, `measurements.md`, `error-rates.md`, `not-compared.md`, `metrics.md`.
        pages: the pages that judge claims, in the order of the book, where they are known; None: they are read.
    """
    plots.theme()
    target.mkdir(parents=True, exist_ok=True)
    (target / "metrics.md").write_text(_metrics(), encoding="utf-8")

    runs = recorded_runs()
    (target / "recorded.md").write_text(_recorded(runs), encoding="utf-8")
    (target / "columns.md").write_text(_columns(), encoding="utf-8")
    (target / "measurements.md").write_text(_measurements(runs), encoding="utf-8")

    # Not as Markdown: a fork may have a book without these pages.
    apart = [f'- <a href="../notebooks/{name}.html">{name}</a>: {why}.\n' for name, why in NOT_COMPARED.items()]
    (target / "not-compared.md").write_text("".join(apart), encoding="utf-8")

    declared = yaml.safe_load((paths.root() / "book" / "choices.yml").read_text(encoding="utf-8"))
    for paper, of in (declared or {}).items():
        (target / f"choices-{paper}.md").write_text(choices.ranked(results, **of), encoding="utf-8")

    pages = judged.pages(results) if pages is None else pages
    claims = pd.concat([page.claims for page in pages], ignore_index=True) if pages else pd.DataFrame({"paper": []})
    # A paper is one that has a page for its verdict; the claims of other pages stand on these alone.
    simulated = [kept.frame for name in paths.pages() if (kept := recorded(name, "error_rates"))]
    (target / "error-rates.md").write_text(_simulated(simulated, claims), encoding="utf-8")
    claims = claims[[_has_verdicts(paper) for paper in claims["paper"]]]
    if len(claims):
        (target / "claims.md").write_text(forest.overview(claims, forest.deciding_numbers(pages)), encoding="utf-8")
        (target / "asked.md").write_text(asked.answers(pages, results=results), encoding="utf-8")
        relations = asked.related(pages, results=results)
        for paper in claims["paper"].unique():
            text = forest.verdicts(pages, paper, reader.caveats, relations)
            (target / f"claims-{judged.folder(paper)}.md").write_text(text, encoding="utf-8")

    masked = _best_of(results, "f-fidelity", "robustness")
    if len(masked):
        (target / "robustness.md").write_text(_robustness(masked), encoding="utf-8")

    consistency = _best_of(results, "reco-mege", "rates")
    if len(consistency):
        (target / "reco-rates.md").write_text(_rates(consistency), encoding="utf-8")

    correlations = results / "f-fidelity/images/correlations.csv"
    if correlations.is_file():
        kept = judged.better(correlations.parent, "f-fidelity/images", "correlations")
        figure = _answer(kept.frame if kept else pd.read_csv(correlations))
        figure.savefig(target / "answer.svg", bbox_inches="tight", metadata={"Date": None})

    examined = results / "across/examination"
    if (examined / "trust.csv").is_file():
        kept = {name: judged.better(examined, "across/examination", name) for name in ("trust", "price", "networks")}
        trust, price, networks = (k.frame if k else pd.read_csv(examined / f"{name}.csv") for name, k in kept.items())
        ran = kept["trust"].provenance if kept["trust"] else judged.provenance(examined)
        about = _stand_ins(networks, ran["parameters"]["draws"])
        (target / "matrix.md").write_text(_matrix(trust), encoding="utf-8")
        (target / "examination.md").write_text(_examined(trust, price, about), encoding="utf-8")

    plots.law().savefig(target / "law.svg", bbox_inches="tight", metadata={"Date": None})
    sizes = results / "f-fidelity/explanation-size/sizes.csv"
    if sizes.is_file():
        kept = judged.better(sizes.parent, "f-fidelity/explanation-size", "sizes")
        (target / "sizes.md").write_text(_sizes(kept.frame if kept else pd.read_csv(sizes), kept), encoding="utf-8")
        (target / "ones.md").write_text(_ones(results), encoding="utf-8")
    simulations = results / "f-fidelity/when-a-size-is-named"
    if (simulations / "scores.parquet").is_file():
        kept = judged.better(simulations, "f-fidelity/when-a-size-is-named", "scores")
        scores = kept.frame if kept else Scores.load(simulations / "scores.parquet")
        run = f"recorded, {kept.profile}" if kept else "this build"
        (target / "goals.md").write_text(_goals(scores, run), encoding="utf-8")


def _best_of(results: Path, part: str, table: str) -> pd.DataFrame:
    """A table of all pages of a part that are in the build: each page's recorded run where larger, else this build's.

    Returns:
        All their rows; `page` is the page's name in its part, `run` says which run it is.
    """
    frames = []
    for path in sorted((results / part).rglob(f"{table}.csv")):
        kept = judged.better(path.parent, path.parent.relative_to(results).as_posix(), table)
        frame, run = (kept.frame, f"recorded ({kept.profile})") if kept else (pd.read_csv(path), "this build")
        frames.append(frame.assign(page=path.parent.name, run=run))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _recorded(runs: list[Mapping]) -> str:
    """The recorded runs and where they came from: how many and how long in words, then a row for each."""
    if not runs:
        return "No run is recorded yet.\n"
    cores = sorted({run["cores"] for run in runs if run.get("cores")})
    on = f", on machines of {' or '.join(map(str, cores))} cores" if cores else ""
    hours = sum(run["seconds"] for run in runs) / 3600
    said = (
        f"{len(runs)} recorded runs took {hours:.1f} hours in all{on}; of a run that was interrupted, only what came "
        "after counts. *Networks* are all that a run asked, with their fine-tuned and retrained companions."
    )
    head = "| Page, profile | Networks | Inputs | Minutes | Cores | Date | Commit, notebook | Ran on |\n"
    head += "|---|--:|---|--:|--:|---|---|---|\n"
    known = provenance.history()
    gone = sum(bool(known) and run["commit"] not in known for run in runs)
    if gone:
        its = "Its notebook is known by its hash." if gone == 1 else "Their notebooks are known by their hashes."
        said += (
            f" Of the runs, {gone} name{'s' * (gone == 1)} a commit that is not in the history of this repository: "
            f"what ran there was put together with other work before it came here. {its}"
        )
    rows = []
    for run in runs:
        name = run["notebook"]
        lost = ", not in the history" if known and run["commit"] not in known else ""
        commit = f"`{(run['commit'] or 'none')[:9]}`{lost}" + (" with local changes" if run["dirty"] else "")
        notebook = run["notebook_sha256"] if run["notebook_sha256"] == UNHASHED else f"`{run['notebook_sha256'][:9]}`"
        used = run.get("networks")  # of a run from before they were noted it is not known
        asked = "–" if used is None else len({of["name"] for of in used if of["kind"] in NETWORKS})
        rows.append(
            f"| [{name}](../notebooks/{name}), {run['profile']} | {asked} | {_inputs(run)} | "
            f"{run['seconds'] / 60:.0f} | {run.get('cores') or '–'} | {run['date'][:10]} | {commit}, {notebook} | "
            f"{run['gpu'] or run['cpu']} |"
        )
    return f"{said}\n\n{head}" + "\n".join(rows) + "\n"


def _columns() -> str:
    """The dictionary of the long table's columns."""
    return "| Column | What it holds |\n|---|---|\n" + "".join(f"| `{name}` | {of} |\n" for name, of in COLUMNS.items())


def _measurements(runs: list[Mapping]) -> str:
    """The long tables of the recorded runs as files: rows and sizes, and how many there are in all."""
    rows, count, size = [], 0, 0
    for run in runs:
        for path in sorted(paths.recorded(run["notebook"], run["profile"]).glob("*.parquet")):
            held, kilobytes = pyarrow.parquet.read_metadata(path).num_rows, path.stat().st_size / 1000
            count, size = count + held, size + kilobytes
            what = f"[{run['notebook']}](../notebooks/{run['notebook']}), {path.stem.replace('_', ' ')}"
            name = path.relative_to(paths.root() / "data/results").as_posix()
            rows.append(f"| {what} | {held:,} | {kilobytes:,.0f} | `{name}` |")
    if not rows:
        return "No run is recorded yet.\n"
    said = f"{count:,} rows in {len(rows)} files, {size / 1000:.1f} MB."
    return f"{said}\n\n| Page, table | Rows | kB | In `data/results/` |\n|---|--:|--:|---|\n" + "\n".join(rows) + "\n"


def _inputs(run: Mapping) -> str:
    """How many inputs a recorded run asked about, by all parameters that count them, else by its long tables."""
    given = run["parameters"]
    counts = {}
    for parameter in INPUTS:
        count, name = given.get(parameter), CALLED.get(parameter, parameter)
        if isinstance(count, int) and name not in counts:
            counts[name] = count
    if not counts:
        asked = set()
        for path in paths.recorded(run["notebook"], run["profile"]).glob("*.parquet"):
            asked |= {
                (block.labels["dataset"], image) for block in Scores.load(path) for image in block.images.tolist()
            }
        counts = {"inputs": len(asked)} if asked else {}
    return " + ".join(f"{count} {name}" for name, count in counts.items())


def _has_verdicts(paper: str) -> bool:
    """Whether a paper has a page for its verdicts."""
    return (paths.root() / "book" / judged.folder(paper) / "verdict.md").is_file()


def _simulated(tables: list[pd.DataFrame], claims: pd.DataFrame) -> str:
    """How often chance alone gives recorded claims a verdict, in words; those of `claims` lead to their pages."""
    address = {
        row.id: f"{judged.folder(row.paper)}/verdict.html#{judged.anchor(row.id)}"
        for row in claims.itertuples()
        if _has_verdicts(row.paper)
    }

    sentence = dict(zip(claims["id"], claims["claim"], strict=True)) if len(claims) else {}

    def linked(claim: str) -> str:
        said = f"“{html.escape(sentence[claim].rstrip('.'))}”" if claim in sentence else f"`{claim}`"
        return f'<a href="{address[claim]}">{said}</a>' if claim in address else said

    rates = pd.concat([t[t["runs"] > 0] for t in tables]) if tables else pd.DataFrame()
    if rates.empty:
        return "No recorded run has been simulated yet on its own tables.\n"
    most = {verdict: (rates[verdict] / rates["runs"]).set_axis(rates["claim"]) for verdict in (REPRODUCED, PARTLY)}
    said = [
        f"*{v}* in {m.mean():.1%}, and in {m.max():.1%} for the claim {linked(m.idxmax())}" for v, m in most.items()
    ]
    more = len(set(rates["claim"]) - set(address))
    beyond = f" ({more} of them on no paper's list)" * bool(more and address)
    return (
        f"On the recorded tables of {len(rates)} claims{beyond}, {rates['runs'].min()} studies under chance each, the "
        f"verdict is, on average over the claims, {', '.join(said)}, where it is most often.\n"
    )


def _ones(results: Path) -> str:
    """How many single images have a size, by data and ranking, and whether it is the known one; of the best runs."""
    rows = []
    for name in ("f-fidelity/explanation-size", "f-fidelity/sizes-beyond-digits", "f-fidelity/sizes-of-photographs"):
        if not (results / name / "each.csv").is_file():
            continue
        kept = {of: judged.better(results / name, name, of) for of in ("each", "sizes")}
        each, sizes = (k.frame if k else pd.read_csv(results / name / f"{of}.csv") for of, k in kept.items())
        each, sizes = (f.rename(columns={"explainer": "ranking", "attribution": "ranking"}) for f in (each, sizes))
        if "truth" not in sizes:  # one share of the digits is asked image by image, the middle one
            middle = sorted(sizes["share"].unique())[sizes["share"].nunique() // 2]
            sizes, each = sizes.assign(data="digits", truth=middle), each.assign(data="digits")
        if name.endswith("of-photographs"):  # another page has photographs, too
            sizes, each = (f.replace({"data": {"photographs": "photographs of 224 pixels"}}) for f in (sizes, each))
        truth = sizes.groupby("data")["truth"].first()
        for (data, ranking), of in each.replace({"ranking": {"oracle": "truth"}}).groupby(
            ["data", "ranking"], sort=False
        ):
            named, held = of.dropna(subset="size"), "unknown"
            if pd.notna(truth[data]):
                right = int(holds(named["low"], named["high"], truth[data]).sum())
                held = f"{right} of {len(named)}" if len(named) else "–"
            middle = f"{named['size'].median():.2f}" if len(named) else "–"
            rows.append(
                f"| [{data}](../notebooks/{name}) | {ranking} | {len(named)} of {len(of)} | {middle} | {held} |"
            )
    head = "| Data | Ranking | Images with a size | Median size | Intervals that hold the known size |\n"
    return head + "|---|---|--:|--:|--:|\n" + "\n".join(rows) + "\n"


def _goals(scores: Scores, run: str) -> str:
    """How often simulated studies of explanation sizes come out right: the worst case of each goal, in words."""
    asked = {
        "named": "An explanation that has an end is given a size",
        "held": "The interval of a size that is named holds the true one",
        "refused": "A ranking without an end is refused",
    }
    lines = []
    for metric, says in asked.items():
        cases = scores.where(metric=metric).labels("dataset") if metric in scores.labels("metric") else []
        shares = {name: stats.estimate(scores, metric=metric, dataset=name).pooled for name in cases}
        if not shares:
            continue
        worst = min(shares, key=lambda name: float(shares[name].value))
        value, low, high = (float(end) for end in shares[worst])
        sure = sum(float(share.low) > 0.9 for share in shares.values())
        if value == 1:
            often = f"in every study, in all {len(shares)} cases"
        else:
            often = (
                f"in {value:.0%} [{low:.0%}, {high:.0%}] of the studies in the worst case of {len(shares)}, *{worst}*"
            )
        lines.append(f"- {says} {often}. The interval lies above nine of ten in {sure} of {len(shares)} cases.")
    return f"Of simulated studies ({run}):\n\n" + "\n".join(lines) + "\n"


def _sizes(sizes: pd.DataFrame, kept: Recorded | None = None) -> str:
    """Sizes read beside true sizes, as a table; what is refused says so. Of a recorded run, or of this build."""
    names = list(sizes["attribution"].unique())
    table = sizes.assign(
        text=[
            "no size" if pd.isna(size) else f"{size:.2f} ({low:.2f} – {high:.2f})"
            for size, low, high in sizes[["size", "low", "high"]].to_numpy()
        ]
    ).pivot(index="share", columns="attribution", values="text")[names]
    run = (
        f"the recorded run ({kept.profile}), {kept.provenance['parameters']['images']} images" if kept else "this build"
    )
    head = f"Of {run}:\n\n| True share | " + " | ".join(names) + " |\n|--:|" + "--:|" * len(names) + "\n"
    rows = table.fillna("not asked").iterrows()
    named = sizes.dropna(subset="size")
    missed = named[~holds(named["low"], named["high"], named["share"])]
    said = "Every interval holds the true share." if missed.empty else "The true share is missed by "
    said += ", ".join(
        f"{row.attribution} at {row.share:.2f} (its interval "
        + (f"ends at {row.high:.2f})" if row.high < row.share else f"begins at {row.low:.2f})")
        for row in missed.itertuples()
    ) + "." * (not missed.empty)
    said += (
        " These are the reading's own intervals. [The verdict](f-fidelity/verdict) asks where the best knee is when "
        "the images are drawn anew, be a size named there or not: its interval can be wider."
    )
    return head + "\n".join(f"| {share:.2f} | " + " | ".join(row) + " |" for share, row in rows) + f"\n\n{said}\n"


def _robustness(measured: pd.DataFrame) -> str:
    """Accuracy under random masking, ours by their `run` and what F-Fidelity prints in Table 8, as a table."""
    paper = published.load("ffidelity_robustness").rename(columns={"model": "network", "masked_fraction": "masked"})
    both = pd.concat([measured, paper.assign(run="published")], ignore_index=True)
    # Images, series, texts: ours above the paper's of the same kind.
    kinds = {"ResNet": 0, "ViT": 1, "LSTM": 3, "CNN": 2, "Transformer": 4}
    both["kind"] = both["architecture"].map(kinds)
    table = both.pivot(
        index=["kind", "run", "dataset", "architecture", "network"], columns="masked", values="accuracy"
    ).sort_index(level=[0, 1, 2, 4], ascending=[True, False, True, False])
    head = (
        "| Run | Data | Architecture | Network | "
        + " | ".join(f"{share:.0%} masked" for share in table.columns)
        + " |\n"
    )
    head += "|---|---|---|---|" + "--:|" * len(table.columns) + "\n"
    rows = [
        f"| {run} | {data} | {architecture} | {network} | "
        + " | ".join(_typed(f"{value:.1%}", run) for value in row)
        + " |"
        for (_, run, data, architecture, network), row in table.iterrows()
    ]
    return head + "\n".join(rows) + f"\n\nOf these numbers: {', '.join(SOURCES.values())}.\n"


def _typed(text: str, run: str) -> str:
    """A number in the look of the run that it is of."""
    look = next(look for name, look in SOURCES.items() if run.startswith(name))
    return f"{look.split('>')[0]}>{text}</span>"


def _rates(scores: pd.DataFrame) -> str:
    """ReCo of every page, by the true rates and by the printed formula, as a table."""
    keys = ["page", "run", "dataset", "model", "condition", "explainer"]
    true, printed = (
        scores[scores["measure"] == name].rename(columns={"mean": name})[[*keys, name]]
        for name in ("ReCo", "ReCo_printed")
    )
    scores = true.merge(printed, on=keys)
    names = list(scores["explainer"].unique())
    networks = scores["condition"].where(scores["condition"] != "normal", scores["model"])
    scores = scores.assign(
        networks=scores["dataset"] + ", " + networks,
        text=[f"{true:.2f}<br>{printed:.2f}" for true, printed in scores[["ReCo", "ReCo_printed"]].to_numpy()],
    )
    rows = ["page", "run", "networks"]
    table = scores.pivot(index=rows, columns="explainer", values="text")[names].fillna("–")
    table = table.loc[list(dict.fromkeys(scores[rows].itertuples(index=False, name=None)))]
    head = "| Page | Run | Networks | " + " | ".join(names) + " |\n|---|---|---|" + "--:|" * len(names) + "\n"
    body = [
        f"| [{page}](../../notebooks/reco-mege/{page}) | {run} | {networks} | " + " | ".join(row) + " |"
        for (page, run, networks), row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return head + "\n".join(body) + "\n"


def _metrics() -> str:
    """Every registered metric and how it is asked, as a table."""
    head = "| Metric | Family | Asks | Of | In place of what is removed | Removes first | Better | Chance | Ideal "
    head += "| Forwards for 1024 features | Source |\n|---|---|---|---|---|---|---|--:|--:|--:|---|\n"
    rows = []
    for name, m in METRICS.items():
        one = m.needs == "one network"
        numbers = ("" if number is None else f"{number:g}" for number in (m.chance, m.ideal))
        cells = (
            name,
            m.family,
            getattr(m.output, "__name__", "its own").replace("_", " ") if one else "–",
            m.network if one else m.needs,
            m.baseline if one else "–",
            m.direction or "",
            "higher" if m.better > 0 else "lower",
            *numbers,
            f"{m.forward_passes(1024):,}" if one else "–",
            m.source,
        )
        rows.append("| " + " | ".join(cells) + " |")
    return head + "\n".join(rows) + "\n"


def _matrix(trust: pd.DataFrame, *, intervals: bool = False) -> str:
    """Metrics by trials as tables that a phone can show, one for each kind of network, all in one order.

    The first is open, the others are folded behind what they come to. Of a kind only metrics that a trial applies to.
    With `intervals`, each cell has its own below its number.
    """
    of = trust[trust["size"] == "all images"]
    of = of if "kind" in of else of.assign(kind="")
    applies = of.groupby("metric")["verdict"].agg(lambda verdicts: verdicts.isin(plots.VERDICTS).any())
    names = [name for name, _ in plots.in_order(of) if applies[name]]
    trials = list(dict.fromkeys(of["trial"]))
    head = "".join(f'<th scope="col">{html.escape(trial)}</th>' for trial in trials)
    tables = []
    for kind, own in of.groupby("kind", sort=False):
        found = {(row.metric, row.trial): row for row in own.itertuples()}
        asked_of = own[own["verdict"].isin(plots.VERDICTS)].groupby("metric")["verdict"].agg(set)
        cells = {
            name: "".join(_cell(found.get((name, trial)), trial, intervals) for trial in trials)
            for name in names
            if name in asked_of
        }
        rows = "".join(f'<tr><th scope="row">{html.escape(name)}</th>{own}</tr>' for name, own in cells.items())
        table = f'<table class="faithlab-matrix"><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>'
        if kind:
            clean = len(examination.usable(own))
            do = "fails none and passes" if clean == 1 else "fail none and pass"
            said = f"{clean} of {len(asked_of)} metrics {do} {TELLING}"
            summary = f"{html.escape(kind)}: {said}"
            # The first is open: a reader sees one, and that there are more.
            opened = "" if tables else " open"
            table = f'<details class="faithlab-kind"{opened}><summary>{summary}</summary>{table}</details>'
        tables.append(table)
    others = [name for name in dict.fromkeys(of["metric"]) if name not in names]
    left = f"No trial applies to {', '.join(others)}.\n" if others else ""
    return "\n\n".join(tables) + f"\n\n{left}"


def recorded_matrix(kept: Recorded) -> str:
    """The matrix of a recorded run for the page of the examination, in Markdown.

    Args:
        kept: its table of trust.
    """
    given, kinds = kept.provenance["parameters"], kept.frame["kind"].nunique()
    less = "so that more is open; "
    if (kept.frame.loc[kept.frame["trial"] == "Gaming", "verdict"] != "does not apply").any():
        gamed = profiles.defaults("across/examination")["gamed"]
        less = (
            f"so that more is open. More fails *Gaming*, which it asks of {gamed} inputs, and *Repeat*, which compares "
            "halves of them: take these two from the recorded run. Else "
        )
    return (
        f"**The recorded matrix**, profile *{kept.profile}*: {len(given['networks'])} networks of {kinds} kinds, at "
        f"most {given['images']} inputs of each. ✓ passed, ✗ failed, ? open; the number is T, below it its 95 % "
        f"interval.\n\n{_matrix(kept.frame, intervals=True)}\n"
        f"**This build** asks fewer inputs and networks, {less}what follows is its own where it does not say "
        "*recorded*."
    )


def _cell(row: Any, trial: str, interval: bool = False) -> str:
    """A cell of the matrix, of a row of the table of trust; a phone, which has no columns, shows its trial in it."""
    if row is None or row.verdict not in plots.VERDICTS:
        return '<td class="none"><span class="sr-only">does not apply</span></td>'
    value = f"{round(row.T, 2) + 0.0:.2f}".replace("-", "−")  # no -0.00
    sign = f'<b aria-hidden="true">{plots.VERDICTS[row.verdict][1]}</b><span class="sr-only">{row.verdict}</span>'
    kind = f'class="{row.verdict}{" home" if row.home else ""}"'
    # A dash takes least room in a narrow cell; not before a minus.
    between = "–" if getattr(row, "high", 0) >= 0 else " to "
    ends = f"<br><small>{row.low:.2f}{between}{row.high:.2f}</small>".replace("-", "−") if interval else ""
    return f'<td {kind} data-label="{html.escape(trial, quote=True)}">{sign} {value}{ends}</td>'


def _stand_ins(networks: pd.DataFrame, draws: int) -> str:
    """Which networks the examination asked, in words, how often they are right, and how many subsets it drew."""
    said = []
    for kind, of in networks.groupby("kind", sort=False):
        right = sorted(of["recognises"].str.extract(r"([\d.]+) %")[0].astype(float))
        span = f"{right[0]:.0f}" if f"{right[0]:.0f}" == f"{right[-1]:.0f}" else f"{right[0]:.0f} to {right[-1]:.0f}"
        what = of["network"].iloc[0].partition(";")[0]
        times = f", trained {len(of)} times" if len(of) > 1 else ""
        said.append(f"*{kind}*: {what}{times}, right on {span} % of test inputs")
    return (
        f"Small networks stand for the kinds ({'; '.join(said)}): [ask yours](bring-your-own). Metrics that draw "
        f"subsets, such as F-Fidelity's, had {draws} of each size; F-Fidelity's paper draws 50. "
    )


def _examined(trust: pd.DataFrame, price: pd.DataFrame, about: str = "") -> str:
    """Which metric to use for what kind of network, by the trials that it passes and fails, and what most fail.

    `about` says which networks were asked, where there are several kinds.
    """
    trust, price = (table if "kind" in table else table.assign(kind="") for table in (trust, price))
    judged = trust[(trust["size"] == "all images") & (trust["verdict"] != "does not apply")]
    images = int(judged.loc[judged["trial"] == "Order", "images"].max())
    asked = f"Asked about {images} images, with squares of pixels as features."
    if many := len(set(judged["kind"])) > 1:
        asked = f"{about}Asked about at most {images} inputs of each network, and {examination.BUILT} about its own."
    forwards = profiles.defaults("across/findings")["forwards"]
    asked += (
        f" In bold, what we would take with {forwards:,} forwards to spend: of the metrics computed here that fail no "
        f"trial the one that passes most, and of those the cheapest. It has to pass {TELLING}. {examination.BUILT} has "
        f"a network of its own, so that tallies are of the other {len(examination.TRIALS) - 1} trials; "
        f'<a href="{BLIND}">numbers that never ask the network</a> pass some of these, but not {examination.BUILT}. '
        f"Metrics of other libraries are named and not taken: "
        f'<a href="{FAULTS}">some have faults</a> that no trial sees.'
    )
    brackets = (
        "In brackets: how many of the network's own trials a metric passed, are open, and could not be put to it. "
        "Metrics before a *then* cannot be told apart by their price."
    )
    own = [trial for trial in examination.TRIALS if trial != examination.BUILT]
    to_use, lines, named, first = [], [], set(), []
    advice = examination.advice(trust, price)
    take = examination.recommended(advice, price, forwards)
    for kind, of in advice.groupby("kind", sort=False):
        of = of.assign(
            **{said: [[t for t in own if t in text.split(", ")] for text in of[said]] for said in ("passed", "open")}
        )
        used, every = of[of["place"].notna()], len(of)
        named |= {(kind, name) for name in used["metric"]}
        clean = "; then ".join(", ".join(map(_tried, at.itertuples())) for _, at in used.groupby("place"))
        said = f"None of {every} metrics passes {TELLING} and fails none."
        if len(used):
            pass_, fail_ = ("passes", "fails") if len(used) == 1 else ("pass", "fail")
            said = f"{len(used)} of {every} metrics {pass_} {TELLING} and {fail_} none: {clean}, cheapest first."
        rest = [row for row in used.itertuples() if row.metric != take.get(kind)]
        ours, theirs = (
            ", ".join(f"{_called(row.metric)} {_tally(row)}" for row in rest if (":" in row.metric) == library)
            for library in (False, True)
        )
        theirs = f"of other libraries, not taken: {theirs}" if theirs else ""
        others = "; ".join(filter(None, (ours, theirs))) or "none"
        if kind in take:
            said = f"**{take[kind]}**. {said}"
            (taken,) = (row for row in used.itertuples() if row.metric == take[kind])
            missing = [trial for trial in own if trial not in (*taken.passed, *taken.open)]
            said_of = {"passes": taken.passed, "open": taken.open, "not put to": missing}
            counts = "; ".join(f"{word} {', '.join(trials)}" for word, trials in said_of.items() if trials)
            first.append(f"| {kind} | **{take[kind]}**: {counts} | {others} |")
        else:
            none = (
                f"none is sure to do with {forwards:,} forwards"
                if len(used)
                else "none: no metric passes what it must and fails none"
            )
            first.append(f"| {kind} | {none} | {others} |")
        fail, unknown = (of["failed"] != "").sum(), (of["place"].isna() & (of["failed"] == "")).sum()
        said += f" {fail} fail one" + (f", and of {unknown} it is not known." if unknown else ".")
        to_use.append(f"- *{kind}*: {said}" if many else said)
    # Of a trial, the metrics that fail it for one kind of network at least.
    worst = judged[judged["verdict"] == "failed"].groupby("trial")["metric"].nunique()
    if len(worst):
        of = judged[judged["trial"] == worst.idxmax()]
        tried = set(zip(of["kind"], of["metric"], strict=True))
        every, all_named = of["metric"].nunique(), {name for _, name in named}
        put = len({name for _, name in named & tried})
        chosen, bold = len({name for _, name in tried & set(take.items())}), len(set(take.values()))
        lines.append(
            f"The trial that most fail is {worst.idxmax()}: {worst.max()} of the {every} metrics that can be put to "
            f"it, for one kind of network at least; it could try {put} of the {len(all_named)} metrics "
            f"named above, and {chosen} of the {bold} in bold."
        )
    single = trust[
        (trust["size"] == "one image") & (trust["trial"] == "Order") & (trust["verdict"] != "does not apply")
    ]
    passed = single[single["verdict"] == "passed"]["metric"].nunique()
    lines.append(
        f"By its number for one *single* input {passed or 'none'} of {single['metric'].nunique()} metrics "
        f"pass{'es' * (passed == 1)} Order: compare means over many inputs."
    )
    if not many:
        return " ".join([asked, brackets, *to_use, *lines]) + "\n"
    head = "| Network | Use | Or, cheapest first: trials passed / open / not put to it |\n|---|---|---|\n"
    listed = "\n".join([brackets, "", *to_use])
    folded = f":::{{dropdown}} How they were chosen, and what the others fail\n{listed}\n:::"
    return "\n\n".join([head + "\n".join(first), asked, folded, " ".join(lines)]) + "\n"


def _called(metric: str) -> str:
    """A metric's name; that of another library leads to how it is called, and to its faults."""
    return f'<a href="{FAULTS}">{html.escape(metric)}</a>' if ":" in metric else metric


def _tally(row: Any) -> str:
    """How many of the network's own trials a metric passed, are open, and could not be put to it, as a column says."""
    missing = len(examination.TRIALS) - 1 - len(row.passed) - len(row.open)
    return f"{len(row.passed)} / {len(row.open)} / {missing}".replace(" ", "\N{NO-BREAK SPACE}")


def _tried(row: Any) -> str:
    """The same in words, after its name."""
    passed, is_open, missing = _tally(row).split("\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}")
    return f"{_called(row.metric)} ({passed} passed, {is_open} open, {missing} not)"


def _answer(correlations: pd.DataFrame) -> plt.Figure:
    """Metrics by trials: the macro correlation with its interval, as a share of the ideal one."""
    macro = in_one_sign(correlations[correlations["level"] == "macro_correlation"])
    macro["text"] = [
        "none" if np.isnan(value) else f"{value:.2f}" + ("" if np.isnan(low) else f"\n[{low:.2f},\n{high:.2f}]")
        for value, low, high in macro[["mean", "low", "high"]].itertuples(index=False)
    ]
    order = list(dict.fromkeys(macro["metric"]))
    rows = list(dict.fromkeys(macro[["explainer", "comparison"]].itertuples(index=False, name=None)))
    rows.sort(key=lambda row: list(dict.fromkeys(macro["explainer"])).index(row[0]))
    grid, text = (
        macro.pivot(index=["explainer", "comparison"], columns="metric", values=of).loc[rows, order]
        for of in ("mean", "text")
    )
    names = [explainer for explainer, _ in grid.index]
    grid.index = [comparison.replace(" vs", "\nvs") for _, comparison in grid.index]
    # As narrow as a phone.
    figure, axes = plt.subplots(figsize=(1.3 + 0.58 * len(order), 0.54 * len(rows) + 1.6))
    axes.set_facecolor("0.93")  # what shows where there is no correlation
    axes.grid(False)
    for row, column in np.argwhere(grid.isna().to_numpy()):
        axes.text(column + 0.5, row + 0.5, "none", ha="center", va="center", color="0.4", fontsize="small")
    sns.heatmap(
        grid,
        annot=text.map(lambda shown: shown.replace("-", "−")).to_numpy(),
        annot_kws={"fontsize": "xx-small"},
        fmt="",
        cmap="vlag_r",
        vmin=-1,
        vmax=1,
        linewidths=1.5,
        cbar_kws={
            "label": "right order →",
            "ticks": [-1, 0, 1],
            "orientation": "horizontal",
            "aspect": 30,
            "pad": 0.03,
        },
        ax=axes,
    )
    axes.set(xlabel="", ylabel="")
    axes.xaxis.tick_top()
    axes.set_xticks(axes.get_xticks(), [name.replace("-", "-\n") for name in order])
    axes.tick_params(axis="x", rotation=0, labelsize="x-small", length=0)
    axes.tick_params(axis="y", rotation=0, labelsize="x-small")
    for explainer in dict.fromkeys(names):
        at = [k for k, name in enumerate(names) if name == explainer]
        middle = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "rotation": 90,
            "fontsize": "small",
        }
        axes.annotate(explainer, (0, sum(at) / len(at) + 0.5), (-62, 0), ha="center", va="center", **middle)
        axes.axhline(at[-1] + 1, color="white", linewidth=5)
    return plots.show(figure)
