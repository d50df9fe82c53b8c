"""Does a build agree with the record?"""

import json

import pytest
import torch

from faithlab.scores import Scores
from faithstudy import paths, regression, run
from faithstudy.networks import origins
from faithstudy.regression import BFLOAT16, FLOAT32, LEAST
from faithstudy.trials import tasks
from faithstudy.trials.optimum import SHARE

SIZES = [0.25, 0.5, 0.75, 1.0]


def table(values, images=None, metric="Fid+", **labels):
    images = range(len(values)) if images is None else images
    sizes = None if values.ndim == 1 else SIZES
    return Scores.of(
        values, images=list(images), sizes=sizes, dataset="d", network="n", metric=metric, explainer="e", **labels
    )


def compared(built, kept, rounding=BFLOAT16):
    return regression.compared(built, kept, rounding)


def hits(rows, seed=0):
    return (torch.rand(rows, len(SIZES), generator=torch.Generator().manual_seed(seed)) > 0.5).to(torch.uint8)


def test_the_first_images_of_a_larger_run_agree():
    kept = hits(200)
    found = compared(table(kept[:50]), table(kept))
    assert found == (200, 0, 0.0, 0, 0, BFLOAT16)
    assert found.holds
    assert "of 200 numbers, 0 differ from the recorded run (study)" in found.sentence("study")


@pytest.mark.parametrize("rounding", [FLOAT32, BFLOAT16])
@pytest.mark.parametrize(("times", "holds"), [(0.5, True), (2, False)])
def test_few_hits_may_flip_and_more_orders_of_hits(times, holds, rounding):
    kept = hits(500)
    changed = kept.clone().flatten()
    places_ = torch.randperm(len(changed), generator=torch.Generator().manual_seed(1))[
        : int(times * rounding.few * len(changed))
    ]
    changed[places_] = 1 - changed[places_]
    found = compared(table(changed.view_as(kept)), table(kept), rounding)
    assert found.different == len(places_)
    assert found.holds == holds
    assert found._replace(rounding=rounding._replace(few=3 * rounding.few)).holds


def test_a_shift_of_all_is_no_rounding():
    """Each number is near its own, and all move to one side."""
    kept = torch.rand(300, generator=torch.Generator().manual_seed(0))
    found = compared(table(kept + 0.04), table(kept))
    assert found.different == 0
    assert not found.holds
    assert "more than rounding" in found.sentence("study")
    noise = 0.04 * (2 * torch.rand(300, generator=torch.Generator().manual_seed(1)) - 1)
    assert compared(table(kept + noise), table(kept)).holds


def test_one_answer_of_few_is_no_shift_and_several_are():
    """Of 48 hits one is 2.1 %."""
    many, few = hits(500), hits(12)
    kept = table(many, level=0.5) + table(few)
    for turned, holds in ((1, True), (3, False)):
        changed = few.clone().flatten()
        changed[(changed == 0).nonzero().flatten()[:turned]] = 1
        found = compared(table(many, level=0.5) + table(changed.view_as(few)), kept)
        assert (found.different, found.holds) == (turned, holds)


@pytest.mark.parametrize(("turned", "holds"), [(2, True), (3, False)])
def test_two_answers_of_few_inputs_are_rounding_and_three_are_not(turned, holds):
    few = hits(LEAST - 1)
    changed = few.clone().flatten()
    changed[:turned] = 1 - changed[:turned]
    found = compared(table(changed.view_as(few)), table(few))
    assert (found.different, found.shift, found.holds) == (turned, None, holds)
    assert f"no mean is of {LEAST} inputs" in found.sentence("study")


def test_missing_numbers_agree_with_missing_numbers_only():
    kept = torch.rand(100, generator=torch.Generator().manual_seed(0))
    kept[:10] = torch.nan
    assert compared(table(kept), table(kept)).holds
    filled = kept.nan_to_num(0.5)
    assert compared(table(filled), table(kept)).different == 10


def test_what_is_not_recorded_is_said():
    kept = hits(20)
    found = compared(table(hits(30)), table(kept))
    assert (found.absent, found.different) == (10, 10 * len(SIZES))
    assert not found.holds
    other = compared(table(kept, metric="mine"), table(kept))
    assert (other.values, other.absent) == (0, 20)
    assert not other.holds
    more = compared(table(kept) + table(kept, metric="mine"), table(kept))
    assert more.absent == 20
    assert not more.holds
    one = compared(table(hits(200)), table(hits(200)[:199], images=range(199)))
    assert one.absent == 1
    assert one.holds, "rounding decides whether an input is recognised"
    assert "1 rows are not recorded" in one.sentence("study")


def test_rows_are_known_by_image_not_by_place():
    kept = hits(40)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    assert compared(table(kept[order][:15], images=order[:15].tolist()), table(kept)).different == 0


def at_sizes(values, sizes):
    return Scores.of(values, images=range(len(values)), sizes=sizes, dataset="d", network="n", metric="Fid+")


def test_sizes_that_both_were_asked_at_are_compared():
    kept = hits(40)
    few = kept[:10, [1, 3]]
    found = compared(at_sizes(few, [SIZES[1], SIZES[3]]), at_sizes(kept, SIZES))
    assert (found.values, found.different) == (20, 0)
    assert compared(at_sizes(1 - few, [SIZES[1], SIZES[3]]), at_sizes(kept, SIZES)).different == 20
    mixed = compared(at_sizes(kept[:10, :2], [SIZES[0], 0.4]), at_sizes(kept, SIZES))
    assert (mixed.values, mixed.different) == (10, 0), "what the record lacks is not compared"
    rounded = [k * 0.1 for k in range(1, 5)]  # 0.1, 0.2, 0.30000000000000004, 0.4
    assert compared(at_sizes(kept, rounded), at_sizes(kept, [0.1, 0.2, 0.3, 0.4])).values == 160


def test_an_explainer_that_the_page_asks_since_is_said_and_no_difference():
    kept = table(hits(10))
    centre = Scores.of(
        hits(10), images=range(10), sizes=SIZES, dataset="d", network="n", metric="Fid+", explainer="centre"
    )
    found = compared(kept + centre, kept)
    assert (found.different, found.absent, found.new) == (0, 0, 10)
    assert found.holds
    assert "10 rows are of explainers that were not asked then" in found.sentence("study")
    shuffled = table(hits(10), variant="shuffled")
    assert compared(kept + shuffled, kept).absent == 10, "another row of an explainer that the record has"


def test_no_common_size_is_an_error():
    with pytest.raises(ValueError, match="at the sizes"):
        compared(at_sizes(hits(10), [0.1, 0.2, 0.3, 0.4]), at_sizes(hits(10), SIZES))


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A build of a page and its record: `build(name, built, kept)` with facts of each and tables, for the command."""

    def made(name, built, kept):
        for place, (facts, tables) in {"built": built, "kept": kept}.items():
            (tmp_path / place).mkdir(exist_ok=True)
            for stem, scores in tables.items():
                scores.save(tmp_path / place / f"{stem}.parquet")
            about = {"notebook": name, "parameters": {}} | facts
            (tmp_path / place / "provenance.json").write_text(json.dumps(about))
        monkeypatch.setattr(run, "recorded_runs", lambda: [about | {"profile": "study"}])
        monkeypatch.setattr(paths, "results", lambda name, profile: tmp_path / "built")
        monkeypatch.setattr(paths, "recorded", lambda name, profile: tmp_path / "kept")
        return regression.main([])

    return made


def test_the_command_fails_where_a_build_disagrees(build, monkeypatch, capsys):
    name, kept = "f-fidelity/images", hits(60)
    record = {"parameters": {"draws": 10, "images": 60}}, {"scores": table(kept), "more": table(kept)}
    own = {"parameters": {"draws": 10, "images": 30}}
    assert build(name, (own, {"scores": table(kept[:30])}), record) == 1
    said = capsys.readouterr().out
    assert "of 120 numbers, 0 differ" in said
    assert "more: not made in this build" in said
    monkeypatch.setattr(regression, "LEFT_TO_THE_RECORD", {f"{name}, more"})
    assert build(name, (own, {"scores": table(kept[:30])}), record) == 0
    assert build(name, (own, {"scores": table(1 - kept[:30])}), record) == 1
    assert "120 differ" in (said := capsys.readouterr().out)
    assert "parameters that differ: images" in said
    monkeypatch.setitem(regression.NOT_COMPARED, name, "a reason")
    assert build(name, (own, {"scores": table(1 - kept[:30])}), record) == 0
    assert "(study): a reason" in capsys.readouterr().out
    assert regression.main(["--profile", "smoke"]) == 0
    assert "nothing is compared" in capsys.readouterr().out


PRECISIONS = [{}, {"precisions": ["float32"]}, {"precisions": ["bfloat16", "float32"]}]


@pytest.mark.parametrize("built", PRECISIONS[1:])
@pytest.mark.parametrize("kept", PRECISIONS)
def test_rounding_is_that_of_the_precisions_of_build_and_record(built, kept, build):
    recorded, strict = torch.rand(100, generator=torch.Generator().manual_seed(0)), built == kept == PRECISIONS[1]
    near, far = (recorded * (1 - of) for of in (0.6 * BFLOAT16.near, 1.0))
    tables = ({"scores": table(of, metric="LeRF")} for of in (recorded, near, far))
    same, near, far = (
        build("f-fidelity/images", (built, of), (kept, {"scores": table(recorded, metric="LeRF")})) for of in tables
    )
    assert (same, near, far) == (0, strict, 1)


@pytest.mark.parametrize("native", [torch.float32, torch.bfloat16])
def test_bfloat16_is_taken_only_where_a_page_asks_for_it_and_the_device_has_it(native, monkeypatch):
    monkeypatch.setattr(tasks, "native_precision", lambda device: native)
    monkeypatch.setattr(origins, "PRECISIONS", noted := set())
    assert (tasks.dtype("float32"), tasks.dtype("bfloat16")) == (torch.float32, native)
    assert {getattr(torch, name) for name in noted} == {torch.float32, native}


def network(name, sha256, **facts):
    return {"kind": "network", "name": name, "sha256": sha256, **facts}


def test_networks_that_a_build_has_trained_by_itself_are_known_by_name_and_weights():
    ships = network("cifar10-vit-a", "1", shipped=True)
    orders = {"kind": "orders", "name": "cifar10-vit-a-x", "sha256": "3"}
    kept = {"networks": [ships, orders, network("cifar10-vit-b", "4"), network("cifar10-vit-c", "5")]}
    anew, other = [network("cifar10-vit-b", "7"), network("cifar10-vit-c", "5")], network("cifar10-vit-d", "5")
    assert regression.trained_anew({"networks": [ships, orders | {"sha256": "6"}, *anew]}, kept) == {"cifar10-vit-b"}
    assert regression.trained_anew({"networks": [ships, other]}, kept) == {"cifar10-vit-d"}
    assert regression.trained_anew(kept, kept) == regression.trained_anew({}, kept) == set()


@pytest.mark.parametrize(
    ("metric", "data", "apart"),
    [("ROAR+", "cifar10", True), ("ROAR-", "cifar100", False), ("FFid+", "cifar10", False), ("mine", "cifar10", False)],
)
def test_only_metrics_of_retrained_networks_are_of_another_network(metric, data, apart):
    block = table(hits(4), metric=metric).labelled(dataset=f"{data} test").blocks[0]
    assert regression.of_another_network(block, {"cifar10-vit-b"}) == apart
    assert not regression.of_another_network(block, set())


def test_rows_of_a_network_that_was_trained_anew_are_left_out_and_said(build, capsys):
    kept = hits(60)

    def of(plain, roar, weights):
        scores = table(plain, metric="Fid+") + table(roar, metric="ROAR+")
        return {"networks": [network("cifar10-vit-b", weights)]}, {"scores": scores.labelled(dataset="cifar10 test")}

    def built(*facts):
        return build("f-fidelity/vision-transformer", of(*facts), of(kept, kept, "1"))

    assert built(kept[:30], 1 - kept[:30], "2") == 0
    said = capsys.readouterr().out
    assert "of 120 numbers, 0 differ" in said
    assert "30 rows of ROAR+ are of a network that was trained anew" in said
    assert built(kept[:30], 1 - kept[:30], "1") == 1, "the same network has no excuse"
    assert built(1 - kept[:30], kept[:30], "2") == 1, "nor have the others' rows"


@pytest.mark.parametrize("searched", [{"explainer": "TRACE-Mo-p"}, {"explainer": "Greedy-Le"}, {"metric": SHARE}])
def test_what_a_search_finds_is_left_out_and_counted(searched, build, capsys):
    kept = torch.rand(30, generator=torch.Generator().manual_seed(0))

    def of(plain, found):
        rows = [table(plain, metric="LeRF"), table(found, metric="LeRF - MoRF").labelled(**searched)]
        return {}, {"scores": Scores.concat(rows)}

    assert build("trace/settings", of(kept, 1 - kept), of(kept, kept)) == 0
    said = capsys.readouterr().out
    assert "of 30 numbers, 0 differ" in said
    assert "30 rows are of what a search finds" in said
    assert build("trace/settings", of(1 - kept, kept), of(kept, kept)) == 1


def test_of_two_inputs_rounding_is_measured_by_all_explainers():
    kept = Scores.concat(
        table(torch.tensor(of), metric="LeRF").labelled(explainer=e)
        for e, of in (("a", [0.5, 0.51]), ("b", [0.1, 0.9]))
    )
    near = Scores.concat(
        block_table.labelled(explainer=e)
        for e, block_table in (
            ("a", table(torch.tensor([0.52, 0.48]), metric="LeRF")),
            ("b", table(torch.tensor([0.1, 0.9]), metric="LeRF")),
        )
    )
    assert compared(near, kept).different == 0
    assert compared(table(torch.tensor([0.56, 0.45]), metric="LeRF").labelled(explainer="a"), kept).different == 2
