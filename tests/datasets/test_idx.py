"""Reading idx files."""

import gzip
import struct

import numpy as np
import pytest

from robust_fairness.datasets.files import Files
from robust_fairness.datasets.images.biased_mnist import read_idx

CONTENT = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
WHOLE = bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 3, 4) + CONTENT.tobytes()


@pytest.mark.parametrize("zipped", [False, True])
def test_sizes_and_bytes_are_read(tmp_path, zipped):
    """Plain or gzipped; the checksum is that of the content."""
    path = tmp_path / ("digits.gz" if zipped else "digits")
    path.write_bytes(gzip.compress(WHOLE) if zipped else WHOLE)
    files = Files(tmp_path)
    assert np.array_equal(read_idx(files, "digits", 3, 4), CONTENT)
    assert list(files.sources) == ["digits"]
