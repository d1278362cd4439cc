"""Bottom-up and top-down attention, UpDn (Anderson et al. 2018), for questions on images."""

import logging
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from robust_fairness.bench.models.base import SingleModel, WeightsFile, initialised, require_classes
from robust_fairness.bench.models.layers import binary_cross_entropy, unit_length
from robust_fairness.bench.models.packing import unpacked
from robust_fairness.bench.models.questions._word_vectors import word_vectors
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.questions import PADDING, QuestionShape
from robust_fairness.core.registry import PluginParameters

LOGGER = logging.getLogger(__name__)


class UpDn(SingleModel):
    """Attention to boxes by the question, and a classifier of the product of question and image.

    The early layer is that product, the features are the classifier's hidden layer, and the head
    is its last layer. The file of word vectors is read when the network is first used, so a
    network that loads trained weights never needs it.
    """

    class Parameters(PluginParameters):
        """Sizes, the form of the attention, and the loss.

        Paper and implementations differ; the defaults are those of the most common implementation
        (Teney et al. 2018, as rewritten for PyTorch). The code of the bias mitigation study has an
        LSTM, ELU and the coordinates of boxes.

        ``attention``: from the ``product`` of two layers, of box and question, or from one layer on
        their ``concatenation``, as in the paper, with ReLU instead of its gated tangents.
        ``normalised_boxes``: scale the features of each box to length 1, as Teney et al. advise.
        ``word_vectors``: a text file such as GloVe's, of width ``words``; words without a vector
        start from normal numbers. ``loss``: of the softmax, or the sum over answers of each
        sigmoid's (``binary_cross_entropy``), which the implementations use for several right
        answers.
        """

        words: int = Field(300, ge=1, description="width of the vector of a word")
        word_vectors: WeightsFile | None = None
        question: int = Field(1024, ge=1, description="width of the GRU that reads the question")
        fusion: int = Field(1024, ge=1, description="width of attention and of the product of both")
        hidden: int = Field(2048, ge=1, description="width of the classifier's hidden layer")
        dropout: float = Field(0.5, ge=0, lt=1, description="dropout rate after the hidden layer")
        attention_dropout: float = Field(
            0.2, ge=0, lt=1, description="dropout rate before a box's logit"
        )
        attention: Literal["product", "concatenation"] = "product"
        normalised_boxes: bool = False
        loss: Literal["cross_entropy", "binary_cross_entropy"] = "cross_entropy"

    reads_questions = True
    piecewise_linear = False

    def __init__(
        self, hparams: Parameters, inputs: Any, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        require_classes(self.name, outputs)
        self.shape, self.unread = inputs, hparams.word_vectors
        self.softmax = hparams.loss == "cross_entropy"
        self.early_width, self.feature_width = hparams.fusion, hparams.hidden
        self.fuse = initialised(partial(Fusion, hparams, self.shape), randomness)
        hidden = partial(normalised_linear, hparams.fusion, hparams.hidden)
        self.hidden = initialised(hidden, randomness)
        self.top = self.new_head(outputs, randomness)

    @classmethod
    def describe(cls, hparams: Parameters) -> str:
        return "updn" if hparams.word_vectors is None else "updn, pretrained words"

    @classmethod
    def files(cls, hparams: Parameters) -> tuple[Path, ...]:
        return (hparams.word_vectors,) if hparams.word_vectors else ()

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The product of question and image, ``[1, row, fusion]``, of packed rows."""
        self.read()
        tokens, counts, boxes = unpacked(x[0], self.shape)
        boxes = boxes.contiguous()
        if self.hparams.normalised_boxes:
            boxes = unit_length(boxes)
        return self.fuse(tokens, counts, boxes, noise)[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The classifier's hidden layer, ``[1, row, hidden]``."""
        return torch.relu(self.hidden(early))

    def task_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        if self.softmax:
            return super().task_loss(outputs, y)
        return binary_cross_entropy(outputs, y)

    def new_head(self, outputs: int, randomness: Randomness, inputs: int | None = None) -> "Head":
        width, rate = inputs or self.feature_width, self.hparams.dropout
        return initialised(partial(Head, width, outputs, rate), randomness)

    def read(self) -> None:
        """Load the file's word vectors, once."""
        if self.unread is None:
            return
        weight, words = self.fuse.words.weight, self.shape.words
        vectors = word_vectors(self.unread, words, self.hparams.words)
        with torch.no_grad():
            for place, vector in vectors.items():
                weight[place] = torch.from_numpy(vector)
        LOGGER.info("%s: has vectors of %d of %d words", self.unread, len(vectors), len(words))
        self.unread = None

    def _load_from_state_dict(self, *options: Any, **more: Any) -> None:
        """Load trained weights instead of the file's."""
        self.unread = None
        super()._load_from_state_dict(*options, **more)


def normalised_linear(inputs: int, outputs: int) -> nn.Linear:
    """An affine layer whose weight is a direction and one length (Salimans and Kingma 2016).

    The length is that of all its rows together, as in the implementations of this network.
    """
    return weight_norm(nn.Linear(inputs, outputs), dim=None)  # type: ignore[arg-type]


class Attention(nn.Module):
    """Weights of the boxes of an image, for a question."""

    def __init__(self, hparams: UpDn.Parameters, features: int) -> None:
        super().__init__()
        question, width = hparams.question, hparams.fusion
        self.features, self.form = features, hparams.attention
        if self.form == "product":
            self.of_box = normalised_linear(features, width)
            self.of_question = normalised_linear(question, width)
        else:
            self.of_both = normalised_linear(features + question, width)
        self.dropout = hparams.attention_dropout
        self.logit = normalised_linear(width, 1)

    def forward(
        self, question: Tensor, boxes: Tensor, counts: Tensor, noise: DropoutNoise | None
    ) -> Tensor:
        """Weights of the boxes ``[row, box]``, with sum 1; all 0 for an image without boxes.

        ``question`` is ``[row, question]``, ``boxes`` their features ``[row, box, feature]``, of
        which the first ``counts`` (int64 ``[row]``) exist.
        """
        joint = self._joint(question, boxes)
        if noise:
            joint = noise.dropped(self, joint[None], self.dropout)[0]
        logits = self.logit(joint).squeeze(-1)
        absent = torch.arange(boxes.shape[1], device=boxes.device) >= counts[:, None]
        # not minus infinity, so that the gradient of an image without boxes has no NaN
        weights = logits.masked_fill(absent, torch.finfo(logits.dtype).min).softmax(1)
        return weights.masked_fill(absent, 0)

    def _joint(self, question: Tensor, boxes: Tensor) -> Tensor:
        """One vector of question and box, ``[row, box, fusion]``."""
        if self.form == "product":
            of_question = torch.relu(self.of_question(question))
            return torch.relu(self.of_box(boxes)) * of_question[:, None]
        # the question's part is the same for all boxes
        of_box, of_question = self.of_both.weight.split([self.features, question.shape[1]], dim=1)
        of_question = functional.linear(question, of_question, self.of_both.bias)
        return torch.relu(functional.linear(boxes, of_box) + of_question[:, None])


class Fusion(nn.Module):
    """The network up to the product of question and image."""

    def __init__(self, hparams: UpDn.Parameters, shape: QuestionShape) -> None:
        super().__init__()
        question, width = hparams.question, hparams.fusion
        self.words = nn.Embedding(len(shape.words), hparams.words, padding_idx=PADDING)
        self.reader = nn.GRU(hparams.words, question, batch_first=True)
        self.attention = Attention(hparams, shape.features)
        self.of_question = normalised_linear(question, width)
        self.of_image = normalised_linear(shape.features, width)

    def forward(
        self, tokens: Tensor, counts: Tensor, boxes: Tensor, noise: DropoutNoise | None
    ) -> Tensor:
        """The product of question and image, ``[row, fusion]``.

        The GRU also reads the padding before a question. ``tokens`` are word indices, int64
        ``[row, word]``; ``counts`` and ``boxes`` are those of ``Attention``.
        """
        question = self.reader(self.words(tokens))[0][:, -1]
        weights = self.attention(question, boxes, counts, noise)
        image = (weights[:, None] @ boxes)[:, 0]
        return torch.relu(self.of_question(question)) * torch.relu(self.of_image(image))


class Head(nn.Module):
    """Dropout and a linear layer, for a stack of one replica."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.linear = normalised_linear(inputs, outputs)

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[1, row, inputs]`` to ``[1, row, outputs]``."""
        return self.linear(noise.dropped(self, x, self.dropout) if noise else x)
