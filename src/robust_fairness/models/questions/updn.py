"""Bottom-up and top-down attention, UpDn (Anderson et al. 2018), for questions on pictures."""

import logging
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, field_serializer
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from robust_fairness.models.base import SingleModel, initialised
from robust_fairness.models.embeddings._fitted import require_classes
from robust_fairness.models.layers import Dropout, unit_length
from robust_fairness.models.losses import binary_cross_entropy
from robust_fairness.models.questions._questions import unpacked
from robust_fairness.models.questions._word_vectors import word_vectors
from robust_fairness.models.randomness import DropoutNoise, Randomness
from robust_fairness.samples.questions import PADDING, QuestionShape

STACKS = False
READS_QUESTIONS = True
LOGGER = logging.getLogger(__name__)


class Parameters(BaseModel):
    """Sizes, the form of the attention, and what is minimised.

    Paper and implementations differ. The defaults are those of the implementation that is used
    most (Teney et al. 2018, as rewritten for PyTorch), which the study of bias mitigation does
    not depart from in its text; the study's code has an LSTM, ELU and the places of boxes.

    ``attention``: how a box and the question make one vector, of which a linear layer takes the
    logit of the box. ``product``: the product of two layers, one of each; ``concatenation``: one
    layer on both together, as in the paper, whose gated hyperbolic tangents are ReLU here.

    ``normalised_boxes``: divide the features of each box by their length first, as Teney et al.
    advise; neither implementation does.

    ``word_vectors``: a text file of words with their vectors, such as GloVe's, whose width is
    ``words``. Words that it does not know, and all without a file, start from normal numbers. All
    are trained.

    ``loss``: ``cross_entropy`` of the softmax, or ``binary_cross_entropy``, the sum over answers
    of that of each answer's logistic function, as the implementations have it for several
    right answers. GQA has a single one, hence the default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: int = Field(300, ge=1, description="width of the vector of a word")
    word_vectors: Path | None = None
    question: int = Field(1024, ge=1, description="width of the GRU, which reads the question")
    fusion: int = Field(1024, ge=1, description="width of attention, and of the product of both")
    hidden: int = Field(2048, ge=1, description="width of the classifier's hidden layer")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout rate after the hidden layer")
    attention_dropout: float = Field(0.2, ge=0, lt=1, description="that before a box's logit")
    attention: Literal["product", "concatenation"] = "product"
    normalised_boxes: bool = False
    loss: Literal["cross_entropy", "binary_cross_entropy"] = "cross_entropy"

    @field_serializer("word_vectors")
    def _as_text(self, path: Path | None) -> str | None:
        return None if path is None else str(path)


def describe(parameters: Parameters) -> str:
    """What the network is called in a table: whether its words come from a file."""
    return "updn" if parameters.word_vectors is None else "updn, pretrained words"


def files(parameters: Parameters) -> tuple[Path, ...]:
    """The files that initial weights are read from."""
    return (parameters.word_vectors,) if parameters.word_vectors else ()


def normalised_linear(inputs: int, outputs: int) -> nn.Linear:
    """An affine layer whose weight is a direction and one length (Salimans and Kingma 2016).

    The length is that of all its rows together, as in the implementations of this network.
    """
    layer: nn.Linear = weight_norm(nn.Linear(inputs, outputs), dim=None)  # type: ignore[arg-type]
    return layer


class Attention(nn.Module):
    """How much of the picture each box is, for a question.

    Args:
        parameters: sizes and form.
        features: width of the features of a box.
    """

    def __init__(self, parameters: Parameters, features: int) -> None:
        super().__init__()
        question, width = parameters.question, parameters.fusion
        self.features, self.form = features, parameters.attention
        if self.form == "product":
            self.of_box = normalised_linear(features, width)
            self.of_question = normalised_linear(question, width)
        else:
            self.of_both = normalised_linear(features + question, width)
        self.dropout = Dropout(parameters.attention_dropout)
        self.logit = normalised_linear(width, 1)

    def forward(
        self, question: Tensor, boxes: Tensor, counts: Tensor, noise: DropoutNoise | None
    ) -> Tensor:
        """Shares of the boxes ``[row, box]``, whose sum is 1; all 0 of a picture without boxes.

        Args:
            question: ``[row, question]``.
            boxes: features ``[row, box, feature]``.
            counts: number of boxes, int64 ``[row]``; what is behind them has no share.
            noise: dropout masks of the batch.
        """
        joint = self.dropout(self._joint(question, boxes)[None], noise)[0]
        logits = self.logit(joint).squeeze(-1)
        absent = torch.arange(boxes.shape[1], device=boxes.device) >= counts[:, None]
        # the lowest number, not minus infinity: a picture without boxes has no NaN in its gradient
        shares = logits.masked_fill(absent, torch.finfo(logits.dtype).min).softmax(1)
        return shares.masked_fill(absent, 0)

    def _joint(self, question: Tensor, boxes: Tensor) -> Tensor:
        """One vector of question and box, ``[row, box, fusion]``."""
        if self.form == "product":
            of_question = torch.relu(self.of_question(question))
            return torch.relu(self.of_box(boxes)) * of_question[:, None]
        # the question's part is the same for all boxes: computed once
        of_box, of_question = self.of_both.weight.split([self.features, question.shape[1]], dim=1)
        of_question = functional.linear(question, of_question, self.of_both.bias)
        return torch.relu(functional.linear(boxes, of_box) + of_question[:, None])


class Fusion(nn.Module):
    """The network up to the product of question and picture.

    Args:
        parameters: sizes.
        shape: of one row.
    """

    def __init__(self, parameters: Parameters, shape: QuestionShape) -> None:
        super().__init__()
        question, width = parameters.question, parameters.fusion
        self.words = nn.Embedding(len(shape.words), parameters.words, padding_idx=PADDING)
        self.reader = nn.GRU(parameters.words, question, batch_first=True)
        self.attention = Attention(parameters, shape.features)
        self.of_question = normalised_linear(question, width)
        self.of_picture = normalised_linear(shape.features, width)

    def forward(
        self, tokens: Tensor, counts: Tensor, boxes: Tensor, noise: DropoutNoise | None
    ) -> Tensor:
        """Question times picture, ``[row, fusion]``.

        The GRU reads the padding in front of a question as it does its words.

        Args:
            tokens: places of words, int64 ``[row, word]``.
            counts: number of boxes, int64 ``[row]``.
            boxes: features ``[row, box, feature]``.
            noise: dropout masks of the batch.
        """
        question = self.reader(self.words(tokens))[0][:, -1]
        shares = self.attention(question, boxes, counts, noise)
        picture = (shares[:, None] @ boxes)[:, 0]
        product: Tensor = torch.relu(self.of_question(question))
        return product * torch.relu(self.of_picture(picture))


class Head(nn.Module):
    """Dropout and a linear layer, for a stack of one replica."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.linear = normalised_linear(inputs, outputs)

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[1, row, inputs]`` to ``[1, row, outputs]``."""
        outputs: Tensor = self.linear(self.dropout(x, noise))
        return outputs


class UpDn(SingleModel):
    """Attention to boxes by the question, and a classifier of question times picture.

    The early layer is that product, the features are the classifier's hidden layer, and its head
    is the last layer. The file of words is read when the network is first used: one that takes
    the weights of a trained one never asks for it.

    Args:
        parameters: sizes.
        shape: of one row.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.
    """

    piecewise_linear = False

    def __init__(
        self, parameters: Parameters, shape: QuestionShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__()
        self.parameters_of_network, self.shape = parameters, shape
        self.unread = parameters.word_vectors
        self.softmax = parameters.loss == "cross_entropy"
        self.early_width, self.feature_width = parameters.fusion, parameters.hidden
        self.fuse = initialised(partial(Fusion, parameters, shape), randomness)
        hidden = partial(normalised_linear, parameters.fusion, parameters.hidden)
        self.hidden = initialised(hidden, randomness)
        self.top = self.new_head(outputs, randomness)

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Question times picture, ``[1, row, fusion]``, of packed rows.

        Raises:
            InputError: the file of words is not as it has to be.
        """
        self.read()
        tokens, counts, boxes = unpacked(x[0], self.shape)
        boxes = boxes.contiguous()
        if self.parameters_of_network.normalised_boxes:
            boxes = unit_length(boxes)
        product: Tensor = self.fuse(tokens, counts, boxes, noise)
        return product[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The classifier's hidden layer, ``[1, row, hidden]``."""
        return torch.relu(self.hidden(early))

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Logits ``[1, row, answer]``."""
        outputs: Tensor = self.top(features, noise)
        return outputs

    def task_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Loss of every row ``[..., row]``, as ``loss`` of the parameters says.

        Args:
            outputs: logits ``[..., row, answer]``.
            y: int64 answers ``[..., row]``.
        """
        if self.softmax:
            return super().task_loss(outputs, y)
        return binary_cross_entropy(outputs, y)

    def new_head(self, outputs: int, randomness: Randomness, inputs: int | None = None) -> Head:
        """Dropout and one linear layer from the features (or ``inputs``) to ``outputs``."""
        width, rate = inputs or self.feature_width, self.parameters_of_network.dropout
        return initialised(partial(Head, width, outputs, rate), randomness)

    def read(self) -> None:
        """Take the vectors of the file's words, once.

        Raises:
            InputError: it cannot be read, or has no vectors of these words and of this width.
        """
        if self.unread is None:
            return
        weight, words = self.fuse.words.weight, self.shape.words
        found = word_vectors(self.unread, words, self.parameters_of_network.words)
        with torch.no_grad():
            for place, vector in found.items():
                weight[place] = torch.from_numpy(vector)
        LOGGER.info("%s: knows %d of %d words", self.unread, len(found), len(words))
        self.unread = None

    def _load_from_state_dict(self, *options: Any, **more: Any) -> None:
        """Trained weights take the place of the file's."""
        self.unread = None
        super()._load_from_state_dict(*options, **more)


def build(
    parameters: Parameters, inputs: QuestionShape, outputs: int, randomness: Randomness
) -> UpDn:
    """The network for questions on pictures.

    Args:
        parameters: sizes.
        inputs: shape of one row.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: the outcome is continuous.
    """
    require_classes("updn", outputs)
    return UpDn(parameters, inputs, outputs, randomness)
