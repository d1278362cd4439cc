"""What all sections of the report have in common."""

from dataclasses import fields, replace

import pytest
import yaml

from robust_fairness.catalog import names
from robust_fairness.papers import SECTIONS
from robust_fairness.report import Results, report
from robust_fairness.report.results import computed_once
from tests.golden.others import PAPERS, results_of
from tests.project import ROOT
from tests.report.made_up import results, row

STUDIES = ("bias_mitigation", "kernel_fairness", "latent_shift", "fair_metric_learning")
OTHER = [row(dataset="diabetes"), row(dataset="diabetes", shift="gaussian_noise")]


def test_tables_that_the_report_reads_are_those_declared():
    """As fields of the results, and as entries of the catalog by what makes them."""
    of_cells = names.tables_of("cell", "drawing", "trials")
    of_datasets = names.tables_of("dataset", "domains", "generator", "reference")
    every = {*of_cells, *of_datasets, *names.tables_of("run")}
    assert {field.name for field in fields(Results)} == every | {
        "by_domain", "computed", "correct",
    }  # fmt: skip
    catalog = yaml.safe_load((ROOT / "conf" / "base" / "catalog.yml").read_text())
    entries = {f"{{dataset}}.{{method}}.{name}" for name in of_cells}
    entries |= {f"{{dataset}}.{name}" for name in of_datasets}
    assert every | entries <= catalog.keys()


def test_a_function_of_results_is_computed_once_for_each():
    calls = []
    doubled = computed_once(lambda run, factor: calls.append(factor) or factor * len(run.metrics))
    first, second = results(OTHER), results([])
    assert [doubled(first, 2), doubled(first, 2), doubled(first, 3), doubled(second, 2)] == [
        4, 4, 6, 0,
    ]  # fmt: skip
    assert calls == [2, 3, 2]


@pytest.mark.parametrize("rows", [OTHER, []], ids=["another run", "no rows"])
@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_shown_of_a_run_without_the_cells_of_a_study(name, rows):
    """Neither views nor claims that were run."""
    study, of_it = SECTIONS[name], results(rows)
    assert all(view.rows(of_it).empty for view in study.views)
    assert set(study.claims(of_it)["state"]) == {"not run"}


@pytest.mark.parametrize("stored", PAPERS)
def test_a_paper_has_no_row_of_datasets_that_do_not_concern_it(stored):
    """So that its section, which the page of a run without others leaves out, would be empty."""
    run = results_of(stored)
    alone = {name: of_datasets(run, [name]) for name in run.metrics["dataset"].unique()}
    for paper in PAPERS:
        section = SECTIONS[paper]
        others = [name for name, part in alone.items() if not section.about.fits(part)]
        assert (len(others) < len(alone)) == (paper == stored)
        part = of_datasets(run, others)
        assert all(view.rows(part).empty for view in section.views)
        assert set(section.claims(part)["state"]) == {"not run"}


def of_datasets(run: Results, names: list[str]) -> Results:
    """The rows of some datasets."""
    every = {field.name: getattr(run, field.name) for field in fields(Results) if field.init}
    return Results(
        **{
            name: rows[rows["dataset"].isin(names)] if "dataset" in rows else rows
            for name, rows in every.items()
        }
    )


def test_sections_of_papers_that_a_run_does_not_concern_are_not_computed():
    def fails(results):
        raise AssertionError

    section = replace(SECTIONS["latent_shift"], measured=fails, views=())
    assert section.title not in report(results(OTHER), [], {"run_id": "x"}, [section])
    shifted = [row(dataset="mine"), row(dataset="mine", shift="extend")]
    with pytest.raises(AssertionError):
        report(results(shifted), [], {"run_id": "x"}, [section])


@pytest.mark.parametrize(
    ("name", "fields", "facets"),
    [
        ("equalized_robustness", {}, {"study": "adult"}),
        ("bias_mitigation", {}, {"study": "celeba_hair"}),
        ("kernel_fairness", {}, {"study": "compas"}),
        ("latent_shift", {"shift": "truncation"}, {}),
        ("fair_metric_learning", {"metric": "recall_at_halves_gap"}, {}),
    ],
)
def test_a_dataset_of_a_users_own_concerns_a_paper_by_what_it_is(name, fields, facets):
    mine = [row(dataset="mine"), row(dataset="mine", **fields)]
    section = SECTIONS[name]
    assert section.about.fits(results(mine, {"mine": facets}))
    assert not section.about.fits(results([row(dataset="mine")], {"mine": {"kind": "table"}}))


@pytest.mark.parametrize("paper", PAPERS)
def test_page_shows_every_view_of_the_stored_scores_with_its_figure(paper):
    run, section = results_of(paper), SECTIONS[paper]
    page = report(run, [], {"run_id": "x"}, [section])
    for view in section.views:
        shown = not view.rows(run).empty
        assert (f'id="{view.id}"' in page) == shown
        assert (f'id="figure-{view.id}"' in page) == (shown and view.draw is not None)
