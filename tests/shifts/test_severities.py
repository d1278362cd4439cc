"""Severities that no shift takes, by shift: one line that says what is allowed."""

from collections.abc import Callable
from math import inf, nan

import numpy as np
import pytest

from robust_fairness.bench.generation import latents
from robust_fairness.core.registry import find, names
from tests.datasets.loading import one_line
from tests.shifts.rows import samples_of

ANGLE = "an angle in degrees, allowed: 0 to 90"
DEVIATION = "a standard deviation, allowed: 0 and larger finite numbers"
WRONG = {
    "gaussian_blur": ([-0.1, 100.1], "a standard deviation in pixels, allowed: 0 to 100"),
    "contrast": ([-0.1, 1.01], "a fraction of the contrast, allowed: 0 to 1"),
    "brightness": ([-0.1, 1.01], "a fraction of the full brightness, allowed: 0 to 1"),
    "pixelate": ([0.99, -2.0, 0.0], "a block in pixels, allowed: 1 and larger finite numbers"),
    "jpeg_compression": ([-1.0, 7.5, 100.0], "allowed: whole numbers from 0 to 99"),
    "gaussian_noise": ([-0.01, -1.0], DEVIATION),
    "uniform_noise": ([-0.01, -1.0], DEVIATION),
    "impulse_noise": ([-0.1, 1.1], "a fraction of the pixels, allowed: 0 to 1"),
    "label_prevalence": ([-0.1, 1.5], "a share of the test rows, allowed: 0 to 1"),
    "group_mix": ([-0.1, 1.5], "a share of the test rows, allowed: 0 to 1"),
    "extend": ([-0.1, 90.1], ANGLE),
    "overlap": ([-0.1, 90.1], ANGLE),
    "truncation": ([0.0, -1.0], "R .* allowed: finite numbers greater than 0"),
    "full_support": ([0.1, -1.0], "one set only, allowed: 0"),
}
REQUIRED = {"group_mix": {"attribute": "sex", "group": "f"}}  # parameters without a default


@pytest.mark.parametrize("name", WRONG)
def test_a_severity_out_of_range_is_refused_in_one_line(name):
    """Where the configuration is read and where the shift is applied, to features or images."""
    plugin = find("shift", name)
    shift = plugin(plugin.Parameters(**REQUIRED.get(name, {})))
    z, targets = latents.draws(0, np.arange(20), 8), latents.targets(0, 8)
    inputs = np.zeros((7, 3), np.float32), np.zeros((7, 3, 8, 8), np.uint8)
    uses: list[Callable[[float], object]] = [shift.check]
    if plugin.latent:
        uses.append(lambda severity: shift.subset(z, severity, targets))
    else:
        uses += [lambda severity, x=x: shift.apply(samples_of(x), severity) for x in inputs]
    values, message = WRONG[name]
    for severity in (*values, nan, inf, -inf):
        for use in uses:
            with one_line(f"{name} severity {severity}: .*{message}"):
                use(severity)


def test_every_shift_is_in_the_table():
    assert set(WRONG) == set(names("shift"))
