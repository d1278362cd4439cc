"""Kedro's catalog, fast enough for tens of thousands of names that a pattern matches."""

from functools import cache
from typing import Any

import parse
from kedro.framework.context import CatalogCommandsMixin
from kedro.io import (
    AbstractDataset,
    CatalogConfigResolver,
    DataCatalog,
    DatasetError,
    MemoryDataset,
)
from kedro.io.core import TYPE_KEY, is_parameter, parse_dataset_definition
from kedro.io.data_catalog import _LazyDataset


class Resolver(CatalogConfigResolver):
    """Kedro's resolver with patterns that are compiled once.

    Kedro compiles them for each name, up to the one that matches, and once more for each field.
    """

    def __init__(self, made: CatalogConfigResolver) -> None:
        vars(self).update(vars(made))
        self._compiled = {pattern: parse.compile(pattern) for pattern in self._dataset_patterns}

    def match_dataset_pattern(self, ds_name: str) -> str | None:
        return next((one for one, form in self._compiled.items() if form.parse(ds_name)), None)

    def resolve_pattern(self, ds_name: str) -> dict[str, Any]:
        pattern = None if ds_name in self.config else self.match_dataset_pattern(ds_name)
        if pattern is None:
            return dict(super().resolve_pattern(ds_name))
        return dict(filled(self._dataset_patterns[pattern], self._compiled[pattern].parse(ds_name)))


def filled(config: Any, values: Any) -> Any:
    """A copy of the configuration of a pattern with the values of its placeholders."""
    match config:
        case dict():
            return {name: filled(one, values) for name, one in config.items()}
        case list() | tuple():
            return [filled(one, values) for one in config]
        case str() if "}" in config:
            return config.format_map(values.named)
    return config


@cache
def class_of(kind: Any) -> Any:
    """The class of a type; the type itself where there is none, which Kedro reports."""
    try:
        return parse_dataset_definition({TYPE_KEY: kind})[0]
    except DatasetError:
        return kind


class Parameter(_LazyDataset):
    """A parameter that becomes a dataset when a node reads it.

    Kedro makes a dataset of every field at every level, sixty for a cell, of which nodes read few.
    Parameters are never tables or arrays: to find that out, Kedro tries for each one to import
    packages that are not installed.
    """

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, {TYPE_KEY: MemoryDataset})
        self.value = value

    def materialize(self) -> AbstractDataset:
        return MemoryDataset(self.value, "deepcopy")


class Catalog(DataCatalog, CatalogCommandsMixin):
    """Kedro's catalog with this resolver and these parameters.

    The class of a type is imported once.
    """

    def __init__(
        self,
        datasets: dict[str, AbstractDataset] | None = None,
        config_resolver: CatalogConfigResolver | None = None,
        **options: Any,
    ) -> None:
        resolver = Resolver(config_resolver) if config_resolver else None
        super().__init__(datasets, resolver, **options)

    def _add_from_config(self, ds_name: str, ds_config: dict[str, Any]) -> None:
        if ds_name not in self.config_resolver.config and TYPE_KEY in ds_config:
            ds_config = ds_config | {TYPE_KEY: class_of(ds_config[TYPE_KEY])}
        super()._add_from_config(ds_name, ds_config)

    def __setitem__(self, key: str, value: Any) -> None:
        is_plain = is_parameter(key) and not isinstance(value, AbstractDataset | _LazyDataset)
        super().__setitem__(key, Parameter(key, value) if is_plain else value)
