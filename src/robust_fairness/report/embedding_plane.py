"""2-D projections of validation embeddings by t-SNE (Figures 2, 10 and 11 of finDML).

Dullerud et al., "Is Fairness Only Metric Deep?". The classes and the attribute of a method that
separates them are in two spaces; the same rows are drawn in both.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.core.tables import PLANES, table
from robust_fairness.metrics.criteria import EVERY

SPACES = ("embedding", "attribute_embedding")
MOST_POINTS = 1000
FEWEST_POINTS = 4
PERPLEXITY = 30.0  # scikit-learn's default
NEIGHBOURS = 3  # rows per unit of perplexity: it is at most a third of the number of rows
SEED = 0  # of the points drawn and of t-SNE


def selected(selection: pd.DataFrame) -> tuple[str, int]:
    """Trial and seed of the replica that is drawn: the first seed of the first criterion.

    The first trial if no criterion of the table ``tables.SELECTION`` selects one.
    """
    by_criterion = selection[selection["selection"] != EVERY]
    rows = by_criterion if len(by_criterion) else selection
    trial = str(rows["trial"].iloc[0])
    return trial, int(rows[rows["trial"] == trial]["seed"].min())


def planes(
    dataset: str,
    method: str,
    samples: Samples,
    seed: int,
    rows: np.ndarray,
    values: Mapping[str, np.ndarray],
) -> pd.DataFrame:
    """The embeddings of a replica as ``tables.PLANES``, in every space that it has.

    ``values`` has the embeddings of ``rows`` of the samples, as the replica's split sees them. A
    row is a point in a space with a categorical sensitive attribute; the attribute is empty if
    there is none, the group if the value is missing.
    """
    cell = f"{dataset}.{method}"
    spaces = {name: values[name] for name in SPACES if name in values}
    if SPACES[0] not in spaces:
        raise InputError(
            f"embedding_planes: {cell} has no embedding of validation rows, allowed: cells of a "
            "method that learns one, such as metric_learning or parade"
        )
    if len(rows) < FEWEST_POINTS:
        raise InputError(
            f"embedding_planes: {cell} has {len(rows)} validation rows, allowed: at least "
            f"{FEWEST_POINTS}"
        )
    places = sampled(len(rows))
    points = described(samples, rows[places])
    result = []
    for space, embedding in spaces.items():
        if not np.isfinite(embedding).all():
            raise InputError(
                f"embedding_planes: {cell} has values in its {space} that are not finite"
            )
        plane = in_plane(embedding[places])
        of_replica = points.assign(dataset=dataset, method=method, seed=seed, space=space)
        number = of_replica["place"].to_numpy()
        result.append(of_replica.assign(x=plane[number, 0], y=plane[number, 1]))
    return table(PLANES, pd.concat(result)[list(PLANES)].to_dict("records"))


def sampled(n: int) -> np.ndarray:
    """Places int64 ``[m]`` of at most ``MOST_POINTS`` of n rows, drawn at random."""
    if n <= MOST_POINTS:
        return np.arange(n)
    return np.sort(np.random.default_rng(SEED).choice(n, MOST_POINTS, replace=False))


def described(samples: Samples, rows: np.ndarray) -> pd.DataFrame:
    """Columns place, row, label, attribute and group; a row per point and attribute."""
    labels = [samples.classes[y] if samples.classes else f"{y:g}" for y in samples.y[rows]]
    points = pd.DataFrame({"place": np.arange(len(rows)), "row": rows, "label": labels})
    groups = {
        name: samples.attributes[name].iloc[rows].astype(object)
        for name in samples.sensitive
        if isinstance(samples.attributes[name].dtype, pd.CategoricalDtype)
    }
    parts = [
        points.assign(attribute=name, group=values.where(values.notna(), "").astype(str).to_numpy())
        for name, values in groups.items()
    ]
    return pd.concat(parts or [points.assign(attribute="", group="")], ignore_index=True)


def in_plane(points: np.ndarray) -> np.ndarray:
    """t-SNE ``[m, 2]`` of points ``[m, d]``, deterministic; 0 if all points are equal."""
    from sklearn.manifold import TSNE

    spread = np.ptp(points, axis=0)
    if not spread.any():
        return np.zeros((len(points), 2))
    perplexity = min(PERPLEXITY, (len(points) - 1) / NEIGHBOURS)
    # one column has no second component to start from
    start = "pca" if points.shape[1] > 1 else "random"
    reduction = TSNE(perplexity=perplexity, init=start, random_state=SEED, n_jobs=1)
    return reduction.fit_transform(points.astype(np.float64)).astype(np.float64)
