"""Tables, pages, images and figures, saved atomically."""

from io import BytesIO
from pathlib import Path
from typing import Any, NewType
from zipfile import ZipFile, ZipInfo

from robust_fairness.catalog.atomic import AtomicDataset

# Kedro-Viz knows previews by the names of these types.
TablePreview = NewType("TablePreview", dict)
ImagePreview = NewType("ImagePreview", str)
PlotlyPreview = NewType("PlotlyPreview", dict)
HTMLPreview = NewType("HTMLPreview", str)


class ParquetDataset(AtomicDataset):
    """A data frame in a Parquet file."""

    @staticmethod
    def read(path: Path | BytesIO) -> Any:
        import pandas as pd

        return pd.read_parquet(path)

    @staticmethod
    def write(data: Any, path: Path | BytesIO) -> None:
        data.to_parquet(path, index=False)

    def preview(self, nrows: int = 10) -> TablePreview:
        return first_rows(self.load(), nrows)


def first_rows(frame: Any, nrows: int) -> TablePreview:
    """The first rows of a data frame as Kedro-Viz shows them."""
    return TablePreview(frame.head(nrows).to_dict(orient="split"))


class TextDataset(AtomicDataset):
    """Text in UTF-8, for example the report."""

    def read(self, path: Path) -> str:
        return path.read_text(encoding="utf-8")

    def write(self, data: Any, path: Path) -> None:
        path.write_text(data, encoding="utf-8")

    def preview(self) -> HTMLPreview:
        return HTMLPreview(self.load())


class PictureDataset(AtomicDataset):
    """An image, uint8 ``[height, width, 3]`` red, green, blue, in a PNG file."""

    @staticmethod
    def read(path: Path | BytesIO) -> Any:
        import numpy as np
        from PIL import Image

        with Image.open(path) as image:
            return np.asarray(image)

    @staticmethod
    def write(data: Any, path: Path | BytesIO) -> None:
        from PIL import Image

        Image.fromarray(data).save(path, format="PNG")

    def preview(self) -> ImagePreview:
        import base64

        with self.local() as path:
            content = path.read_bytes()
        return ImagePreview(base64.b64encode(content).decode())


class ResultsDataset(AtomicDataset):
    """Data frames and images by name, in a ZIP file of Parquet and PNG files."""

    def read(self, path: Path) -> dict[str, Any]:
        with ZipFile(path) as file:
            return {
                Path(name).stem: MEMBERS[Path(name).suffix].read(BytesIO(file.read(name)))
                for name in file.namelist()
            }

    def write(self, data: dict[str, Any], path: Path) -> None:
        with ZipFile(path, "w") as file:
            for name, part in data.items():
                suffix, content = ".parquet" if hasattr(part, "to_parquet") else ".png", BytesIO()
                MEMBERS[suffix].write(part, content)
                file.writestr(ZipInfo(f"{name}{suffix}"), content.getvalue())  # without the time

    def preview(self, nrows: int = 10) -> TablePreview:
        """The first rows of the metrics."""
        return first_rows(self.load()["metrics"], nrows)


MEMBERS: dict[str, type[ParquetDataset | PictureDataset]] = {
    ".parquet": ParquetDataset,
    ".png": PictureDataset,
}


class FigureDataset(AtomicDataset):
    """A plotly figure in a JSON file."""

    def read(self, path: Path) -> Any:
        from plotly import io

        return io.read_json(path)

    def write(self, data: Any, path: Path) -> None:
        from plotly import io

        io.write_json(data, path)

    def preview(self) -> PlotlyPreview:
        import json

        with self.local() as path:
            return PlotlyPreview(json.loads(path.read_text()))
