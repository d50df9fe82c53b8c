"""Words of sentences that several pages share."""

from faithstudy import summaries


def test_numbers_of_several_are_listed_with_their_names():
    assert summaries.of_each({"A": 0.835, "B": -0.1, "C-9": 0.5}) == "0.83 (A), −0.10 (B) and 0.50 (C-9)"
