"""Reading idx files."""

import gzip
import struct

import numpy as np
import pytest

from robust_fairness.core.errors import InputError
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
    assert np.array_equal(read_idx(files, "digits", 3), CONTENT)
    assert list(files.sources) == ["digits"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WHOLE[:-1], "digits: 23 bytes after the header, which says 2 x 3 x 4"),
        (WHOLE + b"0", "digits: 25 bytes"),
        (b"\0\0\x0d" + WHOLE[3:], "digits: begins with 00 00 0d 03, expected 00 00 08 03"),
        (WHOLE[:9], "digits: 0 bytes"),
        (b"", "digits: begins with , expected"),
    ],
)
def test_damaged_file_is_named(tmp_path, content, message):
    """Truncated, too long, of another type, or empty."""
    (tmp_path / "digits").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_idx(Files(tmp_path), "digits", 3)


def test_missing_file_is_named(tmp_path):
    """With the folder that was looked in."""
    with pytest.raises(InputError, match="digits is missing"):
        read_idx(Files(tmp_path), "digits", 3)
