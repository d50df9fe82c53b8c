"""The papers' numbers: counts, types, and spot checks read from the papers themselves."""

import shutil

import pandas as pd
import pytest

from faithstudy import paths, published

COUNTS = {
    "consistency_degradations": 420,  # Tables 7-14: 2 measures x 10 conditions x (3 sets x 5 + 6) explainers
    "consistency_scores": 84,  # Tables 1-2: 4 sets x 5 explainers each; 3: 4 measures x 5; 4-5: 2 models x 6 each
    "fewclass_accuracy": 4,  # the text on the two data sets
    "fewclass_scores": 200,  # Tables 1 and 3: 2 models x (7 x 4 + 1) each; 2 and 4: 2 models x (4 x 4 + 2 x 2 + 1) each
    "ffidelity_correlations": 504,  # Tables 1-7, 10: 9 rows x (8 or 6 or 4) columns
    "ffidelity_cost": 11,  # Table 13
    "ffidelity_explainers": 8,  # Tables 11 and 12: 2 explainers x 2 measures
    "ffidelity_robustness": 36,  # Table 8: 12 rows x 3 masked shares
    "saco_ablation": 4,  # Table 1
    "saco_groups": 30,  # Table 2: 3 group counts x 10 explainers
    "saco_metric_correlation": 3,  # the text beside Figure 2
    "trace_deletion": 180,  # Table 1: 3 references x 6 models x 10 explainers
}


def one(name, **where):
    """The single row of a table with these values."""
    frame = published.load(name)
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1, f"{name} has {len(frame)} rows with {where}"
    return frame.iloc[0]


def test_every_file_has_a_name_and_every_name_a_file():
    there = {path.stem for path in (paths.root() / "data" / "published").glob("*.csv")}
    assert there == set(published.checksums()) == set(COUNTS)


@pytest.mark.parametrize("name", published.checksums())
def test_counts_types_and_keys(name):
    frame = published.load(name)
    assert len(frame) == COUNTS[name]
    numbers = frame.select_dtypes("float64").columns
    keys = [column for column in frame if column not in numbers or column == "masked_fraction"]
    assert len(numbers) >= 1
    assert not frame.duplicated(keys).any()
    assert (frame[keys] != "").all(axis=None)
    for column in {"table", "figure", "groups"} & set(frame):
        assert frame[column].dtype == "int64"
    missing = frame[numbers].isna().any(axis=1).sum()
    # F-Fidelity, Tables 3 and 6: a dash for the micro correlations of Fidelity and ROAR on Boiler, 3 rows x 2 each
    assert missing == (12 if name == "ffidelity_correlations" else 0)


@pytest.mark.parametrize(
    ("table", "dataset", "model", "explainer", "level", "comparison", "metric", "mean", "std"),
    [
        # Table 1, CIFAR-100: Macro Corr., MoRF vs GT, SG-SQ Fidelity; GradCAM F-Fidelity
        (1, "CIFAR-100", "ResNet-9", "SG-SQ", "macro_correlation", "MoRF vs GT", "Fidelity", -0.68, 0.08),
        (1, "CIFAR-100", "ResNet-9", "GradCAM", "macro_correlation", "MoRF vs GT", "F-Fidelity", -0.60, 0.00),
        # Table 1: Micro Rank, LeRF vs GT, GradCAM Fidelity
        (1, "CIFAR-100", "ResNet-9", "GradCAM", "micro_rank", "LeRF vs GT", "Fidelity", 2.05, 1.39),
        # Table 1: Micro Rank, MoRF vs LeRF, SG-SQ Fidelity, printed "3.680460"
        (1, "CIFAR-100", "ResNet-9", "SG-SQ", "micro_rank", "MoRF vs LeRF", "Fidelity", 3.68, 0.46),
        # Table 2, Tiny-ImageNet: Micro Corr., MoRF vs GT, GradCAM ROAR
        (2, "Tiny-ImageNet", "ResNet-9", "GradCAM", "micro_correlation", "MoRF vs GT", "ROAR", 0.54, 0.14),
        # Table 3: Macro Corr., LeRF vs GT, Boiler R-Fidelity
        (3, "Boiler", "LSTM", "IG", "macro_correlation", "LeRF vs GT", "R-Fidelity", 0.53, 0.06),
        # Table 4: Micro Rank, MoRF vs LeRF, SST2 F-Fidelity
        (4, "SST2", "LSTM", "IG", "micro_rank", "MoRF vs LeRF", "F-Fidelity", 1.11, 0.31),
        # Table 5, ViT: Micro Corr., MoRF vs LeRF, CIFAR-100 ROAR
        (5, "CIFAR-100", "ViT", "SG-SQ", "micro_correlation", "MoRF vs LeRF", "ROAR", -0.77, 0.44),
        # Table 6, CNN: Macro Corr., LeRF vs GT, PAM ROAR
        (6, "PAM", "CNN", "IG", "macro_correlation", "LeRF vs GT", "ROAR", -0.71, 0.10),
        # Table 7, Transformer: Micro Rank, MoRF vs GT, SST2 Fidelity
        (7, "SST2", "Transformer", "IG", "micro_rank", "MoRF vs GT", "Fidelity", 2.05, 0.89),
        # Table 10, LayerCAM: Micro Corr., MoRF vs GT, F-Fidelity
        (10, "CIFAR-100", "ResNet-9", "LayerCAM", "micro_correlation", "MoRF vs GT", "F-Fidelity", -0.50, 0.61),
    ],
)
def test_f_fidelity_correlations(table, dataset, model, explainer, level, comparison, metric, mean, std):
    where = {"table": table, "dataset": dataset, "model": model, "explainer": explainer}
    row = one("ffidelity_correlations", **where, level=level, comparison=comparison, metric=metric)
    assert (row["mean"], row["std"]) == (mean, std)


def test_spreads_that_cannot_be_are_the_three_that_the_readme_lists():
    """The sample deviation of n correlations with mean 1 - d is at most sqrt(n) * d: all are 1 but for one."""
    frame = published.load("ffidelity_correlations")
    frame = frame[frame.level == "macro_correlation"]  # over five seeds
    rounding = 0.005
    largest = 5**0.5 * (1 - frame["mean"].abs() + rounding) + rounding
    impossible = frame[frame["std"] > largest]
    assert impossible[["table", "dataset", "metric", "mean", "std"]].to_numpy().tolist() == [
        [2, "Tiny-ImageNet", "ROAR", 1.00, 0.03],
        [3, "Boiler", "ROAR", -0.99, 0.20],
        [6, "PAM", "Fidelity", 0.96, 0.14],
    ]


def test_percentages_are_fractions():
    # F-Fidelity Table 8, row CIFAR-100 ResNet Original, columns 0 %, 5 %, 10 %: 73.23, 56.70, 41.81
    frame = published.load("ffidelity_robustness")
    row = frame[(frame.dataset == "CIFAR-100") & (frame.architecture == "ResNet") & (frame.model == "original")]
    assert row.masked_fraction.tolist() == [0.0, 0.05, 0.1]
    assert row.accuracy.tolist() == [0.7323, 0.567, 0.4181]
    assert not [column for column in frame if "percent" in column]
    # last row of the table, SST2 Transformer Fine-tuned, 10 %: 78.90
    where = {"dataset": "SST2", "architecture": "Transformer", "model": "fine-tuned", "masked_fraction": 0.1}
    assert one("ffidelity_robustness", **where).accuracy == 0.789


def test_f_fidelity_cost_and_explainers():
    # Table 13, row F-Fidelity: training 2925s, evaluation 541s+560s, total 4026s, which is their sum
    cost = published.load("ffidelity_cost")
    ours = cost[cost.metric == "F-Fidelity"]
    assert sorted(ours.seconds) == [541, 560, 2925, 4026]
    assert ours[ours.stage != "total"].seconds.sum() == 4026
    assert cost[(cost.metric == "ROAR") & (cost.stage != "total")].seconds.sum() == 7378
    # Section D.10 on Table 11: FFid- of GradCAM against Saliency, 0.0547 vs 0.1050; on Table 12: FFid+ 0.1123 vs 0.0672
    assert one("ffidelity_explainers", table=11, explainer="Saliency", measure="FFid-").value == 0.1050
    assert one("ffidelity_explainers", table=12, explainer="GradCAM", measure="FFid+").value == 0.1123


def test_few_class_scores():
    # Table 1, ResNet-18, BP: 0.614 | 0.603 | 0.725 | 0.713 for no alteration, XRAI, SG, SG2
    frame = published.load("fewclass_scores")
    row = frame[(frame.table == 1) & (frame.model == "ResNet-18") & (frame.explainer == "BP")].set_index("refinement")
    assert row.value.to_dict() == {"none": 0.614, "XRAI": 0.603, "SG": 0.725, "SG2": 0.713}
    # Table 4, Xception: Random 0.074
    assert one("fewclass_scores", table=4, model="Xception", explainer="Random").value == 0.074
    assert one("fewclass_accuracy", model="DenseNet-121").accuracy == 0.926


def test_consistency_scores():
    # Table 3, row S_avg, column SA: 2.389
    assert one("consistency_scores", table=3, measure="S_avg", explainer="Saliency").value == 2.389
    # Table 4, row 1-Lipschitz, column SG: 0.898
    assert one("consistency_scores", table=4, model="1-Lipschitz", explainer="SG").value == 0.898
    # Table 12 (MeGe, CIFAR-100), row Randomized 30%, column GradCAM: 0.039
    assert one("consistency_degradations", table=12, condition="randomized 30%", explainer="GradCAM").value == 0.039
    # Table 10 (MeGe, CIFAR-10), row Switched 30%, column Shap: 0.343
    assert one("consistency_degradations", table=10, condition="switched 30%", explainer="SHAP").value == 0.343


def test_saco_scores():
    # Table 1: neither 0.1835, both 0.4558; the text gives "approximately 106%" for gradients in the last layer
    frame = published.load("saco_ablation").set_index(["cross_layer_aggregation", "gradient"]).saco
    assert frame[False, False] == 0.1835
    assert frame[True, True] == 0.4558
    assert round(frame[False, True] / frame[False, False] - 1, 2) == 1.06
    # Table 2, K = 20, Con. LRP: -0.0201, the only negative score
    groups = published.load("saco_groups")
    assert groups[groups.saco < 0][["groups", "explainer", "saco"]].to_numpy().tolist() == [
        [20, "Conservative LRP", -0.0201]
    ]
    assert one("saco_metric_correlation", quantity="mean correlation among the existing metrics").value == 0.4764


def test_trace_scores():
    # Table 1, Zero, (i) ResNet-18, T-p: 31.69; Blurring, (vi) DenseNet-161, IxG: 8.07
    column = "lerf_minus_morf_probability_auc"
    assert one("trace_deletion", reference="zero", model="ResNet-18", explainer="TRACE-p")[column] == 31.69
    last = one("trace_deletion", reference="blurring", model="DenseNet-161", explainer="InputxGradient")
    assert last[column] == 8.07
    # "both TRACE-p and TRACE-y surpass all attribution methods"
    frame = published.load("trace_deletion").set_index(["reference", "model", "explainer"])[column].unstack()
    traces = ["TRACE-p", "TRACE-y"]
    assert (frame[traces].min(axis=1) > frame.drop(columns=traces).max(axis=1)).all()


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no published table 'saco'; there are .*saco_groups"):
        published.load("saco")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of the repository's data, found by FAITHLAB_ROOT."""
    shutil.copytree(paths.root() / "data" / "published", tmp_path / "data" / "published")
    (tmp_path / "notebooks").mkdir()
    shutil.copy(paths.root() / "notebooks" / "profiles.yml", tmp_path / "notebooks")
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    return tmp_path


def test_a_changed_file_is_refused(checkout):
    path = checkout / "data" / "published" / "saco_groups.csv"
    before = published.load("saco_groups")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # what Git may do on Windows
    pd.testing.assert_frame_equal(published.load("saco_groups"), before)
    path.write_text(path.read_text().replace("0.1585", "0.1586"))
    with pytest.raises(ValueError, match=r"saco_groups.csv is not the file that was checked against the paper"):
        published.load("saco_groups")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"saco_groups\.csv"):
        published.load("saco_groups")
