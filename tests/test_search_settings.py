"""What the pages on searches search: lines of parameters, and networks with inputs that they recognise."""

import dataclasses

import pytest
import torch

from faithlab import segments
from faithstudy import search_settings
from faithstudy.data import datasets
from faithstudy.search_settings import Case


def test_a_line_is_a_case_and_is_called_by_what_it_asks():
    (case,) = search_settings.cases(["resnet9 16 y 24 900 130"])
    assert case == Case("resnet9", 16, "y", 24, 900, 130)
    assert case.called == "ResNet-9, 16 features, logit"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "resnet9 16 z 24 900 130",
        "resnet9 16 p 24 900",
        "resnet9 p 16 24 900 130",
        "16 16 p 24 900 130",
        "resnet9 0 p 24 900 130",
        "resnet9 16 p ² 900 130",
    ],
)
def test_another_line_is_an_error_that_shows_one(line):
    with pytest.raises(ValueError, match=r"such as 'resnet9 16 p 24 900 210', but got "):
        search_settings.cases([line])


def test_inputs_that_are_passed_over_are_not_asked_about():
    case = Case("resnet9", 16, "p", 3, 1, 1)
    first = search_settings.task(case._replace(inputs=5))
    fresh = search_settings.task(case, passed_over=2)
    assert fresh.images.tolist() == first.images[2:].tolist()
    assert fresh.network == case.called
    assert segments.count(fresh.segments) == 16
    assert bool((fresh.model(fresh.x).argmax(1) == fresh.target).all())
    with pytest.raises(ValueError, match="but 1003 are needed"):
        search_settings.task(Case("bilstm", 29, "p", 3, 1, 1), passed_over=1000)


def test_two_lines_that_ask_the_same_are_an_error_and_so_is_none():
    for lines in (["resnet9 16 p 24 900 130", "resnet9 16 p 6 100 10"], []):
        with pytest.raises(ValueError, match="no two ask the same"):
            search_settings.cases(lines)


def test_a_network_or_a_number_of_features_that_is_not_there_is_an_error():
    case = Case("resnet9", 15, "p", 1, 1, 1)
    with pytest.raises(ValueError, match="resnet9 has 16 features, not 15"):
        search_settings.task(case)
    with pytest.raises(ValueError, match="divides the sides 32 x 32, but got 10"):
        search_settings.task(case._replace(features=9))
    with pytest.raises(ValueError, match=r"there is no network resnet99: expected one of resnet9, .*now none"):
        search_settings.task(case._replace(network="resnet99"))


def test_photographs_are_passed_over_by_a_number_of_their_own(monkeypatch):
    class White(torch.nn.Module):
        """Gives every photograph the class of the first."""

        def __init__(self, label):
            super().__init__()
            self.answer = torch.nn.Parameter(torch.nn.functional.one_hot(label, 1000).float())

        def forward(self, x):
            return self.answer.expand(len(x), -1)

    data = datasets.load(search_settings.PHOTOGRAPHS, "test")
    labels = data.labels.clone()
    labels[::2] = labels[0]
    data = dataclasses.replace(data, labels=labels)
    monkeypatch.setattr(search_settings.datasets, "load", lambda name, split, **_: data)
    monkeypatch.setattr(search_settings.pretrained, "load", lambda name: White(labels[0]))
    found = search_settings.task(
        Case("large", 16, "p", 3, 1, 1), photographed=["large"], passed_over=100, photographs_passed_over=2
    )
    assert found.images.tolist() == [4, 6, 8]
    assert (found.dataset, found.network) == ("imagenet-foolbox test", "large, 16 features, probability")


def test_what_differs_in_training_is_of_resnet9_alone():
    case = Case("bilstm", 29, "p", 1, 1, 1)
    changed = search_settings.task(case, training={"epochs": 1})
    assert all(
        torch.equal(a, b)
        for a, b in zip(*(s.model.parameters() for s in (changed, search_settings.task(case))), strict=True)
    )


def test_a_series_has_its_own_features():
    case = Case("bilstm", 29, "p", 2, 1, 1)
    assert torch.equal(search_settings.task(case).segments.unique(), torch.arange(29))
    with pytest.raises(ValueError, match="bilstm has 29 features, not 30"):
        search_settings.task(case._replace(features=30))
