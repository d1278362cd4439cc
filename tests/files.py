"""Datasets of text and figures, as the catalog configures them."""

from functools import partial

from robust_fairness.catalog.files import FileDataset

UTF_8 = {"encoding": "utf-8"}
text_file = partial(
    FileDataset,
    dataset={
        "type": "text.TextDataset",
        "fs_args": {"open_args_load": UTF_8, "open_args_save": UTF_8},
    },
)
figure_file = partial(FileDataset, dataset={"type": "plotly.JSONDataset"})
