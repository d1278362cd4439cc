"""Files of images and of what is known of them: missing, damaged and unusual ones, by dataset."""

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from tests.datasets import test_biased_mnist as mnist
from tests.datasets import test_cars196 as cars
from tests.datasets import test_celeba as celeba
from tests.datasets import test_celeba_identity as identity
from tests.datasets import test_cifar10 as cifar
from tests.datasets import test_cub200 as cub
from tests.datasets import test_lfw as lfw
from tests.datasets import test_raw_tables as users
from tests.datasets.images import encoded, framed, matlab, write, write_mnist
from tests.datasets.loading import load, one_line

ONES = np.ones((len(lfw.NAMES), len(lfw.COLUMNS)))
CELEBA, CUB = "celeba/img_align_celeba", "cub200/CUB_200_2011"
ATTRIBUTES, PARTITION = "celeba/list_attr_celeba.txt", "celeba/list_eval_partition.txt.gz"
PEOPLE, LANDMARKS = "celeba/identity_CelebA.txt", "celeba/list_landmarks_align_celeba.txt"
ANNOTATIONS, CLASSES = "cars196/cars_train_annos.mat", "cars196/cars_meta.mat"
IMAGES, SPECIES = f"{CUB}/images.txt", f"{CUB}/classes.txt"
OF_IMAGE, LABELS = f"{CUB}/image_class_labels.txt", f"{CUB}/attributes/image_attribute_labels.txt"
KUMAR, PREDICTED = "lfw/lfw_attributes.txt", "lfw/lfw_predicted_attributes.csv"


@dataclass(frozen=True)
class Made:
    """Small generated files of a dataset.

    Attributes:
        make: writes them below a folder, images into a zip file if asked.
        images: folder of the images.
        files: the other files that are read.
        options: parameters with which they are loaded.
    """

    make: Callable[..., object]
    images: str = ""
    files: tuple[str, ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    def load(self, name: str, root: Path, **options: object) -> Samples:
        return load(name, root, 2, **dict(self.options) | options)


SIZE = ("size", 8)
OF_TRAINING = (SIZE, *cars.TRAINING.items())
TONE = (SIZE, ("skin_tone", "aligned"), ("min_images", 1))
MADE = {
    "celeba": Made(celeba.make, CELEBA, (ATTRIBUTES, PARTITION), (SIZE,)),
    "celeba_identity": Made(identity.make, CELEBA, (PEOPLE,), TONE),
    "cars196": Made(cars.make, "cars196/cars_train", (ANNOTATIONS, CLASSES), OF_TRAINING),
    "cub200": Made(
        cub.make, f"{CUB}/images",
        (IMAGES, SPECIES, OF_IMAGE, LABELS, "cub200/attributes.txt"), (SIZE,),
    ),
    "lfw": Made(partial(lfw.make, scores=ONES), "lfw/lfw-deepfunneled", (KUMAR,), (SIZE,)),
    "image_folder": Made(
        users.faces, "faces/files", ("faces/list.csv",), tuple(users.FACES.items()),
    ),
    "cifar10": Made(cifar.make, options=tuple(cifar.NPZ.items())),
    "biased_mnist": Made(write_mnist),
}  # fmt: skip
FOLDERS = [name for name, made in MADE.items() if made.images]
OF_ANY_SIZE = [name for name in FOLDERS if name != "celeba_identity"]
OFFICIAL = [name for name in FOLDERS if name != "image_folder"]


def image(root: Path, name: str, samples: Samples, row: int) -> Path:
    """The file of an image."""
    return root / MADE[name].images / str(samples.id[row]).removeprefix("cars_train/")


@pytest.mark.parametrize("name", FOLDERS)
def test_a_missing_image_is_named_or_left_out(tmp_path, name):
    """By choice; rows without any image, and a folder that is not there, are named."""
    made = MADE[name]
    made.make(tmp_path)
    samples = made.load(name, tmp_path)
    first = image(tmp_path, name, samples, 6)
    first.unlink()
    load_again = partial(made.load, name, tmp_path)
    with pytest.raises(
        InputError, match=rf"1 images in .* are missing, first .*{first.name}; only_present"
    ):
        load_again()
    assert len(load_again(only_present=True)) == len(samples) - 1
    for path in filter(Path.is_file, (tmp_path / made.images).rglob("*")):
        path.unlink()
    with pytest.raises(InputError, match=r"none of its \d+ images is among the 0 of"):
        load_again(only_present=True)
    (tmp_path / made.images).rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"{made.images} is missing: looked for the folder"):
        load_again()


@pytest.mark.parametrize("name", ["celeba", "celeba_identity", "cars196", "cub200"])
def test_an_image_without_a_row_is_named(tmp_path, name):
    """Nothing is guessed."""
    MADE[name].make(tmp_path)
    known = image(tmp_path, name, MADE[name].load(name, tmp_path), 0)
    known.with_name("999999.jpg").write_bytes(known.read_bytes())
    with pytest.raises(InputError, match=r"1 images without a row in .*, first .*999999.jpg"):
        MADE[name].load(name, tmp_path, only_present=True)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_damaged_image_is_named_with_its_row(tmp_path, name):
    """Empty, something else, cut in its header, cut in its pixels."""
    MADE[name].make(tmp_path)
    samples = MADE[name].load(name, tmp_path)
    whole = celeba.noise(0)
    unknown = "no JPEG or PNG file" if name == "image_folder" else "no JPEG file"
    for content, reason in (
        (b"", unknown), (b"GIF89a", unknown), (whole[:300], "Truncated File Read"),
        (whole[:-400], "image file is truncated"),
    ):  # fmt: skip
        image(tmp_path, name, samples, 4).write_bytes(content)
        with pytest.raises(InputError, match=rf"image {samples.id[4]} \(row 4\): .*{reason}"):
            MADE[name].load(name, tmp_path)


@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_grey_and_tiny_images(tmp_path, name):
    """Grey ones have three equal channels, tiny ones are enlarged unless a crop is larger."""
    MADE[name].make(tmp_path)
    samples = MADE[name].load(name, tmp_path)
    image(tmp_path, name, samples, 0).write_bytes(encoded(Image.new("L", (30, 20), 77)))
    image(tmp_path, name, samples, 2).write_bytes(framed((130, 100, 200), (1, 1)))
    again = MADE[name].load(name, tmp_path)
    assert (again.x[0] == 77).all()
    assert abs(again.x[2].astype(int) - np.array([130, 100, 200])[:, None, None]).max() < 6
    with pytest.raises(InputError, match=r"\(row 2\): 1 x 1 pixels, smaller than the crop of 2"):
        MADE[name].load(name, tmp_path, crop=(2, 2))


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_missing_file_is_named(tmp_path, name):
    MADE[name].make(tmp_path)
    for file in MADE[name].files:
        (tmp_path / file).rename(tmp_path / "away")
        with pytest.raises(InputError, match=f"^{file.removesuffix('.gz')} is missing: looked for"):
            MADE[name].load(name, tmp_path)
        (tmp_path / "away").rename(tmp_path / file)


@pytest.mark.parametrize("name", [name for name in OFFICIAL if name != "celeba_identity"])
def test_folder_and_zip_are_the_same_source(tmp_path, name):
    """Same pixels, same checksums; two images of one name in a zip file are refused."""
    both = []
    for zipped in (False, True):
        root = tmp_path / str(zipped)
        root.mkdir()
        MADE[name].make(root, zipped=zipped)
        both.append(MADE[name].load(name, root))
    assert np.array_equal(both[0].x, both[1].x)
    assert both[0].sources[MADE[name].images] == both[1].sources[MADE[name].images]
    jpeg = str(both[0].id[0]).removeprefix("cars_train/")
    with zipfile.ZipFile(root / f"{MADE[name].images}.zip", "a") as archive:
        archive.writestr(f"elsewhere/{jpeg}", framed((9, 100, 200), (20, 30)))
    with pytest.raises(InputError, match=f"two images are named {jpeg}; names must be unique"):
        MADE[name].load(name, root)


def text(old: str, new: str, count: int = -1) -> Callable[[bytes], bytes]:
    """Replace a text of a file."""

    def change(content: bytes) -> bytes:
        assert old.encode() in content
        return content.replace(old.encode(), new.encode(), count)

    return change


def rows(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda content: b"\n".join(change(content.splitlines()))


def alone(array: np.ndarray) -> bytes:
    """A file of one array, no archive of some."""
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


DIFFERS = "not as the official file: "
ADA = "Ada Lovelace\t2\t"
MARKS = f"{celeba.HEADER}\n000001.jpg {celeba.USUAL}"
DAMAGED = {
    "celeba": [
        (ATTRIBUTES, b"2\na b\n1.jpg 1 1\n2.jpg 1\n", {}, DIFFERS),
        (ATTRIBUTES, b"2\na b\n1.jpg 1 1\n2.jpg 1 x\n", {}, DIFFERS),
        (ATTRIBUTES, b"2\na b\n1.jpg 1 1\n2.jpg 1 1 1\n", {}, f"{DIFFERS}.*line 4, saw 4"),
        (ATTRIBUTES, b"x", {}, DIFFERS),
        (ATTRIBUTES, b"", {}, DIFFERS),
        (PARTITION, gzip.compress(b"999999.jpg 0", mtime=0), {}, DIFFERS),
        (PARTITION, gzip.compress(b"000002.jpg x", mtime=0), {}, DIFFERS),
        (PARTITION, gzip.compress(b"000002.jpg", mtime=0), {}, DIFFERS),
        ("", b"", {"target": "Blond"}, "unknown attribute of CelebA 'Blond': .*'Blond_Hair'"),
        ("", b"", {"sensitive": ("Mal",)}, "unknown attribute of CelebA 'Mal'"),
        ("", b"", {"train_rows": 21}, "train_rows: 21, allowed: up to 20"),
        ("", b"", {"skin_tone": "landmarks"}, f"{LANDMARKS} is missing"),
        ("", b"", {"skin_tone": "aligned"}, "skin_tone: images of 20 x 30 pixels, allowed: the"),
        ("", b"", {"sensitive": ("skin_tone",)}, "unknown attribute of CelebA 'skin_tone'"),
        ("", b"", {"sensitive": ("skintone",), "skin_tone": "aligned"}, ".*mean 'skin_tone'"),
    ],
    "celeba_identity": [
        (PEOPLE, b"000001.jpg x\n", {}, DIFFERS),
        (PEOPLE, b"", {}, DIFFERS),
        ("", b"", {"min_images": 7}, "min_images: 7 leaves 1 of 6 classes"),
        ("", b"", {"min_images": 99}, "min_images: 99 leaves 0 of 6 classes"),
        ("", b"", {"skin_tone": "landmarks"}, f"{LANDMARKS} is missing"),
        (
            LANDMARKS, f"1\n{MARKS.replace('001.jpg', '099.jpg')}\n".encode(),
            {"skin_tone": "landmarks"}, r"has none of the 27 images",
        ),
        (LANDMARKS, f"1\n{MARKS}x\n".encode(), {"skin_tone": "landmarks"}, DIFFERS),
        (
            LANDMARKS, f"2\n{MARKS}\n000002.jpg {celeba.USUAL[:-4]}".encode(),
            {"skin_tone": "landmarks"}, "000002.jpg: expected 10 numbers",
        ),
        (LANDMARKS, b"1\nx_1 y_1\n1.jpg 1 2\n", {"skin_tone": "landmarks"}, DIFFERS),
    ],
    "cars196": [
        *((file, change, {}, DIFFERS) for file in (ANNOTATIONS, CLASSES) for change in (
            lambda content: content[: len(content) // 2], b"", b"no MATLAB file" * 20,
            matlab(others=np.arange(3)),
        )),
        *(
            (ANNOTATIONS, cars.annotations([1, number]), {}, DIFFERS)
            for number in (0, 4, 1.5, "a", [], [1, 2])
        ),
        (ANNOTATIONS, cars.annotations([1], ("bbox_x1", "fname")), {}, f"{DIFFERS}.*class"),
        (ANNOTATIONS, matlab(annotations=np.arange(3)), {}, DIFFERS),
        (
            CLASSES, matlab(class_names=np.array(["a", "a"], dtype=object)), {},
            "class_names: a occurs in two rows",
        ),
    ],
    "cub200": [
        (IMAGES, text("2 001", "x 001"), {}, "row 2, column number: 'x'"),
        (IMAGES, text("2 001", "1 001"), {}, ": 1 occurs in two rows"),
        (IMAGES, text("_0001_901", "_0000_900"), {}, "001.*_0000_900.jpg occurs in"),
        (
            IMAGES, text("30 017", "31 017"), {},
            f"{OF_IMAGE}: image 30 is in only one of",
        ),
        (OF_IMAGE, text("30 3\n", "30 4\n"), {}, "image 30: class 4 .nan. "),
        (OF_IMAGE, text("30 3\n", "30 2\n"), {}, r"image 30: class 2 .002.L"),
        (OF_IMAGE, text("30 3\n", "30\n"), {}, "line 30: 1 fields, expect"),
        (SPECIES, text("3 017.Cardinal", "3 002.Laysan_Albatross"), {}, "002.Lay.* occ"),
        (
            SPECIES, text("1 001", "1 002"), {},
            f"{OF_IMAGE}, image 1: class 1 .002.Black_.*folder in 001.Black_",
        ),
        ("cub200/attributes.txt", text("primary", "secondary"), {}, "expected one row"),
        ("cub200/attributes.txt", text("primary_color::red", "primary_color::blue"), {}, ".*per c"),
        ("cub200/attributes.txt", text("12 has", "11 has"), {}, ": 11 occurs in two rows"),
        (LABELS, rows(lambda r: [*r[:5], b"99 1 0 1 2.0", *r[5:]]), {}, "row 6, image: 99"),
        (LABELS, rows(lambda r: [*r[:5], b"1 99 0 1 2.0"]), {}, "row 6, attribute: 99, allowed"),
        (LABELS, rows(lambda r: [b"1 1 2 1 2.0", *r]), {}, "row 1, seen: 2, allowed: 0 or 1"),
        (LABELS, rows(lambda r: [b"1 x 1 1 2.0", *r]), {}, "row 1, attribute: x, allowed: the"),
        (LABELS, rows(lambda r: [*r, b"1 1"]), {}, "row 361, seen: nan, allowed: 0 or 1"),
        (LABELS, rows(lambda r: r[12:]), {}, "1 images have no row, first number 1;"),
        (LABELS, rows(lambda r: r[:-24]), {}, "2 images have no row, first number 29;"),
        (LABELS, rows(lambda r: [*r, b"", b"\xff \xfe 1"]), {}, DIFFERS),
        (LABELS, rows(lambda r: [*r, b"1 1 " + b"9" * 30]), {}, "row 361, seen: 9+, allowed: 0"),
        (LABELS, b"", {}, "30 images have no row, first number 1"),
    ],
    "lfw": [
        (KUMAR, text("#\tperson", "person"), {}, "no column person; the first .* '#', person"),
        (KUMAR, text("\tIndian", "\tIndien"), {}, "no column Indian; the first row must be"),
        (KUMAR, text(ADA, "Ada Lovelace\t1\t", 1), {}, "Ada_.*_0001.jpg occurs in two rows"),
        (KUMAR, text(ADA, "Ada Lovelace\tx\t", 1), {}, "row 2, column imagenum: 'x', allowed: a"),
        (KUMAR, text(ADA, "\t2\t", 1), {}, "row 2, column person: '', allowed: a person"),
        (KUMAR, text(ADA, f"{ADA}1\t", 1), {}, "line 4: 9 fields, expected 8"),
        (KUMAR, text(f"{ADA}1.0\t1.0", f"{ADA}1.0\tnan", 1), {}, "row 2, column Asian: 'nan'"),
        (KUMAR, text(f"{ADA}1.0\t1.0", f"{ADA}1.0\t?", 1), {}, r"row 2, column Asian: '\?'"),
        (KUMAR, b"", {}, "no column person"),
        (KUMAR, b"# only\n# comments\n", {}, "no column person"),
        (KUMAR, lfw.kumar([], []).encode(), {}, "none of its 0 images is among the 29 of"),
        (KUMAR, lfw.kumar(lfw.NAMES, [[-1.0] * 6] * 29).encode(), {}, "none of the 29 images"),
        (
            KUMAR, lfw.kumar(["A_B/A_B_0001.jpg"], [[1.0] * 6]).encode(), {"only_present": True},
            "none of its 1 images is among the 29 of",
        ),
        *(
            (
                f"lfw/lfw-deepfunneled/Ada_Lovelace/{stranger}", framed((0, 9, 200), (20, 30)), {},
                f"image Ada_Lovelace/{stranger}; expected names such as Person/Person_0001.jpg",
            )
            for stranger in ("Grace_Hopper_0009.jpg", "x.jpg")
        ),
        ("", b"", {"attribute": "predicted"}, f"{PREDICTED} is missing: looked"),
        *(
            (PREDICTED, f"name,df_race\n{content}".encode(), {"attribute": "predicted"}, message)
            for content, message in (
                ("A_B_0001.jpg,martian\n", "row 1, column df_race: unknown .* 'martian'"),
                ("A_B_0001.jpg,\n", "row 1, column df_race: .*Allowed: asian, black"),
                ("A_B_0001.jpg,white\n" * 2, "A_B_0001.jpg occurs in two rows"),
                ("A_B_0001.jpg,white\n", "none of its 1 images is among the 29 of lfw"),
            )
        ),
        (PREDICTED, b"name,race\nA.jpg,white\n", {"attribute": "predicted"}, ".*df_race"),
    ],
    "image_folder": [
        ("", b"", {"image": "nam"}, "faces/list.csv: unknown column 'nam': did you mean 'name'"),
        ("", b"", {"image": "tone"}, "faces/list.csv: none of its 30 images is among the 31 of"),
        ("", b"", {"image": "part"}, "faces/list.csv, column part: .* occurs in two rows"),
        ("", b"", {"crop": [20, 20]}, r"image 0\.JPG \(row 0\): 10 x 12 pixels, smaller than"),
    ],
    "cifar10": [
        ("", b"", {"train_rows": 41}, "train_rows: 41 of 40 rows, allowed: 1 to 40 rows"),
        (
            "", b"", {"train_files": ("cifar10/data_batch_1",)},
            r"data_batch_1: unknown format, allowed: \.bin",
        ),
        *(
            ("cifar10/train.npz", partial(cifar.with_arrays, **change), {}, message)
            for change, message in (
                ({"images": None}, f"{DIFFERS}.*images"),
                ({"labels": None}, f"{DIFFERS}.*labels"),
                ({"images": np.zeros((40, 3, 32, 32), np.uint8)}, r"images uint8 \(40, 3"),
                ({"images": np.zeros((40, 32, 32, 3), np.float32)}, "images float32"),
                ({"labels": np.zeros(39, np.int64)}, r".*labels int64 \(39,\), .* whole"),
                ({"labels": np.zeros(40)}, ".*labels float64"),
                ({"labels": np.arange(40) - 1}, "labels from -1 to 38, allowed: 0 to 9"),
                ({"filenames": np.arange(40)}, "filenames: int64"),
                ({"class_names": np.array(["cat", "dog"])}, "class_names: must be airplane, "),
                ({"labels": np.array([None] * 40)}, f"{DIFFERS}Object arrays"),
            )
        ),
        ("cifar10/train.npz", lambda content: content[:-100], {}, DIFFERS),
        ("cifar10/train.npz", lambda content: content[: len(content) // 2], {}, DIFFERS),
        ("cifar10/train.npz", b"", {}, DIFFERS),
        ("cifar10/train.npz", b"\x80\x04.", {}, DIFFERS),
        ("cifar10/train.npz", alone(cifar.arrays()["labels"]), {}, DIFFERS),
        *(
            (f"cifar10/cifar-10-batches-bin/{file}", change, cifar.BINARY, message)
            for file, change, message in (
                ("data_batch_2.bin", lambda content: content[:-1], "122919 bytes; expected 3073"),
                ("test_batch.bin", b"", "0 bytes; expected 3073 per image"),
                (
                    "data_batch_2.bin", lambda content: b"\x0a" + content[1:],
                    "labels from 0 to 10, allowed: 0 to 9",
                ),
            )
        ),
    ],
    "biased_mnist": [
        (mnist.FILES["images"], lambda content: content[:-1], {}, DIFFERS),
        (mnist.FILES["images"], lambda content: content + b"0", {}, DIFFERS),
        (mnist.FILES["images"], lambda content: content[:9], {}, DIFFERS),
        (mnist.FILES["images"], b"", {}, DIFFERS),
        (mnist.FILES["labels"], lambda content: content[:8] + b"\x0a" + content[9:], {}, DIFFERS),
        ("", b"", {"digits": "scikit_learn", "train_rows": 1001}, "train_rows: 1001, allowed"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "file", "change", "options", "message"),
    [(name, *damage) for name, cases in DAMAGED.items() for damage in cases],
)
def test_what_does_not_fit_is_one_line(tmp_path, name, file, change, options, message):
    """With the name of a file and what is allowed."""
    made = MADE[name]
    made.make(tmp_path)
    if file:
        path = tmp_path / file
        before = path.read_bytes() if path.is_file() else b""
        path.write_bytes(change(before) if callable(change) else change)
    with one_line(message) as error:
        made.load(name, tmp_path, **options)
    if file:
        places = (file, made.images or file, *made.files)
        assert any(place.removesuffix(".gz") in str(error.value) for place in places)


def test_archives_of_the_binary_version_of_cifar_that_are_damaged(tmp_path):
    """Without most members, no archive, cut; packed or not."""
    archive = cifar.packed({"data_batch_1.bin": b""})
    for content in (archive, archive[:50], gzip.compress(b"no tar" * 200), gzip.compress(b"")):
        write(tmp_path / "cifar10", {"cifar-10-binary.tar.gz": content})
        with one_line(r"cifar10/cifar-10-binary\.tar"):
            load("cifar10", tmp_path)
    (tmp_path / "cifar10" / "cifar-10-binary.tar.gz").unlink()
    for content in (gzip.decompress(archive), b"no tar" * 200, b""):
        write(tmp_path / "cifar10", {"cifar-10-binary.tar": content})
        with pytest.raises(InputError, match=rf"^cifar10/cifar-10-binary\.tar: {DIFFERS}"):
            load("cifar10", tmp_path)


def test_people_who_cannot_be_split_are_refused(tmp_path):
    identity.make(tmp_path, {1: 1, 2: 1})
    with pytest.raises(InputError, match="leave the val part of the 2 rows of 2 classes empty"):
        load("celeba_identity", tmp_path, size=8, skin_tone="aligned", min_images=1)


def test_images_of_two_sizes_have_no_skin_tone(tmp_path):
    celeba.make(tmp_path)
    (tmp_path / CELEBA / "000005.jpg").write_bytes(celeba.noise(0))
    with pytest.raises(InputError, match="row 4: 31 x 24 pixels, expected 30 x 20, as in row 0"):
        load("celeba", tmp_path, size=8, skin_tone="aligned")


def test_one_person_alone_is_refused(tmp_path):
    """There is nobody to tell them from."""
    lfw.make(tmp_path, np.repeat([ONES[0], -ONES[0]], [12, 17], axis=0))
    with pytest.raises(InputError, match="class: images of a single class, Ada_Lovelace;"):
        load("lfw", tmp_path, size=8)
