"""Names and numbers as a reader knows them; every data set and network of the recorded runs has a name."""

import re
from pathlib import Path

import judged
import matplotlib.pyplot as plt
import pandas as pd
import pytest
import words
from matplotlib.transforms import Bbox

from faithstudy import paths, plots
from faithstudy.data import datasets
from faithstudy.display_names import SETS

RECORDED = sorted((paths.root() / "data/results").rglob("provenance.json"))


def listed(column, separator):
    """Every single name in a column of the recorded tables of parts."""
    tables = [pd.read_csv(path).get(column, pd.Series(dtype=str)).dropna() for path in places_of("parts.csv")]
    return sorted({one for table in tables for names in table for one in names.split(separator)})


def places_of(name):
    return sorted(path for path in (run.parent / name for run in RECORDED) if path.is_file())


def test_every_data_set_of_the_zoo_and_of_the_recorded_runs_has_a_name():
    assert {*datasets.COLLECTIONS, *datasets._MADE} <= {*SETS}
    for name in listed("datasets", ", "):
        shown = words.plain(name).split()
        assert not {*shown} & {*SETS}, name


def test_labels_of_networks_have_names_that_a_reader_knows():
    shown = {"series, 29 features, logit": "LSTM, 29 features, logit", "ViT fine-tuned": "ViT fine-tuned"}
    shown |= {
        "efficientnet-lite0": "EfficientNet-Lite0",
        "1-Lipschitz and ResNet-18": "1-Lipschitz three-layer CNN and ResNet-18",
    }
    assert {name: words.label(name) for name in shown} == shown
    assert not {*map(words.label, listed("network", " and "))} & {*words.NETWORKS, *words.LABELS}


def test_rows_are_a_table_in_markdown():
    assert (
        words.markdown([{"A": 1, "B": "x"}, {"A": 2, "B": "y"}]) == "| A | B |\n| --- | --- |\n| 1 | x |\n| 2 | y |\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("On cifar10 test and colored-mnist-halves test.", "On CIFAR-10 test and two-class coloured digits test."),
        ("cifar10-vehicles, cifar10-resnet9-1c28", "CIFAR-10 vehicles, cifar10-resnet9-1c28"),
        ("greedy, MoRF, imagenet-foolbox", "greedy, MoRF, ImageNet photographs"),
        ("LeRF - MoRF, from greedy-Le", "LeRF − MoRF, from greedy-Le"),
        ("from -2.56e-05 to 3.4e−05, 1e+03", "from −0.0000256 to 0.000034, 1,000"),
        ("make notebook data/cifar10.csv", "make notebook data/cifar10.csv"),
    ],
)
def test_texts_have_names_that_readers_know(text, shown):
    assert words.plain(text) == shown
    assert words.plain(shown) == shown


@pytest.mark.parametrize("path", places_of("claims.csv"), ids=lambda path: path.parent.name)
def test_no_short_name_and_no_power_of_ten_is_left_on_a_recorded_page(path: Path):
    name = path.parent.relative_to(paths.root() / "data/results" / "study").as_posix()
    page = judged.page(path.parent, name)
    texts = [*page.claims["evidence"], *page.parts["part"], *page.parts["datasets"], *page.parts["network"]]
    for text in texts:
        assert words.plain(text) == text
        assert not any(f"{short} test" in text for short in SETS), text
        assert not re.search(r"\de[-−+]?\d", text), text


def test_figures_have_readers_names_and_shared_labels_beside_their_panels():
    figure, grid = plt.subplots(3, 2, figsize=(7, 8))
    grid[0, 0].set_title("cifar10 test, bilstm")
    below, beside = figure.supxlabel("size"), figure.supylabel("lost")
    plots.show(figure)
    assert grid[0, 0].get_title() == "CIFAR-10 test, LSTM"
    panels = Bbox.union([axes.get_tightbbox() for axes in grid.flat])
    points = figure.dpi / 72
    assert 0 < panels.y0 - below.get_window_extent().y1 < 10 * points
    assert 0 < panels.x0 - beside.get_window_extent().x1 < 10 * points


def test_parts_whose_number_would_be_misread_are_named_otherwise_as_long_as_a_page_has_them():
    scripts = "".join(path.read_text(encoding="utf-8") for path in (paths.root() / "notebooks").rglob("*.py"))
    for name, said in words.PARTS.items():
        assert f'"{name}"' in scripts, "no page names a part so: its other name goes, too"
        assert words.plain(name) == said
