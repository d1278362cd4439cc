"""Clones of a project in different folders give the same bytes."""

from pathlib import Path

import pytest

from tests.project import Project

DATED = ("manifests", "report.html")  # they have times and the command
OTHERS = ("diabetes_continuous", "biased_digits", "digits_extend", "digits_imbalanced")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder that is not dated."""
    files = (path for path in folder.rglob("*") if path.is_file())
    contents = {path.relative_to(folder): path.read_bytes() for path in files}
    return {
        str(path): content for path, content in contents.items() if not {*DATED} & {*path.parts}
    }


@pytest.mark.slow
def test_every_file_of_a_run_is_the_same_bytes_in_another_folder(tmp_path):
    made = []
    for name in ("one", "deeper/two"):
        project = Project.copied_to(tmp_path / name)
        project.configure("smoke/experiment.yml", {"datasets": dict.fromkeys(OTHERS)})
        project.kedro("run", "--env=smoke", "--run-id=same")
        made.append(contents(tmp_path / name / "data"))
    assert made[0].keys() == made[1].keys()
    assert [name for name in made[0] if made[0][name] != made[1][name]] == []
    assert any(name.startswith("02_samples/generated_scenes") for name in made[0])
