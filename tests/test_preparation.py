"""What the engine says of models and inputs that it cannot run as they are given, before anything is scored."""

import dataclasses
import gc
import random
import re
import warnings
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from faithlab import engine, outputs, preparation, segments
from faithlab.outputs import Logits, two_classes

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


@dataclasses.dataclass
class Output:
    """As libraries answer."""

    loss: object
    scores: torch.Tensor


WRONG_ANSWERS = {
    "tuple": (lambda z: (None, z), r"a tuple; .*\n.*import Logits\n.*lambda answer: answer\[1\]\)"),
    "dict": (lambda z: {"loss": None, "out": z}, r"a dict; .*\n.*\n.*lambda answer: answer\['out'\]\)"),
    "dataclass": (lambda z: Output(None, z), r"a Output; .*\n.*\n.*lambda answer: answer.scores\)"),
    "nothing": (lambda z: None, "a NoneType"),
    "numpy": (lambda z: z.detach().numpy(), "a ndarray"),
    "map": (lambda z: z[:, :, None, None].expand(-1, -1, 2, 2), r"\(4, 4, 2, 2\).*\n.*\n.*answer.mean\(\(2, 3\)\)"),
    "one number": (
        lambda z: z[:, 0],
        r"one number for each input, \(4,\).*\n.*two_classes\n.*Logits\(model, two_classes",
    ),
    "one column": (lambda z: z[:, :1], r"one number for each input, \(4, 1\).*\n.*\n.*two_classes"),
    "complex": (lambda z: z + 1j * z, r"torch.complex64, complex numbers, .*Logits\(model, torch.abs\)"),
    "other rows": (lambda z: z[:1], r"for 4 inputs, but the model gave \(1, 4\)"),
    "a number": (lambda z: z.sum(), r"the model gave \(\)"),
}


@pytest.mark.parametrize(("answer", "message"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
@pytest.mark.parametrize(
    "ask",
    [
        scorer,
        lambda model: engine.classifier(model)(X),
        lambda model: engine.agreement(model, X, TARGET, torch.bfloat16),
    ],
    ids=["scorer", "classifier", "agreement"],
)
def test_an_answer_that_is_no_logits_is_an_error_that_says_what_to_wrap_it_in(answer, message, ask):
    with pytest.raises(ValueError, match=r"expected logits \[4, classes\]") as raised:
        ask(Net(answer))
    assert re.search(message, str(raised.value)), raised.value


@pytest.mark.parametrize("name", ["tuple", "dict", "dataclass", "one number"])
def test_the_wrapping_that_the_message_offers_works(name):
    model = Net(WRONG_ANSWERS[name][0])
    with pytest.raises(ValueError, match="wrap it") as raised:
        scorer(model)
    _, *lines = str(raised.value).splitlines()
    scope = {"model": model}
    exec("\n".join(line.strip() for line in lines), scope)
    target = TARGET.clamp(max=1) if name == "one number" else TARGET
    logits = Net().eval()(X)
    if name == "one number":
        logits = torch.stack([torch.zeros(5), logits[:, 0]], 1)
    got = scorer(scope["model"], target=target)(torch.ones_like(KEEP[:, :1]))[:, 0]
    expected = logits.softmax(1).gather(1, target[:, None])[:, 0]
    torch.testing.assert_close(got, expected.detach(), atol=1e-5, rtol=0)


def test_an_answer_that_loses_the_dimension_of_one_input_is_an_error():
    squeezing = Net(lambda z: z[:, :, None, None].squeeze())
    message = r"\(4,\) for one input alone.*\n.*\n.*Logits\(model, lambda answer: answer.reshape\(-1, 4\)\)"
    with pytest.raises(ValueError, match=message):
        scorer(squeezing)
    torch.testing.assert_close(scorer(Logits(squeezing, lambda answer: answer.reshape(-1, 4)))(KEEP), scorer()(KEEP))


def test_two_classes_are_a_sigmoid():
    z = torch.randn(6, generator=torch.Generator().manual_seed(0)) * 4
    for logit in (z, z[:, None]):
        probabilities = outputs.probability(two_classes(logit), torch.ones(6, dtype=torch.int64))
        torch.testing.assert_close(probabilities, z.sigmoid())


# Probabilities


def test_probabilities_are_said_and_not_softmaxed_twice():
    model = Net(lambda z: z.softmax(1))
    with pytest.warns(UserWarning, match="answers with probabilities, not with logits"):
        score = scorer(model)
    plain = scorer(Net())
    torch.testing.assert_close(score(KEEP), plain(KEEP), atol=1e-5, rtol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        odds = scorer(model, output=outputs.log_odds)(KEEP)
        shares = engine.classifier(model)(X)
    torch.testing.assert_close(odds, scorer(Net(), output=outputs.log_odds)(KEEP), atol=1e-4, rtol=0)
    torch.testing.assert_close(shares, Net().eval()(X).softmax(1).detach(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_probabilities_of_half_precision_are_said(dtype):
    with pytest.warns(UserWarning, match="answers with probabilities"):
        scorer(Net(lambda z: z.softmax(1)).to(dtype), X.to(dtype))


@pytest.mark.parametrize(
    "answer",
    [lambda z: z, lambda z: z.log_softmax(1), lambda z: z.sigmoid(), lambda z: z - z.mean(1, keepdim=True) + 0.25],
    ids=["logits", "log-probabilities", "sigmoids", "logits that sum to one"],
)
def test_what_only_resembles_probabilities_is_taken_for_logits(answer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = scorer(Net(answer))(torch.ones_like(KEEP[:, :1]))[:, 0]
    expected = Net(answer).eval()(X).softmax(1).gather(1, TARGET[:, None])[:, 0]
    torch.testing.assert_close(got, expected.detach(), atol=1e-5, rtol=0)


def test_logits_says_what_an_answer_is():
    shares = Net(lambda z: z.softmax(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_logits, as_shares = scorer(Logits(shares))(KEEP), scorer(Logits(shares, torch.log))(KEEP)
    torch.testing.assert_close(as_shares, scorer(Net())(KEEP), atol=1e-5, rtol=0)
    assert (as_logits - as_shares).abs().max() > 0.1


# What is no model, or no tensor


def function(x):
    return x.flatten(1)[:, :4]


NO_MODELS = {
    "a function": (function, "expected a torch.nn.Module, but got a function. Wrap"),
    "a class": (Net, r"got the class Net; make one: Net\("),
    "a state dict": (Net().state_dict(), "but got a OrderedDict"),
}


@pytest.mark.parametrize(("model", "message"), NO_MODELS.values(), ids=NO_MODELS)
def test_what_is_no_module_is_an_error(model, message):
    with pytest.raises(TypeError, match=message):
        scorer(model)
    with pytest.raises(TypeError, match=message):
        engine.classifier(model)(X)


def test_a_function_is_wrapped_as_the_message_says():
    with pytest.raises(TypeError) as raised:
        scorer(function)
    scope = {"torch": torch, "function": function}
    exec("\n".join(line[4:] for line in str(raised.value).splitlines()[1:]), scope)
    expected = function(X).softmax(1).gather(1, TARGET[:, None])
    torch.testing.assert_close(scorer(scope["Model"]())(torch.ones_like(KEEP[:, :1])), expected)


NO_TENSORS = {
    "inputs": ({"x": X.numpy()}, "expected inputs as a torch.Tensor, but got numpy.ndarray"),
    "targets": ({"target": TARGET.numpy()}, "expected targets as a torch.Tensor, but got numpy.ndarray"),
    "a list of targets": ({"target": TARGET.tolist()}, "expected targets as a torch.Tensor, but got builtins.list"),
    "segments": ({"segments": PATCHES.numpy()}, "expected segments as a torch.Tensor, but got numpy.ndarray"),
    "a number as baseline": ({"baseline": 0.0}, "expected baseline as a function, .*baselines, but got 0.0"),
    "a name as output": ({"output": "logit"}, "expected output as a function, .*faithlab.outputs, but got 'logit'"),
    "a baseline": ({"baseline": lambda x: 0.0}, "what the baseline gives as a torch.Tensor, but got builtins.float"),
}


@pytest.mark.parametrize(("options", "message"), NO_TENSORS.values(), ids=NO_TENSORS)
def test_what_is_no_tensor_is_an_error(options, message):
    with pytest.raises(TypeError, match=message):
        scorer(**options)


@pytest.mark.parametrize(
    ("keep", "error", "message"),
    [
        (np.ones((5, 2, 16), bool), TypeError, "expected keep-masks as a torch.Tensor, but got numpy.ndarray"),
        (torch.ones(5, 2, 16, dtype=torch.int64), ValueError, r"boolean keep-mask .* but got torch.int64"),
        (torch.ones(5, 2, 16, dtype=torch.uint8), ValueError, r"boolean keep-mask .* but got torch.uint8"),
    ],
    ids=["numpy", "integers", "bytes"],
)
def test_masks_that_are_not_boolean_tensors_are_an_error(keep, error, message):
    with pytest.raises(error, match=message):
        scorer()(keep)


OTHER_WRONG = {
    "one input": ({"x": X[0, 0, 0], "target": TARGET}, r"a batch, but got \(8,\)"),
    "sparse": ({"x": X.to_sparse()}, "ordinary dense tensor .*, but got sparse_coo torch.float32; .*to_dense"),
    "without values": ({"x": X.to("meta")}, "ordinary dense tensor .*, but got meta torch.float32"),
    "too precise": ({"x": X.to(torch.complex128)}, "16 to 64 bits a number, .* but got strided torch.complex128"),
    "too coarse": ({"x": X.to(torch.float8_e4m3fn)}, "16 to 64 bits a number, .* but got strided torch.float8_e4m3fn"),
    "a word for the batch size": ({"batch_size": "3"}, "batch_size.* whole number of at least 1, but got '3'"),
    "half an input at a time": ({"batch_size": 2.5}, "batch_size.* whole number of at least 1, but got 2.5"),
    "integer precision": ({"precision": torch.int8}, "precision of torch.bfloat16, .*or None, but got torch.int8"),
    "complex precision": ({"precision": torch.complex64}, "precision of .* but got torch.complex64"),
    "a word for precision": ({"precision": "bf16"}, "precision of .* but got 'bf16'"),
    "no input at a time": ({"batch_size": 0}, "whole number of at least 1, but got 0"),
    "model elsewhere": ({"model": Net().to("meta")}, "inputs are on cpu, but the model is on meta"),
    "target elsewhere": ({"target": TARGET.to("meta")}, "targets on cpu, where the inputs are, but they are on meta"),
    "target too high": ({"target": TARGET + 1}, r"targets 0\.\.3 for a model of 4 classes, but got 1\.\.4"),
    "not initialised": (
        {"model": nn.Sequential(nn.Flatten(), nn.LazyLinear(4))},
        "1.weight of the model has no values",
    ),
}


@pytest.mark.parametrize(("options", "message"), OTHER_WRONG.values(), ids=OTHER_WRONG)
def test_other_wrong_arguments_are_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        scorer(**options)


# References

ROWS = torch.randn(5, 5, generator=torch.Generator().manual_seed(4))  # five inputs of five numbers


class Rows(nn.Linear):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__(5, 4)


REFERENCES = {
    "width or batch": (ROWS, lambda x: x.mean(1), "one for all inputs, or one part for each"),
    "batch": (ROWS[:4], lambda x: x.mean(1), r"but it gives \(4,\)"),
    "last dimensions": (X, lambda x: x[0, 0], r"but it gives \(8, 8\)"),
    "channels": (X, lambda x: x.mean((2, 3)), r"but it gives \(5, 3\)"),
    "batch where it is the width": (X.repeat(2, 1, 1, 1)[:8], lambda x: x.mean((1, 2, 3)), r"but it gives \(8,\)"),
    "other inputs": (X, lambda x: x[:2], r"but it gives \(2, 3, 8, 8\)"),
    "too many": (X, lambda x: x[None], r"but it gives \(1, 5, 3, 8, 8\)"),
    "infinite": (X, lambda x: x[:1] / 0, "not finite"),
    "NaN": (X, lambda x: x.new_full((), torch.nan), "not finite"),
    "integers": (
        X,
        lambda x: torch.tensor(1),
        "baseline of torch.float32, as the inputs are, but it gives torch.int64",
    ),
    "elsewhere": (X, lambda x: x[:1].to("meta"), "baseline gives numbers on meta"),
}


@pytest.mark.parametrize(("x", "reference", "message"), REFERENCES.values(), ids=REFERENCES)
def test_a_reference_of_another_shape_or_kind_is_an_error(x, reference, message):
    model, segmentation = (Rows(), torch.arange(5)) if x.ndim == 2 else (Net(), PATCHES)
    with pytest.raises(ValueError, match=message):
        engine.scorer(model, x, torch.zeros(len(x), dtype=torch.int64), segments=segmentation, baseline=reference)


def test_an_integer_reference_that_does_not_fit_is_an_error():
    x = torch.randint(9, (3, 6), dtype=torch.uint8)
    with pytest.raises(ValueError, match="expected a reference of torch"):
        engine.scorer(Net(), x, TARGET[:3], segments=torch.arange(6), baseline=lambda x: torch.tensor(300))


# What happens afterwards


def test_what_is_changed_afterwards_changes_nothing():
    model, x, target, segmentation = Net(), X.clone(), TARGET.clone(), PATCHES.flip(0).contiguous()
    stand_in = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(5))
    score = engine.scorer(model, x, target, segments=segmentation, baseline=lambda x: stand_in)
    before = score(KEEP)
    with torch.no_grad():
        for tensor in (x, stand_in, target, segmentation, *model.parameters(), *model.buffers()):
            tensor.zero_()
    assert torch.equal(score(KEEP), before)


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize(
    "asked_in", [torch.enable_grad, torch.no_grad, torch.inference_mode], ids=["grad", "no grad", "inference"]
)
def test_the_answers_are_ordinary_tensors(copied, asked_in):
    model = Net()
    if not copied:
        model.__deepcopy__ = None
        vars(model)["file"] = open(__file__)  # noqa: SIM115
    with asked_in(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = scorer(model, X.clone().requires_grad_() if asked_in is torch.enable_grad else X)
        answers = [score(KEEP), score(KEEP[0], torch.zeros(6, dtype=torch.int64)), engine.classifier(model)(X)]
    for answer in answers:
        assert not answer.is_inference()
        assert not answer.requires_grad
        weight = torch.ones((), requires_grad=True)
        (answer * weight).sum().backward()
        answer += 1
    (model(X).sum()).backward()  # nothing that it keeps is an inference tensor
    assert model.fc.weight.grad is not None


# Precision, randomness, batches


class Overflows(Net):
    """Numbers that half precision does not have."""

    def forward(self, x):
        return super().forward(x) + (x * 1e5 - x * 1e5).mean((1, 2, 3))[:, None]


class NotInHalf(Net):
    """An operation that bfloat16 lacks."""

    def forward(self, x):
        return super().forward(torch.fft.fft2(x).real)


@pytest.mark.parametrize(
    ("model", "precision", "message"),
    [
        (Overflows, torch.float16, "in torch.float16 it gives unrelated"),
        (NotInHalf, torch.bfloat16, "in torch.bfloat16 it fails"),
    ],
)
def test_a_precision_that_breaks_a_model_is_said_and_not_used(model, precision, message):
    with pytest.warns(UserWarning, match=message):
        score = scorer(model(), precision=precision)
    torch.testing.assert_close(score(KEEP), scorer(model())(KEEP), atol=1e-5, rtol=0)


class Random(Net):
    def forward(self, x):
        return super().forward(x) + torch.randn(len(x), 1)


def test_random_answers_and_those_of_a_batch_are_said_and_no_seed_is_moved():
    state = torch.get_rng_state()
    with pytest.warns(UserWarning, match="gives other answers when it is asked again"):
        scorer(Random())
    assert torch.equal(torch.get_rng_state(), state)
    together = Net()
    together.bn = nn.BatchNorm2d(6, track_running_stats=False)
    with pytest.warns(UserWarning, match="depends on the other inputs of the same forward"):
        scorer(together)


class Steep(Net):
    """Rounding grows a thousandfold and more."""

    def forward(self, x):
        return (super().forward(x) * 3e4).sin()


def test_a_model_whose_rounding_is_large_is_told_so_and_made_fast():
    with pytest.warns(UserWarning, match="rounding moves its answers"):
        prepared = preparation.prepare(Steep(), X)
    assert prepared.folded == ("bn",)


class Caches(Net):
    """Keeps a table for the next forward, in the precision of this one."""

    table = None

    def forward(self, x):
        if self.table is None:
            self.table = self.fc.bias * 2
        assert self.table.dtype == self.fc.bias.dtype
        return super().forward(x) + self.table


def test_what_a_model_keeps_from_the_check_is_forgotten():
    model = Caches()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = preparation.prepare(model, X, torch.bfloat16)
    assert model.table is None
    assert prepared.logits(X.bfloat16()).isfinite().all()


class ForMany(Net):
    """Treats many inputs otherwise than few."""

    def forward(self, x):
        return super().forward(x * 2 if len(x) > 8 else x)


def test_an_answer_that_depends_on_how_many_are_asked_about_is_said_once():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = scorer(ForMany())
        scorer(Net())(KEEP.repeat(1, 9, 1))
    with pytest.warns(UserWarning, match="ForMany: its answer to an input among few and among .* differs by"):
        score(KEEP.repeat(1, 9, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score(KEEP.repeat(1, 9, 1))


class LaterOnes(Net):
    """Negates the answers to all inputs of a batch but the first seven."""

    def forward(self, x):
        return super().forward(x) * torch.where(torch.arange(len(x)) < 7, 1, -1)[:, None]


@pytest.mark.parametrize(("model", "first"), [(ForMany, 1), (LaterOnes, 0)])
def test_every_larger_block_is_compared_its_last_input_too(model, first):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = scorer(model())
        for count in range(1, first + 1):
            score(KEEP[:, :count])
    with pytest.warns(UserWarning, match="among few and among 30 differs by"):
        score(KEEP)


# One extreme class or input


def filled(number, classes=(3,)):
    """Logits of which some are masked."""

    def answer(z):
        z = z.clone()
        z[:, list(classes)] = number
        return z

    return answer


def scaled(z):
    return z * torch.tensor([1.0, 1, 1, 1e4])


def raised(z):
    """Nearly all classes are pushed down."""
    return torch.cat([z[:, :3], z.repeat(1, 3) - 1e4], 1)


def one_extreme_input(z):
    return torch.cat([z[:1] * 1e6, z[1:]])


class Lossy(Net):
    """Its copy has another temperature."""

    temperature = 1.0

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "temperature"}

    def __init__(self, answer):
        super().__init__(answer)
        self.temperature = 0.9

    def forward(self, x):
        return self.answer(self.fc(self.bn(self.conv(x)).relu().mean((2, 3))) / self.temperature)


EXTREME = {
    "far below": filled(-50.0),
    "-1e4": filled(-1e4),
    "-1e9": filled(-1e9),
    "+1e9": filled(1e9),
    "the lowest number": filled(torch.finfo(torch.float32).min),
    "infinite": filled(-torch.inf),
    "two of four": filled(-1e9, (0, 3)),
    "one class is large": scaled,
    "most are masked": raised,
    "one extreme input": one_extreme_input,
}


@pytest.mark.parametrize("extreme", EXTREME.values(), ids=EXTREME)
def test_an_extreme_class_or_input_hides_nothing(extreme):
    together = Net(extreme)
    together.bn = nn.BatchNorm2d(6, track_running_stats=False)
    with pytest.warns(UserWarning, match="depends on the other inputs|answers to the next|asked again"):
        scorer(together)
    by_chance = Net(lambda z: extreme(nn.functional.dropout(z, 0.05)))
    with pytest.warns(UserWarning, match="gives other answers when it is asked again"):
        scorer(by_chance)
    with pytest.warns(UserWarning, match="a copy gives other answers"):
        score = scorer(Lossy(extreme))
    if extreme is not one_extreme_input:  # whose answers depend on the others'
        torch.testing.assert_close(score(KEEP), scorer(Net(lambda z: extreme(z / 0.9)))(KEEP))


@pytest.mark.parametrize("extreme", EXTREME.values(), ids=EXTREME)
def test_an_extreme_class_is_no_reason_to_warn(extreme):
    if extreme is one_extreme_input:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = preparation.prepare(Net(extreme), X)
    assert prepared.folded == ("bn",)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_buffers_may_be_sparse(layout):
    model = Net()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some cannot be copied
        model.register_buffer("neighbours", getattr(torch.eye(3), layout)())
        torch.testing.assert_close(scorer(model)(KEEP), scorer(Net())(KEEP))


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
def test_a_frozen_script_is_run():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    frozen = torch.jit.freeze(torch.jit.script(model))
    torch.testing.assert_close(scorer(frozen)(KEEP), scorer(model)(KEEP))


def test_no_random_numbers_of_numpy_or_python_are_drawn():
    class Others(Net):
        def forward(self, x):
            return super().forward(x + random.random() + np.random.rand())  # noqa: NPY002

    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    with pytest.warns(UserWarning, match="asked again"):
        scorer(Others())
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_what_fails_in_the_model_says_that_it_does():
    with pytest.raises(RuntimeError) as caught:
        scorer(x=X.to(torch.uint8))
    assert "the model itself, in eval mode, asked about inputs" in caught.value.__notes__[0]


def test_the_answers_are_float32_whatever_the_default():
    torch.set_default_dtype(torch.float64)
    try:
        assert scorer()(KEEP).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "read", [lambda y, t: y, lambda y, t: y.mean(), lambda y, t: y.sum(-1)[..., :1], lambda y, t: 1]
)
def test_a_readout_that_gives_another_shape_is_an_error(read):
    with pytest.raises(ValueError, match="the output to give one number for each row of logits"):
        scorer(output=read)(KEEP)


def test_a_model_is_told_of_once():
    model = Random()
    with pytest.warns(UserWarning, match="asked again"):
        scorer(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer(model)
    with pytest.warns(UserWarning, match="asked again"):
        scorer(Random())


def test_a_hook_on_all_modules_keeps_batchnorm():
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, output: output * 0.9)
    try:
        prepared = preparation.prepare(Net(), X)
        assert prepared.unfolded == {"bn": "a hook on all modules"}
        torch.testing.assert_close(prepared.logits(X), Net().eval()(X).detach())
    finally:
        handle.remove()
    assert preparation.prepare(Net(), X).folded == ("bn",)


def test_a_classifier_does_not_write_into_its_inputs():
    x = X.clone()
    engine.classifier(nn.Sequential(nn.ReLU(inplace=True), Net()))(x)
    engine.agreement(nn.Sequential(nn.ReLU(inplace=True), Net()), x, TARGET, torch.bfloat16)
    assert torch.equal(x, X)


# A copy is kept


def copies(monkeypatch):
    """Counts how often a model is prepared."""
    made, prepare = [], preparation.prepare
    monkeypatch.setattr(preparation, "prepare", lambda *given: made.append(given) or prepare(*given))
    return made


class Knobs(Net):
    """A network whose answer depends on more than its weights."""

    def __init__(self):
        super().__init__()
        self.temperature = 1.0
        self.shifts = {"all": [0.0]}
        self.array = np.ones(4, dtype=np.float32)
        self.outside = [nn.Linear(4, 4)]  # no child
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        logits = super().forward(x) / self.temperature + self.shifts["all"][0] * torch.arange(4)
        return self.outside[0](logits * self.scale * torch.from_numpy(self.array))


def in_place(model):
    model.fc.weight.data.mul_(-1)  # which no version counter sees


def by_the_optimiser(model):
    sum(model(X).flatten()).backward()
    torch.optim.SGD(model.parameters(), 1.0).step()
    model.zero_grad()


CHANGES = {
    "weights in place": in_place,
    "weights by an optimiser": by_the_optimiser,
    "weights loaded": lambda model: model.load_state_dict({k: v * 1.5 for k, v in model.state_dict().items()}),
    "one weight": lambda model: model.fc.weight.data[0, 0].add_(0.3),
    "rows exchanged": lambda model: model.fc.weight.data.copy_(model.fc.weight.data.flip(0)),
    "a parameter": lambda model: setattr(model.fc, "bias", nn.Parameter(torch.arange(4.0))),
    "a buffer": lambda model: model.scale.mul_(2),
    "running statistics": lambda model: model.bn.running_mean.add_(1),
    "a number": lambda model: setattr(model, "temperature", 3.0),
    "a number in containers": lambda model: model.shifts["all"].__setitem__(0, 1.0),
    "an array": lambda model: model.array.__imul__(2),
    "a module that is no child": lambda model: model.outside[0].weight.data.mul_(2),
    "a layer": lambda model: setattr(model, "fc", nn.Linear(6, 4)),
    "a layer's options": lambda model: setattr(model.conv, "padding", (1, 1)),
    "a function": lambda model: setattr(model, "answer", torch.sin),
    "a hook": lambda model: model.fc.register_forward_hook(lambda module, args, output: output * 2),
    "a hook before": lambda model: model.register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
    "a forward of its own": lambda model: setattr(
        model.fc, "forward", lambda x: nn.functional.linear(x, model.fc.weight)
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("precision", [None, torch.bfloat16])
@pytest.mark.filterwarnings("ignore:Knobs")
def test_a_changed_model_is_prepared_again(change, precision, monkeypatch):
    model = Knobs().eval()
    scorer(model, precision=precision)
    made = copies(monkeypatch)
    change(model)
    got = scorer(model, precision=precision)(KEEP)
    assert len(made) == 1
    anew = type(model).__new__(type(model))
    anew.__dict__ = model.__dict__  # another module to the engine, and the same network
    torch.testing.assert_close(got, scorer(anew, precision=precision)(KEEP), rtol=0, atol=0)


def test_a_model_is_prepared_once(monkeypatch):
    model, made = Knobs(), copies(monkeypatch)
    first = scorer(model)(KEEP)
    assert len(made) == 1
    other = X.flip(0)
    again = scorer(model)(KEEP), scorer(model, output=outputs.logit)(KEEP), scorer(model, other)(KEEP)
    engine.classifier(model)(X)
    assert len(made) == 1
    torch.testing.assert_close(again[0], first, rtol=0, atol=0)
    fresh = scorer(Knobs(), other)(KEEP)
    torch.testing.assert_close(again[2], fresh, rtol=0, atol=0)


class Recurrent(nn.Module):
    """Torch's LSTM holds weak references to its weights, beside the weights."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def test_a_recurrent_model_is_prepared_once_and_again_when_a_weight_changes(monkeypatch):
    torch.manual_seed(0)
    model, made = Recurrent().eval(), copies(monkeypatch)
    x, y, keep = torch.randn(2, 5, 3), torch.zeros(2, dtype=torch.int64), KEEP[:2, :, :5]

    def asked():
        return engine.scorer(model, x, y, segments=torch.arange(5).view(5, 1))(keep)

    first = asked()
    torch.testing.assert_close(asked(), first, rtol=0, atol=0)
    assert len(made) == 1
    model.lstm.weight_hh_l0.data.mul_(2)
    second = asked()
    assert len(made) == 2
    model.lstm.weight_ih_l0 = nn.Parameter(torch.randn(16, 3))
    third = asked()
    assert len(made) == 3
    assert (first - second).abs().max() > 1e-4 < (second - third).abs().max()


def test_another_mode_or_shape_is_prepared_for_itself_and_another_precision_from_the_own_one(monkeypatch):
    model, made = Net(), copies(monkeypatch)
    scorer(model)
    model.eval()
    scorer(model)
    assert len(made) == 2
    low = scorer(model, precision=torch.bfloat16)
    scorer(model, X[..., :6, :6], segments=segments.patches(6, 6, 2))
    assert len(made) == 3
    scorer(model)
    scorer(model, precision=torch.float32)
    scorer(model, precision=torch.bfloat16)
    assert len(made) == 3
    fresh = scorer(Net(), precision=torch.bfloat16)(KEEP)
    torch.testing.assert_close(low(KEEP), fresh, rtol=0, atol=0)
    assert (fresh - scorer(model)(KEEP)).abs().max() > 0
    scorer(another := Net(), precision=torch.bfloat16)
    scorer(another, precision=torch.bfloat16)
    assert len(made) == 5


def test_a_mended_model_is_not_asked_through_a_copy_of_the_broken_one():
    model = Net().eval()
    handle = model.fc.register_forward_hook(lambda module, args, output: output * 0)
    assert bool((scorer(model)(KEEP) == 0.25).all())
    handle.remove()
    torch.testing.assert_close(scorer(model)(KEEP), scorer()(KEEP))


@pytest.mark.parametrize(
    "unseen",
    [lambda: object(), lambda: (lambda number: lambda: number)(1), lambda: iter([1]), lambda: random.Random(0)],
)
def test_a_model_that_holds_what_cannot_be_looked_at_is_prepared_every_time(unseen, monkeypatch):
    model, made = Net(), copies(monkeypatch)
    model.held = unseen()
    scorer(model)
    scorer(model)
    assert len(made) == 2


def test_a_model_whose_state_is_saved_in_its_own_way_is_prepared_once(monkeypatch):
    model, made = Net(), copies(monkeypatch)
    model.register_state_dict_post_hook(lambda module, state, *_: state.pop("fc.weight"))
    model.register_load_state_dict_pre_hook(lambda module, state, *_: state.setdefault("fc.weight", model.fc.weight))
    scorer(model)
    scorer(model)
    assert len(made) == 1


def test_an_attribute_that_moves_to_another_module_is_a_change():
    parent, child = nn.Module(), nn.Module()
    parent.child, parent.scale = child, 2.0
    before = preparation.seen(parent)
    del parent.scale
    child.scale = 2.0
    assert preparation.seen(parent) != before


def test_a_change_outside_of_the_model_reaches_its_copy_too(monkeypatch):
    """A global that a function of the model reads, and the forward of its class."""
    model = Net(global_answer)
    scorer(model)
    made = copies(monkeypatch)
    monkeypatch.setitem(FACTOR, "logits", 0.5)
    score = scorer(model)
    torch.testing.assert_close(score(KEEP), scorer(Net(lambda z: z * 0.5))(KEEP))
    monkeypatch.setattr(Net, "forward", lambda self, x: torch.zeros(len(x), 4))
    assert bool((scorer(model)(KEEP) == 0.25).all())
    assert made


FACTOR = {"logits": 1.0}


def global_answer(logits):
    return logits * FACTOR["logits"]


@pytest.mark.parametrize("own", [False, True])
def test_inputs_that_a_copy_does_not_answer_rightly_are_prepared_for(own, monkeypatch):
    """Half precision holds no numbers above 65 504: right on small inputs, not on large ones."""

    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, x):
            return self.fc(x * 1000).tanh()

    torch.manual_seed(0)
    model, x = Large().eval(), torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    made, given = copies(monkeypatch), {"segments": segments.tokens(4), "precision": torch.float16}
    target = torch.zeros(4, dtype=torch.int64)
    if own:  # of which the other is made
        engine.scorer(model, x, target, **given | {"precision": None})
    engine.scorer(model, x, target, **given)
    engine.scorer(model, x * 2, target, **given)
    assert len(made) == 1
    with pytest.warns(UserWarning, match=r"in torch.float16 it .*run in its own precision"):
        score = engine.scorer(model, x * 1000, target, **given)
    assert len(made) >= 2
    keep = torch.ones(4, 1, 4, dtype=torch.bool)
    expected = model(x * 1000).softmax(1)[:, :1].detach()
    torch.testing.assert_close(score(keep), expected)


def test_what_is_warned_of_is_prepared_again_every_time(monkeypatch):
    model, made = Net(lambda z: z.softmax(1)), copies(monkeypatch)
    with pytest.warns(UserWarning, match="answers with probabilities"):
        scorer(model)
    scorer(model)
    assert len(made) == 2


def test_a_few_copies_are_kept_those_that_were_used_last(monkeypatch):
    model, made = Net(), copies(monkeypatch)
    sides = range(3, 3 + preparation.MOST + 1)

    def ask(side):
        scorer(model, X[..., :side, :side], segments=segments.pixels(side, side))

    for side in (*sides[:-1], sides[0], sides[-1]):
        ask(side)
    assert len(made) == preparation.MOST + 1
    ask(sides[0])
    assert len(made) == preparation.MOST + 1
    ask(sides[1])
    assert len(made) == preparation.MOST + 2


def test_the_copy_of_a_large_model_is_not_kept(monkeypatch):
    model, made = Net(), copies(monkeypatch)
    size = sum(tensor.nbytes for tensor in model.state_dict().values())
    monkeypatch.setattr(preparation, "LARGEST", size)
    scorer(model)
    scorer(model)
    assert len(made) == 1
    monkeypatch.setattr(preparation, "LARGEST", size - 1)
    scorer(model)
    assert len(made) == 2
    assert model not in preparation._COPIES


def test_a_kept_copy_does_not_keep_the_model():
    model = Knobs()
    score, gone = scorer(model), weakref.ref(model)
    assert model in preparation._COPIES
    before = len(preparation._COPIES)
    del model
    gc.collect()
    assert gone() is None
    assert len(preparation._COPIES) < before
    score(KEEP)  # which has a copy of its own


def test_the_copy_that_a_user_is_given_is_nobody_elses():
    model = Net().eval()
    first = scorer(model)(KEEP)
    given = engine.prepare(model, X)
    with torch.no_grad():
        for parameter in given.parameters():
            parameter.zero_()
    torch.testing.assert_close(scorer(model)(KEEP), first, rtol=0, atol=0)


def test_a_model_is_left_as_it_was_when_its_copy_is_used_again():
    model = Knobs().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    scorer(model)
    scorer(model)
    assert model.training
    assert all(module.training for module in model.modules())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


# What was said too little


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_probabilities_that_were_rounded_on_their_way_are_not_softmaxed_twice(dtype):
    model = Net(lambda z: z.repeat(1, 25).softmax(1).to(dtype).float())
    with pytest.warns(UserWarning, match="answers with probabilities, not with logits"):
        score = scorer(model)
    expected = scorer(Net(lambda z: z.repeat(1, 25)))(KEEP)
    torch.testing.assert_close(score(KEEP), expected, atol=2e-3, rtol=0.02)


NEARLY = {
    "three decimals": lambda z: z.repeat(1, 3).softmax(1).mul(1e3).round() / 1e3,
    "smoothed": lambda z: z.softmax(1) + 1e-3,
    "percent": lambda z: z.softmax(1) * 100,
}


@pytest.mark.parametrize("answer", NEARLY.values(), ids=NEARLY)
def test_what_is_nearly_probabilities_is_said(answer):
    with pytest.warns(UserWarning, match="look like probabilities|answers with probabilities"):
        scorer(Net(answer))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer(Logits(Net(answer)))


class FlipsLater(Net):
    """Another sign after eight calls."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * (-1 if self.calls > 8 else 1)


class MovesSlowly(Net):
    """A mean that moves by a millionth in each forward."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(4))

    def forward(self, x):
        self.centre += 1e-6
        return super().forward(x) + self.centre * torch.arange(4)


class WritesWeights(Net):
    """Changes a weight in each forward, a little."""

    def forward(self, x):
        self.fc.weight.data[0] *= 1.00001
        return super().forward(x)


@pytest.mark.parametrize("kind", [FlipsLater, MovesSlowly, WritesWeights])
def test_what_changes_slowly_changes_no_score(kind):
    score = scorer(kind())
    first = score(KEEP)
    for _ in range(20):
        again = score(KEEP)
    assert torch.equal(again, first)


def test_what_each_forward_leaves_the_same_costs_nothing():
    class Keeps(Net):
        def forward(self, x):
            self.last = x * 2
            return super().forward(x)

    assert not isinstance(preparation.prepare(Keeps(), X).model, preparation.Lent)


def test_weights_that_a_model_without_a_copy_changes_are_put_back():
    model = WritesWeights()
    model.file = open(__file__)  # noqa: SIM115
    before = model.fc.weight.detach().clone()
    with pytest.warns(UserWarning, match="cannot be deep-copied"):
        scorer(model)(KEEP)
    assert torch.equal(model.fc.weight, before)


def test_a_module_in_a_list_and_a_generator_are_put_back():
    class Hides(Net):
        def __init__(self):
            super().__init__()
            self.hidden = [(nn.BatchNorm2d(3),)]
            self.generator = torch.Generator().manual_seed(0)

        def forward(self, x):
            torch.rand(2, generator=self.generator)
            return super().forward(self.hidden[0][0](x))

    model = Hides()
    mean, state = model.hidden[0][0].running_mean.clone(), model.generator.get_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scorer(model)(KEEP)
    assert torch.equal(model.hidden[0][0].running_mean, mean)
    assert torch.equal(model.generator.get_state(), state)


def test_a_hook_that_reads_the_models_attributes_is_named():
    model = Net().train()
    model.conv.register_forward_hook(lambda module, args, out: nn.functional.dropout(out, 0.5, model.training))
    with pytest.warns(UserWarning, match="a copy would use the model, which a hook of 'conv' holds on to") as said:
        score = scorer(model)
    assert not any("folded" in str(one.message) for one in said)
    first = score(KEEP)
    model.train()
    assert torch.equal(score(KEEP), first)


LAYER = Net().train()
LAYER.gain = 1.0


def hook_of_a_global(module, args, out):
    return out * LAYER.gain


def test_a_hook_that_reads_a_global_model_is_named():
    model = LAYER
    handle = model.conv.register_forward_hook(hook_of_a_global)
    with pytest.warns(UserWarning, match="which a hook of 'conv' holds on to"):
        scorer(model)
    handle.remove()


# What others than the library give


def test_a_readout_or_a_reference_may_work_in_place():
    def in_place(logits, target):
        target.zero_()
        return logits.exp_().sum(-1)

    def reference(x):
        return x.zero_()

    x, target = X.clone(), TARGET.clone()
    score = scorer(x=x, target=target, output=[in_place, outputs.probability], baseline=reference)
    torch.testing.assert_close(score(KEEP)[..., 1], scorer()(KEEP))
    assert torch.equal(x, X)
    assert torch.equal(target, TARGET)
    one = KEEP[:, :1]
    score(one)
    torch.testing.assert_close(score(one)[..., 1], scorer()(one))


def broken(z):
    return torch.where(z.isfinite(), torch.nan, torch.nan)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: engine.classifier(model)(X),
        lambda model: engine.agreement(model, X, TARGET, torch.float32),
    ],
    ids=["classifier", "agreement"],
)
@pytest.mark.filterwarnings("ignore")
def test_an_answer_without_probabilities_is_an_error(ask):
    with pytest.raises(ValueError, match=r"NaN .*to 5 of 5 inputs"):
        ask(Net(broken))


MORE_WRONG = {
    "NaN of the output": (
        lambda: scorer(output=lambda z, t: z[..., 0] * torch.nan)(KEEP),
        "the output gave NaN for 30 of 30",
    ),
    "an integer output": (lambda: scorer(output=lambda z, t: z.argmax(-1))(KEEP), "floating-point.*torch.int64"),
    "a boolean output": (lambda: scorer(output=lambda z, t: z[..., 0] > 0)(KEEP), "floating-point.*torch.bool"),
    "no output": (lambda: scorer(output=[]), "one output or several, but got an empty list"),
    "an infinite cast": (
        lambda: scorer(x=X.double(), baseline=lambda x: x.new_full((), 1e300), precision=torch.float32),
        "the reference gives numbers that torch.float32.*cannot hold",
    ),
    "classes": (lambda: scorer(Net(lambda z: z.argmax(1))), "gave torch.int64 .*such as the predicted classes"),
    "sparse logits": (lambda: scorer(Net(lambda z: z.to_sparse())), "ordinary dense tensor, but .* sparse_coo"),
    "meta logits": (lambda: scorer(Net(lambda z: z.to("meta"))), "ordinary dense tensor, but .* meta"),
    "no input at a time": (lambda: engine.classifier(Net(), batch_size=-1), "whole number of at least 1, but got -1"),
    "half an input": (lambda: engine.classifier(Net(), batch_size=1.5), "whole number of at least 1, but got 1.5"),
    "none to agree on": (
        lambda: engine.agreement(Net(), X, TARGET, torch.float32, batch_size=0),
        "whole number of at least 1, but got 0",
    ),
}


@pytest.mark.parametrize(("ask", "message"), MORE_WRONG.values(), ids=MORE_WRONG)
@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_is_blamed_as_such(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def test_a_model_exported_for_a_fixed_number_of_inputs_is_told_so():
    class Exported(Net):
        def forward(self, x):
            if len(x) != 4:
                raise AssertionError(f"Guard failed: input.size()[0] == 4, but got {len(x)}")
            return super().forward(x)

    with pytest.raises(AssertionError) as raised:
        scorer(Exported())
    assert any("takes 4 inputs at a time" in note for note in raised.value.__notes__)


# What a model holds that is not one of its modules, parameters or buffers


class Normaliser:
    """A running mean, as an object of a user's keeps it."""

    def __init__(self):
        self.mean, self.count = torch.zeros(6), 20


class Holding(Net):
    """A net that holds something, and a forward that uses it."""

    def __init__(self, hold, use):
        super().__init__()
        hold(self)
        self.use = use

    def forward(self, x):
        return super().forward(self.use(self, x))


def normalised(model, x):
    """Another answer after every forward."""
    model.normaliser.count += len(x)
    model.normaliser.mean.add_(0.1)
    return x + model.normaliser.mean.mean()


def test_a_network_that_is_held_by_its_method_is_left_as_it_was():
    inner = nn.Sequential(nn.BatchNorm2d(3))
    model = Holding(lambda model: vars(model).update(inner=inner.forward), lambda model, x: model.inner(x)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its answers depend on the batch
        scorer(model)(KEEP)
    assert inner[0].num_batches_tracked == 0
    assert (inner[0].running_mean == 0).all()


def test_what_an_object_keeps_is_put_back_after_every_forward():
    model = Holding(lambda model: vars(model).update(normaliser=Normaliser()), normalised).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = scorer(model)
    first = score(KEEP)
    for _ in range(20):
        again = score(KEEP)
    torch.testing.assert_close(again, first, rtol=0, atol=0)
    assert model.normaliser.count == 20
    assert (model.normaliser.mean == 0).all()


def fixed(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "held",
    [
        lambda: fixed(np.ones(3, dtype=np.float32)),
        lambda: np.broadcast_to(np.float32(1), (3,)),
        lambda: torch.empty(3, device="meta"),
        lambda: nn.Linear(2, 2, device="meta"),
        lambda: nn.Parameter(torch.eye(3).to_sparse()),
        lambda: nn.Parameter(torch.eye(3).to_sparse_csr()),
    ],
    ids=["read-only", "broadcast", "meta tensor", "meta module", "sparse", "compressed rows"],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_what_a_model_holds_may_be_of_any_kind(held):
    model = Net().eval()
    expected = scorer(model)(KEEP)
    model.held = held()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sparse weight cannot be copied: the model is run itself
        for batch_size in (None, 1):
            torch.testing.assert_close(scorer(model, batch_size=batch_size)(KEEP), expected)


def test_a_buffer_that_takes_the_shape_of_the_batch_gets_its_own_back():
    def keep(model, x):
        model.last.data = x.mean((2, 3)).detach()
        return x

    model = Holding(lambda model: model.register_buffer("last", torch.full((1, 3), 7.0)), keep).train()
    for batch_size in (None, 1):
        scorer(model, batch_size=batch_size)(KEEP)
        assert model.last.tolist() == [[7, 7, 7]]
        assert all(module.training for module in model.modules())


def test_a_buffer_with_a_nan_is_not_touched():
    model = Net().eval()
    model.register_buffer("odd", torch.tensor([1.0, torch.nan]))
    version = model.odd._version
    scorer(model)(KEEP)
    assert model.odd._version == version


def test_a_model_that_draws_random_numbers_rarely_is_told_so():
    def drawn(model, x):
        return x if torch.rand(()) < 0.9999 else -x

    with pytest.warns(UserWarning, match="draws random numbers in eval mode"):
        scorer(Holding(lambda model: None, drawn).eval())

    def seeded(model, x):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            noise = torch.rand(())
        return x + noise

    def reseeded(model, x):
        torch.manual_seed(0)
        return x + torch.rand(())

    for use in (seeded, reseeded):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scorer(Holding(lambda model: None, use).eval())


def test_a_classifier_says_if_answers_depend_on_how_many_are_asked_about():
    model = Holding(lambda model: None, lambda model, x: x + (len(x) > 8)).eval()
    x = torch.randn(40, 3, 8, 8)
    with pytest.warns(UserWarning, match="an input among few and among 40 differs by"):
        engine.classifier(model)(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.classifier(Net().eval())(x)


def test_a_copy_in_a_lower_precision_is_as_near_as_when_it_was_made():
    class Switched(Net):
        extra = 0.0

        def forward(self, x):
            return super().forward(x) + type(self).extra * x.mean((1, 2, 3))[:, None] * torch.arange(4)

    model = Switched().eval()
    options = {"precision": torch.bfloat16, "output": outputs.logit}
    before = scorer(model, **options)(KEEP)
    for extra in (0.3, 3.0):
        Switched.extra = extra  # a class attribute, which nobody looks at
        torch.testing.assert_close(
            scorer(model, **options)(KEEP), scorer(model, output=outputs.logit)(KEEP), rtol=0.1, atol=0.05
        )
    assert not torch.allclose(before, scorer(model, **options)(KEEP), atol=0.05)


def test_a_network_under_autocast_is_not_called_broken():
    class Under(Net):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer(Under().eval())


@pytest.mark.parametrize("probabilities", [False, True])
def test_answers_that_depend_on_the_layout_of_the_inputs_are_said(probabilities):
    last = X.contiguous(memory_format=torch.channels_last)

    def by_layout(model, x):
        return x * (1 + x.is_contiguous(memory_format=torch.channels_last))

    answer = (lambda logits: logits.softmax(1)) if probabilities else (lambda logits: logits)
    odd = Holding(lambda model: setattr(model, "answer", answer), by_layout).eval()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "it answers with probabilities")
        warnings.filterwarnings("ignore", ".*answers with probabilities")
        with pytest.warns(UserWarning, match="depend on how the inputs lie in memory"):
            scorer(odd, x=last)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer(Net().eval(), x=last)


@pytest.mark.parametrize("size", [1.0, 0.01, 0.001])
def test_a_batch_that_matters_is_said_however_far_the_classes_lie_apart(size):
    model = Net().eval()
    model.bn = nn.BatchNorm2d(6, track_running_stats=False)
    model.fc.weight.data.mul_(size)
    model.fc.bias.data.copy_(torch.tensor([0.0, 3, -2, 1]))
    with pytest.warns(UserWarning, match="depends on the other inputs of the same forward"):
        scorer(model.eval())
