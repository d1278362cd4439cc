"""A small problem with groups that every training test shares."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.training.records import Fitted, Prediction
from robust_fairness.core.samples import OOD_PARTS, PARTS, Samples

# Networks of methods that do not train every network.
MLP = {"name": "mlp", "hidden": 12, "features": 8, "head_hidden": 6}
EMBEDDING = {
    "name": "embedding",
    "backbone": MLP,
    "dimensions": 5,
    "classifier": "logistic_regression",
}
# Options without which a method does not train for four epochs.
OPTIONS = {"dfr_train": {"warm_up_epochs": 2}}
NETWORKS = {"donini": {"name": "linear"}, "metric_learning": EMBEDDING, "parade": EMBEDDING}


def samples_of(
    x: np.ndarray, y: np.ndarray, kind: pd.Categorical, splits: pd.DataFrame, classes: int = 2
) -> Samples:
    """Rows of features and classes without names and with the sensitive attribute ``kind``."""
    return Samples(
        x=x,
        y=y,
        attributes=pd.DataFrame({"kind": kind}),
        id=np.arange(len(x)),
        splits=splits,
        features=tuple(f"feature {number}" for number in range(x.shape[1])),
        classes=tuple(f"class {number}" for number in range(classes)),
        sensitive=("kind",),
    )


def make_samples(
    rows: int = 240,
    features: int = 6,
    groups: int = 2,
    classes: int = 2,
    splits: int = 3,
    domains: int = 0,
) -> Samples:
    """Rows whose label and group both lean on the features.

    With ``domains`` the test rows of the last one are out of distribution.
    """
    rng = np.random.default_rng(7)
    x = rng.normal(size=(rows, features)).astype(np.float32) * 3 + 1
    score = x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=rows)
    y: np.ndarray = score.astype(np.float32)
    if classes:
        y = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    lean = x[:, 1] + rng.normal(size=rows)
    group = np.searchsorted(np.quantile(lean, np.arange(1, groups) / groups), lean)
    names = [f"group {number}" for number in range(groups)]
    parts = pd.Categorical(["train"] * (rows // 2) + ["val"] * (rows // 4) + ["test"] * (rows // 4))
    frame = pd.DataFrame({f"split_{k}": rng.permutation(parts) for k in range(splits)})
    frame = frame.astype(pd.CategoricalDtype(["train", "val", "test"]))
    samples = samples_of(x, y, pd.Categorical.from_codes(group, names), frame, classes)
    return with_domains(samples, domains) if domains else samples


def with_sites(samples: Samples, sites: int) -> Samples:
    """The samples with a domain column."""
    names = [f"site {number}" for number in range(sites)]
    site = pd.Categorical.from_codes(np.arange(len(samples)) % sites, names)
    return replace(samples, attributes=samples.attributes.assign(site=site), domain="site")


def with_domains(samples: Samples, domains: int) -> Samples:
    """The samples with a domain column; the test rows of the last one are out of distribution."""
    samples = with_sites(samples, domains)
    last = (samples.attributes["site"].cat.codes == domains - 1).to_numpy()
    splits = samples.splits.astype(object).mask(
        last[:, None] & (samples.splits == "test"), "ood_test"
    )
    return replace(samples, splits=splits.astype(pd.CategoricalDtype([*PARTS, *OOD_PARTS])))


def make_cell(
    method: str = "erm",
    trials: tuple = (),
    seeds: tuple = (0, 1, 2),
    network: dict | None = None,
    fields: Mapping | None = None,
    **changes,
) -> Cell:
    """Settings of a small cell.

    ``fields`` are those of the cell itself; ``changes`` go to the protocol, ``method_*`` to the
    method.
    """
    options = {k.removeprefix("method_"): v for k, v in changes.items() if k.startswith("method_")}
    protocol = {k: v for k, v in changes.items() if not k.startswith("method_")}
    return Cell.model_validate(
        {
            "dataset": "toy",
            "label": method,
            "method": {"name": method, **OPTIONS.get(method, {}), **options},
            "network": network or NETWORKS.get(method, MLP),
            "protocol": {"epochs": 4, "batch_size": 32, "precision": "float64", **protocol},
            "trials": trials,
            "seeds": seeds,
            "metrics": ["accuracy", "delta_eo", "delta_er", "delta_er_one_shot"],
            "selections": ["accuracy"],
            **(fields or {}),
        }
    )


def accuracies(validation: Sequence[Prediction], samples: Samples) -> dict[str, float]:
    """Mean accuracy over seeds of every trial on its validation rows."""
    rows = [
        (prediction.trial, (prediction.outputs.argmax(1) == samples.y[prediction.rows]).mean())
        for prediction in validation
    ]
    return pd.DataFrame(rows).groupby(0)[1].mean().to_dict()


def largest_difference(a: Fitted, b: Fitted) -> float:
    """Largest difference between the weights of two fitted replicas."""
    return max(np.abs(a.state[name] - b.state[name]).max(initial=0.0) for name in a.state)


def assert_same_bits(a: Mapping, b: Mapping) -> None:
    """Two states have the same names and equal arrays or tensors."""
    assert a.keys() == b.keys()
    different = [name for name in a if not torch.equal(*map(torch.as_tensor, (a[name], b[name])))]
    assert not different


def assert_curves_end_at(
    validation: Sequence[Prediction],
    curves: pd.DataFrame,
    samples: Samples,
    epoch: int,
    tolerance: float = 1e-6,
) -> None:
    """The last validation losses are those of the predictions on validation rows."""
    last = curves[(curves["quantity"] == "validation_loss") & (curves["epoch"] == epoch)]
    noted = last.set_index("seed")["value"]
    for prediction in validation:
        if prediction.part == "val":
            y = torch.from_numpy(samples.y[prediction.rows])
            loss = torch.nn.functional.cross_entropy(torch.from_numpy(prediction.outputs), y)
            assert noted[prediction.seed] == pytest.approx(loss.item(), abs=tolerance)
