"""Random forests, fitted by scikit-learn and kept as arrays."""

from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.estimators.base import LEAST_PROBABILITY, Estimator
from robust_fairness.bench.models.base import require_classes
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.registry import PluginParameters

NUMBERS_AT_ONCE = 2**23  # numbers in memory while a block of rows is predicted


class RandomForest(Estimator):
    """Logarithms of scikit-learn's ``predict_proba``, whose softmax it is.

    A probability of 0 counts as the smallest normal number of float32. A class without training
    rows has the logit ``ABSENT``.

    The nodes of all trees are concatenated. A leaf keeps only the classes that occur in it: the
    network ``estimator`` with scikit-learn's forest has a table of all classes in every node, which
    takes up to a terabyte for thousands of them.
    """

    class Parameters(PluginParameters):
        """The number of trees; all else are scikit-learn's defaults."""

        trees: int = Field(100, ge=1, description="number of trees")

    buffers_of: ClassVar = {
        **dict.fromkeys(("roots", "levels", "offsets"), torch.int64),
        **dict.fromkeys(("feature", "left", "right", "entries"), torch.int32),
        **dict.fromkeys(("threshold", "shares"), torch.float64),
    }
    roots: Tensor  # first node of every tree [tree]
    levels: Tensor  # of the deepest tree
    offsets: Tensor  # where a node's entries begin [node + 1]; only leaves have some
    feature: Tensor  # input that a node compares [node]
    threshold: Tensor  # rows up to it go left [node]
    left: Tensor  # next node [node]; a leaf is its own
    right: Tensor
    entries: Tensor  # known class of every entry [entry]
    shares: Tensor  # share of the leaf's rows [entry]

    def __init__(
        self, hparams: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        require_classes(self.name, outputs)

    @torch.no_grad()
    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Logits ``[1, row, class]``, computed in float64 in blocks of rows."""
        x = features[0].double()
        if len(self.present) == 1:
            known = x.new_zeros(len(x), 1)
        else:
            leaves = max(1, int((self.offsets.diff() > 0).sum()))
            of_a_row = 4 * len(self.roots) * -(-len(self.entries) // leaves) + len(self.present)
            blocks = x.split(max(1, NUMBERS_AT_ONCE // of_a_row))
            shares = torch.cat([self.probabilities(self.leaves(block)) for block in blocks])
            known = shares.clamp(min=LEAST_PROBABILITY).log()
        return self.of_all_classes(known).to(features.dtype)[None]

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
        # entries of all leaves, concatenated
        begin = (self.offsets[flat] - counts.cumsum(0) + counts).repeat_interleave(counts)
        entry = begin + torch.arange(len(begin), device=begin.device)
        row = torch.arange(rows, device=flat.device).repeat_interleave(trees)
        pair = row.repeat_interleave(counts) * classes + self.entries[entry]
        sums = self.shares.new_zeros(rows * classes).index_add(0, pair, self.shares[entry])
        return sums.view(rows, classes) / trees

    def fit(self, x: Tensor, y: Tensor, sample_weight: Tensor | None = None) -> None:
        """Grow scikit-learn's forest tree by tree, since the whole may not fit into memory.

        A forest seeds its trees in turn from one source, so forests of one tree that share a
        source are the trees of the whole forest.
        """
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.utils import check_random_state

        inputs, labels = self.finite(x).float().numpy(), self.keep_present(y[0].cpu()).numpy()
        if len(self.present) == 1:
            return
        source = check_random_state(self.randomness.integer() % 2**32)
        trees = []
        for _ in range(self.hparams.trees):
            forest = RandomForestClassifier(1, random_state=source)
            trees.append(arrays_of(forest.fit(inputs, labels).estimators_[0].tree_))
        self.take(trees)

    def take(self, trees: list[dict[str, np.ndarray]]) -> None:
        """Keep trees, each from ``arrays_of``, with nodes and entries renumbered."""
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
    """A tree of scikit-learn as arrays by the names of the network's buffers."""
    nodes, leaf = np.arange(tree.node_count), tree.children_left < 0
    shares = tree.value[:, 0] * leaf[:, None]  # [node, class]; of leaves alone
    shares = shares / np.where(leaf, shares.sum(1), 1)[:, None]
    node, entry = np.nonzero(shares)
    return {
        "feature": np.where(leaf, 0, tree.feature),
        "threshold": np.where(leaf, 0.0, tree.threshold),
        "left": np.where(leaf, nodes, tree.children_left),
        "right": np.where(leaf, nodes, tree.children_right),
        "levels": np.array(tree.max_depth),
        "offsets": np.concatenate([[0], np.bincount(node, minlength=len(nodes)).cumsum()]),
        "entries": entry,
        "shares": shares[node, entry],
    }
