"""The tables of docs/audit.md follow from the scores beside them."""

from pathlib import Path

import pandas as pd

from tests.modules import module

DOCS = Path(__file__).parents[2] / "docs"


def test_the_text_is_that_of_the_scores():
    made = module(DOCS / "label_free.py")
    found = pd.read_csv(made.SCORES)
    page = (DOCS / "audit.md").read_text(encoding="utf-8")
    own = found[found["metric"] == "accuracy"]
    mean = (own["estimated"] - own["true"]).abs().mean()
    assert f"| accuracy | estimate | {mean:.3f} |" in page
    high = (own["estimated"] > own["true"]).sum()
    assert f"{high} of the {8 * 7} estimates of accuracy\nare too high" in page
    shown = found[found["trained_in"] == made.SHOWN]
    missed = shown[(shown["true"] < shown["low"]) | (shown["true"] > shown["high"])]
    assert sorted(missed["state"]) == ["HI", "HI", "RI"]
