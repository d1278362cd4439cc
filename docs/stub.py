"""Write the stubs of the package and of ``metrics``: every public name, for editors and help."""

from inspect import formatannotation
from pathlib import Path

from pydantic import BaseModel

import robust_fairness
from robust_fairness import metrics
from robust_fairness.core import registry
from robust_fairness.experiment.experiment import Protocol
from robust_fairness.library.estimators import OF_PROTOCOL
from robust_fairness.library.listing import class_names
from robust_fairness.metrics.base import Score
from robust_fairness.metrics.functions import SEVERAL

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

COMMON_TYPES = {
    "network": "str | dict[str, Any] | None",
    "random_state": "int",
    "validation_fraction": "float",
}

OF_METRICS = '''"""Names of metrics; written by docs/stub.py."""

from typing import Any, Protocol

'''
PROTOCOL = '''
class {name}(Protocol):
    """Value of a metric{by}, see ``metric_function``."""

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        **arrays: Any,
    ) -> {value}: ...

'''

OF_PLUGINS = "\ndef __getattr__(name: str) -> Any: ...  # metrics of plug-ins\n"


def stubs() -> dict[Path, str]:
    """The texts of the stubs by their files."""
    texts = {robust_fairness: of_package(), metrics: of_metrics()}
    return {Path(str(module.__file__)).with_suffix(".pyi"): text for module, text in texts.items()}


def of_metrics() -> str:
    """The functions of ``metrics``, and every metric of the package as a function of arrays."""
    imported = sorted((getattr(metrics, name).__module__, name) for name in metrics.__all__)
    lines = [f"from {module} import {name} as {name}\n" for module, name in imported]
    lines.append(PROTOCOL.format(name="Function", by="", value="float"))
    lines.append(PROTOCOL.format(name="ByGroup", by=" by group", value="dict[str, float]"))
    for metric in sorted(metrics.all_metrics(), key=lambda metric: metric.name):
        function = metric.definition.function
        several = metric.aggregation in SEVERAL
        several |= metric.is_measure and function.__annotations__["return"] != Score
        if function.__module__.startswith("robust_fairness."):
            lines.append(f"{metric.name}: {'ByGroup' if several else 'Function'}\n")
    return "".join([OF_METRICS, *lines, OF_PLUGINS])


def of_package() -> str:
    """The public names of the package, methods with their hyperparameters."""
    options = [f"    {name}: {kind}\n" for name, kind in COMMON_TYPES.items()]
    options += [f"    {name}: {_type(Protocol, name)} | None\n" for name in OF_PROTOCOL]
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
    for path, content in stubs().items():
        path.write_text(content, encoding="utf-8")
        print(path)
