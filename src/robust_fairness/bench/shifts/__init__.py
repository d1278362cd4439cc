"""Distribution shifts: of samples, or of the latents of generated images."""

from robust_fairness.core.callable_package import make_callable

make_callable(__name__, "robust_fairness.bench.listing", "shifts")
