"""The engine answers as the user's model does, one input at a time, or says that it does not."""

import contextlib
import copy
import itertools
import pickle
import re
import warnings

import pytest
import torch
from torch import nn

import strange
from faithlab import engine, outputs, prepare, segments
from faithlab.outputs import Logits, two_classes
from strange import IMAGES, settled

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

X = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 3, 1, 1, 2])
PATCHES = segments.patches(8, 8, 2)
KEEP = torch.rand(5, 6, 16, generator=torch.Generator().manual_seed(1)) < 0.6


class Net(nn.Module):
    """A network whose answer is made of its logits by `answer`."""

    def __init__(self, answer=lambda logits: logits, classes=4):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.bn, self.fc = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Linear(6, classes)
        self.answer = answer
        with torch.no_grad():
            self.bn.running_mean.normal_()
            self.fc.weight.mul_(4)

    def forward(self, x):
        return self.answer(self.fc(self.bn(self.conv(x)).relu().mean((2, 3))))


def scorer(model=None, x=X, target=TARGET, **options):
    return engine.scorer(Net() if model is None else model, x, target, **{"segments": PATCHES} | options)


# Against the model itself


def built(builder) -> nn.Module:
    """The same model every time."""
    torch.manual_seed(0)
    return settled(builder())


def alone(builder, masked: torch.Tensor) -> torch.Tensor:
    """The logits of a fresh model in eval mode for one input."""
    model = built(builder)
    with contextlib.suppress(NotImplementedError):  # an exported program is what it was
        model.eval()
    with torch.no_grad():
        return model(masked[None].clone())[0].float()


@pytest.mark.parametrize("precision", [None, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", strange.BUILDERS)
def test_a_strange_model_is_never_answered_for_otherwise_without_a_word(name, precision):
    """Same answers when scored again and again; the model, its mode and torch's random numbers are as they were."""
    builder = strange.BUILDERS[name]
    model, keep = built(builder), KEEP[:3]
    shown = segments.spread(keep, PATCHES)[:, :, None]
    expected = torch.stack(
        [
            torch.stack([alone(builder, torch.where(shown[i, m], IMAGES[i], 0)) for m in range(keep.shape[1])])
            for i in range(len(IMAGES))
        ]
    )
    before, training = {key: value.clone() for key, value in model.state_dict().items()}, model.training
    state = torch.get_rng_state()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read = [lambda logits, target, c=c: logits[..., c] for c in range(4)]
        score = scorer(model, IMAGES, TARGET[:3], output=read, precision=precision)
        answers = [score(keep) for _ in range(3)]
    spread = (expected - expected.mean()).abs().max()
    assert expected.std(1).max() > 1e-3 * spread, "the answers do not depend on the input: nothing is compared"
    tolerance = 1e-4 if precision is None else 0.1
    same = all(bool((given - expected).abs().max() <= tolerance * spread) for given in answers)
    assert same or [w for w in said if "its answers" in str(w.message)], "other answers, and not a word"
    assert len([w for w in said if type(model).__name__ in str(w.message)]) <= 1
    assert model.training == training
    assert torch.equal(torch.get_rng_state(), state)
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


SLOW = {
    "views": "view size",
    "strided view": "a faster copy gives other answers",
    "hook that holds on to the model": "runs the model itself",
    "patched forward": "runs the model itself",
    "no copy": "cannot pickle",
    "copies are itself": "its deep copy shares layers with it",
    "shallow copies": "its deep copy shares layers with it",
    "stateful": "gives other answers",
    "moving mean": "gives other answers",
    "answers by place": "gives other answers",
}


@pytest.mark.parametrize(
    "name", [*SLOW, "net", "siamese", "two names", "hidden in list", "batchnorm hook", "scripted", "volumes"]
)
def test_one_warning_says_what_is_slower_and_why(name):
    builder, x, _ = strange.OTHER_INPUTS.get(name, (strange.BUILDERS.get(name), IMAGES, PATCHES))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        prepare.prepare(built(builder), x)
    said = [w for w in said if w.category is UserWarning]
    assert [SLOW.get(name) is not None and SLOW[name] in str(w.message) for w in said] == [True] * (name in SLOW)


FOLDED = {
    "net": 2,
    "siamese": 0,
    "recurrent": 1,
    "shared batch norm": 0,
    "shared convolution": 0,
    "output used twice": 0,
    "reads weight": 0,
    "tied weights": 1,
    "two names": 2,
    "hidden in list": 1,
    "layer hook": 1,
    "batchnorm hook": 1,
    "weight norm new": 1,
    "compiled": 2,
}


@pytest.mark.parametrize("name", FOLDED)
def test_batchnorm_is_folded_where_it_alone_gets_what_a_layer_gives(name):
    assert len(prepare.prepare(built(strange.BUILDERS[name]), IMAGES).folded) == FOLDED[name]


# Batches, randomness, precision


class Random(Net):
    def forward(self, x):
        return super().forward(x) + torch.randn(len(x), 1) * torch.arange(4)


def batch_statistics():
    model = Net()
    model.bn = nn.BatchNorm2d(6, track_running_stats=False)
    return model


@pytest.mark.parametrize("builder", [Random, batch_statistics, lambda: Net(lambda z: nn.functional.dropout(z, 0.5))])
def test_answers_that_are_not_of_one_input_alone_are_said_and_no_seed_is_moved(builder):
    state = torch.get_rng_state()
    model = builder()
    torch.set_rng_state(state)
    with pytest.warns(UserWarning, match="its answers depend on the other inputs of a batch, or change"):
        scorer(model)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("filled", [-1e4, -1e9, torch.finfo(torch.float32).min, -torch.inf])
def test_a_class_that_is_ruled_out_hides_nothing_and_is_no_reason_to_warn(filled):
    def masked(z):
        return torch.cat([z[:, :3], torch.full_like(z[:, 3:], filled)], 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prepare.prepare(Net(masked), X).folded == ("bn",)
    other = batch_statistics()
    other.answer = masked
    with pytest.warns(UserWarning, match="its answers depend on the other inputs"):
        scorer(other)


class Overflows(Net):
    """Numbers that half precision does not have."""

    def forward(self, x):
        return super().forward(x) + (x * 1e5 - x * 1e5).mean((1, 2, 3))[:, None]


class NotInHalf(Net):
    """An operation that bfloat16 lacks."""

    def forward(self, x):
        return super().forward(torch.fft.fft2(x).real)


@pytest.mark.parametrize(("model", "precision"), [(Overflows, torch.float16), (NotInHalf, torch.bfloat16)])
def test_a_precision_that_breaks_a_model_is_said_and_not_used(model, precision):
    with pytest.warns(UserWarning, match=f"in {precision} it .* run in its own precision"):
        score = scorer(model(), precision=precision)
    torch.testing.assert_close(score(KEEP), scorer(model())(KEEP), atol=1e-5, rtol=0)


@pytest.mark.parametrize("own", [torch.bfloat16, torch.float16, torch.float64])
def test_a_model_in_another_precision_answers_as_it_does_by_itself(own):
    tolerance = 0.02 if own != torch.float64 else 1e-6
    expected = Net().to(own).eval()(X.to(own)).float().softmax(1).gather(1, TARGET[:, None]).detach()
    whole = torch.ones_like(KEEP[:, :1])
    for x in (X.to(own), X):  # the second is converted
        torch.testing.assert_close(scorer(Net().to(own), x)(whole), expected, atol=tolerance, rtol=0)


def test_a_network_under_autocast_is_not_called_broken():
    class Under(Net):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer(Under().eval())


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("DefaultCPUAllocator: can't allocate memory")],
    ids=["cuda", "cpu"],
)
def test_where_memory_runs_out_fewer_inputs_are_compared_at_once(most, error):
    class Bounded(Net):
        def forward(self, x):
            if len(x) > most:
                raise error
            return super().forward(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prepare.prepare(Bounded(), X).folded == ("bn",)


@pytest.mark.parametrize("size", [1, 3])
def test_a_model_that_takes_so_many_inputs_at_a_time_is_given_so_many(size):
    class Fixed(Net):
        def forward(self, x):
            assert len(x) <= size
            return super().forward(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(scorer(Fixed(), batch_size=size)(KEEP), scorer()(KEEP))


# What a model answers


class Answer:
    """As libraries answer."""

    def __init__(self, scores):
        self.loss, self.scores = None, scores


WRAPPED = {
    "tuple": (lambda z: (None, z), "answer[1]"),
    "dict": (lambda z: {"loss": None, "out": z}, "answer['out']"),
    "object": (Answer, "answer.scores"),
    "map": (lambda z: z[:, :, None, None].expand(-1, -1, 2, 2), "answer.mean((2, 3))"),
    "positions": (lambda z: z[:, None].expand(-1, 6, -1), "answer[:, -1]"),
    "squeezed": (lambda z: z[:, :, None].squeeze(), "answer.reshape(-1, 4)"),
}


@pytest.mark.parametrize(("answer", "read"), WRAPPED.values(), ids=WRAPPED)
def test_the_error_says_how_to_wrap_a_model_and_that_works(answer, read):
    model = Net(answer)
    for give in (lambda: scorer(model), lambda: engine.classifier(model)(X)):
        with pytest.raises(ValueError, match=r"expected logits \[1, classes\], but the model gave") as raised:
            give()
    *_, imported, wrapped = str(raised.value).splitlines()
    assert wrapped.strip() == f"model = Logits(model, lambda answer: {read})"
    scope = {"model": model}
    exec(f"{imported.strip()}\n{wrapped.strip()}", scope)
    torch.testing.assert_close(scorer(scope["model"])(KEEP), scorer()(KEEP))


@pytest.mark.parametrize(
    "answer",
    [
        lambda z: None,
        lambda z: z.detach().numpy(),
        lambda z: z + 1j * z,
        lambda z: z.argmax(1),
        lambda z: z[:1] if len(z) > 1 else z,
        lambda z: z.sum(),
        lambda z: z.to_sparse(),
        lambda z: z.to("meta"),
    ],
)
def test_an_answer_that_is_no_logits_is_an_error(answer):
    with pytest.raises(ValueError, match=r"expected logits \[\d, classes\], but the model gave"):
        scorer(Net(answer))


PROBABILITIES = {
    "softmax": lambda z: z.softmax(1),
    "percent": lambda z: z.softmax(1) * 100,
    "bfloat16": lambda z: z.softmax(1).bfloat16().float(),
    "three decimals": lambda z: z.softmax(1).mul(1e3).round() / 1e3 + 1e-6,
}


@pytest.mark.parametrize("answer", PROBABILITIES.values(), ids=PROBABILITIES)
def test_probabilities_are_said_and_not_softmaxed_twice(answer):
    with pytest.warns(UserWarning, match="answers with probabilities, not with logits"):
        score = scorer(Net(answer))
    torch.testing.assert_close(score(KEEP), scorer()(KEEP), atol=1e-2, rtol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_logits, as_shares = scorer(Logits(Net(answer)))(KEEP), scorer(Logits(Net(answer), torch.log))(KEEP)
    torch.testing.assert_close(as_shares, score(KEEP), atol=1e-5, rtol=0)
    assert (as_logits - as_shares).abs().max() > 0.1
    with pytest.warns(UserWarning, match="answers with probabilities"):
        shares = engine.classifier(Net(answer))(X)
    torch.testing.assert_close(shares, Net().eval()(X).softmax(1).detach(), atol=1e-2, rtol=0)


@pytest.mark.parametrize("answer", [lambda z: z, lambda z: z.log_softmax(1), lambda z: z - z.mean(1, True) + 0.25])
def test_logits_are_taken_for_logits(answer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = scorer(Net(answer))(torch.ones_like(KEEP[:, :1]))[:, 0]
    expected = Net(answer).eval()(X).softmax(1).gather(1, TARGET[:, None])[:, 0]
    torch.testing.assert_close(got, expected.detach(), atol=1e-5, rtol=0)


# Several labels, and regressions


def literal(model, read):
    """What is read of the answers to masked inputs, one at a time, [5, 6]."""
    shown = segments.spread(KEEP, PATCHES)[:, :, None]
    with torch.no_grad():
        rows = [[read(model.eval()(torch.where(k, x, 0)[None])) for k in of] for of, x in zip(shown, X, strict=True)]
    return torch.tensor(rows)


@pytest.mark.parametrize("output", [outputs.probability, outputs.log_odds, outputs.correct, outputs.sigmoid])
def test_probabilities_of_several_labels_are_said(output):
    with pytest.warns(UserWarning, match=r"all answers lie in 0\.\.1, .* faithlab.outputs.value .*sigmoid"):
        scorer(Net(lambda z: z.sigmoid()), output=output)


@pytest.mark.parametrize("shares", [False, True])
def test_labels_are_read_by_their_sigmoid_or_as_they_are(shares):
    model, output = (Net(torch.sigmoid), outputs.value) if shares else (Net(), outputs.sigmoid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scorer(model, target=torch.full((5,), 2), output=output)(KEEP)
    torch.testing.assert_close(found, literal(Net(), lambda z: z[0, 2].sigmoid().item()), atol=1e-5, rtol=0)


@pytest.mark.parametrize("answer", [lambda z: z[:, 0] * 100, lambda z: z[:, :1] * 100], ids=["[n]", "[n, 1]"])
def test_a_regression_is_read_by_its_number(answer):
    of = torch.zeros(5, dtype=torch.int64)
    own = lambda answers, target: (answers[..., 0] > 3).float()  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scorer(Net(answer), target=of, output=[outputs.value, own])(KEEP)
    expected = literal(Net(), lambda z: z[0, 0].item() * 100)
    torch.testing.assert_close(found[..., 0], expected, atol=1e-3, rtol=0)
    assert torch.equal(found[..., 1], (found[..., 0] > 3).float())
    for output in (outputs.probability, outputs.correct, outputs.log_odds, outputs.logit):
        with pytest.raises(ValueError, match=f"one number for each input; {output.__name__} needs classes"):
            scorer(Net(answer), target=of, output=output)
    with pytest.raises(ValueError, match="needs classes"):
        engine.classifier(Net(answer))(X)
    with pytest.raises(ValueError, match=r"targets 0\.\.0"):
        scorer(Net(answer), target=of + 1, output=outputs.value)


def test_a_number_is_read_as_it_is_even_if_rows_sum_to_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scorer(Net(lambda z: z.softmax(1)), target=TARGET * 0, output=outputs.value)(KEEP)
    torch.testing.assert_close(found, literal(Net(), lambda z: z.softmax(1)[0, 0].item()), atol=1e-5, rtol=0)


def test_two_classes_are_a_sigmoid():
    z = torch.randn(6, generator=torch.Generator().manual_seed(0)) * 4
    for logit in (z, z[:, None]):
        probabilities = outputs.probability(two_classes(logit), torch.ones(6, dtype=torch.int64))
        torch.testing.assert_close(probabilities, z.sigmoid())


# What happens to others


def test_what_is_changed_afterwards_changes_nothing():
    model, x, target, segmentation = Net(), X.clone(), TARGET.clone(), PATCHES.flip(0).contiguous()
    stand_in = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(5))
    score = engine.scorer(model, x, target, segments=segmentation, baseline=lambda x: stand_in)
    before = score(KEEP)
    with torch.no_grad():
        for tensor in (x, stand_in, target, segmentation, *model.parameters(), *model.buffers()):
            tensor.zero_()
    assert torch.equal(score(KEEP), before)


def test_modes_attributes_and_hooks_are_put_back():
    class Counting(Net):
        def __init__(self):
            super().__init__()
            self.calls, self.seen = 0, []

        def forward(self, x):
            self.calls += 1
            self.seen.append(len(x))
            self.hook = self.conv.register_forward_hook(lambda *given: None)
            return super().forward(x)

    model = Counting().train()
    model.bn.eval()
    scorer(model)(KEEP)
    assert (model.calls, model.seen, len(model.conv._forward_hooks), hasattr(model, "hook")) == (0, [], 0, False)
    assert [module.training for module in model.modules()] == [True, True, False, True]
    scorer(pickle.loads(pickle.dumps(copy.deepcopy(nn.Sequential(nn.Flatten(), nn.Linear(192, 4))))))


@pytest.mark.parametrize("within", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_the_answers_are_ordinary_float32_tensors(within):
    torch.set_default_dtype(torch.float64)
    try:
        with within(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Net().float()
            answers = [scorer(model)(KEEP), engine.classifier(model)(X)]
    finally:
        torch.set_default_dtype(torch.float32)
    for answer in answers:
        assert answer.dtype == torch.float32
        assert not answer.is_inference()
        assert not answer.requires_grad


def test_an_output_or_a_baseline_may_work_in_place():
    def in_place(logits, target):
        target.zero_()
        return logits.exp_().sum(-1)

    x, target = X.clone(), TARGET.clone()
    score = scorer(x=x, target=target, output=[in_place, outputs.probability], baseline=lambda x: x.zero_())
    for _ in range(2):
        torch.testing.assert_close(score(KEEP)[..., 1], scorer()(KEEP))
    assert torch.equal(x, X)
    assert torch.equal(target, TARGET)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.filterwarnings("ignore")
def test_buffers_may_be_sparse(layout):
    model = Net()
    model.register_buffer("neighbours", getattr(torch.eye(3), layout)())
    torch.testing.assert_close(scorer(model)(KEEP), scorer(Net())(KEEP))


def test_a_frozen_script_is_run():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    frozen = torch.jit.freeze(torch.jit.script(model))
    torch.testing.assert_close(scorer(frozen)(KEEP), scorer(model)(KEEP))


# What is wrong

ROWS = torch.randn(5, 5, generator=torch.Generator().manual_seed(4))  # five inputs of five numbers
WRONG = {
    "a function": ({"model": torch.sin}, "expected a torch.nn.Module"),
    "a class": ({"model": Net}, "expected a torch.nn.Module"),
    "inputs of numpy": ({"x": X.numpy()}, "expected inputs .* but got ndarray"),
    "targets of numpy": ({"target": TARGET.numpy()}, "expected an int64 target for each"),
    "one input": ({"x": X[0, 0, 0]}, r"expected inputs .* but got torch.float32 \(8,\)"),
    "sparse": ({"x": X.to_sparse()}, "dense"),
    "without values": ({"x": X.to("meta")}, "meta"),
    "too precise": ({"x": X.to(torch.complex128)}, "16 to 64 bits a number, .* torch.complex128"),
    "too coarse": ({"x": X.to(torch.float8_e4m3fn)}, "(?i)float8_e4m3fn"),
    "batch size": ({"batch_size": 2.5}, "batch_size to be a whole number .* 2.5"),
    "no precision": ({"precision": "bf16"}, "bf16"),
    "model elsewhere": ({"model": Net().to("meta")}, "meta"),
    "target elsewhere": ({"target": TARGET.to("meta")}, "expected an int64 target .* got .*meta"),
    "target too high": ({"target": TARGET + 1}, r"targets 0\.\.3, .* got .*4"),
    "no values": ({"model": nn.Sequential(nn.Flatten(), nn.LazyLinear(4))}, "uninitialized"),
    "a number as baseline": ({"baseline": 0.0}, "not callable"),
    "what a baseline gives": ({"baseline": lambda x: 0.0}, "expected a baseline .* it gives 0.0"),
    "one part for each": ({"x": ROWS, "baseline": lambda x: x.mean(1)}, r"expected a baseline .* gives .*\(5,\)"),
    "last dimensions": ({"baseline": lambda x: x[0, 0]}, r"expected a baseline .* gives .*\(8, 8\)"),
    "other inputs": ({"baseline": lambda x: x[:2]}, r"expected a baseline .* gives .*\(2, 3, 8, 8\)"),
    "infinite": ({"baseline": lambda x: x[:1] / 0}, "baseline gives numbers that are not finite"),
    "integers": ({"baseline": lambda x: torch.tensor(1)}, "expected a baseline .* gives torch.int64"),
    "elsewhere": ({"baseline": lambda x: x[:1].to("meta")}, "expected a baseline .* gives .*meta"),
    "an infinite cast": (
        {"x": X.double(), "baseline": lambda x: x.new_full((), 1e300), "precision": torch.float32},
        "not finite in torch.float32",
    ),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_an_error(given, message):
    flat = {"model": nn.Linear(5, 4), "segments": torch.arange(5)} if given.get("x") is ROWS else {}
    with pytest.raises(Exception, match=message) as raised:
        scorer(**flat | given)
    assert isinstance(raised.value, TypeError | ValueError | RuntimeError | NotImplementedError)


@pytest.mark.parametrize(
    "read",
    [lambda y, t: y, lambda y, t: y.mean(), lambda y, t: y.argmax(-1), lambda y, t: y[..., 0] > 0, lambda y, t: 1],
)
def test_an_output_that_gives_something_else_is_an_error(read):
    with pytest.raises(ValueError, match="expected an output of a real number for each of"):
        scorer(output=read)(KEEP)


def test_nan_is_blamed_on_whom_it_comes_from():
    with pytest.raises(ValueError, match=r"the model .* NaN or infinity"):
        scorer(Net(lambda z: z * torch.nan))(KEEP)
    with pytest.raises(ValueError, match=r"the output gave NaN .* for 30 of 30"):
        scorer(output=lambda z, t: z[..., 0] * torch.nan)(KEEP)


def test_every_hostile_model_is_still_there():
    assert len(strange.BUILDERS) == 71
    assert all(re.fullmatch(r"[a-z0-9 ]+", name) for name in itertools.chain(strange.BUILDERS, strange.OTHER_INPUTS))
