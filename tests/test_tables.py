"""Tables of the book say what they are about in words."""

import pandas as pd

from faithlab.study import tables


def test_levels_are_words_and_names_of_metrics_stay_as_they_are():
    index = pd.MultiIndex.from_product([["macro_correlation", "micro_rank"], ["MoRF vs GT"]])
    html = tables.styled(pd.DataFrame({"S_avg": ["1", "2"]}, index=index)).to_html()
    assert "macro correlation" in html
    assert "micro rank" in html
    assert "S_avg" in html
    assert "_correlation" not in html
