"""What all sections of the report have in common."""

import pytest

from robust_fairness.reporting import VIEWS, report
from robust_fairness.reporting.views import declared, section
from tests.reporting.made_up import results, row

STUDIES = ("bias_mitigation", "kernel_fairness", "latent_shift", "fair_metric_learning")
OTHER = [row(dataset="diabetes"), row(dataset="diabetes", shift="gaussian_noise")]


@pytest.fixture(scope="module")
def page_of_another_run() -> str:
    """The report of a run that no study is about, without its head."""
    return report(results(OTHER), [], {"run_id": "x"}).split("<main")[1]


def test_every_view_has_a_title():
    """And no name stands twice in ``views.yml``."""
    assert sum(len(fields["views"]) for fields in declared().values()) == len(VIEWS)
    assert all(view.title for view in VIEWS.values())


@pytest.mark.parametrize("rows", [OTHER, []], ids=["another run", "no rows"])
@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_shown_of_a_run_without_the_cells_of_a_study(name, rows):
    """Neither views nor claims."""
    study, of_it = section(name), results(rows)
    assert all(view.rows(of_it).empty for view in study.views)
    assert study.claims(of_it).empty


@pytest.mark.parametrize("name", STUDIES)
def test_the_section_of_a_study_is_not_on_the_page_of_another_run(name, page_of_another_run):
    assert section(name).title not in page_of_another_run
