"""Files of the types of kedro-datasets, saved atomically, and images."""

from collections.abc import Callable
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, NewType, no_type_check

from kedro.io import AbstractDataset, DatasetError, Version

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core.errors import InputError

__all__ = ["FileDataset", "PictureDataset"]  # the types of a catalog

# Kedro-Viz knows previews by the names of these types.
TablePreview = NewType("TablePreview", dict)
ImagePreview = NewType("ImagePreview", str)
HTMLPreview = NewType("HTMLPreview", str)

PARQUET = {"type": "pandas.ParquetDataset", "save_args": {"index": False}}
# Classes of earlier versions, and the types that replace them.
REPLACED = {
    "FigureDataset": "plotly.JSONDataset",
    "ParquetDataset": "pandas.ParquetDataset",
    "TextDataset": "text.TextDataset",
}


def __getattr__(name: str) -> Any:
    if name in REPLACED:
        raise InputError(
            f"{__name__}.{name} is now {__name__}.FileDataset with the field "
            f"dataset: {{type: {REPLACED[name]}}}"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class FileDataset(AtomicDataset):
    """A file of any dataset type that has a ``filepath``, with our versions, checksum and saving.

    Args:
        dataset: type and options of the dataset that reads and writes the file, as in a catalog:
            ``{type: pandas.ParquetDataset, save_args: {index: false}}``.
        filepath, version, credentials, fs_args, metadata: as of all files.
    """

    dataset: dict[str, Any]

    @no_type_check  # as of ``AtomicDataset``
    def __init__(
        self,
        *,
        dataset: dict[str, Any],
        filepath: str,
        version: Version | None = None,
        credentials: dict[str, Any] | None = None,
        fs_args: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            filepath=filepath,
            version=version,
            credentials=credentials,
            fs_args=fs_args,
            metadata=metadata,
        )
        self.dataset = dataset
        self._of_file(Path(filepath))  # an unknown type is reported here

    def _of_file(self, path: Path) -> AbstractDataset:
        """The dataset that reads and writes a file of this machine."""
        return AbstractDataset.from_config(
            self.filepath, {**self.dataset, "filepath": path.as_posix()}
        )

    def read(self, path: Path) -> Any:
        try:
            return self._of_file(path).load()
        except DatasetError as error:  # it names the local path, its cause says why
            raise error.__cause__ or error from None

    def write(self, data: Any, path: Path) -> None:
        try:
            self._of_file(path).save(data)
        except DatasetError as error:
            raise error.__cause__ or error from None

    @property
    def preview(self) -> Callable[..., Any]:
        """What Kedro-Viz shows: the preview of the type, ours of Parquet files and of pages."""
        kind: Any = type(self._of_file(Path(self.filepath)))
        ours = PREVIEWS.get(kind.__name__)

        @wraps(ours or kind.preview)
        def preview(*arguments: Any, **options: Any) -> Any:
            with self.local() as path:
                if ours:
                    return ours(path, *arguments, **options)
                return kind.preview(self._of_file(path), *arguments, **options)

        return preview


def table(filepath: str, **options: Any) -> FileDataset:
    """A data frame in a Parquet file."""
    return FileDataset(dataset=PARQUET, filepath=filepath, **options)


def first_rows(path: Path, nrows: int = 10) -> TablePreview:
    """The first rows of a Parquet file, without reading the others."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        rows = pa.Table.from_batches(islice(file.iter_batches(nrows), 1), file.schema_arrow)
    return rows_of(rows.to_pandas(), nrows)


def rows_of(frame: Any, nrows: int) -> TablePreview:
    """The first rows of a data frame as Kedro-Viz shows them."""
    return TablePreview(frame.head(nrows).to_dict(orient="split"))


def page(path: Path) -> HTMLPreview:
    """The text of a page."""
    return HTMLPreview(path.read_text(encoding="utf-8"))


# Of types of kedro-datasets: one has no preview, the other one reads the whole file.
PREVIEWS: dict[str, Callable[..., Any]] = {"ParquetDataset": first_rows, "TextDataset": page}


class PictureDataset(AtomicDataset):
    """An image, uint8 ``[height, width, 3]`` red, green, blue, in a PNG file."""

    def read(self, path: Path) -> Any:
        import numpy as np
        from PIL import Image

        with Image.open(path) as image:
            return np.asarray(image)

    def write(self, data: Any, path: Path) -> None:
        from PIL import Image

        Image.fromarray(data).save(path, format="PNG")

    def preview(self) -> ImagePreview:
        import base64

        with self.local() as path:
            content = path.read_bytes()
        return ImagePreview(base64.b64encode(content).decode())
