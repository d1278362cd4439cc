"""Random crops and horizontal flips of training images, for whole batches on the device.

Source: ``torchvision.transforms.v2.RandomResizedCrop`` with its defaults, back to the size of the
images, and ``RandomHorizontalFlip``: 8 to 100 % of the area, an aspect ratio of 3/4 to 4/3,
bilinear with antialiasing. They are the training transforms of Roth et al., "Revisiting Training
Strategies and Generalization Performance in Deep Metric Learning" (ICML 2020), which fair metric
learning adopts (D.3); for faces it flips only.

A crop is never larger than the image, so that antialiasing changes nothing and every pixel is an
interpolation of four: one look-up for a batch. The result is torchvision's in floating point,
rounded, as on GPUs; its arithmetic for uint8 on some CPUs rounds twice and may differ by one.
"""

from math import log

import torch
from jaxtyping import Bool, Float64, Int64, UInt8
from torch import Tensor
from torch.nn import functional

from robust_fairness.bench.models.randomness import Randomness

AREA = (0.08, 1.0)  # share of the image
ASPECT = (3 / 4, 4 / 3)  # width over height
ATTEMPTS = 10  # to draw a part that fits into the image
BRIGHTEST = 255

Images = UInt8[Tensor, "replicas rows channels height width"]
Boxes = Int64[Tensor, "replicas rows 4"]
Flipped = Bool[Tensor, "replicas rows"]


def crop_and_flip(images: Images, randomness: Randomness) -> Images:
    """A random crop of every image at the original size, flipped with probability 1/2."""
    boxes = drawn_boxes(randomness, images.shape[1], images.shape[-2], images.shape[-1])
    return cropped(images, boxes, drawn_flips(randomness, images.shape[1]))


def flip(images: Images, randomness: Randomness) -> Images:
    """Images flipped with probability 1/2 each."""
    flipped = drawn_flips(randomness, images.shape[1]).to(images.device)
    return torch.where(flipped[..., None, None, None], images.flip(-1), images)


def drawn_flips(randomness: Randomness, rows: int) -> Flipped:
    """Which images of a batch are flipped."""
    return randomness.integers((rows,), 2).bool()


def drawn_boxes(randomness: Randomness, rows: int, height: int, width: int) -> Boxes:
    """Crops of the images of a batch: first row and column, height and width."""
    uniform = (randomness.uniform((rows, 2 * ATTEMPTS + 2), 0.5) + 0.5).double()
    areas, aspects, place = uniform.split([ATTEMPTS, ATTEMPTS, 2], dim=-1)
    area = height * width * (AREA[0] + (AREA[1] - AREA[0]) * areas)
    low, high = map(log, ASPECT)
    aspect = (low + (high - low) * aspects).exp()
    sides = torch.stack([area / aspect, area * aspect], dim=-1).sqrt().round().long()
    whole = torch.tensor([height, width])
    fits = ((sides > 0) & (sides <= whole)).all(-1)
    first = fits.long().argmax(-1)[..., None, None].expand(-1, -1, 1, 2)
    side = sides.gather(2, first)[:, :, 0]
    box = torch.cat([(place * (whole - side + 1)).long(), side], dim=-1)
    return torch.where(fits.any(-1, keepdim=True), box, central_box(height, width))


def central_box(height: int, width: int) -> Int64[Tensor, " 4"]:
    """The largest central crop of an allowed aspect ratio, used where no drawn one fits."""
    low, high = ASPECT
    tall, wide = height, width
    if width / height < low:
        tall = round(width / low)
    elif width / height > high:
        wide = round(height * high)
    return torch.tensor([(height - tall) // 2, (width - wide) // 2, tall, wide])


def cropped(images: Images, boxes: Boxes, flipped: Flipped) -> Images:
    """Crops of images (first row and column, height, width) at the original size."""
    height, width = images.shape[-2:]
    top, left, tall, wide = boxes.to(images.device).flatten(0, 1).unbind(-1)
    rows, columns = sources(top, tall, height), sources(left, wide, width)
    turned = flipped.to(images.device).flatten()[:, None]
    columns = torch.where(turned, columns.flip(1), columns)
    shape = (len(rows), height, width)
    places = torch.stack([columns[:, None].expand(shape), rows[..., None].expand(shape)], dim=-1)
    resized = functional.grid_sample(
        images.flatten(0, 1).float(), places.float(), padding_mode="border", align_corners=False
    )
    return resized.round().clamp(0, BRIGHTEST).to(torch.uint8).view_as(images)


def sources(
    start: Int64[Tensor, " rows"], length: Int64[Tensor, " rows"], size: int
) -> Float64[Tensor, "rows size"]:
    """Coordinates sampled when a part of a line is stretched to all of its ``size`` pixels.

    -1 is the beginning of the line and 1 its end. Coordinates stay within the centres of the first
    and the last pixel of the part.
    """
    centres = torch.arange(size, dtype=torch.float64, device=start.device) + 0.5
    first, count = start[:, None].double(), length[:, None].double()
    within = torch.minimum((centres * count / size).clamp(min=0.5), count - 0.5)
    return 2 * (first + within) / size - 1
