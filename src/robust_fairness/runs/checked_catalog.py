"""The catalog of notebooks and runs: files that changed since a run saved them are refused."""

from typing import Any

from kedro.framework.context import CatalogCommandsMixin, KedroContext, compose_classes
from kedro.io import DataCatalog
from kedro.io.core import Version

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.runs import provenance


class CheckedCatalog(DataCatalog):
    """Kedro's catalog that compares a file with its checksum in the manifest of its run.

    Attributes:
        is_checked: whether a run has compared its inputs before its first node.
    """

    is_checked = False

    def load(self, ds_name: str, version: str | None = None) -> Any:
        if not self.is_checked:
            self._require_unchanged(ds_name, version)
        return super().load(ds_name, version)

    def _require_unchanged(self, name: str, version: str | None) -> None:
        dataset = self.get(name, version=Version(version, None) if version else None)
        if not isinstance(dataset, AtomicDataset) or not dataset.exists():
            return
        run_id = dataset.resolve_load_version()
        if run_id is None or not provenance.manifest_path(run_id).exists():
            return
        recorded = provenance.load_manifest(run_id)["outputs"].get(name)
        if recorded:
            with dataset.local() as path:
                provenance.require_unchanged(run_id, recorded, path)


class Context(KedroContext):
    """Kedro's context with such a catalog, which Kedro's setting gives to runs only."""

    @property
    def catalog(self) -> Any:
        catalog = super().catalog
        catalog.__class__ = compose_classes(CheckedCatalog, CatalogCommandsMixin)
        return catalog
