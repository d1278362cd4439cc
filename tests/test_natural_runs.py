"""The example of docs/natural_shift.md, run as it stands there, and mistakes in designs."""

import pandas as pd
import pytest

from robust_fairness.bench.experiment.domains import Design
from robust_fairness.core.errors import InputError
from tests.project import Project
from tests.test_experiment import experiment


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project.copied_to(tmp_path_factory.mktemp("project"))
    made.follow("natural_shift.md")
    return made


def test_a_table_with_domains_is_trained_without_each_of_them(project: Project) -> None:
    """Accuracies of other domains are those of their predictions; no patient is on both sides."""
    metrics = project.metrics("visits")
    assert set(metrics["dataset"]) == {
        f"visits_without_{name}" for name in ("north", "south", "west")
    }
    outside = metrics[metrics["shift"] == "domain"]
    left_out = outside["dataset"].str.removeprefix("visits_without_")
    assert (left_out == outside["domain"]).all()
    raw = pd.read_csv(project.root / "data" / "01_raw" / "visits" / "visits.csv")
    attributes = project.samples("visits_without_west", "visits").table()
    split = attributes["split_0"].astype(object)
    west = (raw["hospital"] == "west").to_numpy()
    assert set(split[west].dropna()) == {"ood_test"}
    assert set(split[~west]) == {"train", "val", "test"}
    inside = set(raw["patient"][~west])
    tested = (split == "ood_test").to_numpy()
    assert not inside & set(raw["patient"][tested])
    assert set(raw["patient"][west & ~tested]) <= inside
    (rows,) = outside.query("domain == 'west'").drop_duplicates("n").query("group == ''")["n"]
    assert rows == tested.sum()
    assert "features" not in attributes
    assert "hospital" in attributes


def test_the_report_answers_what_changes(project: Project) -> None:
    page = project.file("report.html", "visits").read_text()
    assert "differences between groups, at equal numbers of rows" in page
    assert "inconclusive" in page


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"train": "each", "names": ["a"]}, "train: each needs two domains or more"),
        ({"train": ["a", "a"]}, "a is given twice"),
        ({"train": ["a"], "test": ["a"]}, "a is given twice"),
        ({"names": ["a", "b"]}, "train and test are missing"),
        ({"train": "each", "names": ["a", "b"], "test": ["c"]}, "not allowed with train: each"),
        ({"train": "eahc", "names": ["a", "b"]}, "train: allowed: a list of domains, or each"),
    ],
)
def test_mistakes_in_designs_are_named(written: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Design.model_validate(written)


def test_designs_are_the_trainings_that_they_say() -> None:
    names = ["2013", "2014", "2015"]
    past = Design(train="before_each", names=names, rows="test").trainings()
    assert {
        name: (training.train, training.test, training.rows) for name, training in past.items()
    } == {
        "before_2014": (("2013",), ("2014", "2015"), "test"),
        "before_2015": (("2013", "2014"), ("2015",), "test"),
    }
    left = Design(train="all_but_each", names=names).trainings()
    assert left["without_2014"].train == ("2013", "2015")
    assert left["without_2014"].test == ("2014",)
    each = Design(train="each", names=names).trainings()
    assert each["2013"].test == ("2014", "2015")
    (training,) = Design(train=["2013"], validation=["2014"], names=names).trainings().values()
    assert (training.train, training.validation, training.test) == (("2013",), ("2014",), ("2015",))


def test_years_need_no_quotes_and_mistakes_have_their_line() -> None:
    text = """\
protocol: fast
network: mlp
datasets:
  one:
    domains: {train: before_each, names: [2013, 2014, 2015]}
    methods: {erm: }
"""
    made = experiment(text)
    assert [dataset.name for dataset in made.datasets] == ["one_before_2014", "one_before_2015"]
    assert {dataset.base for dataset in made.datasets} == {"one"}
    facets = made.datasets[1].cells[0].facets
    assert facets == {"data": "one", "trained_on": "2013 + 2014", "trained_until": "2014"}
    assert len(made.narrowed({"datasets": "one"}).datasets) == 2
    assert len(made.narrowed({"datasets": "one_before_2014"}).datasets) == 1
    with pytest.raises(InputError, match=r"domains of dataset 'one'.*\(base.yml:5\)"):
        experiment(text.replace("[2013, 2014, 2015]", "[2013]"))
