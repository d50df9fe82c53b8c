"""The API's entries lead to the pages that use them."""

import uses

from faithstudy import paths

SCRIPT = """
import torch
from faithlab import engine
from faithstudy.claims import better as greater
from faithstudy.run import Run

run = Run("part/page", globals())
run.claim("id", "here", "It is.", [greater(1, 2)])
engine.scorer(torch.nn.Identity())
"""


def test_what_a_script_names_of_the_library_is_found_under_any_name():
    asked = uses.asked(SCRIPT)
    assert {"faithstudy.claims.better", "faithlab.engine.scorer", "faithstudy.run.Run"} <= asked
    assert not any("torch" in name for name in asked)


def test_a_use_counts_where_the_thing_is_defined():
    assert uses.defined("faithstudy.claims.better") == "faithstudy.claims.parts.better"
    assert uses.defined("faithlab.metrics.METRICS") == "faithlab.metrics.METRICS"
    assert uses.defined("faithlab.nobody.nothing") == "faithlab.nobody.nothing"


def test_an_entry_leads_to_the_pages_that_use_it_and_to_no_other():
    using = uses.pages()["faithstudy.run.Run"]
    assert using == [page for page in paths.pages() if "Run(" in paths.script(page).read_text(encoding="utf-8")]
    said = uses.sentence("faithstudy.run.Run")
    assert said.count(":doc:") == uses.SHOWN
    assert said.endswith(f"and {len(using) - uses.SHOWN} more.")
    assert uses.sentence("faithlab.nobody.nothing") == ""
