"""Chunks: the same images however they are cut, interrupted and asked for."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from robust_fairness.bench.generation import latents
from robust_fairness.bench.generation.chunks import Chunks
from robust_fairness.bench.generation.families import Family
from robust_fairness.bench.shifts.latent import Extend, LatentOverlap, Truncation
from robust_fairness.bench.shifts.noise import GaussianNoise
from robust_fairness.core.errors import InputError
from tests.faults.test_disk import room_for
from tests.forking import killed

SHAPE = (1, 4, 4)
FAMILY = Family("extend", 15.0, Extend.Parameters(), seed=3)
PLACES = st.lists(st.integers(0, 60), min_size=1, max_size=12)


@dataclass
class Dependent:
    """A decoder whose images depend on all the rows beside them and on their place."""

    fingerprint: str = "made up"
    classes: tuple[str, ...] = ("a", "b", "c")
    shape: tuple[int, int, int] = SHAPE
    sizes: list[int] = field(default_factory=list)
    wait: float = 0.0
    device = torch.device("cpu")

    def decode(self, latents: Tensor, labels: Tensor) -> Tensor:
        time.sleep(self.wait)
        self.sizes.append(len(latents))
        place = torch.arange(len(latents))[:, None, None, None]
        mixed = 40 * latents + 1000 * latents.sum() + 7 * labels[:, None, None, None] + place
        return mixed.remainder(256).floor().to(torch.uint8)


def chunks(root: Path, decoder: Dependent | None = None, **options) -> Chunks:
    options = {"batch": 4, "chunk": 12} | options
    return Chunks(decoder or Dependent(), options.pop("family", FAMILY), root, **options)


def expected(places: np.ndarray, batch: int = 4, family: Family = FAMILY) -> np.ndarray:
    """Restated: the image at a place is that of the whole batch it belongs to."""
    images = []
    for place in places.tolist():
        first = place // batch * batch
        beside = np.arange(first, first + batch)
        z = latents.draws(family.seed, beside, 16)
        targets = latents.targets(family.target_seed, 16)
        moved = Extend().subset(z, family.severity, targets)
        labels = torch.from_numpy(latents.labels(family.seed, beside, 3))
        whole = Dependent().decode(torch.from_numpy(moved).reshape(batch, *SHAPE), labels)
        images.append(whole[place - first].numpy())
    return np.stack(images)


@given(places=PLACES, more=PLACES, chunk=st.integers(1, 9))
def test_images_are_the_same_whatever_is_asked_for_and_was_made(
    places, more, chunk, tmp_path_factory
):
    """In any order, repeated, before and after others, for any chunk size, read or made."""
    root = tmp_path_factory.mktemp("chunks")
    asked, later = np.array(places), np.array(more)
    made = chunks(root, chunk=4 * chunk)
    np.testing.assert_array_equal(made.images(asked), expected(asked))
    np.testing.assert_array_equal(made.images(later), expected(later))
    np.testing.assert_array_equal(made.images(asked), expected(asked))
    other = chunks(root, chunk=4)
    np.testing.assert_array_equal(other.images(asked), expected(asked))
    assert other.folder == made.folder


def test_the_decoder_sees_batches_of_one_size_only_and_each_once(tmp_path):
    decoder = Dependent()
    made = chunks(tmp_path, decoder)
    made.make(np.arange(5, 30))
    assert decoder.sizes == [4] * 7
    made.make(np.arange(5, 30))
    assert decoder.sizes == [4] * 7
    # of the first chunk rows 0 to 4 are lacking, and it is made anew; the others stay
    made.make(np.arange(30))
    assert decoder.sizes == [4] * (7 + 3)
    assert made.images(np.array([], dtype=np.int64)).shape == (0, *SHAPE)


def test_everything_that_shapes_the_numbers_is_in_the_name(tmp_path):
    """And nothing else: neither the folder nor the size of chunks.

    Code, packages and threads are in every key: ``training/test_fitting.py``.
    """
    plain = chunks(tmp_path).content
    others = [
        chunks(tmp_path, Dependent(fingerprint="other")),
        chunks(tmp_path, Dependent(classes=("a", "b"))),
        chunks(tmp_path, Dependent(shape=(4, 2, 2))),
        chunks(tmp_path, batch=6),
        chunks(tmp_path, device="cuda bfloat16"),
        chunks(tmp_path, family=replace(FAMILY, severity=15.5)),
        chunks(tmp_path, family=replace(FAMILY, seed=4)),
        chunks(tmp_path, family=replace(FAMILY, target_seed=4)),
        chunks(tmp_path, family=replace(FAMILY, parameters=Extend.Parameters(form="as_printed"))),
        chunks(tmp_path, family=Family("overlap", 15.0, LatentOverlap.Parameters(), seed=3)),
        chunks(tmp_path, family=Family("truncation", 15.0, Truncation.Parameters(), seed=3)),
    ]
    names = {other.content for other in others} | {plain}
    assert len(names) == len(others) + 1
    assert chunks(tmp_path / "elsewhere", chunk=4).content == plain


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


CHILD = """
from pathlib import Path
import numpy as np
from tests.generation.test_chunks import Dependent, chunks
chunks(Path({folder!r}), Dependent(wait=0.02)).make(np.arange(600))
"""


def test_generation_survives_sigkill(tmp_path):
    """A process killed in its midst: the next one goes on to the same bytes."""
    folder = tmp_path / "killed"

    def count() -> int:
        return len(list(folder.rglob("[0-9]*.safetensors")))

    killed(CHILD.format(folder=str(folder)), tmp_path, lambda: count() >= 2)
    finished = count()
    assert 2 <= finished < 50
    again = Dependent()
    chunks(folder, again).make(np.arange(600))
    assert len(again.sizes) == 150 - 3 * finished
    chunks(tmp_path / "undisturbed").make(np.arange(600))
    assert contents(folder) == contents(tmp_path / "undisturbed")


def test_a_file_that_the_system_lets_grow_no_further_is_one_line_too(tmp_path):
    """A real failing write: the first chunk is small, the second one is not."""
    made = chunks(tmp_path, chunk=400)
    message = r"400\+400.*chunk not written.*finished chunks are kept"
    with room_for(4096), pytest.raises(InputError, match=message) as caught:
        made.make(np.arange(390, 800))
    assert "\n" not in str(caught.value)
    assert [Path(name).name for name in contents(tmp_path)] == ["0+400.safetensors"]
    np.testing.assert_array_equal(made.images(np.arange(390, 420)), expected(np.arange(390, 420)))


def test_a_damaged_chunk_and_one_of_another_set_are_decoded_again(tmp_path, caplog):
    """A file that is cut off, or one of other settings; bits are flipped in those of training."""
    places = np.arange(12)
    made = chunks(tmp_path)
    made.make(places)
    (path,) = made.folder.iterdir()
    whole = path.read_bytes()
    foreign = chunks(tmp_path, Dependent(fingerprint="other"))
    foreign.make(places)
    (other,) = foreign.folder.iterdir()
    for content in (other.read_bytes(), whole[:-1]):
        path.write_bytes(content)
        caplog.clear()
        decoder = Dependent()
        np.testing.assert_array_equal(chunks(tmp_path, decoder).images(places), expected(places))
        assert len(decoder.sizes) == 3
        assert "0+12.safetensors: damaged checkpoint" in caplog.text


def test_what_is_decoded_has_to_be_images(tmp_path, monkeypatch):
    for wrong in (lambda z, y: z, lambda z, y: z.to(torch.uint8)[:1]):
        decoder = Dependent()
        monkeypatch.setattr(decoder, "decode", wrong)
        with pytest.raises(InputError, match=r"generator: decoded to .* allowed: torch.uint8"):
            chunks(tmp_path, decoder).make(np.arange(2))
    assert contents(tmp_path) == {}


def test_bad_places_and_families_are_refused(tmp_path):
    with pytest.raises(InputError, match="places: -1, allowed: 0 or more"):
        chunks(tmp_path).images(np.array([3, -1]))
    with pytest.raises(InputError, match="shift gaussian_noise: a shift of samples"):
        Family("gaussian_noise", 0.1, GaussianNoise.Parameters())
    with pytest.raises(InputError, match="did you mean 'extend'"):
        Family("extent", 0.1, Extend.Parameters())
    with pytest.raises(InputError, match="allowed: 0 to 90"):
        Family("extend", 91.0, Extend.Parameters())
    with pytest.raises(InputError, match="allowed: 2 and more"):
        chunks(tmp_path, Dependent(shape=(1, 1, 1))).make(np.arange(3))
