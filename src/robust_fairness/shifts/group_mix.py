"""Another share of a group among the test rows."""

import numpy as np

from robust_fairness.core.errors import unknown_name
from robust_fairness.samples import Samples
from robust_fairness.shifts._resampling import Resampling, ResamplingParameters


class GroupMix(Resampling):
    r"""Change the share :math:`P(A = a)`; :math:`P(X, Y \mid A)` stays as it is.

    The severity is the new share.
    """

    class Parameters(ResamplingParameters):
        """``group`` is the value of ``attribute`` whose share is stated."""

        attribute: str
        group: str

    def selected(self, samples: Samples) -> np.ndarray:
        attribute, group = self.parameters.attribute, self.parameters.group
        if attribute not in samples.attributes:
            raise unknown_name("attribute of group_mix", attribute, samples.attributes.columns)
        values = samples.attributes[attribute].astype(str)
        if group not in set(values):
            raise unknown_name(f"group of {attribute}", group, values.unique())
        return (values == group).to_numpy()
