"""What pages without a notebook show: put together from the tables of a build, so that no number on them is typed."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import choices
import forest
import judged
import matplotlib.pyplot as plt
import pandas as pd
import pyarrow.parquet
import reader
import seaborn as sns
import torch
import yaml
from words import markdown

from faithlab.metrics import METRICS
from faithlab.metrics.size import Setting, law
from faithlab.scores import COLUMNS
from faithstudy import paths, plots, profiles, published, records
from faithstudy.claims import PARTLY, REPRODUCED
from faithstudy.claims.verdicts import MOSTLY_FAILS, REFUTED_IN_PART
from faithstudy.numbers import interval, number
from faithstudy.trials import concordance, recommendations
from faithstudy.trials.comparisons import in_one_sign


def write(results: Path, target: Path, pages: Sequence[judged.Page], drawn: Path) -> None:
    """Write what pages include: ``<name>.md`` and ``.svg``. What a build has no tables for is left out.

    Args:
        results: the tables of a build, `<notebook>/<table>.csv`.
        target: a folder, made if need be.
        pages: those that judge claims, in the order of the book.
        drawn: a folder for the forest plots.
    """
    plots.theme()
    target.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"metrics": _metrics(), "recorded": _recorded(records.all_provenance())}
    found["columns"] = markdown({"Column": f"`{name}`", "What it holds": of} for name, of in COLUMNS.items())
    declared = yaml.safe_load((paths.root() / "book" / "choices.yml").read_text(encoding="utf-8"))
    found |= {f"choices-{paper}": choices.ranked(results, **of) for paper, of in declared.items()}
    found["error-rates"] = _simulated(results)
    claims = pd.concat([page.claims for page in pages], ignore_index=True) if pages else pd.DataFrame({"paper": []})
    claims = claims[claims["paper"].map(judged.has_verdicts).astype(bool)]
    if len(claims):
        found |= {"claims": forest.overview(claims), "asked": _asked(pages)}
    for paper in claims["paper"].unique():
        found[f"claims-{judged.folder(paper)}"] = forest.verdicts(pages, paper, drawn, reader.caveats)
    for name, (make, tables) in MADE.items():
        if files := sorted(results.glob(tables)):
            found[name] = make(*files)
    for name, what in ({"law": plateau()} | found).items():
        if isinstance(what, plt.Figure):
            what.savefig(target / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
        else:
            (target / f"{name}.md").write_text(what, encoding="utf-8")


def plateau(alpha: float = 0.5, caps: Sequence[float] = (0.05, 0.1, 0.2)) -> plt.Figure:
    """A plateau by the closed form: the curves of some caps, by a perfect ranking and by a mixed one.

    The picture of the book's interactive figure where scripts are off.
    """
    places = torch.linspace(0, 0.6, 121, dtype=torch.float64)
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 2.8), sharey=True)
    for axes, (title, noise) in zip(panels, {"perfect ranking": 0.0, "half of it random": 0.5}.items(), strict=True):
        for colour, cap in zip(sns.color_palette("viridis", len(caps)), caps, strict=True):
            curve = law(places, Setting(alpha, cap), [0.2], [1.0], noise)
            axes.plot(places, curve, color=colour, label=f"β {cap:g}")
            axes.plot([cap / alpha], [0], "^", color=colour, clip_on=False)
        plots.mark(axes, 0.2, "size")
        axes.set(title=title, xlabel="explanation size")
    panels[0].set_ylabel("FFid+")
    panels[0].legend(fontsize="small")
    return plots.show(figure)


def _recorded(runs: Sequence[Mapping]) -> str:
    """The recorded runs: their long tables, how long they took and where they came from."""
    rows = []
    for run in runs:
        files = sorted(paths.recorded(run["notebook"], records.PROFILE).glob("*.parquet"))
        rows.append(
            {
                "Page": f"[{run['notebook']}](../notebooks/{run['notebook']})",
                "Rows": number(sum(pyarrow.parquet.read_metadata(file).num_rows for file in files), 0),
                "kB": number(sum(file.stat().st_size for file in files) / 1000, 0),
                "Minutes": number(run["seconds"] / 60, 0),
                "Date": run["date"][:10],
                "Commit": f"`{(run['commit'] or 'none')[:9]}`",
                "Ran on": run["gpu"] or run["cpu"],
            }
        )
    hours = sum(run["seconds"] for run in runs) / 3600
    return (
        f"{len(runs)} runs took {number(hours)} hours in all.\n\n{markdown(rows)}" if rows else "No run is recorded.\n"
    )


def _simulated(results: Path) -> str:
    """How often chance alone gives claims a verdict, in a sentence."""
    tables = [pd.read_csv(path) for path in sorted(results.rglob("error_rates.csv"))]
    tables = [table[table["runs"] > 0] for table in tables if MOSTLY_FAILS in table]  # else of the rule before it
    rates = pd.concat(tables) if tables else pd.DataFrame()
    if rates.empty:
        return "No claim of this book was simulated on its own table by today's rule.\n"
    false = (REPRODUCED, PARTLY, MOSTLY_FAILS, REFUTED_IN_PART)
    each = {verdict: (rates[verdict] / rates["runs"]).set_axis(rates["claim"]) for verdict in false}
    said = [f"*{v}* in {m.mean():.1%}, and in {m.max():.1%} for the claim `{m.idxmax()}`" for v, m in each.items()]
    return (
        f"On the tables of {len(rates)} claims, {rates['runs'].min()} studies under chance each, the verdict is, on "
        f"average over the claims, {', '.join(said)}, where it is most often.\n"
    )


def _asked(pages: Sequence[judged.Page]) -> str:
    """Questions that readers bring, each with the claim that answers it, in Markdown; `asked.yml` has them."""
    text = ""
    for question in yaml.safe_load((paths.root() / "book" / "asked.yml").read_text(encoding="utf-8")):
        for page in pages:
            for _, claim in page.claims[page.claims["id"] == question["claim"]].iterrows():
                address = f"{judged.folder(claim['paper'])}/verdict.html#{judged.anchor(claim['id'])}"
                said = forest.sentence(claim, judged.of(page, claim["id"]))
                text += f"## {question['question']}\n\n{forest.badge(claim['verdict'], '', address)} {said}\n\n"
                text += f"{question['means']}\n\n"
    return text


def _answer(correlations: Path) -> plt.Figure:
    """The macro correlation of each metric with the right order, by explainer and comparison, as a heat map."""
    found = pd.read_csv(correlations)
    macro = in_one_sign(found[found["level"] == "macro_correlation"])
    macro["row"] = macro["explainer"] + ", " + macro["comparison"]
    macro["text"] = [
        interval(*row, digits=2).replace(" [", "\n[").replace(", ", ",\n")
        for row in macro[["mean", "low", "high"]].to_numpy()
    ]
    macro = macro.sort_values("explainer", kind="stable").set_index(["row", "metric"])
    grid, text = (macro[of].unstack(sort=False) for of in ("mean", "text"))
    figure, axes = plt.subplots(figsize=(plots.COLUMN, 0.6 * len(grid) + 1))
    sns.heatmap(grid, annot=text, fmt="", cmap="vlag_r", vmin=-1, vmax=1, annot_kws={"fontsize": 9}, ax=axes)
    axes.set(xlabel="", ylabel="")
    axes.xaxis.tick_top()
    return plots.show(figure)


def _matrix(path: Path) -> str:
    """Metrics by trials, a table for each kind of network, which a phone shows as cards; the first is open."""
    trust = pd.read_csv(path)
    trust = trust[trust["size"] == "all images"]
    tables, trials = [], list(dict.fromkeys(trust["trial"]))
    head = "".join(f'<th scope="col">{html.escape(trial)}</th>' for trial in trials)
    for kind, own in trust.groupby("kind", sort=False):
        found = {(row.metric, row.trial): row for row in own.itertuples() if row.verdict in plots.VERDICTS}
        names = [name for name, _ in plots.in_order(trust) if any(name == metric for metric, _ in found)]
        rows = "".join(
            f'<tr><th scope="row">{html.escape(name)}</th>'
            + "".join(_cell(found.get((name, trial)), trial) for trial in trials)
            + "</tr>"
            for name in names
        )
        said = f"{kind}: {len(recommendations.usable(own))} of {len(names)} metrics pass what they must and fail none"
        table = f'<table class="faithlab-matrix"><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>'
        opened = "" if tables else " open"
        summary = f"<summary>{html.escape(said)}</summary>"
        tables.append(f'<details class="faithlab-kind"{opened}>{summary}{table}</details>')
    return "\n\n".join(tables) + "\n"


def _cell(row: Any, trial: str) -> str:
    """A cell of the matrix; a phone, which has no columns, shows its trial in it."""
    if row is None:
        return '<td class="none"><span class="sr-only">does not apply</span></td>'
    sign = f'<b aria-hidden="true">{plots.VERDICTS[row.verdict][1]}</b><span class="sr-only">{row.verdict}</span>'
    kind = f'class="{row.verdict}{" home" if row.home else ""}"'
    return f'<td {kind} data-label="{html.escape(trial, quote=True)}">{sign} {number(row.T, 2)}</td>'


def _examined(path: Path) -> str:
    """Which metric to use for what kind of network, by the trials that it passes and fails."""
    trust, price = pd.read_csv(path), pd.read_csv(path.with_name("price.csv"))
    forwards = profiles.defaults("across/findings")["forwards"]
    advice = recommendations.advice(trust, price)
    take, rows = recommendations.recommended(advice, price, forwards), []
    for kind, own in advice.groupby("kind", sort=False):
        passed, others = own.set_index("metric")[concordance.PASSED], own.loc[own["place"].notna(), "metric"]
        rows.append(
            {
                "Network": kind,
                "Use": f"**{take[kind]}**"
                if kind in take
                else "none: each fails a trial, or misses one that it must pass",
            }
        )
        rows[-1] |= {"It passes": passed[take[kind]] if kind in take else "–"}
        rows[-1] |= {"Or": ", ".join(name for name in others if name != take.get(kind)) or "–"}
    return (
        f"{markdown(rows)}\n*Use*: of the metrics that fail no trial, the one that passes most, and of those the "
        f"cheapest, with {number(forwards, 0)} model evaluations to spend. It has to pass {recommendations.BUILT} and "
        f"one of {', '.join(recommendations.TELLING)}. *Or*: others that do, cheapest first; a name with a colon is of "
        f"another library, [some of which have faults](../notebooks/cost/peers) that no trial sees.\n"
    )


def _sizes(path: Path) -> str:
    """Sizes beside true sizes, or that there is none."""
    sizes = pd.read_csv(path)
    texts = [
        "no size" if pd.isna(row[0]) else interval(*row, digits=2) for row in sizes[["size", "low", "high"]].to_numpy()
    ]
    names = list(dict.fromkeys(sizes["attribution"]))
    table = sizes.assign(text=texts).pivot(index="share", columns="attribution", values="text")[names].fillna("–")
    return markdown({"True share": number(share, 2), **row} for share, row in table.to_dict("index").items())


def _robustness(*files: Path) -> str:
    """Accuracy under random masking: ours, and what F-Fidelity prints in Table 8."""
    ours = pd.concat([pd.read_csv(path).assign(source="measured") for path in files])
    paper = published.load("ffidelity_robustness").rename(columns={"model": "network", "masked_fraction": "masked"})
    both = pd.concat([paper.assign(source="published"), ours], ignore_index=True)
    both["text"] = [f"{number(100 * value, 1)} %" for value in both["accuracy"]]
    names = ["architecture", "source", "dataset", "network"]
    table = both.pivot(index=names, columns="masked", values="text").fillna("–")
    table.columns = [f"{share:.0%} masked" for share in table]
    return markdown(table.reset_index().rename(columns=str.capitalize).to_dict("records"))


def _rates(*files: Path) -> str:
    """ReCo of every page by the true rates, and by the printed formula in brackets."""
    rates = pd.concat([pd.read_csv(path).assign(page=path.parent.name) for path in files], ignore_index=True)
    rates["networks"] = rates["condition"].where(rates["condition"] != "normal", rates["model"])
    keys = ["page", "dataset", "networks", "explainer"]
    wide = rates.pivot_table(index=keys, columns="measure", values="mean", sort=False)
    told = [f"{number(true, 2)} ({number(other, 2)})" for true, other in wide[["ReCo", "ReCo_printed"]].to_numpy()]
    table = pd.Series(told, wide.index).unstack(sort=False).fillna("–").reset_index()
    table["page"] = [f"[{page}](../../notebooks/reco-mege/{page})" for page in table["page"]]
    return markdown(
        table.rename(columns={"page": "Page", "dataset": "Data", "networks": "Networks"}).to_dict("records")
    )


def _metrics() -> str:
    """Every registered metric and how it is asked, as a table."""
    rows = []
    for name, m in METRICS.items():
        one = m.needs == "one network"
        rows.append(
            {"Metric": name, "Family": m.family}
            | {"Output": getattr(m.output, "__name__", "its own").replace("_", " ") if one else "–"}
            | {"Network": m.network if one else m.needs, "Baseline": m.baseline if one else "–"}
            | {"Removes first": m.direction or "", "Better": "higher" if m.better > 0 else "lower"}
            | {name: "" if at is None else f"{at:g}" for name, at in (("Chance", m.chance), ("Ideal", m.ideal))}
            | {"Evaluations for 1024 features": number(m.forward_passes(1024), 0) if one else "–", "Source": m.source}
        )
    return markdown(rows)


MADE = {
    "answer": (_answer, "f-fidelity/images/correlations.csv"),
    "matrix": (_matrix, "across/examination/trust.csv"),
    "examination": (_examined, "across/examination/trust.csv"),
    "sizes": (_sizes, "f-fidelity/explanation-size/sizes.csv"),
    "robustness": (_robustness, "f-fidelity/*/robustness.csv"),
    "reco-rates": (_rates, "reco-mege/*/rates.csv"),
}
"""What makes it, of which tables of a build."""
