"""Cross-training: no network explains as unseen what it was trained on, and the rows are algorithm 1's."""

import dataclasses
import math

import pandas as pd
import pytest
import torch

import literal
from faithlab import stats
from faithlab.metrics import METRICS, consistency
from faithlab.metrics.distance import l1, spearman
from faithlab.scores import Scores
from faithstudy import claims, profiles
from faithstudy.claims.verdicts import judge
from faithstudy.data import datasets
from faithstudy.data.sets import ImageSet
from faithstudy.networks import degradation, folds, models, training
from faithstudy.networks.training import Recipe
from faithstudy.records import recorded
from faithstudy.trials import cross_trained, neighbours, tasks

K = 3
LABELS = torch.arange(60) % 3
RECIPE = Recipe("colours", "resnet18", epochs=2, model_options={"classes": 3, "width": 2}, batch=10, rate=0.03)


def images() -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 100, (60, 3, 12, 12), generator=generator)
    inputs = (noise + 150 * torch.eye(3, dtype=torch.int64)[LABELS][..., None, None]).to(torch.uint8)
    return ImageSet(inputs, LABELS, ("red", "green", "blue"), (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FAITHLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(datasets, "load", lambda name, split="train", **options: images())
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A family of networks, which many tests ask and none changes, and the cache that has them."""
    with pytest.MonkeyPatch.context() as patch:
        own = tmp_path_factory.mktemp("trained")
        patch.setenv("FAITHLAB_CACHE", str(own))
        patch.setattr(datasets, "load", lambda name, split="train", **options: images())
        return own, cross_trained.family(folds.comparable(RECIPE, K, tolerance=1.0), 50, name="net")


@pytest.fixture
def family(trained, folder, monkeypatch):
    own, found = trained
    monkeypatch.setenv("FAITHLAB_CACHE", str(own))
    return found


BOTH = {name: METRICS[name] for name in ("MeGe", "ReCo")}


def test_each_fold_leaves_out_another_block_and_starts_from_other_weights():
    found = folds.folds(dataclasses.replace(RECIPE, seed=5), K)
    assert [fold.fold for fold in found] == [(0, 3), (1, 3), (2, 3)]
    assert [fold.seed for fold in found] == [5, 6, 7]
    assert len({fold.key() for fold in found}) == K


@pytest.mark.parametrize("limit", [None, 40])
def test_the_unseen_network_is_the_only_one_not_trained_on_an_example(limit, folder, monkeypatch):
    found, original = [], ImageSet.model_inputs

    def recorded(self, index=slice(None)):
        found[-1].update(image.numpy().tobytes() for image in self.inputs[index])
        return original(self, index)

    monkeypatch.setattr(ImageSet, "model_inputs", recorded)
    recipes = folds.folds(dataclasses.replace(RECIPE, limit=limit, epochs=1), K)
    for recipe in recipes:
        found.append(set())
        training.trained(recipe, "cpu")
    examples = torch.randperm(limit or 60, generator=torch.Generator().manual_seed(1))[:25]
    own = folds.unseen(recipes, examples, 60)
    assert set(own.tolist()) == {0, 1, 2}
    for example, unseen in zip(examples.tolist(), own.tolist(), strict=True):
        picture = images().inputs[example].numpy().tobytes()
        assert [picture in seen for seen in found] == [number != unseen for number in range(K)]


def test_the_rows_are_those_of_algorithm_1(family):
    explainers = {"Saliency": "saliency", "GradCAM": "gradcam", "Random": ("random", {"seed": 3})}
    scores = cross_trained.cross_trained(BOTH, family, explainers, batch_size=7)
    maps = cross_trained.attributions(family, explainers)
    answers = [training.logits(task.model, task.x).argmax(1) for task in family.networks]
    left_out = training.blocks(60, K)[:50].tolist()
    for name in explainers:

        def distance(b, i, j, name=name):
            return spearman(maps[i][name][b].abs().view(12, 12), maps[j][name][b].abs().view(12, 12)).item()

        expected = literal.cross_training(distance, answers, LABELS[:50].tolist(), left_out)
        for kind, values in zip(cross_trained.SETS, expected, strict=True):
            found = scores.where(metric=kind, explainer=name).frame()
            known = sorted(value for value in values if not math.isnan(value))
            assert sorted(found["value"].dropna()) == pytest.approx(known, abs=1e-3)  # two pixels may rank otherwise
            assert found["value"].isna().sum() == len(values) - len(known)
            assert all(left_out[image] != pair for image, pair in zip(found["image"], found["pair"], strict=True))
    assert scores.labels("network") == ["net"]


def test_mege_and_reco_of_the_rows_are_those_of_the_sets(family):
    scores = cross_trained.cross_trained(BOTH, family, {"GradCAM": "gradcam", "Saliency": "saliency"})
    table = cross_trained.summary(scores).set_index(["explainer", "measure"])["mean"]
    for name in ("GradCAM", "Saliency"):
        same, different = (
            torch.tensor(scores.where(metric=kind, explainer=name).frame()["value"].dropna().to_numpy())
            for kind in cross_trained.SETS
        )
        assert table[name, "MeGe"] == pytest.approx(consistency.mege(same))
        assert table[name, "ReCo"] == pytest.approx(consistency.reco(same, different))
        assert table[name, "ReCo_printed"] == pytest.approx(consistency.reco(same, different, "printed"))


def test_who_has_no_distance_in_a_set_has_no_score_and_the_others_have_theirs(family):
    scores = cross_trained.cross_trained(BOTH, family, {"GradCAM": "gradcam", "Saliency": "saliency"})

    def lost(block):
        values = torch.full_like(block.values, torch.nan)
        return dataclasses.replace(block, values=values if block.labels["explainer"] == "GradCAM" else block.values)

    same, different = (scores.where(metric=kind) for kind in cross_trained.SETS)
    table = cross_trained.summary(Scores(map(lost, same)) + different).set_index(["explainer", "measure"])["mean"]
    assert table["GradCAM"].isna().all()
    pd.testing.assert_series_equal(
        table["Saliency"], cross_trained.summary(scores).set_index(["explainer", "measure"])["mean"]["Saliency"]
    )


def test_each_network_is_about_the_class_that_it_predicts_or_all_about_the_label(family):
    for number, task in enumerate(family.networks):
        predicted = training.logits(task.model, task.x).argmax(1)
        assert torch.equal(task.target, predicted)
        assert torch.equal(family.right[:, number], predicted == LABELS[:50])
    recipes = folds.folds(RECIPE, K)
    labelled = cross_trained.family(recipes, 50, about="label")
    assert all(torch.equal(task.target, LABELS[:50]) for task in labelled.networks)
    assert torch.equal(labelled.right, family.right)


def test_random_maps_differ_between_the_networks_and_other_noise_does_not(family):
    one = family.networks[0]
    twins = family._replace(networks=(one, one))
    drawn = {"Random": ("random", {"seed": 0}), "SG": ("smoothgrad", {"samples": 2, "noise": 0.2, "seed": 0})}
    first, second = cross_trained.attributions(twins, drawn)
    assert not torch.equal(first["Random"], second["Random"])
    assert torch.equal(first["SG"], second["SG"])


def test_a_map_of_the_predicted_class_alone_is_perfect_and_a_map_of_nothing_has_no_reco(family):
    generator = torch.Generator().manual_seed(1)
    of_class = torch.rand(3, 1, 12, 12, generator=generator)
    explainers = {
        "Class": lambda model, x, target, images: of_class[target],
        "Nothing": lambda model, x, target, images: of_class[:1].expand(len(x), -1, -1, -1),
    }
    scores = cross_trained.cross_trained(BOTH, family, explainers)
    reco, mege = (stats.estimate(scores, METRICS[name].summary, explainer="Class") for name in ("ReCo", "MeGe"))
    assert (float(reco), float(mege)) == pytest.approx((1, 1))
    assert float(stats.estimate(scores, METRICS["MeGe"].summary, explainer="Nothing")) == pytest.approx(1)
    same = scores.where(explainer="Nothing").frame()["value"]
    assert same.abs().max() < 1e-6


def test_a_signed_map_is_another_map(family):
    plain, signed = (
        cross_trained.cross_trained(BOTH, family, {"IG": ("integrated-gradients", {"steps": 3})}, signed=sign)
        for sign in (False, True)
    )
    assert not torch.equal(plain.blocks[0].values, signed.blocks[0].values)


def test_other_metrics_are_asked_of_each_network_and_those_that_do_not_apply_have_no_rows(family):
    asked = BOTH | {"µFidelity": METRICS["µFidelity"].given(draws=5), "S_avg": METRICS["S_avg"]}
    scores = cross_trained.cross_trained(asked, family.some(torch.arange(30)), {"GradCAM": "gradcam"})
    assert scores.labels("metric") == ["S=", "S≠", "µFidelity"]
    own = scores.where(metric="µFidelity")
    assert own.labels("network") == [f"net fold {number}" for number in range(K)]
    assert len(own) == 30 * K


def test_metrics_that_compare_in_different_ways_are_asked_in_as_many_calls(family):
    other = BOTH | {"ReCo": METRICS["ReCo"].given(distance=l1)}
    with pytest.raises(ValueError, match="MeGe, ReCo compare explanations in 2 ways"):
        cross_trained.cross_trained(other, family, {"GradCAM": "gradcam"})
    alone = cross_trained.cross_trained({"ReCo": other["ReCo"]}, family, {"GradCAM": "gradcam"})
    assert alone.frame()["value"].max() > 1  # no rank correlation


def test_an_empty_set_is_an_error_that_says_how_often_the_networks_are_right(family):
    wrong = family._replace(right=torch.zeros_like(family.right))
    with pytest.raises(ValueError, match=r"none of net's pairs .* belongs to S.? .*0%, 0%, 0% of the 50"):
        cross_trained.cross_trained(BOTH, wrong, {"GradCAM": "gradcam"})


def test_recognised_is_the_share_of_the_networks_that_are_right(family):
    test = images()
    scores = cross_trained.recognised(family, test, variant="x")
    expected = sum(training.accuracy(task.model, test) for task in family.networks) / K
    assert float(stats.estimate(scores)) == pytest.approx(expected)
    assert scores.labels("dataset") == ["colours test"]


def test_networks_that_guess_do_not_know_their_data(family):
    hits = {"metric": "accuracy", "dataset": "cifar10 test", "images": range(200)}
    for share, outcome in ((0.6, "holds"), (0.1, "fails")):
        scores = Scores.of((torch.arange(200) < 200 * share).double(), network="net", **hits)
        (part,) = cross_trained.known(scores, "cifar10")
        assert part.premise
        assert part.low == 0.25
        assert judge([part])[0].outcome == outcome


def test_other_weights_keep_the_folds(family):
    worse = [degradation.randomised(s.model, 0.3, noise=1.0, seed=n) for n, s in enumerate(family.networks)]
    again = cross_trained.family(folds.folds(RECIPE, K), 50, networks=worse)
    assert torch.equal(again.unseen, family.unseen)
    assert [task.model for task in again.networks] == worse


def test_neighbours_are_explained_with_noise_of_their_own(folder):
    task = tasks.task(RECIPE, 6)
    explainers = {"Saliency": "saliency", "Random": ("random", {"seed": 0})}
    metrics, around = {"S_avg": METRICS["S_avg"]}, {"radius": 1e-6, "count": 2, "variant": "l1"}
    maps = tasks.attributions(task, explainers)
    table_of = neighbours.neighbours(metrics, task, explainers, maps, **around).frame()
    table = table_of.groupby("explainer")["value"].mean()
    assert table["Saliency"] < 0.05  # the input hardly moved
    assert table["Random"] > 0.5
    places = torch.tensor([4, 1])
    few = {name: of[places] for name, of in maps.items()}
    some = neighbours.neighbours(metrics, task.part(places), explainers, few, **around)
    alone = some.frame().set_index(["explainer", "image"])["value"].astype(float)
    whole = table_of.set_index(["explainer", "image"])["value"].astype(float)
    assert alone.tolist() == pytest.approx(whole[alone.index].tolist())  # whichever others are asked about
    with pytest.raises(ValueError, match="none of MeGe, ReCo is about neighbours"):
        neighbours.neighbours(BOTH, task, explainers, maps, radius=0.1, count=1)


def test_a_set_with_fewer_images_than_are_asked_for_says_so(folder, monkeypatch, caplog):
    monkeypatch.setattr(training, "trained", lambda recipe: models.build(recipe.model, **recipe.model_options).eval())
    there = len(datasets.load("colours", "test"))
    assert len(tasks.task(RECIPE, there).x) == there
    assert not caplog.messages
    for _ in range(2):
        assert len(tasks.task(RECIPE, 99_999_999_999).x) == there
    said = f"99999999999 examples are asked for, but colours test has {there}: all of them are taken"
    assert caplog.messages == [said]


def test_a_network_itself_has_the_subject_of_its_recipe_but_for_its_names(folder, monkeypatch):
    model, data = models.build(RECIPE.model, **RECIPE.model_options).eval(), datasets.load("colours", "test")
    monkeypatch.setattr(training, "trained", lambda recipe: model)
    of_recipe, places = tasks.task(RECIPE, 3), torch.tensor([0, 1, 2])
    own = tasks.task(model, places, data=data, name="mine", dataset="others test")
    for name in ("model", "x", "target", "segments", "images"):
        one, other = getattr(own, name), getattr(of_recipe, name)
        assert one is other or torch.equal(one, other), name
    assert own.labels == {"dataset": "others test", "network": "mine", "training_seed": None}
    assert of_recipe.labels["dataset"] == "colours test"


def test_a_fold_that_is_not_comparable_starts_anew(folder, monkeypatch):
    accuracies = {0: 0.8, 1: 0.6, 2: 0.81, 4: 0.79}  # by seed
    monkeypatch.setattr(training, "accuracy_of", lambda recipe: accuracies[recipe.seed])
    found = folds.comparable(RECIPE, K, tolerance=0.03)
    assert [recipe.seed for recipe in found] == [0, 4, 2]
    assert [recipe.fold for recipe in found] == [(0, 3), (1, 3), (2, 3)]


def test_folds_that_never_become_comparable_are_an_error(folder, monkeypatch):
    monkeypatch.setattr(training, "accuracy_of", lambda recipe: 0.5 if recipe.fold[0] == 1 else 0.8)
    with pytest.raises(RuntimeError, match=r"after 2 attempts: accuracies 80.0%, 50.0%, 80.0%, allowed 3"):
        folds.comparable(RECIPE, K, tolerance=0.03, attempts=2)


# The networks of the paper


LEVELS = {"switched": (0.05, 0.1, 0.3), "limited": (0.75, 0.5, 0.25)}


def test_the_paper_profile_has_the_papers_networks():
    paper = profiles.resolve("reco-mege/degraded", "paper")
    found = folds.conditions("fashion-mnist", paper)
    assert list(found) == [(None, None), *((kind, level) for kind, levels in LEVELS.items() for level in levels)]
    normal = found[None, None]
    assert normal.model_options == {"classes": 10, "channels": 1, "width": 26, "dropout": 0.4}
    assert normal.limit is None
    assert [found["limited", level].limit for level in LEVELS["limited"]] == [45_000, 30_000, 15_000]
    steps = {round(r.epochs * (r.limit or 60_000) / normal.epochs) for r in found.values()}
    assert all(abs(count - 60_000) <= 1000 for count in steps)  # as many steps, up to a whole epoch
    for data, width, dropout in (("eurosat", 46, 0.25), ("cifar10", 32, 0.25), ("cifar100", 32, 0.25)):
        options = folds.resnet(data, paper).model_options
        assert (options["width"], options["dropout"]) == (width, dropout)


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_pages_that_compare_the_same_networks_train_them_once(profile):
    normal, degraded, right = (
        {recipe.key() for recipe in of(profiles.resolve(f"reco-mege/{name}", profile))}
        for name, of in (
            ("normal", folds.normal),
            ("degraded", folds.degraded),
            ("right-method", folds.right_method),
        )
    )
    # In quick the ResNets beside the 1-Lipschitz networks are trained for one epoch, to be no better than these.
    assert len(right & degraded) == {"quick": 0, "paper": 5}[profile]
    assert profile == "quick" or normal < degraded  # in quick those of the normal page ship, and are larger


def test_the_control_of_the_bound_is_trained_where_a_profile_asks_for_it():
    quick, study = (profiles.resolve("reco-mege/right-method", profile) for profile in ("quick", "study"))
    before, beside = folds.right_method(quick), folds.right_method(study)
    assert beside[: len(before)] == before
    control = beside[len(before) :]
    bounded = [recipe for recipe in before if recipe.model == "lipschitz"]
    assert [(r.model, r.fold, r.rate, r.epochs) for r in control] == [
        ("unbounded", r.fold, r.rate, study["unbounded_epochs"]) for r in bounded
    ]


def test_what_the_book_says_of_the_bound_is_what_the_recorded_control_shows():
    """The caveat of the page and the page of the verdict: in ReCo mostly the shape's, in MeGe the bound's, too."""
    scores = recorded("reco-mege/right-method", "scores").frame
    bounded, control, resnet = ({"network": name} for name in ("1-Lipschitz", "Unbounded", "ResNet-18"))
    reco, mege = METRICS["ReCo"].summary, METRICS["MeGe"].summary

    def ahead(one, other, of, names):
        return [bool((stats.paired(scores, one, other, of, explainer=name).low > 0).all()) for name in names]

    gradients = ("IG", "SG", "Saliency", "GradientxInput")
    assert all(ahead(control, resnet, reco, gradients))
    assert 2 * sum(ahead(bounded, control, reco, gradients)) < len(gradients)
    assert all(ahead(bounded, control, mege, (*gradients, "GradCAM", "SHAP")))
    apart = stats.paired(scores, bounded, control, metric="accuracy")
    assert bool((apart.pooled.low > -0.08).all() & (apart.pooled.high < 0.08).all()), "they are about as good"


def test_only_the_sets_that_are_named_are_trained_anew():
    quick = profiles.resolve("reco-mege/degraded", "quick")
    of_set = {recipe.data: 0 for recipe in folds.degraded(quick)}
    for recipe in folds.degraded(quick):
        of_set[recipe.data] += 1
    worse = len(quick["switched"]) + len(quick["limited"])
    assert of_set == {"fashion-mnist": (1 + worse) * 5, "cifar10": 5}


# Error rates of the claims


def pairs(names, labels, *, count=40, seed=0) -> Scores:
    """Four pairs for each image, around a third of them in S≠, with the same distribution in every cell."""
    g = torch.Generator().manual_seed(seed)
    tables = []
    for name in names:
        effect = 0.1 * torch.rand(count, 1, generator=torch.Generator().manual_seed(1))
        distances, apart = torch.rand(count, 4, generator=g) / 2 + effect, torch.rand(count, 4, generator=g) < 0.35
        for kind, which in zip(cross_trained.SETS, (~apart, apart), strict=True):
            image, pair = which.nonzero(as_tuple=True)
            own = {"network": "net", "dataset": "d", "metric": kind} | labels(name)
            tables.append(Scores.of(distances[image, pair], images=image, pairs=pair, **own))
    return Scores.concat(tables)


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["ReCo", "MeGe"])
def test_chance_is_rarely_reproduced_by_the_claims_of_pairs(measure):
    of = METRICS[measure].summary
    explained = pairs("abc", lambda name: {"explainer": name})
    levels = pairs((None, 0.1, 0.3), lambda level: {"level": level, "variant": level and "worse"})
    networks = pairs("xy", lambda name: {"network": name})
    worse = {"variant": [None, "worse"], "of": of}
    for part in (
        claims.best(explained, "explainer", "a", of=of),
        claims.in_order(levels, "level", [None, 0.1, 0.3], **worse),
        claims.best(levels, "level", None, rivals=[0.3], **worse),
        claims.better(networks, {"network": "x"}, {"network": "y"}, of=of),
        claims.within(networks, {"network": "x"}, {"network": "y"}, margin=0.1, reason="declared", of=of),
    ):
        rates = claims.error_rate(claims.Claim("x", "Table 1", "x", (part,)), 100)
        assert rates.reproduced < 11, f"{part.kind}: {rates}"  # 5 % of 100 give 11 or more in 1 % of the suites
