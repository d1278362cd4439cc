"""Training methods; ``methods.base.Method`` documents what a method is."""

from robust_fairness.core.callable_package import make_callable

make_callable(__name__, "robust_fairness.bench.listing", "methods")
