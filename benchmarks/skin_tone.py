"""Skin tone: faces a second of decoding and of measuring, and memory beside the pictures.

Random pictures of the size of CelebA's aligned crop and of half of it: what they look like does not
change the cost of measuring.

    python benchmarks/skin_tone.py --faces 500
"""

import argparse
import io
import time
import tracemalloc
from pathlib import Path

import numpy as np
from _results import rounded, save
from PIL import Image

from robust_fairness.datasets.files import Files
from robust_fairness.datasets.images._image_files import (
    AT_ONCE,
    JPEG,
    ImageFileParameters,
    Source,
    decode,
)
from robust_fairness.datasets.images._skin_tone import (
    ALIGNED,
    Patches,
    SkinToneParameters,
    measure,
    skin_tones,
)


def main() -> None:
    """Print rates of both steps, at both sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=500)
    options = parser.parse_args()
    rows = []
    rng = np.random.default_rng(0)
    for height, width in ((218, 178), (109, 89)):
        pictures = rng.integers(0, 256, (options.faces, 3, height, width), dtype=np.uint8)
        contents = {}
        for number, picture in enumerate(pictures):
            content = io.BytesIO()
            Image.fromarray(picture.transpose(1, 2, 0)).save(content, format="JPEG")
            contents[f"{number}.jpg"] = content.getvalue()
        source = Source("faces", set(contents), contents.__getitem__, JPEG)
        start = time.process_time()
        decode(source, list(contents), ImageFileParameters(size=(64, 64)), Files(Path()))
        decoding = time.process_time() - start
        landmarks = np.tile(np.array(ALIGNED), (options.faces, 1, 1))
        start = time.process_time()
        blocks = [slice(first, first + AT_ONCE) for first in range(0, options.faces, AT_ONCE)]
        parts = [measure(pictures[block], landmarks[block]) for block in blocks]
        skin_tones(Patches(*map(np.concatenate, zip(*parts, strict=True))), SkinToneParameters())
        measuring = time.process_time() - start
        tracemalloc.start()
        measure(pictures[:AT_ONCE], landmarks[:AT_ONCE])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rate = options.faces / measuring
        rows.append(
            {
                "faces of": f"{width} x {height}",
                "measured, faces/s": rounded(rate),
                "decoded and measured, faces/s": rounded(options.faces / (measuring + decoding)),
                "MiB per block": round(peak / 2**20),
            }
        )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
