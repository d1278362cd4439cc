"""K-means as a classifier: a row has the class that most rows of the nearest centroid have."""

import warnings
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.core.registry import PluginParameters
from robust_fairness.estimators.base import Classifier


class KMeans(Classifier):
    """Minus the squared distance to the nearest centroid of every class.

    The most likely class is that of the cluster which scikit-learn's ``predict`` returns. A class
    that is the most frequent one in no cluster is never predicted, as if it had no rows.
    """

    class Parameters(PluginParameters):
        """Numbers of clusters, starts and iterations; the defaults are scikit-learn's."""

        clusters: int | None = Field(
            None, ge=1, description="number of clusters; default: that of the classes with rows"
        )
        starts: int = Field(1, ge=1, description="number of starts, of which the best is kept")
        iterations: int = Field(300, ge=1, description="maximum number of iterations of a start")

    buffers_of: ClassVar = {"centroids": torch.float64, "members": torch.int64}
    centroids: Tensor  # [cluster, input]
    members: Tensor  # clusters of every known class [known class, most]; padded by repeats

    def numbers_of_a_row(self) -> int:
        return max(len(self.centroids), self.members.numel())

    def values(self, x: Tensor) -> Tensor:
        products = x @ self.centroids.mT
        squares = x.square().sum(1, keepdim=True) + self.centroids.square().sum(1) - 2 * products
        return -squares[:, self.members].amin(-1)

    def learn(self, inputs: Tensor, labels: Tensor) -> None:
        from sklearn.cluster import KMeans as Clusters
        from sklearn.exceptions import ConvergenceWarning

        p, classes = self.hparams, len(self.present)
        clusters = Clusters(
            min(p.clusters or classes, len(inputs.unique(dim=0))),
            n_init=p.starts,
            max_iter=p.iterations,
            random_state=self.randomness.integer() % 2**32,
        )
        with warnings.catch_warnings():
            # rounding can leave fewer distinct rows than clusters: empty clusters are dropped
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters.fit(inputs.numpy())
        number = len(clusters.cluster_centers_)
        pairs = torch.from_numpy(clusters.labels_).long() * classes + labels
        counts = pairs.bincount(minlength=number * classes).view(number, classes)
        used = counts.sum(1) > 0
        owners, places = counts[used].argmax(1).unique(return_inverse=True)
        clusters_of_class = [(places == number).nonzero()[:, 0] for number in range(len(owners))]
        most = max(len(item) for item in clusters_of_class)
        self.keep(
            present=self.present.cpu()[owners],
            centroids=torch.from_numpy(clusters.cluster_centers_)[used],
            members=torch.stack(
                [torch.cat([item, item[:1].expand(most - len(item))]) for item in clusters_of_class]
            ),
        )
