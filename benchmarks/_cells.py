"""Cells of made-up data, as the grid would have them."""

from typing import Any

from robust_fairness.experiment.experiment import Cell


def cell_of(method: str, network: str, seeds: int = 1, **protocol: Any) -> Cell:
    """A cell with the defaults of its method and network, long enough to be timed."""
    return Cell.model_validate(
        {
            "dataset": "made_up",
            "label": method,
            "method": {"name": method},
            "network": {"name": network},
            "protocol": {"epochs": 100, **protocol},
            "seeds": list(range(seeds)),
        }
    )
