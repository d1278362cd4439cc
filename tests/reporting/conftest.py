"""What tests of several studies look at."""

import pytest

from robust_fairness.reporting import report
from tests.reporting.made_up import results, row


@pytest.fixture(scope="session")
def page_of_another_run() -> str:
    """The report of a run that no study is about, without its head."""
    rows = [row(dataset="diabetes"), row(dataset="diabetes", shift="gaussian_noise")]
    return report(results(rows), [], {"run_id": "x"}).split("<main")[1]
