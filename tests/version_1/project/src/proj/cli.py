# The commands of robust_fairness, for `kedro`.
from robust_fairness.cli import cli  # noqa: F401
