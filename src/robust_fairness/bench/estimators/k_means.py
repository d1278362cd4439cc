"""K-means as a classifier: a row has the class that most rows of the nearest centroid have."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans as Clusters

from robust_fairness.bench.estimators import EstimatorParameters
from robust_fairness.bench.estimators.estimator import ScikitLearn


class KMeansClassifier(ClassifierMixin, BaseEstimator):
    """Minus the squared distance to the nearest centroid of every class.

    A class that is the most frequent one in no cluster is not among ``classes_``.

    Args:
        n_clusters: as many as classes by default, at most as many as distinct rows.
        random_state: of scikit-learn's ``KMeans``.
    """

    def __init__(self, n_clusters: int | None = None, random_state: int | None = None) -> None:
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "KMeansClassifier":
        labels, places = np.unique(y, return_inverse=True)
        number = min(self.n_clusters or len(labels), len(np.unique(X, axis=0)))
        self.clusters_ = Clusters(number, n_init=1, random_state=self.random_state).fit(X)
        counts = np.zeros((number, len(labels)))
        np.add.at(counts, (self.clusters_.labels_, places), 1)
        owners = np.where(counts.any(1), counts.argmax(1), -1)
        present = np.unique(owners[owners >= 0])
        self.classes_ = labels[present]
        self.members_ = owners == present[:, None]
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Values of the classes ``[row, class]``."""
        distances = self.clusters_.transform(X)
        return -(np.stack([distances[:, of].min(1) for of in self.members_], axis=1) ** 2)


class KMeans(ScikitLearn):
    """The network ``estimator`` with ``KMeansClassifier``; its outputs are decision values."""

    class Parameters(EstimatorParameters):
        """Options of ``KMeansClassifier``."""

        estimator: str = f"{__name__}.KMeansClassifier"
        params: dict[str, Any] = {}

    keeps_training_rows = False
    seeds: ClassVar[int] = 2**32
