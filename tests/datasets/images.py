"""Small images in folders and zip files, as official datasets have them."""

import struct
import zipfile
from io import BytesIO

import numpy as np
from PIL import Image
from scipy.io import savemat


def encoded(image: Image.Image, form: str = "JPEG", quality: int = 95) -> bytes:
    """The file of an image."""
    content = BytesIO()
    image.save(content, format=form, quality=quality)
    return content.getvalue()


def framed(color: tuple[int, int, int], size: tuple[int, int]) -> bytes:
    """A JPEG file of one colour, black outside of its central square."""
    image = Image.new("RGB", size)
    side = min(size)
    left, top = (size[0] - side) // 2, (size[1] - side) // 2
    image.paste(color, (left, top, left + side, top + side))
    return encoded(image)


def matlab(**variables: object) -> bytes:
    """A MATLAB file."""
    content = BytesIO()
    savemat(content, variables, do_compression=True)
    return content.getvalue()


def packed(contents: dict[str, bytes | str]) -> bytes:
    """A zip file."""
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return target.getvalue()


def write(folder, contents: dict[str, bytes], zipped: bool = False, inside: str = "") -> None:
    """Write files into a folder, or below ``inside`` into a zip file of its name."""
    if zipped:
        members = {f"{inside or folder.name}/{name}": content for name, content in contents.items()}
        folder, contents = folder.parent, {f"{folder.name}.zip": packed(members)}
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_mnist(root, train: int = 60, t10k: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Files in MNIST's format below a data root: their images ``[n, 28, 28]`` and digits."""
    rng, images, labels = np.random.default_rng(0), [], []
    for part, count in (("train", train), ("t10k", t10k)):
        images.append(rng.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        labels.append(rng.permutation(np.arange(count) % 10).astype(np.uint8))
        for kind, content in (("images-idx3", images[-1]), ("labels-idx1", labels[-1])):
            head = bytes([0, 0, 8, content.ndim]) + struct.pack(f">{content.ndim}I", *content.shape)
            write(root / "mnist", {f"{part}-{kind}-ubyte": head + content.tobytes()})
    return np.concatenate(images), np.concatenate(labels)
