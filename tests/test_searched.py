"""What the pages on searches search: lines of parameters, and networks with inputs that they recognise."""

import pytest
import torch

from faithlab import segments
from faithlab.study import searched
from faithlab.study.searched import Case


def test_a_line_is_a_case_and_is_called_by_what_it_asks():
    (case,) = searched.cases(["resnet9 16 y 24 900 130"])
    assert case == Case("resnet9", 16, "y", 24, 900, 130)
    assert case.called == "ResNet-9, 16 features, logit"


@pytest.mark.parametrize(
    "line", ["", "resnet9 16 z 24 900 130", "resnet9 16 p 24 900", "resnet9 p 16 24 900 130", "16 16 p 24 900 130"]
)
def test_another_line_is_an_error_that_shows_one(line):
    with pytest.raises(ValueError, match=r"such as 'resnet9 16 p 24 900 210', but got "):
        searched.cases([line])


def test_inputs_that_are_passed_over_are_not_asked_about():
    case = Case("resnet9", 16, "p", 3, 1, 1)
    first = searched.subject(case._replace(inputs=5))
    fresh = searched.subject(case, passed_over=2)
    assert fresh.images.tolist() == first.images[2:].tolist()
    assert fresh.network == case.called
    assert segments.count(fresh.segments) == 16
    assert bool((fresh.model(fresh.x).argmax(1) == fresh.target).all())
    with pytest.raises(ValueError, match="but 1001 are needed"):
        searched.subject(Case("bilstm", 29, "p", 3, 1, 1), passed_over=1000)


def test_a_series_has_its_own_features():
    case = Case("bilstm", 29, "p", 2, 1, 1)
    assert torch.equal(searched.subject(case).segments.unique(), torch.arange(29))
    with pytest.raises(ValueError, match="bilstm has 29 features, not 30"):
        searched.subject(case._replace(features=30))
