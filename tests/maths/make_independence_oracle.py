"""Write ``kci.csv``, the p-values of KCI; needs the package ``causal-learn`` (0.1.4.8 was used).

python -m tests.maths.make_independence_oracle
"""

import pandas as pd
from causallearn.utils.KCI.KCI import KCI_CInd

from tests.maths.test_independence_oracle import FIXTURE, problem

RELATIONS = ("none, linear", "none, nonlinear", "sum", "square", "product")


def main() -> None:
    """Forty problems: two outcomes, five relations, four seeds."""
    lines = []
    for outcome in ("classes", "numbers"):
        for number, relation in enumerate(RELATIONS):
            for seed in range(10 * number, 10 * number + 4):
                rows = 200 + 100 * (seed % 2)
                strength = (0.25, 1.0)[seed // 2 % 2]
                p, a, y = problem(seed, rows, outcome, relation, strength)
                kci, _ = KCI_CInd().compute_pvalue(p[:, None], a[:, None], y[:, None])
                lines.append((seed, rows, outcome, relation, strength, float(kci), p[0]))
    columns = ["seed", "rows", "outcome", "relation", "strength", "kci", "first_prediction"]
    pd.DataFrame(lines, columns=columns).to_csv(FIXTURE, index=False, float_format="%.8g")


if __name__ == "__main__":
    main()
