"""Tables of the book say what they are about in words."""

import re

import pandas as pd
import pytest
import torch

from faithlab.scores import Scores
from faithstudy import published, tables
from faithstudy.trials import masking, refined

FOUND = pd.DataFrame({"explainer": ["IG", "IG"], "metric": ["SaCo", "AUC"], "mean": [0.25, 0.5]})


def test_levels_are_words_and_names_of_metrics_stay_as_they_are():
    index = pd.MultiIndex.from_product([["macro_correlation", "micro_rank"], ["MoRF vs GT"]])
    html = tables.styled(pd.DataFrame({"S_avg": ["1", "2"]}, index=index)).to_html()
    assert "macro correlation" in html
    assert "micro rank" in html
    assert "S_avg" in html
    assert "_correlation" not in html


def test_sources_stand_side_by_side_and_one_table_alone_has_no_header_of_a_source():
    asked = {"rows": ["explainer"], "columns": ["metric"], "order": ["AUC"]}
    both = tables.side_by_side({"published": FOUND, "none": None, "measured": FOUND}, **asked)
    assert list(both.columns) == [(m, source) for m in ("AUC", "SaCo") for source in ("published", "measured")]
    alone = tables.side_by_side(FOUND, **asked)
    assert list(alone.columns) == ["AUC", "SaCo"]
    assert alone.loc["IG"].tolist() == ["0.50", "0.25"]
    assert tables.compared(FOUND, **asked).data.equals(alone)


def test_a_value_that_two_columns_share_may_stand_twice_in_the_order():
    table = tables.side_by_side(FOUND, rows=["explainer"], columns=["metric"], order=["AUC", "SaCo", "AUC"])
    assert list(table.columns) == ["AUC", "SaCo"]


def test_differences_of_explainers_are_paired():
    image = torch.linspace(-9, 9, 40)
    scores = Scores.concat(
        Scores.of(image + value, images=range(40), dataset="d", network="n", metric="m", explainer=name)
        for name, value in (("IG", 0.75), ("SG", 0.5))
    )
    shown = tables.differences(scores, [("IG", "SG")], {"of m": {"metric": "m"}}, digits=2).data
    assert shown.to_dict() == {"of m": {"IG − SG": "0.25 [0.25,\N{NO-BREAK SPACE}0.25]"}}


def test_explainers_by_refinements_stand_beside_the_paper_with_both_accuracies():
    paper = refined.printed(published.load("fewclass_scores"))
    g = torch.Generator().manual_seed(0)
    means = {"BP": 0.2, "EG": 0.9, "BP + SG": 0.5, "EG + SG": 0.5}
    labels = {"dataset": "d", "network": "net", "training_seed": 0, "metric": "Few-class Fidelity"}
    scores = Scores.concat(
        Scores.of(m + 0.1 * torch.randn(40, generator=g), images=range(40), explainer=name, **labels)
        for name, m in means.items()
    )
    sources = {"published": paper, "measured": refined.table(scores)}
    asked = {"model": "ResNet-18", "table": 1, "metric": "Few-class Fidelity"}
    shown = tables.refined(sources, {"measured": refined.apart(scores)}, {"net": 0.5}, network="net", **asked)
    assert shown.data.loc["EG", ("none", "published")] == "0.71"
    assert shown.data.loc["EG", ("none", "measured")].startswith("0.9")
    text = shown.to_html()
    assert "ResNet-18 (published): accuracy 93.5%; net (measured): accuracy 50.0%." in text
    assert "paired difference" in text
    alone = tables.refined(sources, {"measured": refined.apart(scores)}, {"net": 0.5}, network=None, **asked)
    assert set(alone.data.columns.get_level_values(1)) == {"published"}
    assert "accuracy 50.0%" not in alone.to_html()


def test_means_of_a_long_table_are_those_of_its_cells():
    labels = {"network": "n", "metric": "m"}
    of = {name: torch.full((4,), value) for name, value in (("IG", 0.25), ("SG", 0.5))}
    scores = Scores.concat(
        Scores.of(values, images=range(4), dataset=dataset, explainer=name, **labels)
        for name, values in of.items()
        for dataset in "ab"
    )
    rows = {name: {"explainer": name} for name in of}
    shown = tables.estimates(rows, {"A": {"dataset": "a"}}, scores, digits=3, metric="m").data
    assert [text.split()[0] for text in shown["A"]] == ["0.250", "0.500"]


def test_measured_accuracies_stand_below_those_of_table_8():
    hits = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    about = {"metric": "accuracy", "explainer": "random", "dataset": "mine test"}
    found = Scores.of(hits, images=range(4), sizes=(0.0, 0.1), network="small LSTM original", **about)
    measured = masking.by_architecture(found, {"mine test": "Mine"})
    assert measured[["dataset", "architecture", "network"]].drop_duplicates().to_numpy().tolist() == [
        ["Mine", "small LSTM", "original"]
    ]
    paper = published.load("ffidelity_robustness").query("dataset == 'SST2'")
    shown = tables.robustness(paper, measured).data
    assert list(shown.columns) == ["0% masked", "5% masked", "10% masked"]
    mine = shown.loc["Mine (measured)", "small LSTM", "original"].tolist()
    assert mine[1] == "–"
    assert mine[2].startswith("0.50")
    whole = paper.query("architecture == 'LSTM' and model == 'original' and masked_fraction == 0")["accuracy"].item()
    assert shown.loc["SST2 (published)", "LSTM", "original"].tolist()[0] == f"{whole:.2f}"


def ranked(**rows):
    return pd.DataFrame(
        [
            {"explainer": name, "metric": "SaCo", "mean": (a + b) / 2, "low": a, "high": b}
            for name, (a, b) in rows.items()
        ]
    )


@pytest.mark.parametrize(
    ("rows", "better", "best"),
    [
        ({"IG": (0.5, 0.6), "SG": (0.1, 0.4)}, 1, ["IG"]),
        ({"IG": (0.5, 0.6), "SG": (0.1, 0.4)}, -1, ["SG"]),
        ({"IG": (0.5, 0.6), "SG": (0.1, 0.5)}, 1, []),  # they touch
        ({"IG": (0.5, 0.6), "SG": (0.1, 0.4), "BP": (0.45, 0.55)}, {"SaCo": 1}, []),
        ({"IG": (0.5, 0.6)}, 1, []),  # the best of one is no finding
    ],
)
def test_the_best_is_marked_only_where_its_interval_overlaps_no_rivals(rows, better, best):
    found = tables.marked(ranked(**rows), ["metric"], better)
    assert found.loc[found["best"], "explainer"].tolist() == best


def test_what_is_the_best_by_its_making_is_no_rival():
    rows = ranked(Oracle=(1.0, 1.0), IG=(0.5, 0.6), SG=(0.1, 0.4))
    assert tables.marked(rows, ["metric"], aside=["Oracle"])["best"].tolist() == [False, True, False]


def test_without_an_interval_there_is_no_best_and_rivals_are_within_their_column():
    both = ranked(IG=(0.5, 0.6), SG=(0.1, 0.4))
    assert not tables.marked(both[["explainer", "metric", "mean"]], ["metric"])["best"].any()
    other = both.assign(metric="AUC", mean=9.0, low=9.0, high=9.1)
    found = tables.marked(pd.concat([both, other], ignore_index=True), ["metric"])
    assert found["best"].tolist() == [True, False, False, False]


def test_paired_differences_tell_what_own_intervals_do_not():
    hard = torch.linspace(-1, 1, 200)
    of = {"IG": hard + 0.05, "SG": hard}
    about = {"images": range(200), "dataset": "d", "network": "n", "metric": "SaCo"}
    scores = Scores.concat(Scores.of(values, explainer=name, **about) for name, values in of.items())
    summary = tables.summary(scores, ["explainer", "metric"])
    assert not tables.marked(summary, ["metric"])["best"].any()
    by = tables.paired(scores, ["explainer", "metric"])
    assert tables.marked(summary, ["metric"], 1, by)["best"].tolist() == [True, False]
    assert tables.marked(summary, ["metric"], -1, by)["best"].tolist() == [False, True]


def test_a_table_has_the_best_in_bold_and_says_when():
    sources = {"published": FOUND, "measured": tables.marked(ranked(IG=(0.5, 0.6), SG=(0.1, 0.4)), ["metric"])}
    html = tables.compared(sources, rows=["explainer"], columns=["metric"]).to_html()
    (cell,) = re.findall(r'<td [^>]*class="[^"]*faithlab-best[^"]*"[^>]*>([^<]*)', html)
    assert cell.startswith("0.55")
    assert tables.RULES[False] in html
    none = tables.marked(ranked(IG=(0.5, 0.6), SG=(0.1, 0.5)), ["metric"])
    assert "here none" in tables.compared({"measured": none}, rows=["explainer"], columns=["metric"]).to_html()
    assert "Bold" not in tables.compared(FOUND, rows=["explainer"], columns=["metric"]).to_html()


def test_printed_numbers_have_a_type_of_their_own():
    sources = {"published": FOUND, "measured": FOUND}
    html = tables.compared(sources, rows=["explainer"], columns=["metric"]).to_html()
    assert len(re.findall(r'<td [^>]*class="[^"]*faithlab-printed', html)) == 2
    assert "<caption>" not in html
    alone = tables.compared({"measured": FOUND}, rows=["explainer"], columns=["metric"]).to_html()
    assert "faithlab-printed" not in alone


def test_tables_of_sentences_name_data_and_networks_as_readers_know_them():
    shown = tables.prose(pd.DataFrame({"data": ["japanese-vowels", "cifar10 test"], "n": [1, 2]})).to_html()
    assert "JapaneseVowels" in shown
    assert "CIFAR-10 test" in shown
    assert "japanese-vowels" not in shown


def test_data_sets_of_several_names_stand_in_one_column_and_others_are_left_out():
    about = {"level": "macro_correlation", "comparison": "LeRF vs GT", "metric": "Fidelity", "explainer": "IG"}
    sources = {
        "published": pd.DataFrame([about | {"dataset": d, "mean": m} for d, m in (("Boiler", 0.5), ("PAM", 0.25))]),
        "measured": pd.DataFrame([about | {"dataset": "mine test", "mean": 0.75}]),
    }
    sets = {"Boiler": "mine for Boiler", "mine test": "mine for Boiler"}
    shown = tables.correlations(sources, "macro_correlation", columns=["dataset"], sets=sets).data
    assert shown.columns.tolist() == [("mine for Boiler", "published"), ("mine for Boiler", "measured")]
    assert shown.to_numpy().tolist() == [["0.50", "0.75"]]


def test_names_and_cells_hold_no_html():
    """A metric of a reader's own may be called anything."""
    named = "<img src=x onerror=alert(1)>"
    for shown in (
        tables.styled(pd.DataFrame({named: ["a < b"]}, [named])),
        tables.prose(pd.DataFrame({named: [named]})),
    ):
        text = shown.to_html()
        assert "<img" not in text
        assert "&lt;img src=x" in text
