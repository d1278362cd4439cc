"""An experiment and its parameters as YAML writes them; ``reading`` resolves their names."""

from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from robust_fairness.bench.experiment.experiment import Facets, Running, Scoring, filled
from robust_fairness.bench.experiment.plugins import Settings


def _name(value: Any) -> str:
    if isinstance(value, dict | list):
        hint = "Its parameters belong under 'settings', or under a name of your own in parameters."
        raise PydanticCustomError("name_type", "allowed: a name", {"hint": hint})
    return str(value)


def _listed(value: Any) -> Any:
    if isinstance(value, str | list | None):
        return value
    raise PydanticCustomError("tuple_type", "allowed: a list")


Name = Annotated[str, BeforeValidator(_name)]
Stages = Annotated[Any, BeforeValidator(_listed)]  # or a name in a section of the file
Filled = BeforeValidator(filled)
Fields = Annotated[dict[str, Any], Filled]
Section = Annotated[dict[str, dict[str, Any] | None], Filled]
Lists = Annotated[dict[str, tuple[Any, ...] | None], Filled]


class Written(Settings):
    """Base class of what is written; an empty value has no fields."""

    _empty = model_validator(mode="before")(filled)


class WrittenParameters(Written, extra="ignore"):
    """The parameters; further sections are of a project's own pipelines."""

    datasets: Section = {}
    generators: Fields = {}
    methods: Section = {}
    networks: Section = {}
    protocols: Fields = {}
    shifts: Section = {}
    spaces: Section = {}


class WrittenFile(Written, extra="ignore"):
    """A file ``experiment.yml``; further fields are defaults of its datasets."""

    datasets: Fields = {}
    searches: Lists = {}
    trials: Lists = {}


class WrittenDataset(Written, Running, Scoring):
    """A dataset of a grid; ``domains`` is a ``Design``, a method a ``WrittenCell``."""

    domains: Any = None
    methods: Fields = {}
    network: Name = ""
    protocol: Name = ""
    shifts: Lists = {}


class WrittenCell(Written, extra="ignore"):
    """A cell of a grid; other fields are refused when its hyperparameters are known."""

    facets: Facets = {}
    method: Name = ""
    network: Name = ""
    postprocessing: Any = None
    search: Stages = None
    settings: Fields = {}
    trials: Stages = None


class WrittenReference(Written):
    """The classifier by which the images of a generator are assessed."""

    network: Name = ""
    protocol: Name = ""


class WrittenGenerator(Written):
    """A generator of the parameters."""

    file: Any = None
    reference: Any = None
    source: Any = None
    training: Any = None

    @model_validator(mode="after")
    def _complete(self) -> "WrittenGenerator":
        if not self.source and not self.file:
            raise ValueError("neither source nor file, allowed: one of them, or both")
        if self.file and self.training:
            raise ValueError("a file and a training, allowed: one of them, and null for the other")
        if self.reference and not self.source:
            raise ValueError("a reference without a source, allowed: both, or null for reference")
        return self
