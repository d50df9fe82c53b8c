"""What the whole study says, put together from the results of a build: what no single notebook owns.

The pages include what `write` leaves, so that no number on them is typed.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from faithlab.claims import PARTLY, REPRODUCED, VERDICTS
from faithlab.metrics import METRICS
from faithlab.study import figures, places, published
from faithlab.study.results import RECORDED_ORDER, UNHASHED, Recorded, recorded, recorded_runs
from faithlab.trials.degraded import IDEAL

SYMBOLS = dict(zip(VERDICTS, ("✓", "✗", "◐", "?", "–"), strict=True))


def write(results: Path, target: Path) -> None:
    """Write the claim scoreboard, the answer figure and the table of sizes into a folder.

    A part whose notebook is not in the build is left out; a page that includes it then fails to build, by name.

    Args:
        results: the results of a build, `<notebook>/<table>.csv`.
        target: a folder, made if need be: `claims.md`, `claims-<paper>.md`, `answer.svg`, `examination.svg`,
            `examination.md`, `sizes.md`, `robustness.md`, `reco-rates.md`, `recorded.md`, `error-rates.md`,
            `metrics.md`.
    """
    figures.theme()
    target.mkdir(parents=True, exist_ok=True)
    (target / "metrics.md").write_text(_metrics(), encoding="utf-8")

    (target / "recorded.md").write_text(_recorded(recorded_runs()), encoding="utf-8")
    simulated = [kept.frame for name in places.pages() if (kept := recorded(name, "error_rates"))]
    (target / "error-rates.md").write_text(_simulated(simulated), encoding="utf-8")

    judged = [_judged(path.parent, path.parent.relative_to(results).as_posix()) for path in results.rglob("claims.csv")]
    if judged:
        claims = pd.concat(judged, ignore_index=True).sort_values("page", kind="stable")
        # A paper is one that has a page for its verdict; the claims of other pages stand on these alone.
        claims = claims[
            [(places.root() / "book" / _folder(paper) / "verdict.md").is_file() for paper in claims["paper"]]
        ]
        (target / "claims.md").write_text(_counts(claims), encoding="utf-8")
        for paper, of_paper in claims.groupby("paper"):
            (target / f"claims-{_folder(paper)}.md").write_text(_claims(of_paper), encoding="utf-8")

    masked = [pd.read_csv(path) for path in sorted((results / "f-fidelity").rglob("robustness.csv"))]
    if masked:
        (target / "robustness.md").write_text(_robustness(pd.concat(masked, ignore_index=True)), encoding="utf-8")

    consistency = [
        pd.read_csv(path).assign(page=path.parent.name) for path in sorted((results / "reco-mege").rglob("rates.csv"))
    ]
    if consistency:
        (target / "reco-rates.md").write_text(_rates(pd.concat(consistency, ignore_index=True)), encoding="utf-8")

    correlations = results / "f-fidelity/images/correlations.csv"
    if correlations.is_file():
        kept = _better(correlations.parent, "f-fidelity/images", "correlations")
        figure = _answer(kept.frame if kept else pd.read_csv(correlations))
        figure.savefig(target / "answer.svg", bbox_inches="tight", metadata={"Date": None})

    examined = results / "across/examination"
    if (examined / "trust.csv").is_file():
        kept = {name: _better(examined, "across/examination", name) for name in ("trust", "price")}
        trust, price = (k.frame if k else pd.read_csv(examined / f"{name}.csv") for name, k in kept.items())
        figure = figures.matrix(trust)
        figure.savefig(target / "examination.svg", bbox_inches="tight", metadata={"Date": None})
        (target / "examination.md").write_text(_examined(trust, price), encoding="utf-8")

    figures.law().savefig(target / "law.svg", bbox_inches="tight", metadata={"Date": None})
    sizes = results / "f-fidelity/explanation-size/sizes.csv"
    if sizes.is_file():
        (target / "sizes.md").write_text(_sizes(pd.read_csv(sizes)), encoding="utf-8")


def _better(folder: Path, page: str, table: str) -> Recorded | None:
    """A table of the recorded run of a page, where that is of a larger profile than this build's."""
    kept = recorded(page, table)
    profile = json.loads((folder / "provenance.json").read_text())["profile"]
    order = [*RECORDED_ORDER, profile]  # the first is the largest
    return kept if kept and order.index(kept.profile) < order.index(profile) else None


def _judged(folder: Path, page: str) -> pd.DataFrame:
    """The claims of a page by the best evidence: the recorded run's where it is of a larger profile than this build's.

    Columns best (the profile of that run, or nothing), built_verdict and built (evidence of this build, where it has
    been replaced).
    """
    claims = pd.read_csv(folder / "claims.csv").assign(page=page, best="", built_verdict="", built="")
    if (kept := _better(folder, page, "claims")) is None:
        return claims
    other = kept.frame.set_index("id").reindex(claims["id"])
    known = other["verdict"].notna().to_numpy()
    claims.loc[known, ["built_verdict", "built"]] = claims.loc[known, ["verdict", "evidence"]].to_numpy()
    claims.loc[known, ["verdict", "evidence"]] = other.loc[known, ["verdict", "evidence"]].to_numpy()
    return claims.assign(best=[kept.profile if k else "" for k in known])


def _recorded(runs: list[Mapping]) -> str:
    """The recorded runs and where they came from, as a table."""
    head = (
        "| Page | Profile | Inputs | Minutes | Date | Commit | Notebook | Ran on |\n|---|---|--:|--:|---|---|---|---|\n"
    )
    rows = []
    for run in runs:
        name = run["notebook"]
        commit = f"{(run['commit'] or 'none')[:9]}" + (" with local changes" if run["dirty"] else "")
        notebook = run["notebook_sha256"] if run["notebook_sha256"] == UNHASHED else f"`{run['notebook_sha256'][:9]}`"
        given = run["parameters"]
        inputs = " + ".join(f"{given[of]} {of}" for of in ("images", "series", "texts") if of in given)
        rows.append(
            f"| [{name}](../notebooks/{name}) | {run['profile']} | {inputs} | {run['seconds'] / 60:.0f}"
            f" | {run['date'][:10]} | {commit} | {notebook} | {run['gpu'] or run['cpu']} |"
        )
    return head + "\n".join(rows) + "\n"


def _simulated(tables: list[pd.DataFrame]) -> str:
    """How often chance alone gives the claims of the recorded runs a verdict, in words."""
    rates = pd.concat([t[t["runs"] > 0] for t in tables]) if tables else pd.DataFrame()
    if rates.empty:
        return "No recorded run has been simulated yet on its own tables.\n"
    most = {verdict: (rates[verdict] / rates["runs"]).set_axis(rates["claim"]) for verdict in (REPRODUCED, PARTLY)}
    said = [f"*{v}* in {m.mean():.1%}, and in {m.max():.1%} for the claim `{m.idxmax()}`" for v, m in most.items()]
    return (
        f"On the recorded tables of {len(rates)} claims, {rates['runs'].min()} studies under chance each, the verdict "
        f"is, on average over the claims, {', '.join(said)}, where it is most often.\n"
    )


def _folder(paper: str) -> str:
    """Where the pages of a paper are, in `book`."""
    return paper.lower().replace(" ", "-")


def _counts(claims: pd.DataFrame) -> str:
    """A line per paper: how many of its claims have which verdict."""
    counts = claims.groupby("paper", sort=False)["verdict"].value_counts().unstack(fill_value=0)
    counts = counts.reindex(columns=list(VERDICTS), fill_value=0)
    head = "| Paper | Claims | " + " | ".join(f"{SYMBOLS[v]} {v}" for v in VERDICTS) + " |\n"
    head += "|---|" + "--:|" * (1 + len(VERDICTS)) + "\n"
    rows = [
        f"| [{paper}]({_folder(paper)}/verdict) | {row.sum()} | " + " | ".join(str(row[v]) for v in VERDICTS) + " |"
        for paper, row in counts.iterrows()
    ]
    return head + "\n".join(rows) + "\n"


def _claims(claims: pd.DataFrame) -> str:
    """The claims of a paper with their verdicts, as a table; below a recorded evidence that of this build."""
    head = "| | Claim | Where | Evidence | Measured in |\n|:-:|---|---|---|---|\n"
    rows = [
        f"| {SYMBOLS[c.verdict]}<br>{c.verdict} | {c.claim} | {c.where} | "
        + (f"*Recorded, {c.best}:* {c.evidence}<br>*This build:* " if c.best else "")
        + (f"{SYMBOLS[c.built_verdict]} {c.built_verdict}. {c.built}" if c.best else c.evidence)
        + f" | [{c.page.split('/')[-1]}](../../notebooks/{c.page}) |"
        for c in claims.itertuples()
    ]
    return head + "\n".join(rows) + "\n"


def _sizes(sizes: pd.DataFrame) -> str:
    """Sizes read beside true sizes, as a table; what is refused says so."""
    names = list(sizes["attribution"].unique())
    table = sizes.assign(
        text=[
            "no size" if pd.isna(size) else f"{size:.2f} ({low:.2f} – {high:.2f})"
            for size, low, high in sizes[["size", "low", "high"]].to_numpy()
        ]
    ).pivot(index="share", columns="attribution", values="text")[names]
    head = "| True share | " + " | ".join(names) + " |\n|--:|" + "--:|" * len(names) + "\n"
    rows = table.fillna("not asked").iterrows()
    return head + "\n".join(f"| {share:.2f} | " + " | ".join(row) + " |" for share, row in rows) + "\n"


def _robustness(measured: pd.DataFrame) -> str:
    """Accuracy under random masking, ours and what F-Fidelity prints in Table 8, as a table."""
    paper = published.load("ffidelity_robustness").rename(columns={"model": "network", "masked_fraction": "masked"})
    both = pd.concat([measured.assign(source="this build"), paper.assign(source="published")], ignore_index=True)
    # Images, series, texts: ours above the paper's of the same kind.
    kinds = {"ResNet": 0, "ViT": 1, "LSTM": 3, "CNN": 2, "Transformer": 4}
    both["kind"] = both["architecture"].map(kinds)
    table = both.pivot(
        index=["kind", "source", "dataset", "architecture", "network"], columns="masked", values="accuracy"
    ).sort_index(level=[0, 1, 2, 4], ascending=[True, False, True, False])
    head = (
        "| | Data | Architecture | Network | " + " | ".join(f"{share:.0%} masked" for share in table.columns) + " |\n"
    )
    head += "|---|---|---|---|" + "--:|" * len(table.columns) + "\n"
    rows = [
        f"| {source} | {data} | {architecture} | {network} | " + " | ".join(f"{value:.1%}" for value in row) + " |"
        for (_, source, data, architecture, network), row in table.iterrows()
    ]
    return head + "\n".join(rows) + "\n"


def _rates(scores: pd.DataFrame) -> str:
    """ReCo of every page, by the true rates and by the printed formula, as a table."""
    keys = ["page", "dataset", "model", "condition", "explainer"]
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
    rows = ["page", "networks"]
    table = scores.pivot(index=rows, columns="explainer", values="text")[names].fillna("–")
    table = table.loc[list(dict.fromkeys(scores[rows].itertuples(index=False, name=None)))]
    head = "| Page | Networks | " + " | ".join(names) + " |\n|---|---|" + "--:|" * len(names) + "\n"
    body = [
        f"| [{page}](../../notebooks/reco-mege/{page}) | {networks} | " + " | ".join(row) + " |"
        for (page, networks), row in zip(table.index, table.to_numpy(), strict=True)
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
            getattr(m.readout, "__name__", "its own").replace("_", " ") if one else "–",
            m.network if one else m.needs,
            m.reference if one else "–",
            m.direction or "",
            "higher" if m.better > 0 else "lower",
            *numbers,
            f"{m.forwards(1024):,}" if one else "–",
            m.source,
        )
        rows.append("| " + " | ".join(cells) + " |")
    return head + "\n".join(rows) + "\n"


def _examined(trust: pd.DataFrame, price: pd.DataFrame) -> str:
    """Which metric to use, by the trials that it does not fail, and which are worst."""
    judged = trust[(trust["size"] == "all images") & (trust["verdict"] != "does not apply")]
    failed = judged[judged["verdict"] == "failed"].groupby("metric").size()
    clean = [name for name in price.sort_values("forwards")["metric"] if name not in failed]
    first = (
        f"{len(clean)} of {judged['metric'].nunique()} metrics fail no trial: {', '.join(clean)}, the cheapest first."
        if clean
        else f"Each of the {judged['metric'].nunique()} metrics fails a trial."
    )
    trials = judged[judged["verdict"] == "failed"].groupby("trial").size().sort_values(ascending=False, kind="stable")
    second = f" The trial that most fail is {trials.index[0]} ({trials.iloc[0]} of them)." if len(trials) else ""
    images = int(judged.loc[judged["trial"] == "Order", "images"].max())
    count = f"Asked about {images} images, with squares of pixels as features. "
    single = trust[
        (trust["size"] == "one image") & (trust["trial"] == "Order") & (trust["verdict"] != "does not apply")
    ]
    passed = int((single["verdict"] == "passed").sum())
    third = f" The number of a single image passes the trial Order for {passed} of {len(single)} metrics."
    return count + first + second + third + "\n"


def _answer(correlations: pd.DataFrame) -> plt.Figure:
    """Metrics by trials: the macro correlation with its interval, as a share of the ideal one."""
    macro = correlations[correlations["level"] == "macro_correlation"].copy()
    sign = macro["comparison"].map(IDEAL)
    macro["passed"] = macro["mean"] * sign
    ends = pd.DataFrame({"low": macro["low"] * sign, "high": macro["high"] * sign})
    macro["text"] = [
        "none" if np.isnan(value) else f"{value:.2f}" + ("" if np.isnan(low) else f"\n{low:.2f} to {high:.2f}")
        for value, low, high in zip(macro["passed"], ends.min(axis=1), ends.max(axis=1), strict=True)
    ]
    order = list(dict.fromkeys(macro["metric"]))
    columns = list(dict.fromkeys(macro[["explainer", "comparison"]].itertuples(index=False, name=None)))
    columns.sort(key=lambda column: list(dict.fromkeys(macro["explainer"])).index(column[0]))
    grid, text = (
        macro.pivot(index="metric", columns=["explainer", "comparison"], values=of).loc[order, columns]
        for of in ("passed", "text")
    )
    # Three lines each: the columns are narrow.
    grid.columns = [
        f"{explainer}\n{comparison.replace(' vs', chr(10) + 'vs')}" for explainer, comparison in grid.columns
    ]
    figure, axes = plt.subplots(figsize=(9, 0.55 * len(order) + 1))
    axes.set_facecolor("0.93")  # what shows where there is no correlation
    axes.grid(False)
    for row, column in np.argwhere(grid.isna().to_numpy()):
        axes.text(column + 0.5, row + 0.5, "none", ha="center", va="center", color="0.4", fontsize="small")
    sns.heatmap(
        grid,
        annot=text.to_numpy(),
        annot_kws={"fontsize": "xx-small"},
        fmt="",
        cmap="vlag_r",
        vmin=-1,
        vmax=1,
        linewidths=1.5,
        cbar_kws={"label": "right order →", "ticks": [-1, 0, 1]},
        ax=axes,
    )
    axes.set(xlabel="", ylabel="")
    axes.tick_params(axis="x", rotation=0, labelsize="x-small")
    axes.tick_params(axis="y", rotation=0)
    return figures.show(figure)
