"""The plug-ins of every kind, by name."""

from robust_fairness.core import registry


def datasets() -> list[str]:
    """Names of all datasets, sorted."""
    return registry.names("dataset")


def methods() -> list[str]:
    """Names of all training methods, sorted."""
    return registry.names("method")


def networks() -> list[str]:
    """Names of all networks, sorted."""
    return registry.names("network")


def shifts() -> list[str]:
    """Names of all shifts, sorted."""
    return registry.names("shift")


def class_names() -> dict[str, str]:
    """Methods by the names of their classes: ``group_dro`` is ``GroupDro``."""
    return {method.title().replace("_", ""): method for method in methods()}
