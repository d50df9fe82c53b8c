"""Texts: the published formats on small files, tokens, vocabulary, and the way from a text to a metric."""

import dataclasses
import functools
import hashlib
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from faithlab import baselines, engine, masks, outputs
from faithlab.explainers import explain
from faithlab.explainers.degrade import degrade
from faithlab.metrics.fidelity import remaining
from faithstudy.data import cache, datasets, papers, sources, texts
from faithstudy.data.sets import TextSet
from faithstudy.data.sources import DatasetUnavailable
from faithstudy.networks import training
from faithstudy.trials import roar


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


# --- tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("It's n't BAD!", ["it's", "n't", "bad", "!"]),
        ("Rock 'n' roll (1999)...", ["rock", "'", "n", "'", "roll", "(", "1999", ")", ".", ".", "."]),
        ("crème  brûlée\t– we’ve", ["crème", "brûlée", "–", "we’ve"]),
        ("", []),
    ],
)
def test_tokens_are_words_and_single_marks_in_lower_case(text, tokens):
    assert texts.tokenise(text) == tokens


@given(st.text())
def test_tokens_hold_all_that_is_not_white_space_or_a_stranger(text):
    tokens = texts.tokenise(text)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    assert "".join(tokens) == "".join(text.lower().split())


def test_the_vocabulary_is_the_most_frequent_tokens_the_first_seen_before_others():
    tokenised = [["b", "a", "c"], ["c", "d"], ["d"]]
    assert texts.vocabulary(tokenised, 100) == (*texts.SPECIAL, "c", "d", "b", "a")
    assert texts.vocabulary(tokenised, 5) == (*texts.SPECIAL, "c", "d")
    assert [texts.SPECIAL[i] for i in (TextSet.PADDING, TextSet.MASK, TextSet.UNKNOWN)] == ["[PAD]", "[MASK]", "[UNK]"]


def test_ids_are_cut_padded_and_unknown():
    known = (*texts.SPECIAL, "a", "b")
    ids = texts.encode([["b", "z", "a"], ["a"], ["a", "b", "a", "b", "b"]], known, 4)
    assert ids.dtype == torch.int64
    assert ids.tolist() == [[4, 2, 3, 0], [3, 0, 0, 0], [3, 4, 3, 4]]


def test_what_is_stored_gives_the_texts_back():
    stored, labels = texts.join(["one\ntwo", " crème  brûlée "], [1, 0])
    assert (stored.dtype, labels.dtype) == (np.uint8, np.int64)
    assert texts.split(torch.from_numpy(stored)) == ["one two", "crème brûlée"]


# --- the published formats


HUTTO = "hutto_ICWSM_2014.tar.gz"


def snippets_archive(path, lines):
    content = "\r\n".join(f"{i}\t{grade}\t{text}" for i, (grade, text) in enumerate(lines, start=1)).encode()
    with tarfile.open(path, "w:gz") as tar:
        for name, data in (("movieReviewSnippets_GroundTruth.txt", content), ("other.txt", b"1\t3\tno")):
            member = tarfile.TarInfo(f"hutto_ICWSM_2014/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def test_a_snippet_has_the_polarity_of_its_grade_and_no_other_split(tmp_path):
    clear = [(round((-1) ** i * (0.9 + i / 50), 2), f"snippet number {i} &amp; so on") for i in range(150)]
    vague = [(grade, f"vague {i}") for i, grade in enumerate((0, 0.8, -0.8, 0.1, -0.79))]
    twice = [(3, "The very same."), (2, "the  VERY same ."), (-1, "the very same .")]
    archive = snippets_archive(tmp_path / "x.tar.gz", [*clear, *vague, *twice])
    parts = {part: texts.snippets({HUTTO: archive}, part) for part in ("train", "test")}
    found = {
        part: list(zip(texts.split(torch.from_numpy(stored)), labels.tolist(), strict=True))
        for part, (stored, labels) in parts.items()
    }
    everything = found["train"] + found["test"]
    expected = [(text.replace("&amp;", "&"), int(grade > 0)) for grade, text in [*clear, *twice]]
    assert sorted(everything) == sorted((" ".join(text.split()), label) for text, label in expected)
    same = [[text for text, _ in of_part if "same" in text.lower()] for of_part in found.values()]
    assert sorted(len(of_part) for of_part in same) == [0, 3]
    assert 15 <= len(found["test"]) <= 45  # a fifth of 153
    # A snippet's split and order do not depend on the others.
    fewer = texts.snippets({HUTTO: snippets_archive(tmp_path / "y.tar.gz", clear[::2])}, "test")
    kept = [pair for pair in found["test"] if pair[0] in {text.replace("&amp;", "&") for _, text in clear[::2]}]
    assert list(zip(texts.split(torch.from_numpy(fewer[0])), fewer[1].tolist(), strict=True)) == kept


TABLES = {
    "GLUE's": 'sentence\tlabel\nit \'s "fine" , really \t1\nno movement .\t0\n',
    "turned": 'label\tcontent\n1\tit \'s "fine" , really\n0\tno movement .\n',
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_of_glue_is_read_by_its_header(tmp_path, table):
    (tmp_path / "dev.tsv").write_text(table, encoding="utf-8")
    stored, labels = papers.glue({"dev.tsv": tmp_path / "dev.tsv"}, "test")
    assert texts.split(torch.from_numpy(stored)) == ['it \'s "fine" , really', "no movement ."]
    assert labels.tolist() == [1, 0]


QUESTIONS = [
    {"question": "is the sky blue", "title": "Sky", "answer": True, "passage": "By day the sky is blue."},
    {"question": "is grass red", "title": "Grass", "answer": False, "passage": "Grass is green."},
]


def test_a_question_comes_before_its_passage(tmp_path):
    (tmp_path / "dev.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)) + "\n")
    stored, labels = papers.boolq({"dev.jsonl": tmp_path / "dev.jsonl"}, "test")
    assert texts.split(torch.from_numpy(stored)) == [
        "is the sky blue ? By day the sky is blue.",
        "is grass red ? Grass is green.",
    ]
    assert labels.tolist() == [1, 0]


# --- data sets by name


def place(name, files):
    folder = sources.by_hand(name)
    folder.mkdir(parents=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return folder


def expect(monkeypatch, name, files):
    """Let the official archives have these contents."""
    collection = datasets.COLLECTIONS[name]
    first, *rest = collection.sources
    archives = tuple(dataclasses.replace(a, checksum=sha256(files[a.name]), addresses=()) for a in first.archives)
    changed = dataclasses.replace(first, archives=archives)
    monkeypatch.setitem(datasets.COLLECTIONS, name, dataclasses.replace(collection, sources=(changed, *rest)))


TRAIN = b"sentence\tlabel\ngood good film\t1\nbad film\t0\n"
DEV = b"sentence\tlabel\na good one , not bad\t1\n"


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"SST-2/{name}.tsv", content)
    return stream.getvalue()


@pytest.mark.parametrize("unpacked", [True, False], ids=["files", "archive"])
def test_sst2_is_read_from_what_was_put_by_hand(home, monkeypatch, unpacked):
    if unpacked:
        place("sst2", {"train.tsv": TRAIN, "dev.tsv": DEV})
        monkeypatch.setattr(sources.Archive, "get", lambda *_: pytest.fail("the network was asked"))
    else:
        files = {"SST-2.zip": zipped(train=TRAIN, dev=DEV, test=b"index\tsentence\n0\tx\n")}
        expect(monkeypatch, "sst2", files)
        place("sst2", files)
    train, test = (datasets.load("sst2", split, length=4) for split in ("train", "test"))
    assert isinstance(train, TextSet)
    assert train.vocabulary == (*texts.SPECIAL, "good", "film", "bad")
    assert train.inputs.tolist() == [[3, 3, 4, 0], [5, 4, 0, 0]]
    assert test.vocabulary == train.vocabulary, "words of the test split became known"
    assert test.inputs.tolist() == [[2, 3, 2, 2]]
    assert (train.labels.tolist(), test.labels.tolist()) == ([1, 0], [1])
    assert train.classes == ("negative", "positive")
    assert train.present().tolist() == [[True, True, True, False], [True, True, False, False]]


def test_boolq_is_read_from_what_was_put_by_hand(home, monkeypatch):
    files = {f"{part}.jsonl": json.dumps(QUESTIONS[i]).encode() for i, part in enumerate(("train", "dev"))}
    place("boolq", files)
    with pytest.raises(DatasetUnavailable, match=r"(?s)train\.jsonl is broken or was changed"):
        datasets.load("boolq")
    expect(monkeypatch, "boolq", files)
    train = datasets.load("boolq", words=6)
    assert train.classes == ("no", "yes")
    assert [train.vocabulary[i] for i in train.inputs[0, :7]] == [
        "is",
        "the",
        "sky",
        "[UNK]",
        "[UNK]",
        "[UNK]",
        "[UNK]",
    ]
    assert train.inputs.shape == (1, 64)
    assert datasets.load("boolq", "test").labels.tolist() == [0]


def test_texts_have_their_own_options(home):
    place("sst2", {"train.tsv": TRAIN, "dev.tsv": DEV})
    with pytest.raises(TypeError, match="unexpected keyword argument 'share'"):
        datasets.load("sst2", share=0.2)


def test_the_snippets_are_those_of_the_package():
    if not all((cache.folder() / "datasets" / f"rotten-tomatoes.{s}.safetensors").exists() for s in ("train", "test")):
        pytest.skip("rotten-tomatoes is not in the cache; python -m faithstudy.data.datasets fetch rotten-tomatoes")
    train, test = (datasets.load("rotten-tomatoes", split) for split in ("train", "test"))
    assert (len(train), len(test)) == (7736, 1829)
    assert abs(train.labels.double().mean() - 0.5) < 0.01
    assert len(train.vocabulary) == 10_000
    assert train.vocabulary[3:6] == (".", "the", ",")
    texts_of = [{tuple(row) for row in part.inputs.tolist()} for part in (train, test)]
    assert not texts_of[0] & texts_of[1]
    rising = [(part.inputs[:, 1:] == 0) | (part.inputs[:, :-1] != 0) for part in (train, test)]
    assert all(bool(part.all()) for part in rising), "padding inside a text"


# --- from a text to a metric

GOOD, BAD, LENGTH = ("great", "warm", "wise"), ("dull", "cold", "crude"), 12


@pytest.fixture
def learnable(home):
    """Made-up reviews of 4 to 12 tokens; one of them tells the class. And the recipe of a network that finds it."""
    generator = np.random.default_rng(0)

    def table(count):
        lines = ["sentence\tlabel"]
        for i in range(count):
            words = [f"w{generator.integers(40)}" for _ in range(4 + i % 9)]
            words[generator.integers(len(words))] = generator.choice(GOOD if i % 2 else BAD)
            lines.append(f"{' '.join(words)}\t{i % 2}")
        return "\n".join(lines).encode()

    place("sst2", {"train.tsv": table(600), "dev.tsv": table(90)})
    options = {"length": LENGTH, "words": 60}
    return training.Recipe(
        data="sst2",
        data_options=options,
        model="lstm",
        model_options={"words": 60, "dim": 16, "hidden": 16},
        epochs=5,
        rate=0.02,
        decay=0.0,
        batch=50,
    )


def told_by(test: TextSet) -> torch.Tensor:
    """The place of the telling word in each text."""
    telling = torch.tensor([test.vocabulary.index(word) for word in GOOD + BAD])
    return torch.isin(test.inputs, telling).int().argmax(1)


def test_a_text_is_learnt_explained_and_scored_without_its_padding(learnable):
    test = datasets.load("sst2", "test", **learnable.data_options)
    network = training.trained(learnable)
    tuned = training.trained(dataclasses.replace(learnable, epochs=1, mask_share=0.3, start=learnable))
    assert training.accuracy(network, test) > 0.95
    x, y, present = test.model_inputs(), test.labels, test.present()
    attribution = explain("integrated-gradients-embedding", network, x, y, test.features())
    assert (attribution.argmax(1) == told_by(test)).float().mean() > 0.9
    assert not attribution[~present].any()

    def left(model, ids, order, has, **options):
        mask = functools.partial(baselines.token, identity=TextSet.MASK)
        features = torch.arange(ids.shape[1])
        score = engine.scorer(model, ids, y, segments=features, baseline=mask, output=outputs.probability)
        return remaining(score, order, torch.tensor([0.25, 0.5]), present=has, **options).value

    for model, options in ((network, {}), (tuned, {"alpha": 0.5, "cap": 0.3, "draws": 3})):
        short = left(model, x, attribution, present, **options)
        assert short.mean() < left(model, x, -attribution, present, **options).mean() - 0.1
        # The same texts with more padding are the same texts, where no random subset is drawn from other places.
        if not options:
            padded = torch.nn.functional.pad(x, (0, 4))
            longer = left(
                model,
                padded,
                torch.nn.functional.pad(attribution, (0, 4), value=9.0),
                torch.nn.functional.pad(present, (0, 4)),
            )
            torch.testing.assert_close(longer, short, atol=1e-6, rtol=1e-5)


def test_degrading_a_text_permutes_its_own_tokens_only(learnable):
    test = datasets.load("sst2", "test", **learnable.data_options)
    present = test.present()
    attribution = torch.rand(present.shape, generator=torch.Generator().manual_seed(0)).where(present, -1)
    worse = degrade(attribution, 1.0, present=present)
    assert (worse[~present] == -1).all()
    assert torch.equal(worse.sort(1).values, attribution.sort(1).values)
    assert (worse != attribution)[present].float().mean() > 0.5


def test_roar_orders_the_tokens_of_a_text_before_its_padding(learnable):
    explainers = {"IG": ("integrated-gradients-embedding", {"steps": 4})}
    network = roar.networks(dataclasses.replace(learnable, epochs=1), learnable, explainers)["IG"]
    assert not network.training
    (stored,) = (cache.folder() / "orders").glob("*.safetensors")
    with safe_open(stored, "pt") as file:
        order = file.get_tensor("order").long()
    present = datasets.load("sst2", "train", **learnable.data_options).present()
    assert torch.equal(order.sort(1).values, torch.arange(LENGTH).expand_as(order))
    placed = masks.place(order)
    assert (placed.where(present, -1).amax(1) < present.sum(1)).all()
