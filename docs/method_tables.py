"""Write the table of ``methods.md`` from the docstrings and hyperparameters of the methods.

    python docs/method_tables.py

The first sentence of a method's docstring says what it optimises, the one that begins with "Fails"
when it fails, and the docstring of its module may name the source. Ranges for a search are those of
``conf/base/parameters.yml``.
"""

import re
import sys
from inspect import getdoc

import pandas as pd
import yaml
from pages import DOCS, Page

from robust_fairness.core.registry import find, names

PARAMETERS = DOCS.parent / "conf" / "base" / "parameters.yml"
SOURCE = re.compile(r"\(([^()]*\d{4}[^()]*)\)")
FAILS = re.compile(r"^Fails .*?\.$", re.MULTILINE | re.DOTALL)


def table() -> pd.DataFrame:
    """A row per method of the package."""
    spaces = yaml.safe_load(PARAMETERS.read_text())["spaces"]
    return pd.DataFrame([row(name, spaces.get(name, {})) for name in names("method")])


def row(name: str, space: dict) -> dict[str, str]:
    """What a method is, sees and optimises, its ranges and when it fails."""
    method = find("method", name)
    text = (getdoc(method) or "").replace("``", "`")
    optimises = text.split("\n\n")[0].replace("\n", " ")
    source = SOURCE.search(sys.modules[method.__module__].__doc__ or "")
    if source and source[1] not in optimises:
        optimises = f"{optimises.removesuffix('.')} ({source[1]})."
    written = yaml.safe_dump(space, default_flow_style=True, sort_keys=False, width=1000).strip()
    return {
        "method": f"`{name}`",
        "sees": ", ".join(method.Parameters().sees),
        "optimises": optimises,
        "search": f"`{written[1:-1]}`" if space else "",
        "fails": FAILS.findall(text)[0].removeprefix("Fails ").replace("\n", " "),
    }


PAGES = [Page(DOCS / "methods.md", {"methods": table})]

if __name__ == "__main__":
    for page in PAGES:
        page.write()
