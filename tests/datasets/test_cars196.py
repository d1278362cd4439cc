"""CARS196: annotations, classes and decoding, on the real subset and on generated files."""

import csv
from functools import partial

import numpy as np
import pytest
from scipy.io import loadmat

from robust_fairness.bench.datasets.images import cars196
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets import loading
from tests.datasets.images import framed, matlab, write

MODELS = ("Acura RL Sedan 2012", "Ram C/V Cargo Van Minivan 2012", "smart fortwo 2012")
FIELDS = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")
PARTS = {"cars_train": "cars_train_annos.mat", "cars_test": "cars_test_annos_withlabels.mat"}
SIZE = (30, 20)


load = partial(loading.load, "cars196", splits=2, size=8)


def annotations(numbers, fields=FIELDS) -> bytes:
    """A file of annotations, as the development kit has it; images are numbered from 1."""
    names = numbered(len(numbers))
    table = np.empty((1, len(names)), dtype=[(field, object) for field in fields])
    for place, (name, number) in enumerate(zip(names, numbers, strict=True)):
        values = {"class": number, "fname": name}
        table[0, place] = tuple(values.get(field, 7) for field in fields)
    return matlab(annotations=table)


def numbered(count: int) -> list[str]:
    """File names as those of the official images."""
    return [f"{number:05}.jpg" for number in range(1, count + 1)]


def make(root, zipped: bool = False) -> dict[str, tuple[int, int]]:
    """A small CARS196 below ``root``: class number and brightness of each image."""
    folder = root / "cars196"
    folder.mkdir()
    write(folder, {"cars_meta.mat": matlab(class_names=np.array([MODELS], dtype=object))})
    expected = {}
    for first, (part, file) in enumerate(PARTS.items()):
        # both parts have images of the same names
        numbers = [(number + first) % 3 + 1 for number in range(19)]
        write(folder, {file: annotations(numbers)})
        contents = {}
        for place, (name, number) in enumerate(zip(numbered(19), numbers, strict=True)):
            brightness = 120 * first + 6 * place
            expected[f"{part}/{name}"] = (number, brightness)
            contents[name] = framed((brightness, 100, 200), SIZE)
        write(folder / part, contents, zipped)
    return expected


TRAINING = {"images": "cars196/cars_train", "annotations": "cars196/cars_train_annos.mat"}


def test_both_official_parts_are_one_set(tmp_path):
    """Each image has its own class and pixels, though names are there twice."""
    made = make(tmp_path)
    samples = load(tmp_path)
    assert samples.id.tolist() == sorted(made)
    assert samples.classes == MODELS
    assert [made[name][0] for name in samples.id] == (samples.y + 1).tolist()
    assert samples.sensitive == ("class",)
    assert [samples.classes[y] for y in samples.y] == samples.attributes["class"].tolist()
    middle = samples.x[:, 0, 2:6, 2:6].astype(int)  # JPEG rings at the frame, which is cut away
    expected = np.array([made[name][1] for name in samples.id])
    assert abs(middle - expected[:, None, None]).max() < 6
    assert len(samples.sources) == 4
    for split in samples.split_names:
        tested = np.bincount(samples.y[samples.rows(split, "test")])
        assert (abs(tested - np.bincount(samples.y) / 2) <= 0.5).all()


def test_one_part_alone_and_a_table_of_its_classes(tmp_path):
    """A CSV file with the columns of the same names is as good."""
    made = make(tmp_path)
    samples = load(tmp_path, **TRAINING)
    assert samples.id.tolist() == [name for name in sorted(made) if "train" in name]
    lines = [f"{name.partition('/')[2]},1,{made[name][0]}" for name in reversed(samples.id)]
    (tmp_path / "cars196" / "own.csv").write_text("\n".join(["fname,width,class", *lines]))
    again = load(tmp_path, **TRAINING | {"annotations": "cars196/own.csv"})
    loading.require_equal(again, samples)


def test_real_images_have_their_own_classes(shared_data):
    """960 of 40 models, by the index beside them or by the official annotations."""
    options = {"images": "cars196/cars_train_subset_160px", "size": 16}
    samples = load(shared_data, **options, annotations="cars196/cars_train_subset.csv")
    official = {**options, "annotations": "cars196/cars_train_annos.mat"}
    again = load(shared_data, **official, only_present=True)
    loading.require_equal(again, samples)
    assert np.array_equal(again.id, samples.id)
    with (shared_data / "cars196" / "cars_train_subset.csv").open(newline="") as index:
        models = {row["fname"]: row["class_name"] for row in csv.DictReader(index)}
    assert len(samples) == 960
    assert [samples.classes[y] for y in samples.y] == [
        models[name.rpartition("/")[2]] for name in samples.id
    ]
    assert np.bincount(samples.y).tolist() == [24] * 40
    names = loadmat(shared_data / "cars196" / "cars_meta.mat", squeeze_me=True)["class_names"]
    assert samples.classes == tuple(names[::5])
    for split in samples.split_names:
        assert np.bincount(samples.y[samples.rows(split, "test")]).tolist() == [12] * 40
        assert np.bincount(samples.y[samples.rows(split, "train")]).min() >= 9


def test_the_real_annotations_are_those_of_the_official_training_part(shared_data):
    """8,144 of 196 models, 24 to 68 of each."""
    files = Files(shared_data)
    names = cars196._class_names(files, "cars196/cars_meta.mat")
    table = cars196._annotations(files, "cars196/cars_train_annos.mat", names)
    assert len(names) == 196 and len(table) == 8_144
    counts = table["class"].value_counts()
    assert (counts.min(), counts.max(), counts.idxmax()) == (24, 68, "GMC Savana Van 2012")
    with pytest.raises(InputError, match="7184 images in .* are missing, first 00001.jpg"):
        load(
            shared_data,
            images="cars196/cars_train_subset_160px",
            annotations="cars196/cars_train_annos.mat",
        )
