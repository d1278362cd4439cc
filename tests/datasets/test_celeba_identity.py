"""People of CelebA: who is left, how they are split, whose skin tone; real faces stay here."""

import gzip
from collections import Counter
from functools import partial

import numpy as np
import pytest
from PIL import Image

from tests.datasets import loading
from tests.datasets.images import encoded

# Images of every person, in no order.
PEOPLE = {7: 6, 12: 4, 101: 9, 30: 3, 5: 1, 44: 4}
# Of Table 23's categories, light to dark.
SKINS = {"I": (233, 203, 167), "VI": (115, 82, 68)}


load = partial(loading.load, "celeba_identity", splits=2, size=8, skin_tone="aligned")


def jpeg(colour: tuple[int, int, int] | int, size: tuple[int, int] = (89, 109)) -> bytes:
    """An image of one colour, or of one grey."""
    mode = "L" if isinstance(colour, int) else "RGB"
    return encoded(Image.new(mode, size, colour))


def make(root, people: dict[int, int] | None = None) -> dict[str, int]:
    """A small CelebA below ``root``: light and dark images in turn; the person of each."""
    folder = root / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True)
    rows = [person for person, count in (people or PEOPLE).items() for _ in range(count)]
    rows = np.random.default_rng(0).permutation(rows).tolist()
    person_of = {f"{number:06}.jpg": person for number, person in enumerate(rows, 1)}
    for place, name in enumerate(person_of):
        content = jpeg(SKINS["I" if place % 2 == 0 else "VI"])
        (folder / "img_align_celeba" / name).write_bytes(content)
    (folder / "identity_CelebA.txt").write_text(
        "".join(f"{name} {person}\n" for name, person in person_of.items())
    )
    return person_of


@pytest.mark.parametrize("least", [1, 4, 5])
def test_people_with_images_enough_are_the_classes(tmp_path, least):
    """In the order of their numbers; each row is its own person's."""
    person_of = make(tmp_path)
    samples = load(tmp_path, min_images=least)
    kept = sorted(person for person, count in PEOPLE.items() if count >= least)
    assert samples.classes == tuple(map(str, kept))
    assert samples.id.tolist() == [name for name, person in person_of.items() if person in kept]
    assert [int(samples.classes[y]) for y in samples.y] == [person_of[name] for name in samples.id]
    for split in samples.split_names:
        tested = Counter(samples.y[samples.rows(split, "test")].tolist())
        for code, person in enumerate(kept):
            assert tested[code] == PEOPLE[person] // 2
    assert not samples.splits["split_0"].equals(samples.splits["split_1"])


def test_skin_tone_is_each_image_s_own(tmp_path):
    """Whichever images are left out."""
    person_of = make(tmp_path)
    samples = load(tmp_path)
    names = list(person_of)
    expected = ["I" if names.index(name) % 2 == 0 else "VI" for name in samples.id]
    assert samples.attributes["skin_tone"].tolist() == expected
    assert list(samples.attributes) == ["skin_tone", "light_or_dark", "ita"]
    assert samples.sensitive == ("skin_tone",)
    bright = samples.x.mean(axis=(1, 2, 3)) > 150
    assert bright.tolist() == [tone == "I" for tone in expected]
    assert set(samples.sources) == {"celeba/identity_CelebA.txt", "celeba/img_align_celeba"}


def test_real_people_of_four_images_and_more(shared_data):
    """408 of them."""
    options = {"images": "celeba/img_align_celeba_half_10k", "only_present": True, "size": 8}
    samples = load(shared_data, splits=10, **options)
    lines = gzip.decompress((shared_data / "celeba/identity_CelebA.txt.gz").read_bytes()).decode()
    person = dict(line.split() for line in lines.splitlines()[:10_000])
    counts = Counter(person.values())
    kept = [name for name in person if counts[person[name]] >= 4]
    assert samples.id.tolist() == kept and len(samples.classes) == 408
    assert [samples.classes[y] for y in samples.y] == [person[name] for name in kept]
    for split in samples.split_names:
        for part, fewest in (("train", 2), ("test", 2)):
            rows = np.bincount(samples.y[samples.rows(split, part)], minlength=408)
            assert rows.min() >= fewest
    assert samples.splits.T.drop_duplicates().shape[0] == 10
