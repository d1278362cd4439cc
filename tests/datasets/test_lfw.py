"""LFW: people, races and splits; faces of the real subset never leave this test."""

import csv
import gzip
import zipfile
from collections import Counter
from functools import partial

import numpy as np
import pytest

from robust_fairness.bench.datasets.images import lfw
from robust_fairness.core.errors import InputError
from tests.datasets import loading
from tests.datasets.images import framed, write

PEOPLE = {"Ada_Lovelace": 12, "Alan_M_Turing": 4, "Grace_Hopper": 12, "Only_Once": 1}
NAMES = [
    f"{person}/{person}_{number:04}.jpg"
    for person, count in PEOPLE.items()
    for number in range(1, count + 1)
]
# the first columns of the file of Kumar et al., and one that is not read
COLUMNS = ("Male", "Asian", "White", "Black", "Indian", "Strong Nose-Mouth Lines")
SIZE = (20, 30)


load = partial(loading.load, "lfw", splits=2, size=8)


def row(name: str, scores) -> str:
    """A row of the file of Kumar et al.: person with spaces, number, scores."""
    person, _, number = name.rpartition("/")[2].removesuffix(".jpg").rpartition("_")
    return "\t".join([person.replace("_", " "), str(int(number)), *map(repr, scores)])


def kumar(names, scores) -> str:
    """The whole file."""
    head = ["# generated scores of faces", "\t".join(["#", "person", "imagenum", *COLUMNS])]
    return "\n".join([*head, *map(row, names, scores)]) + "\n"


def make(root, scores=None, zipped: bool = False) -> np.ndarray:
    """A small LFW below ``root``; the scores of its images, ``[image, column]``."""
    if scores is None:
        scores = np.random.default_rng(0).normal(size=(len(NAMES), len(COLUMNS)))
    folder = root / "lfw"
    folder.mkdir()
    (folder / "lfw_attributes.txt").write_text(kumar(NAMES, scores.tolist()))
    contents = {name: framed((8 * place, 100, 200), SIZE) for place, name in enumerate(NAMES)}
    write(folder / "lfw-deepfunneled", contents, zipped)
    return scores


def races(scores) -> list[str | None]:
    """The highest of the four scores, where it is over 0; told one by one."""
    highest = []
    for values in scores:
        score_of = dict(zip(COLUMNS, values, strict=True))
        best = max(lfw.RACES, key=lambda race: score_of[race])
        highest.append(best if score_of[best] > 0 else None)
    return highest


def test_each_face_has_its_person_its_pixels_and_its_race(tmp_path):
    """Faces without a race are left out, people numbered anew."""
    expected = races(make(tmp_path))
    samples = load(tmp_path)
    kept = [place for place, race in enumerate(expected) if race]
    assert 16 < len(kept) < len(NAMES)
    assert samples.id.tolist() == [NAMES[place] for place in kept]
    assert [samples.classes[y] for y in samples.y] == [
        NAMES[place].partition("/")[0] for place in kept
    ]
    assert samples.attributes["race"].tolist() == [expected[place] for place in kept]
    assert samples.sensitive == ("race",)
    middle = samples.x[:, 0, 2:6, 2:6].astype(int)  # JPEG rings at the frame, which is cut away
    assert abs(middle - 8 * np.array(kept)[:, None, None]).max() < 6
    assert set(samples.sources) == {"lfw/lfw_attributes.txt", "lfw/lfw-deepfunneled"}


def test_one_race_of_several_scores(tmp_path):
    """As D.1 of the paper has it, and the highest where several are over 0."""
    races_of_scores = [  # of Asian, White, Black, Indian
        ((0.1, -1.0, -1.0, -1.0), "Asian"),
        ((0.1, 0.2, 0.15, 0.05), "White"),
        ((-2.0, -0.1, -0.3, 1e-9), "Indian"),
        ((0.5, 0.1, 0.5, 0.1), "Asian"),  # of equal ones the first in alphabetical order
        ((0.0, 0.0, 0.0, 0.0), None),
        ((-0.1, -0.2, -0.3, -0.4), None),
    ]
    scores = np.full((len(NAMES), len(COLUMNS)), 1.0)
    scores[:, 1:5] = (-1, 3, -1, -1)
    scores[:6, 1:5], expected = zip(*races_of_scores, strict=True)
    make(tmp_path, scores)
    samples = load(tmp_path)
    race_of = dict(zip(samples.id, samples.attributes["race"], strict=True))
    assert [race_of.get(name) for name in NAMES[:6]] == [*expected]
    assert len(samples) == len(NAMES) - 2


def test_faces_without_a_row_are_left_out_and_counted(tmp_path, caplog):
    """As some are in the official files; rows without a face only if that is wanted."""
    scores = np.full((len(NAMES), len(COLUMNS)), 1.0)
    make(tmp_path, scores)
    file = tmp_path / "lfw" / "lfw_attributes.txt"
    file.write_text(kumar(NAMES[2:], scores[2:].tolist()))
    with caplog.at_level("INFO"):
        samples = load(tmp_path)
    assert samples.id.tolist() == NAMES[2:]
    assert (
        "excluded 2 of 29 images without a row in lfw/lfw_attributes.txt, and 0 without"
        in caplog.text
    )
    more = [*NAMES, "No_Image/No_Image_0001.jpg"]
    file.write_text(kumar(more, np.ones((len(more), len(COLUMNS))).tolist()))
    with pytest.raises(InputError, match=r"1 images in lfw/lfw_att.* are missing, first"):
        load(tmp_path)
    assert len(load(tmp_path, only_present=True)) == len(NAMES)


def test_the_order_of_the_file_does_not_matter(tmp_path):
    """Nor does that of its columns, or gzip."""
    scores = make(tmp_path)
    expected = load(tmp_path)
    file = tmp_path / "lfw" / "lfw_attributes.txt"
    file.unlink()
    lines = ["\t".join(["#", "imagenum", *reversed(COLUMNS), "person"])]
    for name, values in reversed(list(zip(NAMES, scores.tolist(), strict=True))):
        person, number, *rest = row(name, values).split("\t")
        lines.append("\t".join([number, *reversed(rest), person]))
    file.with_name("lfw_attributes.txt.gz").write_bytes(gzip.compress("\r\n".join(lines).encode()))
    samples = load(tmp_path)
    assert samples.attributes.equals(expected.attributes)
    assert samples.splits.equals(expected.splits)
    assert np.array_equal(samples.id, expected.id)


def test_people_and_races_of_one_image(tmp_path, caplog):
    """A person of one image trains; a race of one image is told; min_images leaves out."""
    scores = np.full((len(NAMES), len(COLUMNS)), 1.0)
    scores[:, 1] = 2
    scores[7, 4] = 3
    make(tmp_path, scores)
    samples = load(tmp_path)
    only = samples.id.tolist().index("Only_Once/Only_Once_0001.jpg")
    assert (samples.splits.iloc[only] == "train").all()
    assert "race: only one image of Indian" in caplog.text
    assert samples.attributes["race"].cat.categories.tolist() == ["Asian", "Indian"]
    assert load(tmp_path, min_images=5).classes == ("Ada_Lovelace", "Grace_Hopper")
    with pytest.raises(InputError, match="min_images: 13 leaves 0 of 4 classes; .* at most 12"):
        load(tmp_path, min_images=13)


REAL = {
    "images": "lfw/lfw-deepfunneled-subset",
    "attribute": "predicted",
    "only_present": True,
    "size": 16,
}


def real_predictions(folder) -> dict[str, str]:
    """Race of every row of the shared file of predictions, read line by line."""
    text = gzip.decompress((folder / "lfw" / "lfw_predicted_attributes.csv.gz").read_bytes())
    return {row["name"]: row["df_race"] for row in csv.DictReader(text.decode().splitlines())}


def test_real_faces_have_their_own_people_and_predictions(shared_data):
    """1,714 faces, of whom 1,283 have a prediction of one of the four races."""
    samples = load(shared_data, **REAL)
    predictions = real_predictions(shared_data)
    with zipfile.ZipFile(shared_data / "lfw" / "lfw-deepfunneled-subset.zip") as archive:
        names = [name.partition("/")[2] for name in archive.namelist() if name.endswith(".jpg")]
        assert len(names) == 1_714
        races = {name: predictions.get(name.rpartition("/")[2], "").capitalize() for name in names}
        expected = sorted(name for name in names if races[name] in lfw.RACES)
        assert samples.id.tolist() == expected and len(samples) == 1_283
        assert samples.sensitive == ("predicted_race",)
        assert samples.attributes["predicted_race"].tolist() == [races[name] for name in expected]
    people = [name.partition("/")[0] for name in expected]
    assert [samples.classes[y] for y in samples.y] == people
    counts = Counter(people)
    assert samples.classes == tuple(sorted(counts)) and len(counts) == 416
    for split in samples.split_names:
        tested = Counter(people[place] for place in samples.rows(split, "test"))
        assert all(abs(tested[person] - count / 2) <= 0.5 for person, count in counts.items())
        assert not any(tested[person] for person, count in counts.items() if count == 1)
