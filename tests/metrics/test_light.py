"""Metrics without the extra ``train``."""

import subprocess
import sys

CODE = """
import sys
sys.modules["torch"] = sys.modules["sklearn"] = None
import robust_fairness as rf
from robust_fairness.core.errors import InputError
names = dir(rf.metrics)
assert {"accuracy", "equalized_odds_difference", "worst_group_accuracy", "delta_er"} <= {*names}
arrays = [1, 0, 1, 1], [1, 1, 0, 1]
print(rf.metrics.accuracy(*arrays))
try:
    rows = {"curvature": [0.1, 0.2, 0.3, 0.4], "sensitive_features": list("aabb")}
    rf.metrics.delta_er([0.0] * 4, [0.0] * 4, **rows)
except InputError as error:
    print(error)
"""


def test_metrics_need_no_torch_and_say_what_they_need():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "0.5",
        'metric delta_er: not applicable: needs torch: pip install "robust-fairness[train]"',
    ], done.stderr
