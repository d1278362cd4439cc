"""The tables of docs/audit.md follow from the scores beside them."""

from studies.audit import tables as made
from tools.pages import DOCS


def test_the_text_is_that_of_the_scores():
    every = made.label_free()
    pairs = every[every["design"] == made.PAIRS]
    page = (DOCS / "audit.md").read_text(encoding="utf-8")
    assert made.PAGES[0].files()[DOCS / "audit.md"] == page
    inside = (pairs["low"] <= pairs["true"]) & (pairs["true"] <= pairs["high"])
    accuracy, gap = (pairs["metric"] == metric for metric in made.METRICS)
    assert f"inside {inside[accuracy].sum()} of the 56 intervals" in page
    assert f"the true gap inside {inside[gap].sum()}." in page
    error = pairs[accuracy][[*made.GUESSES]].sub(pairs.loc[accuracy, "true"], axis=0)
    assert f"{(error['estimated'] > 0).sum()} of the {len(error)} estimates of accuracy" in page
    assert len(error) == 56
    mean = error.abs().mean()
    assert abs(mean["weighted_by_score"] - mean["estimated"]) < 0.002  # hypothesis 1
    assert mean["weighted_by_features"] > mean["estimated"]  # 2 does not hold
    assert (error["weighted_by_features"] > 0).sum() > 40  # 3
