"""The engine answers as if each masked input were built and run alone; when it cannot, it says why."""

import itertools
import os
import platform
import subprocess
import sys
from collections import UserList

import pytest
import torch
from torch import nn

from faithlab import baselines, engine, outputs, segments
from faithstudy.networks import models

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.randn(5, 3, 8, 8, generator=GENERATOR)
TARGET = torch.tensor([0, 3, 1, 1, 2])
PATCHES = segments.patches(8, 8, 2)
SUPERPIXELS = torch.randint(7, (8, 8), generator=GENERATOR).unique(return_inverse=True)[1]


def settled(model: nn.Module) -> nn.Module:
    """A model in eval mode whose BatchNorm statistics and scales are those of no fresh model."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.copy_(torch.randn(module.num_features, generator=generator) * 0.3)
            module.running_var.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
            with torch.no_grad():
                module.weight.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
                module.bias.copy_(torch.randn(module.num_features, generator=generator) * 0.3)
    return model.eval()


def image_model(channels: int = 3) -> nn.Module:
    torch.manual_seed(0)
    return settled(models.build("cnn3", classes=4, channels=channels, width=4))


class Series(nn.Module):
    """Classifies series [n, T, C]."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(2, 6, 3), nn.BatchNorm1d(6), nn.ReLU(), nn.Flatten(), nn.Linear(36, 4))

    def forward(self, x):
        return self.layers(x.transpose(1, 2))


class Texts(nn.Module):
    """Classifies texts [n, T] of token ids."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Embedding(20, 6), nn.Flatten(), nn.Linear(6 * 9, 4))

    def forward(self, x):
        return self.layers(x)


def literal_score(model, x, target, keep, segmentation, stand_in, output):
    """One masked input at a time, element by element of the segment map."""
    owner = segmentation.expand(x.shape[1:])
    answers = torch.empty(keep.shape[:2])
    with torch.no_grad():
        for b, m in itertools.product(*map(range, keep.shape[:2])):
            masked = torch.where(keep[b, m][owner], x[b], stand_in[b])
            answers[b, m] = output(model(masked[None]), target[b : b + 1])[0]
    return answers


def some_masks(features: int, count: int = 6, images: int = 5) -> torch.Tensor:
    keep = torch.rand(images, count, features, generator=torch.Generator().manual_seed(2)) < 0.6
    keep[:, 0], keep[:, 1] = True, False
    return keep


IMAGE_SEGMENTS = {
    "pixels": segments.pixels(8, 8),
    "patches": PATCHES,
    "superpixels": SUPERPIXELS,
    "channels apart": torch.arange(3 * 8 * 8).view(3, 8, 8),
    "whole channels": torch.arange(3).view(3, 1, 1),
}


@pytest.mark.parametrize("segmentation", IMAGE_SEGMENTS.values(), ids=IMAGE_SEGMENTS.keys())
@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_masked_segment_by_segment(segmentation, channels):
    if segmentation.ndim == 3 and channels == 1:
        segmentation = segmentation[:1]
    x, model = IMAGES[:, :channels], image_model(channels)
    keep = some_masks(segments.count(segmentation))
    score = engine.scorer(model, x, TARGET, segments=segmentation)
    expected = literal_score(model, x, TARGET, keep, segmentation, torch.zeros_like(x), outputs.probability)
    torch.testing.assert_close(score(keep), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("build", "x", "segmentation", "reference"),
    [
        (Series, torch.randn(5, 8, 2, generator=GENERATOR), segments.time_steps(8), baselines.zero),
        (Series, torch.randn(5, 8, 2, generator=GENERATOR), segments.values(8, 2), baselines.zero),
        (
            Texts,
            torch.randint(20, (5, 9), generator=GENERATOR),
            segments.tokens(9),
            lambda x: baselines.token(x, 19),
        ),
    ],
    ids=["time steps", "values", "tokens"],
)
def test_series_and_texts_are_masked_likewise(build, x, segmentation, reference):
    torch.manual_seed(0)
    model = settled(build())
    keep = some_masks(segments.count(segmentation))
    score = engine.scorer(model, x, TARGET, segments=segmentation, baseline=reference)
    expected = literal_score(model, x, TARGET, keep, segmentation, reference(x).expand_as(x), outputs.probability)
    torch.testing.assert_close(score(keep), expected, atol=1e-5, rtol=0)


REFERENCES = {"zero": baselines.zero, "mean": baselines.mean, "blur": lambda x: baselines.blur(x, 1.0)}
OUTPUTS = [outputs.probability, outputs.logit, outputs.log_odds, outputs.correct]


@pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES.keys())
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
def test_every_reference_and_every_readout(reference, output):
    model, keep = image_model(), some_masks(16)
    score = engine.scorer(model, IMAGES, TARGET, segments=PATCHES, baseline=reference, output=output)
    expected = literal_score(model, IMAGES, TARGET, keep, PATCHES, reference(IMAGES).expand_as(IMAGES), output)
    torch.testing.assert_close(score(keep), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 30, 1000, None])
def test_the_batch_size_changes_nothing(batch_size):
    model, keep = image_model(), some_masks(16)
    one = engine.scorer(model, IMAGES, TARGET, segments=PATCHES, batch_size=1)(keep)
    some = engine.scorer(model, IMAGES, TARGET, segments=PATCHES, batch_size=batch_size)(keep)
    torch.testing.assert_close(some, one, atol=1e-6, rtol=0)


@pytest.mark.parametrize("batch_size", [1, 4, 7])
def test_no_forward_has_more_inputs_than_asked_and_none_is_wasted(batch_size):
    class Counting(nn.Module):
        seen = ()

        def forward(self, x):
            Counting.seen += (len(x),)
            return x.flatten(1)[:, :4]

    for images, count in itertools.product((1, 2, 5), (0, 1, 6, 9)):
        Counting.seen = ()
        keep = some_masks(16, count=max(count, 2), images=images)[:, :count]
        score = engine.scorer(Counting(), IMAGES[:images], TARGET[:images], segments=PATCHES, batch_size=batch_size)
        assert max(Counting.seen) <= batch_size
        Counting.seen = ()
        score(keep)
        assert max(Counting.seen, default=0) <= batch_size
        assert sum(Counting.seen) == images * count


def test_an_input_is_answered_alike_in_any_batch_and_order():
    model, keep = image_model(), some_masks(16)
    together = engine.scorer(model, IMAGES, TARGET, segments=PATCHES)(keep)
    some = torch.tensor([3, 0, 4])
    apart = engine.scorer(model, IMAGES[some], TARGET[some], segments=PATCHES)(keep[some])
    torch.testing.assert_close(apart, together[some], atol=1e-6, rtol=0)
    masks = torch.tensor([5, 2])
    torch.testing.assert_close(
        engine.scorer(model, IMAGES, TARGET, segments=PATCHES)(keep[:, masks]), together[:, masks], atol=1e-6, rtol=0
    )


def test_no_images_give_no_answers():
    score = engine.scorer(image_model(), IMAGES[:0], TARGET[:0], segments=PATCHES)
    assert score(torch.ones(0, 3, 16, dtype=torch.bool)).shape == (0, 3)


# The prepared copy


class Untraceable(nn.Module):
    """A model that looks at its input's values, which torch.fx cannot follow."""

    def __init__(self):
        super().__init__()
        self.layers = image_model()

    def forward(self, x):
        assert x.abs().sum() >= 0
        return self.layers(x)


PREPARED = {
    "resnet9": lambda: models.build("resnet9", classes=4, width=4),
    "cnn3": lambda: models.build("cnn3", classes=4, width=4),
    "vit": lambda: models.build("vit", classes=4, size=8, dim=16, depth=2, heads=2),
    "untraceable": Untraceable,
}


@pytest.mark.parametrize("name", PREPARED)
def test_the_prepared_copy_computes_the_same_function(name):
    torch.manual_seed(0)
    model = settled(PREPARED[name]()).train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    prepared = engine.prepare(model, IMAGES)
    with torch.no_grad():
        torch.testing.assert_close(prepared(IMAGES), model.eval()(IMAGES), atol=1e-5, rtol=1e-5)
    assert not prepared.training
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key])


def test_scoring_leaves_the_model_and_its_mode_alone():
    model = image_model().train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    engine.scorer(model, IMAGES, TARGET, segments=PATCHES)(some_masks(16))
    assert model.training
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key])


def test_a_model_in_training_mode_is_scored_in_eval_mode():
    model, keep = image_model(), some_masks(16)
    expected = engine.scorer(model, IMAGES, TARGET, segments=PATCHES)(keep)
    assert torch.equal(engine.scorer(model.train(), IMAGES, TARGET, segments=PATCHES)(keep), expected)


# Precision


def test_bfloat16_is_close_and_agreement_says_how_close():
    model, keep = image_model(), some_masks(16)
    exact, rough = (
        engine.scorer(model, IMAGES, TARGET, segments=PATCHES, precision=p)(keep)
        for p in (torch.float32, torch.bfloat16)
    )
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, exact)
    torch.testing.assert_close(rough, exact, atol=0.03, rtol=0)

    report = engine.agreement(model, IMAGES, TARGET, torch.bfloat16)
    shown = torch.ones(5, 1, 16, dtype=torch.bool)
    change = torch.stack(
        [
            engine.scorer(model, IMAGES, TARGET, segments=PATCHES, precision=p)(shown)
            for p in (torch.float32, torch.bfloat16)
        ]
    ).diff(dim=0)
    assert report["probability"] == pytest.approx(change.abs().mean().item(), rel=1e-3)
    assert report["largest"] == pytest.approx(change.abs().max().item(), rel=1e-3)
    assert 0 < report["probability"] <= report["largest"] < 0.03
    in_parts = engine.agreement(model, IMAGES, TARGET, torch.bfloat16, batch_size=2)
    assert in_parts["probability"] == pytest.approx(report["probability"], abs=2e-3)
    assert in_parts["largest"] == pytest.approx(report["largest"], abs=2e-3)


def test_float32_agrees_with_itself():
    assert engine.agreement(image_model(), IMAGES, TARGET, torch.float32) == {
        "argmax": 1.0,
        "probability": 0.0,
        "largest": 0.0,
    }


def test_agreement_counts_changed_classes():
    class Near(nn.Module):
        """In bfloat16, 1 + 1/1024 rounds to 1, and the lower class wins the tie."""

        def forward(self, x):
            first = x[:, 0, 0, :1]
            return torch.cat([torch.ones_like(first), first], 1)

    x = torch.ones(4, 1, 8, 8)
    x[0] += 1 / 1024
    assert engine.agreement(Near(), x, torch.zeros(4, dtype=torch.int64), torch.bfloat16)["argmax"] == 0.75


def test_agreement_leaves_the_token_ids_of_texts_alone():
    torch.manual_seed(0)
    texts = torch.randint(20, (5, 9), generator=GENERATOR)
    assert engine.agreement(Texts(), texts, TARGET, torch.bfloat16)["largest"] < 0.03


# Memory


class Bounded(nn.Module):
    """Runs out of memory above a number of rows, as its device would; its calls are in no list, which is put back."""

    def __init__(self, most: int, error: Exception):
        super().__init__()
        self.inner, self.most, self.error, self.tried = image_model(), most, error, UserList()

    def forward(self, x):
        self.tried.append(len(x))
        if len(x) > self.most:
            raise self.error
        return self.inner(x)

    def __deepcopy__(self, memo):
        copy = Bounded(self.most, self.error)
        copy.tried = self.tried  # so that the test sees the calls
        return copy


OUT_OF_MEMORY = {
    "cuda": torch.OutOfMemoryError("CUDA out of memory."),
    "cpu": RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes."),
}


def test_where_batches_are_filled_up_a_search_asks_for_few_sizes_and_answers_do_not_change(monkeypatch):
    keep = some_masks(16, count=40)
    expected = engine.scorer(image_model(), IMAGES, TARGET, segments=PATCHES)(keep)
    monkeypatch.setattr(engine, "_PLANNED", {"cpu"})
    for batch_size, sizes in ((None, {1, 2, 4, 8, 16, 32, 64, 128, 256}), (7, {1, 2, 4, 7})):
        model = Bounded(10_000, None)
        score = engine.scorer(model, IMAGES, TARGET, segments=PATCHES, batch_size=batch_size)
        first = len(model.tried)
        for count in range(1, 41):
            torch.testing.assert_close(score(keep[:, :count]), expected[:, :count], atol=1e-6, rtol=0)
        assert set(model.tried[first:]) <= sizes


@pytest.mark.parametrize("error", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY.keys())
@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("filled", [set(), {"cpu"}])
def test_where_memory_runs_out_the_batch_size_is_halved_and_nothing_changes(error, most, filled, monkeypatch):
    monkeypatch.setattr(engine, "_PLANNED", filled)
    keep = some_masks(16)
    expected = engine.scorer(image_model(), IMAGES, TARGET, segments=PATCHES, batch_size=1)(keep)
    model = Bounded(most, error)
    score = engine.scorer(model, IMAGES, TARGET, segments=PATCHES, batch_size=16)
    torch.testing.assert_close(score(keep), expected, atol=1e-6, rtol=0)
    first = len(model.tried)
    score(keep)
    assert max(model.tried[first:]) <= most  # the size that fits is remembered


def test_a_single_input_that_does_not_fit_is_an_error():
    with pytest.raises(torch.OutOfMemoryError):
        engine.scorer(Bounded(0, OUT_OF_MEMORY["cuda"]), IMAGES, TARGET, segments=PATCHES)


# Errors


def answering(logits):
    """A model that answers what `logits` says of its input."""

    class Answering(nn.Module):
        def forward(self, x):
            return logits(x)

    return Answering()


def scorer(model=None, x=IMAGES, target=TARGET, segmentation=PATCHES, **options):
    return engine.scorer(model or image_model(), x, target, segments=segmentation, **options)


@pytest.mark.parametrize("target", [TARGET[:3], TARGET.int(), TARGET.float(), TARGET[:, None]])
def test_targets_that_do_not_fit_are_an_error(target):
    with pytest.raises(ValueError, match="expected an int64 target for each"):
        scorer(target=target)


def test_nan_in_the_inputs_is_an_error():
    x = IMAGES.clone()
    x[2, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        scorer(x=x)


@pytest.mark.parametrize(
    "segmentation",
    [segments.pixels(4, 4), segments.pixels(8, 4), torch.arange(2 * 64).view(2, 8, 8), PATCHES[None, None]],
    ids=["too small", "half", "two channels", "too many dimensions"],
)
def test_segments_of_another_shape_are_an_error(segmentation):
    with pytest.raises(ValueError, match=r"do not broadcast to the shape of one input \(3, 8, 8\)"):
        scorer(segmentation=segmentation)


def test_segments_with_holes_are_an_error():
    with pytest.raises(ValueError, match="uses every number"):
        scorer(segmentation=PATCHES * 2)


@pytest.mark.parametrize(
    "keep",
    [
        torch.ones(5, 2, 16),
        torch.ones(5, 16, dtype=torch.bool),
        torch.ones(4, 2, 16, dtype=torch.bool),
        torch.ones(5, 2, 17, dtype=torch.bool),
    ],
    ids=["float", "two dimensions", "other images", "other features"],
)
def test_masks_that_do_not_fit_are_an_error(keep):
    with pytest.raises(ValueError, match=r"boolean keep-masks \(5, \d+, 16\)"):
        scorer()(keep)


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_target_that_is_no_class_is_an_error(wrong):
    target = TARGET.clone()
    target[3] = wrong
    with pytest.raises(ValueError, match=r"targets 0\.\.3, which the model answers"):
        scorer(target=target)(some_masks(16))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
def test_nan_in_any_class_is_an_error(output):
    model = answering(lambda x: torch.cat([x.flatten(1)[:, :4], x.flatten(1)[:, :1] * torch.nan], 1))
    with pytest.raises(ValueError, match=r"the model .* NaN or infinity for 30 of 30"):
        scorer(model, output=output)(some_masks(16))


def test_an_overflow_whose_readout_is_nan_is_an_error():
    # An infinite logit is no NaN, but its softmax is.
    model = answering(lambda x: torch.cat([x.flatten(1)[:, :4], torch.full((len(x), 1), torch.inf)], 1))
    with pytest.raises(ValueError, match="NaN"):
        scorer(model)(some_masks(16))


def test_a_class_that_is_ruled_out_has_probability_zero():
    model = answering(lambda x: torch.cat([torch.full((len(x), 1), -torch.inf), x.flatten(1)[:, :3]], 1))
    answers = scorer(model, target=torch.zeros(5, dtype=torch.int64))(some_masks(16))
    assert (answers == 0).all()


# Any pairs of an input and a mask


def pairs(count: int = 23) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return torch.rand(count, 16, generator=generator) < 0.6, torch.randint(5, (count,), generator=generator)


@pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES.keys())
@pytest.mark.parametrize("batch_size", [1, 7, None])
def test_pairs_are_answered_like_a_mask_of_their_input(reference, batch_size):
    model, (keep, images) = image_model(), pairs()
    score = engine.scorer(model, IMAGES, TARGET, segments=PATCHES, baseline=reference, batch_size=batch_size)
    one_by_one = [score(keep[r].expand(5, 1, -1))[images[r], 0] for r in range(len(keep))]
    torch.testing.assert_close(score(keep, images), torch.stack(one_by_one), atol=1e-6, rtol=0)


def test_no_pairs_give_no_answers():
    keep, images = pairs(0)
    assert scorer()(keep, images).shape == (0,)


@pytest.mark.parametrize("error", OUT_OF_MEMORY.values(), ids=OUT_OF_MEMORY.keys())
def test_pairs_survive_where_memory_runs_out(error):
    keep, images = pairs()
    score = engine.scorer(Bounded(3, error), IMAGES, TARGET, segments=PATCHES, batch_size=16)
    torch.testing.assert_close(score(keep, images), scorer()(keep, images), atol=1e-6, rtol=0)


def test_pairs_that_do_not_fit_are_an_error():
    keep, images = pairs()
    for wrong, at in ((keep.float(), images), (keep[:, 1:], images), (keep, images[1:])):
        with pytest.raises(ValueError, match=r"boolean keep-masks \(\d+, 16\)"):
            scorer()(wrong, at)
    for at in (images + (images == 4), images - (images == 0).long()):
        with pytest.raises((IndexError, RuntimeError)):
            scorer()(keep, at)


def test_infinite_and_huge_numbers_of_removed_features_do_not_matter():
    x = IMAGES.clone()
    x[:, :, :2, :2] = torch.tensor([torch.inf, -torch.inf, 3e38])[:, None, None]
    keep = some_masks(16)
    keep[..., 0] = False
    torch.testing.assert_close(scorer(x=x)(keep), scorer()(keep), atol=1e-5, rtol=0)


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.03)])
def test_a_gpu_gives_the_same_answers(precision, tolerance):
    keep = some_masks(16)
    expected = scorer()(keep)
    score = engine.scorer(image_model().cuda(), IMAGES.cuda(), TARGET.cuda(), segments=PATCHES, precision=precision)
    torch.testing.assert_close(score(keep.cuda()).cpu(), expected, atol=tolerance, rtol=0)
    torch.testing.assert_close(score(keep).cpu(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64])
def test_inputs_of_any_number_format_are_masked_exactly(dtype):
    """Kept elements are the input's, removed ones the reference's, to the bit."""
    x = torch.tensor([[[1, 200, 3, 4]], [[5, 6, 100, 8]]]).to(dtype)
    seen = []

    class Watching(torch.nn.Module):
        def forward(self, masked):
            seen.append(masked.clone())
            return torch.zeros(len(masked), 2)

    keep = torch.tensor([[True, False, True, False], [False, True, True, True]])
    score = engine.scorer(
        Watching(),
        x,
        torch.zeros(2, dtype=torch.int64),
        segments=torch.arange(4).view(1, 4),
        baseline=lambda x: torch.full_like(x[:1], 7),
    )
    seen.clear()
    score(keep.expand(2, 2, 4))
    found = torch.cat(seen).view(2, 2, 1, 4)
    expected = torch.where(keep[:, None], x[:, None], torch.tensor(7, dtype=dtype))
    assert torch.equal(found, expected.to(found.dtype))


FAULTS = """
import resource
import torch
from torch import nn
from faithlab import engine, segments

torch.set_num_threads(1)
head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2)
model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.ReLU(), *head)
x, keep = torch.rand(1, 1, 32, 32), torch.ones(1, 128, 1024, dtype=torch.bool)
pixels = segments.pixels(32, 32)
score = engine.scorer(model, x, torch.zeros(1, dtype=torch.int64), segments=pixels, precision=torch.float32)
found = []
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    score(keep)
    found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(found))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what other allocators keep is theirs to say")
def test_a_forward_uses_the_memory_that_the_one_before_it_freed():
    """Its activations of 16 MiB are 4096 pages; fresh ones would cost a fault each."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    run = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, env=own)
    assert int(run.stdout) < 2000
