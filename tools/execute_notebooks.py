"""Execute the notebooks and write them as Markdown pages, with everything that they show.

    python -m tools.execute_notebooks FOLDER [--plotly ADDRESS]

The notebooks are committed without outputs; the site shows them executed. Each runs in a kernel of
its own, in the folder it lies in, on bundled data and without MLflow. Nothing is written unless all
of them ran to their end. What they write to standard error, logs and progress, is left out.

Besides the pages FOLDER holds ``plotly.min.js``, which their figures share. ADDRESS is where a page
finds it: ``plotly.min.js``, or ``../plotly.min.js`` where the site gives each page its own folder.
"""

import argparse
import base64
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
# Those that need no more than bundled data.
NAMES = ("tour_of_a_run", "new_method", "audit_of_predictions")
PLOTLY = "plotly.min.js"
LONGEST = 600  # seconds of a cell
FIGURE, PICTURE, TABLE = "application/vnd.plotly.v1+json", "image/png", "text/html"
STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)
TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def _settings() -> Iterator[None]:
    """What a kernel finds in its environment: no server, no configuration but the project's."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as checkpoints:
        chosen = {
            "PLOTLY_RENDERER": "plotly_mimetype",
            "ROBUST_FAIRNESS_CHECKPOINTS": checkpoints,
            "ROBUST_FAIRNESS_MLFLOW": "off",
            "OMP_NUM_THREADS": "1",
        }
        kept = {name: value for name, value in before.items() if not name.startswith("KEDRO_")}
        try:
            os.environ.clear()
            os.environ.update(kept | chosen)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def executed(path: Path, last: str = "") -> Any:
    """A notebook with its outputs, run from top to bottom in a fresh kernel.

    Args:
        path: the notebook.
        last: code of one more cell behind its own, if wanted.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    if last:
        notebook.cells.append(nbformat.v4.new_code_cell(last))
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    with _settings():
        client.execute()
    return notebook


def page(notebook: Any, name: str, plotly: str = PLOTLY) -> tuple[str, dict[str, bytes]]:
    """An executed notebook as Markdown, and the images that the page names, by file name.

    Args:
        notebook: the notebook with its outputs.
        name: what it is called.
        plotly: where the page finds plotly.js.
    """
    parts: list[str] = []
    images: dict[str, bytes] = {}
    figures = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            # links lead from the folder of notebooks; the pages lie in one below docs
            parts.append(cell.source.replace("](../docs/", "](../"))
            continue
        parts.append(_fenced(cell.source, "python"))
        for output in cell.outputs:
            if output.output_type == "stream":
                if output.name == "stdout":
                    parts.append(_fenced(TERMINAL_COLOUR.sub("", output.text).rstrip(), "text"))
                continue
            data = output.data
            if FIGURE in data:
                figures += 1
                if figures == 1:
                    parts.append(f'<script src="{escape(plotly)}"></script>')
                parts.append(_figure(data[FIGURE], f"{name}-{figures}"))
            elif PICTURE in data:
                file = f"{name}_{len(images) + 1}.png"
                images[file] = base64.b64decode(data[PICTURE])
                parts.append(f"![Output of the cell above]({file})")
            elif TABLE in data:
                table = STYLE.sub("", data[TABLE])
                parts.append("\n".join(line.strip() for line in table.splitlines() if line.strip()))
            else:
                parts.append(_fenced(data["text/plain"], "text"))
    return "\n\n".join(parts) + "\n", images


def _fenced(text: str, language: str) -> str:
    """A block of code, whatever back ticks it holds."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _figure(figure: dict[str, Any], name: str) -> str:
    """A figure that plotly.js draws when the page opens, on one line."""
    title = ((figure.get("layout") or {}).get("title") or {}).get("text") or "figure"
    # within a script, nothing but "</" could end it
    drawn = json.dumps({"data": figure["data"], "layout": figure["layout"]}).replace("</", r"<\/")
    return (
        f'<div id="{name}" role="img" aria-label="{escape(title)}"></div>'
        f'<script>{{const figure = {drawn}; Plotly.newPlot("{name}", figure.data, figure.layout, '
        "{responsive: true, displaylogo: false})}</script>"
    )


def main() -> None:
    """Execute all, then write all."""
    from nbclient.exceptions import CellExecutionError
    from plotly.offline import get_plotlyjs

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where pages, images and plotly.js go")
    parser.add_argument("--plotly", default=PLOTLY, help="where a page finds plotly.js")
    options = parser.parse_args()
    files: dict[str, bytes] = {PLOTLY: get_plotlyjs().encode()}
    for name in NAMES:
        try:
            notebook = executed(NOTEBOOKS / f"{name}.ipynb")
        except CellExecutionError as error:
            sys.exit(f"notebooks/{name}.ipynb: a cell failed\n{error}")
        text, images = page(notebook, name, options.plotly)
        files |= {f"{name}.md": text.encode()} | images
    options.folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (options.folder / file).write_bytes(content)
    print(f"wrote {len(files)} files to {options.folder}")


if __name__ == "__main__":
    main()
