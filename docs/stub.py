"""Write ``src/robust_fairness/__init__.pyi``: every public name, methods with hyperparameters."""

from inspect import formatannotation
from pathlib import Path

from pydantic import BaseModel

import robust_fairness
from robust_fairness.core import registry
from robust_fairness.experiment.experiment import Protocol
from robust_fairness.library.estimators import COMMON, OF_PROTOCOL
from robust_fairness.library.listing import class_names

PLACE = Path(robust_fairness.__file__).with_suffix(".pyi")
HEAD = '''"""Names of the package; written by docs/stub.py."""

from typing import Any, Literal, TypedDict, Unpack

from robust_fairness import metrics as metrics
from robust_fairness.library.auditing import audit as audit
from robust_fairness.library.estimators import FairClassifier
from robust_fairness.library.listing import networks as networks
from robust_fairness.library.training import evaluate as evaluate
from robust_fairness.library.training import load as load
from robust_fairness.library.training import train as train

__version__: str

def datasets() -> list[str]: ...
def methods() -> list[str]: ...
def shifts() -> list[str]: ...

class Options(TypedDict, total=False):
    """Options of every method."""

'''


def text() -> str:
    """The stub."""
    options = [f"    {name}: {type(value).__name__}\n" for name, value in COMMON.items()]
    options += [f"    {name}: {_type(Protocol, name)}\n" for name in OF_PROTOCOL]
    classes = [_class(name, method) for name, method in sorted(class_names().items())]
    return "".join([HEAD, *options, *classes])


def _class(name: str, method: str) -> str:
    kind = registry.find("method", method)
    lines = [
        f"\nclass {name}(FairClassifier):",
        f'    """{_first(kind)}"""',
        "",
        "    def __init__(",
    ]
    lines += ["        self,"]
    fields = kind.Parameters.model_fields
    if fields:
        lines += ["        *,"]
    for key, field in fields.items():
        default = field.get_default(call_default_factory=True)
        written = repr(default).replace("'", '"') if isinstance(default, str) else repr(default)
        lines += [f"        {key}: {_type(kind.Parameters, key)} = {written},"]
    return "\n".join([*lines, "        **options: Unpack[Options],", "    ) -> None: ...", ""])


def _type(parameters: type[BaseModel], name: str) -> str:
    kind = formatannotation(parameters.model_fields[name].annotation)
    return "Any" if "." in kind.replace("...", "") else kind


def _first(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
    print(PLACE)
