"""Features of boxes, made once into arrays of half precision."""

import hashlib
import json
import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest

from robust_fairness.bench.datasets.questions import _boxes as module
from robust_fairness.bench.datasets.questions._boxes import convert
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import Boxes
from tests.datasets.loading import one_line
from tests.faults.test_disk import room_for
from tests.forking import killed

ROWS, BOXES, WIDTH = (5, 7), 6, 8  # of two files
IMAGES = tuple(f"n{number}" if number % 3 else str(number) for number in range(sum(ROWS)))


def world(folder: Path, images=IMAGES, **storage) -> dict[str, np.ndarray]:
    """Write two files and their table; the boxes of every image, float32 ``[box, 8]``."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    order = rng.permutation(len(images))
    info, truth, placed = {}, {}, iter(order.tolist())
    for number, rows in zip((0, 3), ROWS, strict=True):
        values = np.abs(rng.normal(scale=9, size=(rows, BOXES, WIDTH))).astype(np.float32)
        for row in range(rows):
            image, promised = images[next(placed)], int(rng.integers(0, BOXES + 1))
            values[row, promised:] = 0
            truth[image] = values[row, :promised]
            info[image] = {
                "width": 640,
                "height": 480,
                "objectsNum": promised,
                "idx": row,
                "file": number,
            }
        with h5py.File(folder / f"gqa_objects_{number}.h5", "w") as file:
            file.create_dataset("features", data=values, **storage)
            file.create_dataset("bboxes", data=np.zeros((rows, BOXES, 4), np.float32))
    (folder / "gqa_objects_info.json").write_text(json.dumps(info))
    return truth


def changed(folder: Path, number: int = 0):
    """The features of a file, to be changed."""
    return h5py.File(folder / f"gqa_objects_{number}.h5", "r+")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expect(converted: Boxes, truth: dict[str, np.ndarray], images, boxes: int) -> None:
    """Compare with an image by image restatement."""
    assert converted.shape == (len(images), boxes, WIDTH)
    assert converted.features.dtype == np.float16 and converted.counts.dtype == np.int16
    for row, image in enumerate(images):
        kept = truth[image][:boxes]
        assert converted.counts[row] == len(kept)
        expected = np.zeros((boxes, WIDTH), dtype=np.float16)
        for box, numbers in enumerate(kept):
            expected[box] = [np.float16(number) for number in numbers]
        np.testing.assert_array_equal(converted.features[row], expected)


@pytest.mark.parametrize("boxes", [1, 4, 6, 9])
@pytest.mark.parametrize(
    "storage",
    [{}, {"chunks": (1, 6, 8)}, {"chunks": (3, 2, 5), "compression": "gzip"}, {"dtype": "f2"}],
)
def test_every_image_has_its_first_boxes(tmp_path, boxes, storage):
    """In the order asked for, however the file is stored."""
    truth = world(tmp_path / "raw", **storage)
    asked = [*IMAGES[::-2], IMAGES[2], IMAGES[2]]
    converted = convert(tmp_path / "raw", asked, boxes, tmp_path / "kept")
    if "dtype" in storage:
        truth = {name: values.astype(np.float16) for name, values in truth.items()}
    expect(converted, truth, asked, boxes)


def test_the_manifest_tells_what_was_converted(tmp_path):
    """Sources and a checksum of the arrays as they lie there."""
    world(tmp_path / "raw")
    converted = convert(tmp_path / "raw", IMAGES[:4], 3, tmp_path / "kept")
    folder = Path(converted.folder)
    assert folder.parent == tmp_path / "kept"
    assert sorted(contents(folder)) == ["boxes.json", "counts.npy", "features.npy"]
    manifest = json.loads((folder / "boxes.json").read_text())
    arrays = (folder / "features.npy").read_bytes() + (folder / "counts.npy").read_bytes()
    assert converted.sha256 == manifest["sha256"] == hashlib.sha256(arrays).hexdigest()
    assert sorted(manifest["sources"]) == ["gqa_objects_0.h5", "gqa_objects_3.h5"]
    status = (tmp_path / "raw/gqa_objects_0.h5").stat()
    assert manifest["sources"]["gqa_objects_0.h5"] == [status.st_size, status.st_mtime_ns]


def test_the_sources_may_be_deleted_once_they_are_converted(tmp_path):
    """All of them, and for the same request only: images, their order and the number of boxes."""
    raw, kept = tmp_path / "raw", tmp_path / "kept"
    truth = world(raw)
    first = convert(raw, IMAGES, 4, kept)
    for number in (0, 3):
        (raw / f"gqa_objects_{number}.h5").rename(tmp_path / str(number))
    converted = convert(raw, IMAGES, 4, kept)
    assert converted == first
    expect(converted, truth, IMAGES, 4)
    others = [(IMAGES[1:], 4), (IMAGES[::-1], 4), (IMAGES, 3)]
    for images, boxes in others:
        with pytest.raises(InputError, match="gqa_objects_0.h5: is missing"):
            convert(raw, images, boxes, kept)
    table = raw / "gqa_objects_info.json"
    before = table.read_text()
    table.write_text(before + " ")
    with pytest.raises(InputError, match="gqa_objects_0.h5: is missing"):
        convert(raw, IMAGES, 4, kept)
    table.write_text(before)
    asked = [image for image in IMAGES if json.loads(before)[image]["file"] == 3]
    (tmp_path / "3").rename(raw / "gqa_objects_3.h5")
    expect(convert(raw, asked, 4, kept), truth, asked, 4)  # which are all in the file that is there


def test_a_changed_file_is_converted_again(tmp_path):
    """One that is as large as before; who has the old map open keeps its numbers."""
    truth = world(tmp_path / "raw")
    first = convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept")
    before = first.features
    with changed(tmp_path / "raw", 3) as file:
        file["features"][2, 0, 3] += np.float32(1)
    other = convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept")
    assert other.sha256 != first.sha256
    info = json.loads((tmp_path / "raw/gqa_objects_info.json").read_text())
    image = next(name for name in IMAGES if (info[name]["file"], info[name]["idx"]) == (3, 2))
    kept = before[IMAGES.index(image), 0, 3]
    assert kept == np.float16(truth[image][0, 3])
    truth[image] = truth[image].copy()
    truth[image][0, 3] += np.float32(1)
    expect(other, truth, IMAGES, 4)


@pytest.mark.parametrize("name", ["features.npy", "counts.npy", "boxes.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_map_is_made_again(tmp_path, name, damage):
    """To the same bytes."""
    world(tmp_path / "raw")
    converted = convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept")
    before = contents(tmp_path / "kept")
    path = Path(converted.folder, name)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-3])
    else:
        path.unlink()
    assert convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept") == converted
    assert contents(tmp_path / "kept") == before


CHILD = """
import time
from pathlib import Path
from robust_fairness.bench.datasets.questions import _boxes
from tests.datasets.test_boxes import IMAGES
half = _boxes._half
def slow(*arguments):
    with open("images", "a") as file:
        file.write("image ")
    time.sleep(0.1)
    return half(*arguments)
_boxes._half = slow
_boxes.convert(Path({raw!r}), IMAGES, 4, Path({kept!r}))
"""


def test_after_a_killed_process_it_starts_again(tmp_path):
    """A real one, in its midst; its lock and what it wrote are gone with it."""
    world(tmp_path / "raw")
    raw, kept, images = tmp_path / "raw", tmp_path / "kept", tmp_path / "images"
    images.touch()
    code = CHILD.format(raw=str(raw), kept=str(kept))
    killed(code, tmp_path, lambda: images.stat().st_size >= 3 * len("image "))
    assert not list(kept.rglob("boxes.json"))
    converted = convert(raw, IMAGES, 4, kept)
    assert converted.sha256 == convert(raw, IMAGES, 4, tmp_path / "undisturbed").sha256
    assert contents(kept) == contents(tmp_path / "undisturbed")


def test_two_at_once_convert_once(tmp_path, monkeypatch):
    """The second one waits and finds the map."""
    world(tmp_path / "raw")
    half, calls = module._half, []

    def slow(*arguments):
        calls.append(1)
        time.sleep(0.02)
        return half(*arguments)

    monkeypatch.setattr(module, "_half", slow)
    with ThreadPoolExecutor(2) as pool:
        work = [
            pool.submit(convert, tmp_path / "raw", IMAGES, 4, tmp_path / "kept") for _ in range(2)
        ]
        first, second = (future.result() for future in work)
    assert first == second
    assert len(calls) == len(IMAGES)


def test_a_full_disk_is_one_line(tmp_path):
    """A limit of the size of a file, which ends a conversion as a full disk does."""
    truth = world(tmp_path / "raw")
    message = "cannot be written .File too large"
    with room_for(300), pytest.raises(InputError, match=message) as no:
        convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept")
    assert "\n" not in str(no.value)
    expect(convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept"), truth, IMAGES, 4)


def test_boxes_of_zeros_at_the_end_are_no_boxes(tmp_path, caplog):
    """Fewer than promised: left out and told; a box of zeros between others stays."""
    truth = world(tmp_path / "raw")
    info = json.loads((tmp_path / "raw/gqa_objects_info.json").read_text())
    here = {name: place for name, place in info.items() if place["file"] == 3}
    short, hollow = sorted(name for name, place in here.items() if place["objectsNum"] >= 3)[:2]
    with changed(tmp_path / "raw", 3) as file:
        file["features"][info[short]["idx"], 2:] = 0
        file["features"][info[hollow]["idx"], 1] = 0
    truth[short] = truth[short][:2]
    truth[hollow] = truth[hollow].copy()
    truth[hollow][1] = 0
    with caplog.at_level(logging.WARNING):
        converted = convert(tmp_path / "raw", IMAGES, 5, tmp_path / "kept")
    expect(converted, truth, IMAGES, 5)
    (line,) = caplog.messages
    assert re.search(f"1 of 12 images end with boxes of zeros.*the first is {short}", line)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 65520, -1e9])
def test_numbers_that_half_precision_cannot_hold_are_refused(tmp_path, value):
    """Never an infinity in their place; numbers behind the boxes kept are not looked at."""
    truth = world(tmp_path / "raw")
    info = json.loads((tmp_path / "raw/gqa_objects_info.json").read_text())
    name = next(name for name, at in info.items() if at["objectsNum"] >= 3 and at["file"] == 0)
    with changed(tmp_path / "raw") as file:
        file["features"][info[name]["idx"], 2, 4] = value
    expect(convert(tmp_path / "raw", IMAGES, 2, tmp_path / "kept"), truth, IMAGES, 2)
    message = rf"gqa_objects_0.h5, image '{name}', features: \S+, allowed: at most 65504"
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "raw", IMAGES, 3, tmp_path / "kept")


def test_numbers_at_the_edges_of_half_precision(tmp_path):
    """Rounded to the nearest; the smallest become zero, and stay a box."""
    world(tmp_path / "raw")
    values = np.array([65519, -65519, 1e-8, 2**-24, 1 + 2**-11, 1 + 3 * 2**-11, 0, 5], np.float32)
    info = json.loads((tmp_path / "raw/gqa_objects_info.json").read_text())
    name = next(name for name, place in info.items() if place["objectsNum"] == 2)
    with changed(tmp_path / "raw", info[name]["file"]) as file:
        file["features"][info[name]["idx"], :2] = [values, np.full(WIDTH, 1e-9)]
    converted = convert(tmp_path / "raw", [name], 3, tmp_path / "kept")
    expected = [65504, -65504, 0, 2**-24, 1, 1 + 2**-9, 0, 5]
    assert converted.features[0, 0].tolist() == expected
    assert converted.counts.tolist() == [2] and not converted.features[0, 1:].any()


def test_the_row_may_be_called_index(tmp_path):
    """As some descriptions of the format have it."""
    truth = world(tmp_path / "raw")
    path = tmp_path / "raw/gqa_objects_info.json"
    path.write_text(path.read_text().replace('"idx"', '"index"'))
    expect(convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept"), truth, IMAGES, 4)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def replaced(path: Path, values: np.ndarray, name: str = "features") -> None:
    with h5py.File(path, "w") as file:
        file[name] = values


def entry(**fields):
    """A change of what the table says of image 0."""

    def change(path: Path) -> None:
        info = json.loads(path.read_text(encoding="utf-8"))
        info["0"] |= fields
        path.write_text(json.dumps(info), encoding="utf-8")

    return change


TABLE, FIRST = "gqa_objects_info.json", "gqa_objects_0.h5"
WRONG = [
    (TABLE, Path.unlink, "info.json: cannot be read: No such file"),
    (TABLE, lambda path: path.write_bytes(b'{"0": {"file": '), "info.json: .*Invalid JSON: EOF"),
    (TABLE, lambda path: path.write_bytes(b"\xff\xfe\x00"), "info.json: .*Invalid JSON"),
    (TABLE, lambda path: path.write_text("[1]"), "info.json: .*Input should be an object"),
    (TABLE, lambda path: path.write_text('{"0": [1]}'), "info.json: 0: Input should be"),
    (TABLE, lambda path: path.write_text("{}"), "no entry of image '0', and of 12 of 12 images"),
    (TABLE, entry(idx=-1), "0.*idx.*: Input should be greater than"),
    (TABLE, entry(idx=1.5), "0.*: Input should be a valid integer"),
    (TABLE, entry(idx=7), "image '0', features: .*out of range"),
    (TABLE, entry(file=9), "gqa_objects_9.h5: is missing"),
    (TABLE, entry(file=True), "0.file: Input should be a valid int"),
    (TABLE, entry(objectsNum=None), "0.objectsNum: Input should be"),
    (FIRST, Path.unlink, "is missing; all files that"),
    (FIRST, truncated, "no readable HDF5 file: .*truncated file"),
    (FIRST, lambda path: path.write_bytes(b"no HDF5"), "no readable HDF5 file"),
    (FIRST, lambda path: replaced(path, np.ones((5, 6, 8)), "others"), "no array features"),
    (FIRST, lambda path: replaced(path, np.ones((5, 48))), "image '.*', features: "),
    (FIRST, lambda path: replaced(path, np.ones((4, 6, 8))), "features: .*out of range"),
    (FIRST, lambda path: replaced(path, np.ones((5, 6, 9))), "image '.*', features: .*broadcast"),
]


@pytest.mark.parametrize(("name", "change", "message"), WRONG)
def test_a_wrong_table_or_file_of_features_is_refused(tmp_path, name, change, message):
    """In one line; nothing is kept."""
    world(tmp_path / "raw")
    change(tmp_path / "raw" / name)
    with one_line(message) as no:
        convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept")
    assert "gqa_objects_" in str(no.value)
    assert not list((tmp_path / "kept").rglob("*.json"))


def test_a_chunk_that_cannot_be_unpacked_is_one_line(tmp_path):
    """Damage that shows only when the row is read: what went before is kept."""
    truth = world(tmp_path / "raw", chunks=(1, 6, 8), compression="gzip")
    path = tmp_path / "raw/gqa_objects_3.h5"
    whole = path.read_bytes()
    with h5py.File(path) as file:
        where = file["features"].id.get_chunk_info(4)
    broken = bytearray(whole)
    broken[where.byte_offset : where.byte_offset + where.size] = bytes(where.size)
    path.write_bytes(broken)
    with one_line(r"gqa_objects_3.h5, image '.*', features: "):
        convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept")
    assert not list((tmp_path / "kept").rglob("boxes.json"))
    path.write_bytes(whole)
    expect(convert(tmp_path / "raw", IMAGES, 4, tmp_path / "kept"), truth, IMAGES, 4)
