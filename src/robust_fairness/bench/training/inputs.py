"""Inputs of rows as tensors: from arrays, or from the features of images that rows share."""

from math import prod

import torch
from torch import Tensor

from robust_fairness.bench.models.packing import packed
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import IMAGE, TOKENS, QuestionShape, RowShape
from robust_fairness.core.samples import Samples

NUMBERS_AT_ONCE = 2**21  # numbers of the inputs of one block of rows
MOST_ROWS_AT_ONCE = 8192


def shape_of(samples: Samples) -> RowShape:
    """Shape of one row: of its array, or of a question with its image."""
    if samples.questions is not None:
        words, boxes = samples.questions.words, samples.questions.boxes
        return QuestionShape(words, samples.arrays[TOKENS].shape[1], *boxes.shape[1:])
    if isinstance(samples.x, dict):
        raise InputError(f"rows are several arrays: {', '.join(samples.x)}, allowed: one, x")
    return samples.x.shape[1:]


def rows_at_once(shape: RowShape) -> int:
    """Rows of a block, so that predicting a large set needs bounded memory."""
    numbers = shape.numbers if isinstance(shape, QuestionShape) else prod(shape)
    return max(1, min(MOST_ROWS_AT_ONCE, NUMBERS_AT_ONCE // max(1, numbers)))


class Inputs:
    """Inputs of all rows of samples, from which those of any rows are taken.

    Arrays of the rows are on the device; features of images stay in their file. ``shape`` is that
    of one row.
    """

    def __init__(self, samples: Samples, device: torch.device) -> None:
        self.shape = shape_of(samples)
        self.device = device
        self.arrays = {
            name: torch.from_numpy(array).to(device) for name, array in samples.arrays.items()
        }
        self.questions = samples.questions

    def of(self, rows: Tensor) -> Tensor:
        """Raw inputs ``[..., *shape]`` of the rows ``[...]``; questions are packed, float32."""
        if self.questions is None:
            # several times faster than indexing, which copies number by number
            return self.arrays["x"].index_select(0, rows.flatten()).unflatten(0, rows.shape)
        boxes = self.questions.boxes
        images = self.arrays[IMAGE][rows].cpu().numpy()
        return packed(
            self.arrays[TOKENS][rows],
            torch.from_numpy(boxes.counts[images]).to(self.device),
            torch.from_numpy(boxes.features[images]).to(self.device),
            torch.float32,
        )
