"""Shifts of pictures: pictures a second at the weakest and strongest level, and memory.

Smooth random pictures: what they look like changes the cost of JPEG only.

    python benchmarks/corruptions.py --pictures 512 --side 128
"""

import argparse
import time
import tracemalloc

import numpy as np
import pandas as pd
from _results import rounded, save

from robust_fairness.core.registry import find
from robust_fairness.samples import Samples
from robust_fairness.shifts.base import SampleShift

# Weakest and strongest published severity; those of the others stand beside them.
NOISES = {
    "gaussian_noise": (0.08, 0.38),
    "uniform_noise": (0.08, 0.38),
    "impulse_noise": (0.03, 0.27),
}
CORRUPTIONS = ("gaussian_blur", "contrast", "brightness", "pixelate", "jpeg_compression")
PUBLISHED_SIDE = 224


def pictures(count: int, side: int) -> Samples:
    """Random pictures of 8 x 8 pixels, enlarged, with a little noise."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 240, (count, 3, 8, 8), dtype=np.uint8)
    scale = -(-side // 8)
    x = small.repeat(scale, axis=2).repeat(scale, axis=3)[..., :side, :side]
    return Samples(
        x=x + rng.integers(0, 16, x.shape, dtype=np.uint8),
        y=np.zeros(count, dtype=np.int64),
        attributes=pd.DataFrame(index=range(count)),
        id=np.arange(count),
        splits=pd.DataFrame({"split_0": pd.Categorical(["test"] * count)}),
        classes=("one",),
    )


def rate(shift: SampleShift, samples: Samples, severity: float, repeats: int) -> float:
    """Pictures a second of processor time, the best of some repeats."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        shift.apply(samples, severity)
        seconds.append(time.process_time() - start)
    return len(samples) / min(seconds)


def main() -> None:
    """Print rates and memory of every shift of pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=512)
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows = []
    samples = pictures(options.pictures, options.side)
    for name in (*NOISES, *CORRUPTIONS):
        declared = find("shift", name)
        shift = declared(declared.Parameters())
        severities = NOISES[name] if name in NOISES else shift.LEVELS[PUBLISHED_SIDE]
        weakest, strongest = severities[0], severities[-1]
        weak, strong = (rate(shift, samples, s, options.repeats) for s in (weakest, strongest))
        tracemalloc.start()
        shift.apply(samples, strongest)
        beside = (tracemalloc.get_traced_memory()[1] - samples.x.nbytes) / 2**20
        tracemalloc.stop()
        rows.append(
            {
                "shift": name,
                "images/s, weakest": rounded(weak),
                "images/s, strongest": rounded(strong),
                "MiB beside the result": round(beside),
            }
        )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
