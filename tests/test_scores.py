"""The long table: what goes in comes back, and what does not fit is refused with a reason."""

import pickle

import hypothesis.extra.numpy as arrays
import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from faithlab.scores import COLUMNS, LABELS, Scores

OF = {"dataset": "digits", "network": "CNN", "metric": "SaCo"}


def of(values, **labels) -> Scores:
    labels = {"images": range(len(values))} | OF | labels
    return Scores.of(torch.as_tensor(values), **labels)


def several() -> Scores:
    """Hits and scores, curves and numbers, pairs and none, labels that apply and that do not."""
    g = torch.Generator().manual_seed(0)
    curve = {"sizes": [0.1, 0.2, 0.5], "metric": "FFid+", "direction": "MoRF", "images": [3, 1, 2, 0]}
    return Scores.concat(
        [
            of(torch.rand(4, 3, generator=g) < 0.5, **curve, explainer="IG", level=3 * 0.2, noise_seed=1, draw=0),
            of(torch.rand(4, 3, generator=g), **curve, explainer="LRP", errors=torch.rand(4, 3, generator=g)),
            of([0.5, float("nan"), -2.0], part="a/b", reference="mean", training_seed=7, variant="shuffled"),
            of([1.5, 2.5, 3.5], images=[0, 0, 4], pairs=[1, 2, 1], metric="S="),
            of(torch.tensor([True, False]), metric="hit"),
        ]
    )


def assert_equal(got: Scores, expected: Scores) -> None:
    assert len(got.blocks) == len(expected.blocks)
    for a, b in zip(got, expected, strict=True):
        assert (a.labels, a.sizes, a.hits) == (b.labels, b.sizes, b.hits)
        for one, other in ((a.images, b.images), (a.pairs, b.pairs), (a.values, b.values), (a.errors, b.errors)):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_a_saved_table_comes_back_with_its_types(tmp_path):
    table = several()
    table.save(tmp_path / "folder" / "scores.parquet")
    assert_equal(Scores.load(tmp_path / "folder" / "scores.parquet"), table)
    file = pyarrow.parquet.read_schema(tmp_path / "folder" / "scores.parquet")
    assert file.names == list(COLUMNS)
    assert str(file.field("hits").type.value_type) == "uint8"
    assert str(file.field("value").type.value_type) == "float"


def test_the_order_of_the_rows_in_a_file_does_not_matter(tmp_path):
    table = several()
    rows = table.arrow()
    order = np.random.default_rng(0).permutation(len(rows))
    pyarrow.parquet.write_table(rows.take(order), tmp_path / "shuffled.parquet")
    got = Scores.load(tmp_path / "shuffled.parquet")
    columns = [*LABELS, "image", "pair", "size"]

    def tidy(t):
        frame = t.frame()
        frame["pair"] = frame["pair"].astype("Int64")
        return frame.sort_values(columns, ignore_index=True)

    assert tidy(got).equals(tidy(table))


@given(
    arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats(-9, 9, width=32)),
    st.floats(0, 1),
)
def test_any_curve_comes_back(tmp_path_factory, values, level):
    path = tmp_path_factory.mktemp("scores") / "x.parquet"
    table = of(values, sizes=torch.linspace(0.1, 0.9, values.shape[1]).double(), level=level)
    table.save(path)
    assert_equal(Scores.load(path), table)


@pytest.mark.parametrize("alternating", [True, False])
def test_rows_of_other_sizes_may_lie_among_each_other(alternating, tmp_path):
    at = {2: [0.1, 0.2], 3: [0.1, 0.2, 0.3]}
    curves = [of(torch.full((40, k), 0.25 * k), sizes=sizes, metric=f"M{k}") for k, sizes in at.items()]
    other = of(torch.full((40, 2), 0.75), sizes=[0.1, 0.3], metric="M4")  # as long as the first, and elsewhere
    table = Scores.concat([*curves, other, of(torch.arange(40.0))])
    rows = table.arrow()
    order = np.arange(160).reshape(4, 40).T.flatten() if alternating else np.arange(160)
    pyarrow.parquet.write_table(rows.take(order), tmp_path / "rows.parquet")
    assert_equal(Scores.load(tmp_path / "rows.parquet"), table)


def test_a_table_without_rows_comes_back(tmp_path):
    Scores([]).save(tmp_path / "none.parquet")
    assert len(Scores.load(tmp_path / "none.parquet")) == 0


def test_a_frame_has_one_row_per_number():
    frame = of([[1.0, 2.0], [3.0, 4.0]], sizes=[0.1, 0.2], images=[5, 6], level=0.5).frame()
    assert frame[["image", "size", "value", "level"]].to_numpy().tolist() == [
        [5, 0.1, 1, 0.5],
        [5, 0.2, 2, 0.5],
        [6, 0.1, 3, 0.5],
        [6, 0.2, 4, 0.5],
    ]


def test_a_page_of_hits_is_small(tmp_path):
    g = torch.Generator().manual_seed(0)
    sizes = torch.arange(1, 20).double() / 20
    images = torch.arange(500)
    table = Scores.concat(
        of(torch.rand(500, 19, generator=g) < 0.5, sizes=sizes, images=images, explainer=f"e{e}", level=level)
        for e in range(4)
        for level in (0.0, 0.5, 1.0)
    )
    table.save(tmp_path / "x.parquet")
    # Coin flips cannot be compressed: a bit each. Labels, images and sizes must add little.
    assert (tmp_path / "x.parquet").stat().st_size < 2 * (12 * 500 * 19 / 8)


def test_rows_are_chosen_by_labels():
    table = several()
    assert table.labels("metric") == ["FFid+", "SaCo", "S=", "hit"]
    assert len(table.where(metric="FFid+")) == 8
    assert len(table.where(metric="FFid+", explainer=["LRP", "IG"])) == 8
    assert len(table.where(metric="FFid+", level=None)) == 4
    assert len(table.where(level=0.6)) == 4  # not 0.6000000000000001
    assert table.missing == 1


@pytest.mark.parametrize("kind", [np.array, pd.Series, pd.Index, pd.array, set, dict.fromkeys])
def test_several_labels_may_be_any_collection(kind):
    assert len(several().where(metric="FFid+", explainer=kind(["LRP", "IG"]))) == 8
    assert len(several().where(level=np.float64(0.6), draw=torch.tensor([0]))) == 4
    assert len(several().where(explainer=several().frame().explainer.unique())) == len(several())  # None among them


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"metrics": "SaCo"}, "no row has metrics 'SaCo'"),
        ({"metric": "Saco"}, "no row has metric 'Saco'; there are 'FFid\\+', 'SaCo'"),
    ],
)
def test_rows_that_are_not_there(labels, message):
    with pytest.raises(ValueError, match=message):
        several().where(**labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [[1.0, 2.0]], "sizes": [0.1]}, r"not \[\(1, 2\), None\] at \(0.1,\)"),
        ({"values": [[1.0, 2.0]], "sizes": [0.2, 0.1]}, "increasing finite sizes"),
        ({"values": [[1.0]], "sizes": [float("nan")]}, "increasing finite sizes"),
        ({"values": [1.0], "errors": torch.ones(2)}, r"not \[\(1, 1\), \(1, 2\)\] at None"),
        ({"values": [1.0, 2.0], "images": [0]}, r"images as 2 integers of 32 bits, not torch.int64 \[1\]"),
        ({"values": [1.0], "images": [0.5]}, "images as 1 integers"),
        ({"values": [1.0, 2.0], "images": [3, 3]}, "1 rows of .*SaCo are there more than once"),
        ({"values": [1.0, 2.0], "images": [3, 3], "pairs": [1, 1]}, "more than once"),
        ({"values": [float("inf")]}, "none infinite"),
        ({"values": torch.tensor([2], dtype=torch.uint8)}, "hits, 0 or 1"),
        ({"values": torch.tensor([2])}, "but got torch.int64"),
        ({"values": [1.0], "colour": "red"}, "expected labels among .*'colour'"),
        ({"values": [1.0], "metric": None}, "expected labels .* in every row"),
        ({"values": [1.0], "network": ""}, "network: expected a text"),
        ({"values": [1.0], "draw": 0.5}, "draw: expected an integer of 32 bits"),
        ({"values": [1.0], "level": float("nan")}, "level: expected a finite number, but got nan"),
    ],
)
def test_bad_rows_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        of(**arguments)


@pytest.mark.parametrize(
    ("other", "message"),
    [(of([1.0]), "more than once"), (of([[1.0]], sizes=[0.5], images=[9]), "differ in sizes"), (of([True]), "as hits")],
)
def test_tables_that_do_not_fit_together(other, message):
    with pytest.raises(ValueError, match=message):
        of([1.0]) + other


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hits": [[2]] * 3}, "hits, 0 or 1"),
        ({"value": [[float("inf")]] * 3, "hits": None}, "none infinite"),
        ({"value": [[0.5]] * 3}, "not one of value and hits"),
        ({"sizes": [[0.5, 0.1]] * 3, "hits": [[1, 0]] * 3}, "increasing finite sizes"),
        ({"sizes": [[0.1], [0.2], [0.1]]}, "have different sizes"),
        ({"hits": [[1, 0, 1]] * 3}, r"not \[\(3, 3\), None\]"),
        ({"hits": [[1], [0, 1, 0], [1, 1]]}, "hits: expected as many numbers in each of the rows"),
        ({"image": [None, 1, 2]}, "image: expected as many numbers"),
    ],
)
def test_a_file_of_numbers_that_cannot_be_is_refused(change, said, tmp_path):
    table = of(torch.tensor([True, False, True])).arrow()
    for name, values in change.items():
        own = table.schema.field(name)
        column = pyarrow.nulls(3, own.type) if values is None else pyarrow.array(values, own.type)
        table = table.set_column(table.schema.get_field_index(name), own.with_nullable(True), column)
    pyarrow.parquet.write_table(table, tmp_path / "x")
    with pytest.raises(ValueError, match=said):
        Scores.load(tmp_path / "x")


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    several().save("~/scores.parquet")
    assert_equal(Scores.load("~/scores.parquet"), several())
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["scores.parquet"]


def test_a_table_can_be_pickled():
    table = several().where(metric="FFid+")
    assert_equal(pickle.loads(pickle.dumps(table)), table)


def test_a_label_can_be_taken_off():
    table = of(values=[1.0], variant="coarse")
    assert table.labelled(variant=None).labels("variant") == []
    assert table.labelled(variant="fine").labels("variant") == ["fine"]
    with pytest.raises(ValueError, match="in every row"):
        table.labelled(metric=None)
