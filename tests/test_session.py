"""Kedro's session: garbage of a run is collected in the end."""

import gc

import pytest

from robust_fairness.runs.session import started, starting


def test_no_garbage_is_collected_while_a_run_starts():
    with starting():
        assert not gc.isenabled()
        started()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0


@pytest.mark.parametrize("error", [None, KeyError])
def test_all_objects_are_garbage_again_after_a_run(error):
    """Libraries write many lines about objects that are left when the process ends."""

    def run():
        with starting():
            started()
            if error:
                raise error

    if error:
        with pytest.raises(error):
            run()
    else:
        run()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
