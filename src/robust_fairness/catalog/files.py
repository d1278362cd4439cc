"""Tables, pages, pictures and figures, saved atomically."""

from pathlib import Path
from typing import Any

from kedro_datasets._typing import ImagePreview, PlotlyPreview, TablePreview

from robust_fairness.catalog.atomic import AtomicDataset


class TableDataset(AtomicDataset):
    """A data frame in a Parquet file."""

    def read(self, path: Path) -> Any:
        import pandas as pd

        return pd.read_parquet(path)

    def write(self, data: Any, path: Path) -> None:
        data.to_parquet(path, index=False)

    def preview(self, nrows: int = 10) -> TablePreview:
        frame = self.load().head(nrows)
        content: TablePreview = frame.to_dict(orient="split")
        return content


class TextDataset(AtomicDataset):
    """Text in UTF-8, for example the report."""

    def read(self, path: Path) -> str:
        return path.read_text(encoding="utf-8")

    def write(self, data: Any, path: Path) -> None:
        path.write_text(data, encoding="utf-8")


class PictureDataset(AtomicDataset):
    """A picture, uint8 ``[height, width, 3]`` red, green, blue, in a PNG file."""

    def read(self, path: Path) -> Any:
        import numpy as np
        from PIL import Image

        with Image.open(path) as picture:
            return np.asarray(picture)

    def write(self, data: Any, path: Path) -> None:
        from PIL import Image

        Image.fromarray(data).save(path, format="PNG")

    def preview(self) -> ImagePreview:
        import base64

        with self.local() as path:
            content = path.read_bytes()
        return ImagePreview(base64.b64encode(content).decode())


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
            content: PlotlyPreview = json.loads(path.read_text())
        return content
