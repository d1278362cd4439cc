"""Numbers are those of the version that wrote the goldens; a net and no oracle, see ``make``."""

import warnings

import pytest

from tests.golden.answers import GOLDENS

MOST = 20  # changed cells that are shown
SIZES = [
    pytest.param(name, cases, marks=() if cases == golden.fast else pytest.mark.slow)
    for name, golden in GOLDENS.items()
    for cases in (golden.fast, golden.cases)
]


@pytest.mark.parametrize(("name", "cases"), SIZES)
def test_no_number_has_changed(name, cases):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metrics that some rows do not define
        changed = list(GOLDENS[name].changed(name, cases))
    assert not changed, "\n".join([f"{len(changed)} cells changed", *changed[:MOST]])
