"""Everything names its source, and a run prints those of what it used."""

import re

import pytest
from click.testing import CliRunner

from robust_fairness.bench.citations import (
    UNKNOWN,
    bibliography,
    bibtex,
    entries,
    known,
    source_of,
    sources,
)
from robust_fairness.cli.commands import cli
from robust_fairness.core import registry
from robust_fairness.metrics import metric_names
from robust_fairness.runs import provenance

NAMES = {kind: registry.names(kind) for kind in registry.PACKAGES} | {"metric": metric_names()}


@pytest.mark.parametrize("kind", NAMES)
def test_everything_that_is_registered_names_its_source_or_says_why_there_is_none(kind):
    """A new file needs a line in citations.csv."""
    cited = [source_of(kind, name) for name in NAMES[kind]]
    assert [source.name for source in cited if source.note == UNKNOWN] == []
    assert [source.name for source in cited if not source.keys and not source.note] == []


def test_every_key_has_an_entry_and_every_entry_a_thing():
    """Nothing dangles, nothing is noted twice."""
    keys = {key for row in known().values() for key in row.keys}
    assert keys == set(entries())
    kinds = {*NAMES, "aggregation", "augmentation", "generator", "procedure"}
    assert {kind for kind, _ in known()} == kinds


def test_a_metric_cites_its_quantity_and_its_aggregation():
    """Its options do not matter."""
    assert source_of("metric", "accuracy_at(alpha=-0.5)").keys == ("shrestha2022investigation",)
    assert source_of("metric", "delta_er_one_shot").keys == ("wang2023how",)
    assert source_of("metric", "delta_eo").keys == ("hardt2016equality", "wang2023how")
    gap = source_of("metric", "recall_at_majority_gap(k=4)")
    assert gap.name == "majority_gap of recall_at"
    assert gap.keys == ("dullerud2022fairness", "jegou2011product")
    assert source_of("metric", "accuracy_by_group") == source_of("metric", "accuracy")
    assert source_of("method", "no_such").note == UNKNOWN


def test_a_run_cites_exactly_what_it_used():
    """No entry more, each once, with the things that it is for; what has none is told."""
    used = {"method": ["erm", "cuma"], "metric": ["delta_er", "accuracy"], "shift": ["extend"]}
    text = bibliography(used)
    assert re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE) == [
        "friedman2024control",
        "wang2023how",
    ]
    assert "% method cuma, metric delta_er\n@article{wang2023how," in text
    assert "% method erm: plain training\n" in text
    assert "% metric accuracy: a share of rows\n" in text
    assert len(sources({"metric": ["accuracy_at(alpha=0)", "accuracy_at(alpha=1)"]})) == 1
    assert bibtex([]) == ""
    assert bibliography({}) == ""


def test_cite_prints_what_a_run_used_and_refuses_what_does_not_tell(tmp_path, monkeypatch):
    """The newest finished run unless one is named; one line where its manifest is older."""
    monkeypatch.chdir(tmp_path)
    told = {"state": "finished", "outputs": {"metrics": {}}}
    new = {**told, "run_id": "new", "started": "2", "used": {"method": ["lff"]}}
    old = {**told, "run_id": "old", "started": "1"}
    for manifest in (new, old):
        provenance.write_manifest(manifest)
    printed = CliRunner().invoke(cli, ["cite"])
    assert printed.exit_code == 0
    assert printed.output == bibliography({"method": ["lff"]})
    assert CliRunner().invoke(cli, ["cite", "new"]).output == printed.output
    for name, message in {"old": "field 'used' is missing", "nwe": "new"}.items():
        refused = CliRunner().invoke(cli, ["cite", name])
        assert refused.exit_code == 1
        assert message in refused.output
        assert refused.output.count("\n") == 1
