"""Hostile files: one line, without the memory and the time that they are made to take."""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from robust_fairness.bench.datasets.images import _cifar, _image_files
from robust_fairness.bench.generation import generator
from robust_fairness.bench.generation.conversion import convert
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets.loading import one_line


def test_gzip_bombs_are_not_unpacked(tmp_path):
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(65):
            file.write(bytes(2**20))
    with pytest.raises(InputError, match=r"bomb.csv.gz: 0.1 GiB or more, allowed: up to 0.0625"):
        Files(tmp_path).content("bomb.csv")


def encrypted(archive: Path) -> None:
    """Mark the only member of a zip file as encrypted, in both of its headers."""
    content = bytearray(archive.read_bytes())
    for magic, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + place] |= 1
    archive.write_bytes(content)


def foreign(archive: Path) -> None:
    """Mark the only member of a zip file as compressed by an unknown method."""
    content = bytearray(archive.read_bytes())
    for magic, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(magic) + place] = 97
    archive.write_bytes(content)


def huge(archive: Path) -> None:
    """Declare a gigabyte for the only member of a zip file."""
    content = bytearray(archive.read_bytes())
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<I", 2**30)
    archive.write_bytes(content)


def too_many_pixels(archive: Path) -> None:
    content = io.BytesIO()
    Image.new("1", (9000, 9000)).save(content, "PNG")
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("a.png", content.getvalue())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (encrypted, "encrypted"), (foreign, "compression"), (huge, "bytes uncompressed, allowed"),
        (too_many_pixels, "9000 x 9000 pixels, allowed: up to 67,108,864 in all"),
    ],
)  # fmt: skip
def test_images_that_cannot_be_read_are_not_decoded(tmp_path, damage, message):
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("a.png", b"x" * 100)
    damage(tmp_path / "images.zip")
    files, parameters = Files(tmp_path), _image_files.ImageFileParameters(size=2)
    with (
        one_line(rf"image a.png \(row 0\): .*{message}"),
        _image_files.opened(files, "images", _image_files.COMMON) as source,
    ):
        _image_files.decode(source, ["a.png"], parameters, files)


def test_archives_of_cifar_declare_no_more_than_they_have(tmp_path):
    (tmp_path / "cifar10").mkdir()
    member = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
    member.size = 2**40
    (tmp_path / f"{_cifar.ARCHIVE}").write_bytes(member.tobuf() + bytes(1024))
    with pytest.raises(InputError, match=r"cifar-10-binary\.tar: "):
        _cifar.read(Files(tmp_path), [_cifar.TRAINING[0]])
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (2**50,)}
    )
    with zipfile.ZipFile(tmp_path / "own.npz", "w") as archive:
        archive.writestr("images.npy", header.getvalue())
    with pytest.raises(InputError, match=r"own.npz: not as the official file"):
        _cifar.read(Files(tmp_path), ["own.npz"])


def test_settings_of_generators_have_limits(tmp_path):
    """Neither a deep network nor a wide one is built before its weights are compared."""
    settings = {"classes": ["a"], "shape": [1, 8, 8]}
    for network, reason in (
        ({"channels": [8], "layers": 200_000}, "less than or equal to 32"),
        ({"channels": [2**20], "groups": 8}, "lacks|missing|weight"),
    ):
        path = tmp_path / "network.safetensors"
        generator.write(path, {**settings, "network": network}, {"conv": torch.zeros(1)})
        with pytest.raises(InputError, match=reason):
            generator.load(path)
        with pytest.raises(InputError, match=reason):
            convert(path, tmp_path / "out.safetensors")
