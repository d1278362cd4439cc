"""Inputs of rows as tensors: from arrays, or from the features of images that rows share."""

from math import prod

import numpy as np
import torch
from torch import Tensor

from robust_fairness.core.errors import InputError
from robust_fairness.models.packing import packed
from robust_fairness.samples import Samples
from robust_fairness.samples.questions import IMAGE, TOKENS, QuestionShape, RowShape

NUMBERS_AT_ONCE = 2**21  # numbers of the inputs of one block of rows
MOST_ROWS_AT_ONCE = 8192


def shape_of(samples: Samples) -> RowShape:
    """Shape of one row: of its array, or of a question with its image.

    Raises:
        InputError: rows are several arrays and no questions.
    """
    if samples.questions is not None:
        words, boxes = samples.questions.words, samples.questions.boxes
        return QuestionShape(words, samples.arrays[TOKENS].shape[1], *boxes.shape[1:])
    if isinstance(samples.x, dict):
        raise InputError(f"rows are several arrays: {', '.join(samples.x)}, allowed: one, x")
    return samples.x.shape[1:]


def rows_at_once(shape: RowShape) -> int:
    """Rows of a block, so that predicting a large set needs bounded memory.

    Args:
        shape: of one row.
    """
    numbers = shape.numbers if isinstance(shape, QuestionShape) else prod(shape)
    return max(1, min(MOST_ROWS_AT_ONCE, NUMBERS_AT_ONCE // max(1, numbers)))


class Inputs:
    """Inputs of all rows of samples, of which those of any rows can be taken.

    Arrays of the rows lie on the device; features of images stay in their file.

    Attributes:
        shape: of one row.

    Args:
        samples: the rows.
        device: where the inputs are to be.
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
            return self.arrays["x"][rows]
        boxes = self.questions.boxes
        images = self.arrays[IMAGE][rows].cpu().numpy()
        return packed(
            self.arrays[TOKENS][rows],
            torch.from_numpy(boxes.counts[images]).to(self.device),
            torch.from_numpy(boxes.features[images]).to(self.device),
            torch.float32,
        )

    def some(self) -> Tensor:
        """Raw inputs of no row, which tell dtype and shape, ``[0, ...]``."""
        return self.of(torch.zeros(0, dtype=torch.int64, device=self.device))


def training_inputs(samples: Samples, rows: np.ndarray) -> np.ndarray:
    """What preprocessing is fitted on: the array's rows; nothing of questions, left as they are."""
    return np.empty((len(rows), 0)) if samples.questions else samples.arrays["x"][rows]
