"""Print the licences of the packages of a CycloneDX file as a Markdown table, one row a licence.

python -m tools.licences build/sbom.json
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UNKNOWN = "not stated in the package's metadata"


def licence(component: Mapping[str, Any]) -> str:
    """All licences that a package declares: expressions, SPDX ids and trove classifiers."""
    licences = []
    for declared in component.get("licenses", []):
        named = declared.get("license", {})
        licences.append(declared.get("expression") or named.get("id") or named.get("name"))
    return "; ".join(dict.fromkeys(licences)) or UNKNOWN


def main() -> None:
    """Print the table."""
    packages = defaultdict(list)
    for component in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["components"]:
        packages[licence(component)].append(f"{component['name']} {component['version']}")
    print("| licence | packages |\n|---|---|")
    for name, used in sorted(packages.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"| {name} | {', '.join(sorted(used))} |")


if __name__ == "__main__":
    main()
