"""The tables of docs/latent_shifts.md: measured angles, norms and Eq. 2 of Control+Shift.

python benchmarks/latent_shifts.py --rows 1000
"""

import argparse

from robust_fairness.core.registry import find
from robust_fairness.generation.measures import angle_table, intensity_table

# shift, options, training severity, severities
SETS = (
    ("extend", {}, 0.0, (0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 90.0)),
    ("extend", {"form": "as_printed"}, 0.0, (0.0, 5.0, 10.0, 30.0, 60.0, 90.0)),
    ("overlap", {}, 0.0, (0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 90.0)),
    ("overlap", {"second_target": "as_drawn"}, 0.0, (0.0, 45.0, 90.0)),
    ("truncation", {}, 0.8, (0.8, 0.85, 0.9, 0.95, 1.0, 1.1)),
)


def main() -> None:
    """Print one row a severity for each shift and dimension."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[64, 3072])
    options = parser.parse_args()
    for name, chosen, training, severities in SETS:
        parameters = find("shift", name).Parameters.model_validate(chosen)
        for dimension in options.dimensions:
            angles = angle_table(name, parameters, severities, dimension, options.rows)
            wide = angles.pivot(
                index="severity", columns="quantity", values=["mean", "deviation"]
            ).swaplevel(axis=1)[["angle to t1", "angle to t2", "angle between two", "norm"]]
            sizes = intensity_table(
                name, parameters, training, severities, dimension, options.rows
            ).pivot(index="severity", columns="measure", values="value")
            print(f"\n{name} {chosen or ''} d = {dimension}, training at {training:g}")
            print(wide.round(2).to_string())
            print(sizes.round(3).to_string())


if __name__ == "__main__":
    main()
