"""CelebA: annotations, splits and decoding; faces of the real subset never leave this test."""

import gzip
import zipfile
from functools import partial
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from torchvision import transforms

from robust_fairness.bench.datasets.images import _image_files, celeba
from robust_fairness.bench.datasets.images._celeba import numbers_of
from robust_fairness.bench.datasets.images._skin_tone import (
    ALIGNED,
    SkinToneParameters,
    measure,
    skin_tones,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets import loading
from tests.datasets.images import encoded, framed, write

NAMES = ("Attractive", "Blond_Hair", "Male", "Smiling")
SIZE = (20, 30)


load = partial(loading.load, "celeba", splits=3, size=8)


def noise(seed: int) -> bytes:
    """An image of 31 x 24 random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 256, (31, 24, 3), dtype=np.uint8)
    return encoded(Image.fromarray(pixels), quality=75)


def make(root, rows: int = 60, zipped: bool = False) -> pd.DataFrame:
    """A small CelebA of plain images below ``root``; its attributes."""
    rng = np.random.default_rng(0)
    folder = root / "celeba"
    folder.mkdir()
    names = [f"{number:06}.jpg" for number in range(1, rows + 1)]
    values = rng.choice([-1, 1], (rows, len(NAMES)))
    table = pd.DataFrame(values, index=names, columns=NAMES)
    lines = [f"{name} {' '.join(map(str, row))}" for name, row in zip(names, values, strict=True)]
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(rows), " ".join(NAMES), *lines]))
    parts = np.repeat([0, 1, 2], rows // 3)
    (folder / "list_eval_partition.txt.gz").write_bytes(
        gzip.compress("\n".join(f"{n} {p}" for n, p in zip(names, parts, strict=True)).encode())
    )
    people = rng.integers(1, 15, rows)
    (folder / "identity_CelebA.txt").write_text(
        "\n".join(f"{n} {p}" for n, p in zip(names, people, strict=True))
    )
    contents = {
        name: framed((int(4 * number), 100, 200), SIZE) for number, name in enumerate(names)
    }
    write(folder / "img_align_celeba", contents, zipped, "inside")
    return table.assign(person=people, part=parts)


def test_official_split_labels_and_pixels(tmp_path):
    """Each row has its own attributes and its own image."""
    table = make(tmp_path)
    samples = load(tmp_path)
    assert samples.id.tolist() == list(table.index)
    assert samples.classes == ("not Blond_Hair", "Blond_Hair")
    assert np.array_equal(samples.y, (table["Blond_Hair"] == 1).to_numpy())
    assert np.array_equal(samples.attributes["Male"] == "Male", table["Male"] == 1)
    for number, part in enumerate(("train", "val", "test")):
        assert np.array_equal(
            samples.rows("split_0", part), np.flatnonzero(table["part"] == number)
        )
    assert samples.x.shape == (60, 3, 8, 8)
    expected = np.arange(60) * 4
    middle = samples.x[:, :, 2:6].astype(int)  # JPEG rings at the frame, which is cut away
    assert abs(middle[:, 0] - expected[:, None, None]).max() < 6
    assert abs(middle[:, 1] - 100).max() < 6
    assert len(samples.sources) == 3


def test_no_person_is_in_two_parts(tmp_path):
    """With the identity split; shares are met to the rows of a person."""
    table = make(tmp_path)
    samples = load(tmp_path, split="identity", val_share=0.2, test_share=0.3)
    people = table["person"].to_numpy()
    seen = [set(people[samples.rows("split_0", part)]) for part in ("train", "val", "test")]
    assert not seen[0] & seen[1] and not seen[1] & seen[2] and not seen[0] & seen[2]
    assert sum(map(len, seen)) == len(set(people))
    assert 0.1 < len(samples.rows("split_0", "test")) / 60 <= 0.3


def test_random_split_takes_as_many_rows_as_asked(tmp_path):
    """Only these are decoded; another seed takes others."""
    make(tmp_path)
    options = {"split": "random", "train_rows": 20, "val_rows": 5, "test_rows": 10}
    samples = load(tmp_path, **options)
    assert len(samples) == 35
    assert [len(samples.rows("split_0", p)) for p in ("train", "val", "test")] == [20, 5, 10]
    assert set(load(tmp_path, seed=1, **options).id) != set(samples.id)


def test_a_damaged_zip_file_is_named(tmp_path):
    """The image and its row where only some bytes are wrong, else the file."""
    make(tmp_path, zipped=True)
    archive = tmp_path / "celeba" / "img_align_celeba.zip"
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        inside = opened.getinfo("inside/000003.jpg").header_offset + 200
    content[inside] ^= 1
    archive.write_bytes(content)
    with pytest.raises(InputError, match=r"image 000003.jpg \(row 2\): Bad CRC-32"):
        load(tmp_path)
    archive.write_bytes(content[:500])
    with pytest.raises(InputError, match=r"img_align_celeba.zip: not a readable zip file"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("options", "oracle"),
    [
        ({"size": 10}, lambda face: face.crop((0, 3, 24, 27)).resize((10, 10), 2)),
        ({"size": (12, 9), "crop": None}, lambda face: face.resize((9, 12), 2)),
        ({"size": (11, 8), "crop": (11, 8)}, lambda face: face.crop((8, 10, 16, 21))),
        ({"size": (31, 24), "crop": None}, lambda face: face),
    ],
)
def test_images_are_cut_around_their_centre_and_resized(tmp_path, options, oracle, monkeypatch):
    """However many are decoded at once."""
    rows = len(make(tmp_path))
    for row in range(rows):
        (tmp_path / "celeba" / "img_align_celeba" / f"{row + 1:06}.jpg").write_bytes(noise(row))
    monkeypatch.setattr(_image_files, "AT_ONCE", 7)
    faces = (Image.open(BytesIO(noise(row))) for row in range(rows))
    expected = np.stack([np.asarray(oracle(face)) for face in faces])
    assert np.array_equal(load(tmp_path, **options).x, expected.transpose(0, 3, 1, 2))


def test_a_class_that_a_part_lacks_is_named(tmp_path):
    """Before any image is decoded."""
    table = make(tmp_path)
    for name in table.index[table["part"].eq(2) & table["Male"].eq(1)]:
        (tmp_path / "celeba" / "img_align_celeba" / name).unlink()
    with pytest.raises(InputError, match="its test part has no row of class 'Male'"):
        load(tmp_path, target="Male", sensitive=("Smiling",), only_present=True)


def make_faces(root, landmarks: str | None = None, rows: int = 60) -> pd.DataFrame:
    """Images of half the aligned crop, each of one colour, and a file of landmarks."""
    table = make(root, rows)
    for number, name in enumerate(table.index):
        content = framed((100 + 2 * number, 150, 130), (89, 109))
        (root / "celeba" / "img_align_celeba" / name).write_bytes(content)
    if landmarks is not None:
        (root / "celeba" / "list_landmarks_align_celeba.txt").write_text(landmarks)
    return table


HEADER = " ".join(
    f"{point}_{axis}"
    for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth")
    for axis in "xy"
)
USUAL = "69 111 108 111 88 135 71 152 106 152"


def test_skin_tone_is_three_attributes_of_each_image(tmp_path, monkeypatch):
    """The redder, the darker of two as light; whatever is cut out, and in blocks of any size."""
    make_faces(tmp_path)
    samples = load(tmp_path, skin_tone="aligned", sensitive=("light_or_dark", "Male"))
    assert list(samples.attributes) == ["Male", "skin_tone", "light_or_dark", "ita"]
    assert samples.sensitive == ("light_or_dark", "Male")
    for number in (0, 31, 59):  # a colour that JPEG has changed by a level or two
        expected = table_of_colour((100 + 2 * number, 150, 130))
        assert samples.attributes["ita"][number] == pytest.approx(expected["ita"], abs=4)
    plain = load(tmp_path)
    assert np.array_equal(plain.x, samples.x)
    assert plain.sources == samples.sources
    monkeypatch.setattr(_image_files, "AT_ONCE", 7)
    again = load(tmp_path, skin_tone="aligned", sensitive=("ita",), size=5, crop=(20, 20))
    assert again.attributes.drop(columns="ita").equals(samples.attributes.iloc[:, 1:3])
    assert np.array_equal(again.attributes["ita"], samples.attributes["ita"])


def table_of_colour(colour: tuple[int, int, int]) -> pd.Series:
    """The skin tone of an image of one colour."""
    image = np.empty((1, 3, 109, 89), dtype=np.uint8)
    image[:] = np.array(colour)[:, None, None]
    return skin_tones(measure(image, np.array(ALIGNED)[None]), SkinToneParameters()).iloc[0]


def test_landmarks_of_the_file_go_to_their_own_images(tmp_path, caplog):
    """The file's order does not matter; images without a row take the fixed positions."""
    lines = [
        f"000002.jpg {USUAL.replace('88 135', '88 -900')}",
        "000059.jpg 69 111 108 111 88 30 71 152 106 152",
        f"000001.jpg {USUAL}",
    ]
    make_faces(tmp_path, "\n".join(["3", HEADER, *lines]))
    fixed = load(tmp_path, skin_tone="aligned").attributes
    measured = load(tmp_path, skin_tone={"details": True}).attributes
    assert "57 of 60 images are missing" in caplog.text
    assert "missing for 1 of 60 images" in caplog.text
    assert measured["own_landmarks"][[0, 1, 58]].eq("own_landmarks").all()
    assert measured["own_landmarks"].eq("own_landmarks").sum() == 3
    assert measured.loc[1, ["skin_tone", "light_or_dark", "ita"]].isna().all()
    assert measured["no_pixels"][1] == "no_pixels" and measured["clipped"][1] == "clipped"
    same = np.delete(np.arange(60), [1, 58])
    assert np.array_equal(measured["ita"][same], fixed["ita"][same])
    assert measured["ita"][58] != fixed["ita"][58]  # its patches reach into the black frame


def test_real_faces_have_skin_tones_of_every_category(shared_data):
    """4,000 faces; with 8 bit codes in the formula the shares are those of the paper's Table 4."""
    published = np.array([1.10, 32.04, 47.92, 15.12, 3.20, 0.61])
    names = [f"{number:06}.jpg" for number in range(1, 4_001)]
    files = Files(shared_data)
    parameters = _image_files.ImageFileParameters(size=(109, 89), crop=None)
    with _image_files.opened(files, "celeba/img_align_celeba_half_10k") as source:
        images = _image_files.decode(source, names, parameters, files)
    patches = measure(images, np.tile(np.array(ALIGNED), (len(names), 1, 1)))
    shares = {}
    for encoding in ("cielab", "eight_bits"):
        table = skin_tones(patches, SkinToneParameters(encoding=encoding))
        assert table["ita"].notna().all()
        shares[encoding] = (
            100 * table["skin_tone"].value_counts(sort=False, normalize=True).to_numpy()
        )
    assert abs(shares["eight_bits"] - published).max() < 2
    assert (shares["cielab"] > 8).all() and (shares["cielab"] < 25).all()


def real_annotations(folder, count: int) -> tuple[dict[str, dict[str, bool]], dict[str, str]]:
    """Attributes and people of the first images, read line by line from the official files."""
    with zipfile.ZipFile(folder / "list_attr_celeba.zip") as archive:
        _, header, *rows = archive.read("list_attr_celeba.txt").decode().splitlines()
    split = [row.split() for row in rows[:count]]
    column = {name: header.split().index(name) + 1 for name in ("Blond_Hair", "Male")}
    attributes = {
        row[0]: {name: row[number] == "1" for name, number in column.items()} for row in split
    }
    people = gzip.decompress((folder / "identity_CelebA.txt.gz").read_bytes()).decode()
    return attributes, dict(line.split() for line in people.splitlines()[:count])


def test_real_faces_have_their_own_attributes_and_people(shared_data):
    """10,000 faces of half size; no person is in two parts."""
    attributes, people = real_annotations(shared_data / "celeba", 10_000)
    options = {"images": "celeba/img_align_celeba_half_10k", "only_present": True}
    samples = load(shared_data, **options, split="identity", size=16)
    assert samples.x.shape == (10_000, 3, 16, 16)
    assert samples.id.tolist() == [f"{number:06}.jpg" for number in range(1, 10_001)]
    blond = [attributes[name]["Blond_Hair"] for name in samples.id]
    male = [attributes[name]["Male"] for name in samples.id]
    assert np.array_equal(samples.y, blond)
    assert np.array_equal(samples.attributes["Male"] == "Male", male)
    assert np.sum(np.logical_and(blond, male)) == 81  # as the data's own list says
    parts = [
        {people[name] for name in samples.id[samples.rows("split_0", part)]}
        for part in ("train", "val", "test")
    ]
    assert len(set.union(*parts)) == sum(map(len, parts)) == 5_429
    assert 0.19 < len(samples.rows("split_0", "test")) / 10_000 <= 0.2
    published = transforms.Compose([transforms.CenterCrop(89), transforms.Resize((16, 16))])
    with zipfile.ZipFile(shared_data / "celeba" / "img_align_celeba_half_10k.zip") as archive:
        for row in (0, 4_711, 9_999):
            face = Image.open(archive.open(f"img_align_celeba/{samples.id[row]}"))
            assert np.array_equal(samples.x[row], np.asarray(published(face)).transpose(2, 0, 1))


def annotations(files: Files) -> pd.DataFrame:
    """The official table of attributes."""
    text = celeba._attribute_text(files)
    return numbers_of(text, celeba.ATTRIBUTES, np.int8, skiprows=1)


def test_real_partition_has_its_official_sizes(shared_data):
    """162,770, 19,867 and 19,962 rows; none of a person twice is promised there."""
    files = Files(shared_data)
    table = annotations(files)
    parts = celeba._parts(table, files, celeba.Celeba.Parameters())
    assert parts.value_counts().to_dict() == {"train": 162_770, "val": 19_867, "test": 19_962}
    assert table.shape == (202_599, 40)
