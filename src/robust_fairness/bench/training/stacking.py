"""Which replicas share one training, and which train together as a stack."""

from collections.abc import Sequence
from itertools import groupby

from pydantic import BaseModel
from torch import Tensor

from robust_fairness.bench.experiment.experiment import Replica
from robust_fairness.bench.models.base import SingleModel
from robust_fairness.core.registry import find
from robust_fairness.core.samples import REQUIRED_PARTS, Samples

ROWS = 2**14  # of a step, of all replicas of a stack: activations of more leave the caches


def trainings(
    replicas: Sequence[Replica], samples: Samples, network: str
) -> list[tuple[list[Replica], list[Replica]]]:
    """What trains as a stack, and all replicas that it trains.

    Replicas of a ``SingleModel`` share a training if they differ only in what is fitted afterwards.
    """
    model = find("network", network)
    if not issubclass(model, SingleModel):
        return [(stack, stack) for stack in _stacks(replicas, samples)]
    sharing: dict[str, list[Replica]] = {}
    for replica in replicas:
        trained = model.trained_as(replica.network)
        key = repr((replica.seed, replica.method, trained, replica.protocol))
        sharing.setdefault(key, []).append(replica)
    return [(equal[:1], equal) for equal in sharing.values()]


def _stacks(replicas: Sequence[Replica], samples: Samples) -> list[list[Replica]]:
    """Replicas that train together: equal except for seeds and the method's float fields.

    Splits whose attributes differ train separately. A stack has at most ``ROWS`` rows in a step,
    unless a single replica has more.
    """

    def shape(replica: Replica) -> str:
        equal = {
            name: value
            for name, value in replica.method.model_dump().items()
            if not is_per_replica(replica.method, name)
        }
        split = replica.split(samples.split_names)
        counts = [len(samples.rows(split, part)) for part in REQUIRED_PARTS]
        separate = split if samples.split_attributes else ""
        return repr((equal, replica.network, replica.protocol, counts, separate))

    result = []
    for _, group in groupby(sorted(replicas, key=shape), key=shape):
        alike = list(group)
        most = max(1, ROWS // alike[0].protocol.batch_size)
        result += [alike[first : first + most] for first in range(0, len(alike), most)]
    return result


def is_per_replica(hparams: BaseModel, name: str) -> bool:
    """Whether a hyperparameter may differ within a stack: float fields may."""
    return type(hparams).model_fields[name].annotation is float


def stack_hparams(hparams: Sequence[BaseModel], like: Tensor) -> BaseModel:
    """Hyperparameters of a stack, with tensors ``[replica]`` like ``like`` instead of floats."""
    first = hparams[0]
    values = {
        name: like.new_tensor([getattr(values, name) for values in hparams])
        if is_per_replica(first, name)
        else getattr(first, name)
        for name in type(first).model_fields
    }
    return type(first).model_construct(None, **values)
