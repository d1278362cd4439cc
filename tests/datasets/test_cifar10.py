"""CIFAR-10: real images read by other means, the binary version rebuilt from them, bad files."""

import io
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness.bench.datasets.images import _cifar
from robust_fairness.core.errors import InputError
from tests.datasets import images as image_files
from tests.datasets import loading

TRAINING = ("cifar10/cifar10_train_a_10k.npz", "cifar10/cifar10_train_b_10k.npz")
TEST = ("cifar10/cifar10_test_5k.npz",)
NPZ = {"train_files": ("cifar10/train.npz",), "test_files": ("cifar10/test.npz",)}
BINARY = {"train_files": _cifar.TRAINING, "test_files": _cifar.TEST}
OFFICIAL = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
HEADER = 128  # bytes of an .npy file before its numbers, as its own first lines tell


load = partial(loading.load, "cifar10")


def real(shared_data: Path, **fields):
    """The 25,000 real images."""
    return load(shared_data, splits=2, train_files=TRAINING, test_files=TEST, **fields)


def bytes_of(path: Path, member: str) -> bytes:
    """Numbers of an array of an archive, without NumPy's reader."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(f"{member}.npy")[HEADER:]


def made_up(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random images ``[n, 3, 32, 32]`` of all classes in turn."""
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (rows, 3, 32, 32), dtype=np.uint8)
    return images, np.arange(rows) % 10


def batch(images: np.ndarray, labels: np.ndarray) -> bytes:
    """A file of the binary version: a label, red, green, blue, and the next."""
    return b"".join(
        bytes([label]) + image.tobytes()
        for image, label in zip(images, labels.tolist(), strict=True)
    )


def save(root: Path, name: str, **arrays) -> None:
    """An archive of arrays."""
    (root / "cifar10").mkdir(exist_ok=True)
    np.savez(root / "cifar10" / name, **arrays)


def arrays() -> dict[str, np.ndarray]:
    """Arrays of 40 images."""
    images, labels = made_up(40)
    return {"images": images.transpose(0, 2, 3, 1), "labels": labels}


def make(root: Path) -> None:
    """Both versions, with 40 images a file."""
    for name in ("train.npz", "test.npz"):
        save(root, name, **arrays())
    write(root, {name: batch(*made_up(40, seed)) for seed, name in enumerate(OFFICIAL)})


def with_arrays(content: bytes, **change: np.ndarray | None) -> bytes:
    """Another archive, in which some arrays are changed or left out."""
    target = io.BytesIO()
    changed = arrays() | change
    np.savez(target, **{name: array for name, array in changed.items() if array is not None})
    return target.getvalue()


@pytest.fixture
def official(tmp_path: Path) -> dict[str, bytes]:
    """The six files with 40 images each, not yet written."""
    return {name: batch(*made_up(40, seed)) for seed, name in enumerate(OFFICIAL)}


def write(root: Path, contents: dict[str, bytes]) -> None:
    image_files.write(root / "cifar10" / "cifar-10-batches-bin", contents)


def packed(contents: dict[str, bytes]) -> bytes:
    """The official archive of some files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def test_real_images_are_balanced_and_their_bytes_those_of_the_files(shared_data: Path) -> None:
    samples = real(shared_data)
    assert samples.x.shape == (25_000, 3, 32, 32)
    assert samples.x.dtype == np.uint8
    for rows, each in ((slice(20_000), 2_000), (slice(20_000, None), 500)):
        assert np.bincount(samples.y[rows]).tolist() == [each] * 10
    for name, first in ((TRAINING[0], 0), (TRAINING[1], 10_000), (TEST[0], 20_000)):
        content = bytes_of(shared_data / name, "images")
        for row in (0, 7):
            for channel, line, column in ((0, 0, 0), (1, 0, 5), (2, 31, 30)):
                place = ((row * 32 + line) * 32 + column) * 3 + channel
                assert samples.x[first + row, channel, line, column] == content[place]
        label = int.from_bytes(bytes_of(shared_data / name, "labels")[8:16], "little")
        assert samples.y[first + 1] == label
    # the known means of all training images; these are two fifths of them
    means = samples.x[:20_000].mean(axis=(0, 2, 3)) / 255
    assert means == pytest.approx([0.4914, 0.4822, 0.4465], abs=0.003)


def test_names_of_real_images_tell_their_class(shared_data: Path) -> None:
    samples = real(shared_data)
    assert len(set(samples.id)) == 25_000
    known = {"truck": "truck", "camion": "truck", "airplane": "airplane", "bullfrog": "frog"}
    names = pd.Series(samples.id).str.extract(r"^(\w+?)_s_")[0]
    seen = names.isin(known)
    assert seen.sum() > 300
    classes = [samples.classes[label] for label in samples.y[seen.to_numpy()]]
    assert classes == names[seen].map(known).tolist()


def test_test_images_are_the_test_part_and_validation_differs_by_split(shared_data: Path) -> None:
    samples = real(shared_data)
    for split in ("split_0", "split_1"):
        assert samples.rows(split, "test").tolist() == list(range(20_000, 25_000))
        assert len(samples.rows(split, "val")) == 2_000
        assert len(samples.rows(split, "train")) == 18_000
    assert (samples.splits["split_0"] != samples.splits["split_1"]).any()
    assert samples.attributes["class"].tolist() == [samples.classes[label] for label in samples.y]
    assert samples.sensitive == ("class",)


def test_fewer_rows_are_a_random_choice_of_each_file(shared_data: Path) -> None:
    whole, few = (real(shared_data, **f) for f in ({}, {"train_rows": 0.05, "test_rows": 200}))
    assert len(few) == 1_200
    assert len(few.rows("split_0", "test")) == 200
    place = {name: row for row, name in enumerate(whole.id)}
    rows = np.array([place[name] for name in few.id])
    assert (np.diff(rows) > 0).all()
    assert (rows[:1000] < 20_000).all()
    assert (rows[1000:] >= 20_000).all()
    assert np.array_equal(few.x, whole.x[rows])
    other = real(shared_data, train_rows=1_000, test_rows=200, seed=1)
    assert set(other.id) != set(few.id)


def test_binary_version_is_read_from_its_folder_and_from_the_archive(tmp_path, official) -> None:
    for where in ("folder", "archive"):
        root = tmp_path / where
        if where == "folder":
            write(root, official)
        else:
            image_files.write(root / "cifar10", {"cifar-10-binary.tar.gz": packed(official)})
        samples = load(root)
        for number in range(6):
            images, labels = made_up(40, number)
            rows = slice(40 * number, 40 * number + 40)
            assert np.array_equal(samples.x[rows], images)
            assert np.array_equal(samples.y[rows], labels)
        assert samples.id.tolist() == list(range(240))
        assert samples.rows("split_0", "test").tolist() == list(range(200, 240))


def test_names_are_in_all_files_and_never_twice(tmp_path: Path) -> None:
    sound = arrays()
    names = np.array([f"{row}.png" for row in range(40)])
    save(tmp_path, "train.npz", **sound, filenames=names)
    save(tmp_path, "test.npz", **sound)
    with pytest.raises(InputError, match="in some of the files only"):
        load(tmp_path, **NPZ)
    save(tmp_path, "test.npz", **sound, filenames=np.roll(names, 1))
    with pytest.raises(InputError, match=r"filenames: 0\.png occurs 2 times"):
        load(tmp_path, **NPZ)
