"""CUB-200-2011 in its official layout, with generated images: the data are not available."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from robust_fairness.bench.datasets.images import cub200
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets import loading
from tests.datasets.images import encoded, write

SPECIES = ("001.Black_footed_Albatross", "002.Laysan_Albatross", "017.Cardinal")
COLORS = ("blue", "grey", "red")
PARTS = ("wing", "breast", "primary")
# as in the official file: other attributes before, between and after those of colours
ATTRIBUTES = [
    "has_bill_shape::hooked",
    *(f"has_{part}_color::{color}" for part in PARTS for color in COLORS),
    "has_wing_color::pink",  # no bird's primary colour
    "has_tail_pattern::solid",
]


load = partial(loading.load, "cub200", splits=2, size=8)


def numbered(texts, start: int = 1) -> str:
    """Lines of a number and a text."""
    return "".join(f"{number} {text}\n" for number, text in enumerate(texts, start))


def make(root, counts=(12, 10, 8), seen=None, beside: bool = True, zipped: bool = False):
    """A small CUB-200-2011 below ``root``: names, species and what was seen in each image."""
    rng = np.random.default_rng(0)
    folder = root / "cub200" / "CUB_200_2011"
    (folder / "attributes").mkdir(parents=True)
    species = np.repeat(np.arange(len(counts)), counts)
    names = [
        f"{SPECIES[number]}/{SPECIES[number][4:]}_{row:04}_{900 + row}.jpg"
        for row, number in enumerate(species)
    ]
    if seen is None:
        seen = rng.random((len(names), len(ATTRIBUTES))) < 0.4
    (folder / "images.txt").write_text(numbered(names))
    (folder / "classes.txt").write_text(numbered(SPECIES[: len(counts)]))
    (folder / "image_class_labels.txt").write_text(numbered(species + 1))
    place = folder.parent if beside else folder
    (place / "attributes.txt").write_text(numbered(ATTRIBUTES))
    lines = [
        f"{image} {attribute} {int(there)} {rng.integers(1, 5)} {rng.random() * 9:.3f}"
        for (image, row) in enumerate(seen, 1)
        for attribute, there in enumerate(row, 1)
    ]
    lines[3] = lines[3].rpartition(" ")[0] + " 0 7.1"  # as some rows of the official file
    (folder / "attributes" / "image_attribute_labels.txt").write_text("\n".join(lines) + "\n")
    contents = {
        name: encoded(Image.new("RGB", (16, 12), (8 * row, 100, 200)))
        for row, name in enumerate(names)
    }
    write(folder / "images", contents, zipped, "CUB_200_2011/images")
    return names, species, seen


def column(part: str, color: str) -> int:
    """Place of an attribute."""
    return ATTRIBUTES.index(f"has_{part}_color::{color}")


def mode_of_species(species, seen) -> list[str | None]:
    """The most frequent primary colour of each image's species, told one by one."""
    modes = {}
    for number in set(species):
        votes = Counter()
        for row in np.flatnonzero(species == number):
            votes.update(color for color in COLORS if seen[row, column("primary", color)])
        best = max(votes.values(), default=0)
        modes[number] = next((c for c in COLORS if votes[c] == best), None) if best else None
    return [modes[number] for number in species]


def mode_of_image(seen) -> list[str | None]:
    """Of each image's primary colours the one that most other parts have, told one by one."""
    modes: list[str | None] = []
    for row in seen:
        primary = [color for color in COLORS if row[column("primary", color)]]
        count = {color: sum(row[column(part, color)] for part in PARTS) for color in primary}
        modes.append(max(primary, key=lambda color: count[color]) if primary else None)
    return modes


@pytest.mark.parametrize("beside", [False, True])
def test_each_image_has_its_species_its_pixels_and_its_color(tmp_path, beside):
    """Wherever the names of the attributes are."""
    names, species, seen = make(tmp_path, beside=beside)
    samples = load(tmp_path)
    assert samples.id.tolist() == names
    assert samples.classes == SPECIES
    assert np.array_equal(samples.y, species)
    assert samples.sensitive == ("color",)
    assert samples.attributes["color"].tolist() == mode_of_species(species, seen)
    assert samples.x.shape == (30, 3, 8, 8)
    assert abs(samples.x[:, 0].astype(int) - (8 * np.arange(30))[:, None, None]).max() < 4
    assert len(samples.sources) == 6


@given(st.integers(0, 2**32), st.sampled_from((0.1, 0.3, 0.7)))
def test_colors_are_modes(tmp_path_factory, seed, share):
    """Of species and of images; equal ones are decided by the order of the file."""
    rng = np.random.default_rng(seed)
    seen = rng.random((30, len(ATTRIBUTES))) < share
    root = tmp_path_factory.mktemp("birds")
    names, species, _ = make(root, seen=seen)
    for color, expected in (
        ("species", mode_of_species(species, seen)),
        ("image", mode_of_image(seen)),
    ):
        kept = [name for name, value in zip(names, expected, strict=True) if value]
        parameters = cub200.Cub200.Parameters(color=color)
        table = cub200._images(files := Files(root), parameters.folder)
        if not kept:
            with pytest.raises(InputError, match="no image has a primary colour"):
                cub200._with_colors(table, files, parameters)
            continue
        table = cub200._with_colors(table, files, parameters)
        assert table["name"].tolist() == kept
        assert table["color"].tolist() == [value for value in expected if value]


def test_classes_alone_need_no_attributes(tmp_path):
    """They are the attribute then; both may be asked for, colours first or last."""
    make(tmp_path)
    both = load(tmp_path, sensitive=("class", "color"))
    assert list(both.attributes) == ["class", "color"]
    (tmp_path / "cub200" / "attributes.txt").unlink()
    samples = load(tmp_path, sensitive=("class",))
    assert samples.attributes["class"].cat.categories.tolist() == list(SPECIES)
    assert np.array_equal(samples.attributes["class"].cat.codes, samples.y)
    with pytest.raises(InputError, match=r"^cub200/attributes.txt is missing: looked for"):
        load(tmp_path)


def test_the_color_of_a_species_counts_all_of_its_images(tmp_path):
    """Also those whose file is not there."""
    names, species, seen = make(tmp_path)
    for name in names[:3]:
        (tmp_path / "cub200" / "CUB_200_2011" / "images" / name).unlink()
    with pytest.raises(InputError, match=f"3 images in .*images.txt are missing, first {names[0]}"):
        load(tmp_path)
    samples = load(tmp_path, only_present=True)
    assert samples.id.tolist() == names[3:]
    assert samples.attributes["color"].tolist() == mode_of_species(species, seen)[3:]
