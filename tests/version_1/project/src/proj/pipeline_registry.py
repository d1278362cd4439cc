# The pipelines of robust_fairness, and those that `kedro pipeline create` makes.
from robust_fairness.pipeline_registry import register_pipelines  # noqa: F401
