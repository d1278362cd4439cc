"""K-means as a classifier: a row has the class that most rows of the nearest centroid have."""

import warnings
from math import prod

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from robust_fairness.models.embeddings._fitted import FittedClassifier, require_classes
from robust_fairness.models.randomness import Randomness

STACKS = False


class Parameters(BaseModel):
    """Numbers of clusters, of starts and of iterations.

    Of the protocol only preprocessing and device apply; epochs and optimiser do not. The defaults
    are scikit-learn's: k-means++, one start, 300 iterations (Lloyd).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: int | None = Field(
        None, ge=1, description="number of clusters; that of the classes with rows unless given"
    )
    starts: int = Field(1, ge=1, description="the best of so many starts is taken")
    iterations: int = Field(300, ge=1, description="most iterations of a start")


class KMeans(FittedClassifier):
    """Minus the squared distance to the nearest centroid of every class.

    The likeliest class is the one of the cluster that scikit-learn's ``predict`` gives. A class
    that is the most frequent one in no cluster is never predicted, as if it had no rows.

    Args:
        parameters: of the fit.
        inputs: numbers of a row.
        classes: number of classes.
        randomness: gives the seed of the starts.
    """

    centroids: Tensor  # [cluster, input]
    members: Tensor  # clusters of every known class, int64 [known class, most]; repeated to fill

    def __init__(
        self, parameters: Parameters, inputs: int, classes: int, randomness: Randomness
    ) -> None:
        super().__init__("k_means", inputs, classes)
        self.parameters_of_network, self.randomness = parameters, randomness
        self.register_buffer("centroids", torch.zeros(0, inputs, dtype=torch.float64))
        self.register_buffer("members", torch.zeros(0, 0, dtype=torch.int64))

    def numbers_of_a_row(self) -> int:
        """Distances to all centroids."""
        return max(len(self.centroids), self.members.numel())

    def values(self, x: Tensor) -> Tensor:
        """Minus squared distances ``[row, known class]`` of inputs ``[row, input]``, float64."""
        products = x @ self.centroids.mT
        squares = x.square().sum(1, keepdim=True) + self.centroids.square().sum(1) - 2 * products
        return -squares[:, self.members].amin(-1)

    def fit(self, inputs: Tensor, labels: Tensor) -> None:
        """Fit scikit-learn's clusters, no more than there are distinct rows; name them.

        Of classes that are equally frequent in a cluster the first one names it.
        """
        from sklearn.cluster import KMeans as Clusters
        from sklearn.exceptions import ConvergenceWarning

        p, classes = self.parameters_of_network, len(self.present)
        clusters = Clusters(
            min(p.clusters or classes, len(inputs.unique(dim=0))),
            n_init=p.starts,
            max_iter=p.iterations,
            random_state=self.randomness.integer() % 2**32,
        )
        with warnings.catch_warnings():
            # fewer distinct rows than clusters, but for rounding: the empty ones are left out
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters.fit(inputs.numpy())
        number = len(clusters.cluster_centers_)
        cells = torch.from_numpy(clusters.labels_).long() * classes + labels
        counts = cells.bincount(minlength=number * classes).view(number, classes)
        used = counts.sum(1) > 0
        self.name_clusters(
            torch.from_numpy(clusters.cluster_centers_)[used], counts[used].argmax(1)
        )

    def name_clusters(self, centroids: Tensor, owner: Tensor) -> None:
        """Keep centroids ``[cluster, input]`` and the places of their classes in ``present``."""
        owners, places = owner.unique(return_inverse=True)
        own = [(places == number).nonzero()[:, 0] for number in range(len(owners))]
        most = max(len(one) for one in own)
        members = [torch.cat([one, one[:1].expand(most - len(one))]) for one in own]
        self.keep(
            present=self.present.cpu()[owners], centroids=centroids, members=torch.stack(members)
        )


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> KMeans:
    """Clusters that are yet to be fitted, of feature vectors or pictures.

    Args:
        parameters: of the fit.
        inputs: shape of one row.
        outputs: number of classes.
        randomness: gives the seed of the starts, for one replica.

    Raises:
        InputError: the outcome is continuous.
    """
    require_classes("k_means", outputs)
    return KMeans(parameters, prod(inputs), outputs, randomness)
