"""Random forests that scikit-learn grows, kept as arrays."""

from math import prod
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from robust_fairness.models.embeddings._fitted import FittedClassifier, require_classes
from robust_fairness.models.randomness import Randomness

STACKS = False
LEAST_PROBABILITY = torch.finfo(torch.float32).tiny  # whose logarithm stands for that of 0


class Parameters(BaseModel):
    """Number and size of the trees; scikit-learn's defaults.

    Of the protocol only preprocessing and device apply; epochs and optimiser do not.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    trees: int = Field(100, ge=1, description="number of trees")
    depth: int | None = Field(None, ge=1, description="most levels; until leaves are pure if None")
    least_rows: int = Field(1, ge=1, description="least training rows of a leaf")


class RandomForest(FittedClassifier):
    """Logarithms of scikit-learn's ``predict_proba``, so that their softmax is it.

    A probability of 0 counts as the smallest normal number of float32. Outputs are piecewise
    constant in the inputs, whose gradient and curvature are 0.

    Nodes of all trees lie one after the other. Of a leaf only the classes that occur in it are
    kept: a table of all classes would have gigabytes for thousands of them.

    Args:
        parameters: of the fit.
        inputs: numbers of a row.
        classes: number of classes.
        randomness: gives the seed of the trees.
    """

    piecewise_linear = True
    roots: Tensor  # first node of every tree, int64 [tree]
    feature: Tensor  # input that a node looks at, int32 [node]
    threshold: Tensor  # rows up to it go left, float64 [node]
    left: Tensor  # next node, int32 [node]; a leaf is its own
    right: Tensor
    levels: Tensor  # of the deepest tree
    offsets: Tensor  # where a node's entries begin, int64 [node + 1]; only leaves have some
    entries: Tensor  # known class of every entry, int32 [entry]
    shares: Tensor  # share of the leaf's rows, float64 [entry]

    def __init__(
        self, parameters: Parameters, inputs: int, classes: int, randomness: Randomness
    ) -> None:
        super().__init__("random_forest", inputs, classes)
        self.parameters_of_network, self.randomness = parameters, randomness
        for name in ("roots", "levels", "offsets"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        for name in ("feature", "left", "right", "entries"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int32))
        for name in ("threshold", "shares"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.float64))

    def numbers_of_a_row(self) -> int:
        """Where it is in every tree, and its classes; impure leaves have several."""
        leaves = max(1, int((self.offsets.diff() > 0).sum()))
        return 4 * len(self.roots) * -(-len(self.entries) // leaves) + len(self.present)

    def values(self, x: Tensor) -> Tensor:
        """Log probabilities ``[row, known class]`` of inputs ``[row, input]``, float64."""
        probabilities = self.probabilities(self.leaves(x.detach()))
        constant = probabilities.clamp(min=LEAST_PROBABILITY).log()
        return constant + 0 * x.sum(1, keepdim=True)  # has a gradient, of 0

    def leaves(self, x: Tensor) -> Tensor:
        """The leaf of every row in every tree, int64 ``[row, tree]``."""
        x = x.float().double()  # scikit-learn compares inputs in float32 with float64 thresholds
        place = self.roots.expand(len(x), -1)
        for _ in range(int(self.levels)):
            goes_left = x.gather(1, self.feature[place].long()) <= self.threshold[place]
            place = torch.where(goes_left, self.left[place], self.right[place]).long()
        return place

    def probabilities(self, leaves: Tensor) -> Tensor:
        """Mean shares of the classes in leaves ``[row, tree]``, float64 ``[row, known class]``."""
        rows, trees = leaves.shape
        flat, classes = leaves.flatten(), len(self.present)
        counts = self.offsets[flat + 1] - self.offsets[flat]
        # entries of each leaf one after the other: where its own begin, and how far behind that
        begin = (self.offsets[flat] - counts.cumsum(0) + counts).repeat_interleave(counts)
        entry = begin + torch.arange(len(begin), device=begin.device)
        row = torch.arange(rows, device=flat.device).repeat_interleave(trees)
        cell = row.repeat_interleave(counts) * classes + self.entries[entry]
        sums = self.shares.new_zeros(rows * classes).index_add(0, cell, self.shares[entry])
        return sums.view(rows, classes) / trees

    def fit(self, inputs: Tensor, labels: Tensor) -> None:
        """Grow scikit-learn's forest, tree by tree.

        A forest gives its trees seeds one after the other from its own source, so that forests of
        one tree that share a source are the trees of the whole forest. Of so many classes and
        rows as identities of faces have, the whole forest would not fit into memory.
        """
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.utils import check_random_state

        p, x, y = self.parameters_of_network, inputs.float().numpy(), labels.numpy()
        source = check_random_state(self.randomness.integer() % 2**32)
        trees = []
        for _ in range(p.trees):
            forest = RandomForestClassifier(
                1, max_depth=p.depth, min_samples_leaf=p.least_rows, random_state=source
            )
            trees.append(arrays_of(forest.fit(x, y).estimators_[0].tree_))
        self.take(trees)

    def take(self, trees: list[dict[str, np.ndarray]]) -> None:
        """Keep trees, each as ``arrays_of`` gave it, with nodes and entries counted through."""
        nodes = np.cumsum([0, *(len(tree["feature"]) for tree in trees)])
        entries = np.cumsum([0, *(len(tree["shares"]) for tree in trees)])
        shifted = [
            tree
            | {"left": tree["left"] + first, "right": tree["right"] + first}
            | {"offsets": tree["offsets"][:-1] + begin}
            for tree, first, begin in zip(trees, nodes[:-1], entries[:-1], strict=True)
        ]
        together = {
            name: torch.from_numpy(np.concatenate([tree[name] for tree in shifted]))
            for name in ("feature", "threshold", "left", "right", "entries", "shares", "offsets")
        }
        for name in ("feature", "left", "right", "entries"):
            together[name] = together[name].int()
        together["offsets"] = torch.cat([together["offsets"], torch.from_numpy(entries[-1:])])
        levels = torch.tensor(max(int(tree["levels"]) for tree in trees))
        self.keep(roots=torch.from_numpy(nodes[:-1]), levels=levels, **together)


def arrays_of(tree: Any) -> dict[str, np.ndarray]:
    """A tree of scikit-learn as arrays by the names of the network's buffers.

    Args:
        tree: scikit-learn's ``Tree``.
    """
    own, leaf = np.arange(tree.node_count), tree.children_left < 0
    shares = tree.value[:, 0] * leaf[:, None]  # [node, class]; of leaves alone
    shares = shares / np.where(leaf, shares.sum(1), 1)[:, None]
    node, entry = np.nonzero(shares)
    return {
        "feature": np.where(leaf, 0, tree.feature),
        "threshold": np.where(leaf, 0.0, tree.threshold),
        "left": np.where(leaf, own, tree.children_left),
        "right": np.where(leaf, own, tree.children_right),
        "levels": np.array(tree.max_depth),
        "offsets": np.concatenate([[0], np.bincount(node, minlength=len(own)).cumsum()]),
        "entries": entry,
        "shares": shares[node, entry],
    }


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> RandomForest:
    """A forest that is yet to be grown, for feature vectors or pictures.

    Args:
        parameters: of the fit.
        inputs: shape of one row.
        outputs: number of classes.
        randomness: gives the seed of the trees, for one replica.

    Raises:
        InputError: the outcome is continuous.
    """
    require_classes("random_forest", outputs)
    return RandomForest(parameters, prod(inputs), outputs, randomness)
