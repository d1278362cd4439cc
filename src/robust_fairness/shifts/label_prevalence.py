"""Another share of a class among the test rows."""

import numpy as np

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.samples import Samples
from robust_fairness.shifts._resampling import Resampling, ResamplingParameters


class LabelPrevalence(Resampling):
    r"""Change the prevalence :math:`P(Y = y)`; :math:`P(X, A \mid Y)` stays as it is.

    The severity is the new prevalence.
    """

    class Parameters(ResamplingParameters):
        """``label`` is the class whose share is stated; the last one by default."""

        label: str = ""

    def selected(self, samples: Samples) -> np.ndarray:
        if not samples.classes:
            raise InputError("label_prevalence is not applicable to a continuous outcome")
        label = self.parameters.label or samples.classes[-1]
        if label not in samples.classes:
            raise unknown_name("class", label, samples.classes)
        return samples.y == samples.classes.index(label)
