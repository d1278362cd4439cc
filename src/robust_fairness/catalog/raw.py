"""The raw files of a dataset, with which the pipelines begin."""

from importlib import import_module
from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError

from robust_fairness.catalog.files import TablePreview
from robust_fairness.core.registry import find


class RawDataset(AbstractDataset[None, Any]):
    """A handle of raw files, ``core.raw_files.Files``, which is only read.

    Args:
        source: the dataset by name and options, as in the experiment.
        metadata: as of all datasets.
    """

    def __init__(
        self, source: dict[str, Any] | str, metadata: dict[str, Any] | None = None
    ) -> None:
        self.source = {"name": source} if isinstance(source, str) else source
        self.metadata = metadata

    def load(self) -> Any:
        return import_module("robust_fairness.bench.datasets.fetch").dataset_files()

    def save(self, data: None) -> NoReturn:
        raise DatasetError("raw files are only read")

    def preview(self) -> TablePreview:
        """Names, bytes and checksums of the files that every load reads."""
        options = dict(self.source)
        kind, files = find("dataset", options.pop("name")), self.load()
        names = kind(kind.Parameters.model_validate(options)).required_files()
        rows = [[name, *files.facts(name)] for name in names]
        rows = rows or [["(part of a package, or made)", None, ""]]
        columns = ["file", "bytes", "SHA-256"]
        return TablePreview({"index": [*range(len(rows))], "columns": columns, "data": rows})

    def _exists(self) -> bool:
        return True  # a run says in one line which file is missing

    def _describe(self) -> dict[str, Any]:
        return {"source": self.source}
