"""Two runs below each other."""

from robust_fairness.reporting import Results, comparison
from robust_fairness.reporting.first_screen import answers
from tests.reporting.test_report import made_up


def test_the_answers_of_both_runs_stand_below_each_other():
    first, second = made_up(), made_up()
    gap = (second["shift"] == "gaussian_noise") & (second["metric"] == "delta_eo")
    second.loc[gap, "value"] -= 0.2
    runs = Results(first), Results(second[second["method"] != "laftr"])
    page = comparison(*runs, ("a", "b"))
    _, *parts = page.split("<h2>Run ")
    for name, part, run in zip("ab", parts, runs, strict=True):
        assert part.startswith(name)
        assert f"<strong>{answers(run)[0]}.</strong>" in part
    assert "laftr" in parts[0] and "laftr" not in parts[1]
