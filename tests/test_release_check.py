"""scripts/release_check.py: what it calls missing; the workflow that publishes tries every Python first."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scripts import ROOT, script

check = script("release_check")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = ROOT / ".github" / "workflows"
COMPILED = ["kohort.protocol._native"]


def workflow(name: str) -> Any:
    return yaml.load((WORKFLOWS / name).read_text(), yaml.BaseLoader)


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("0.1.0", "ok"), ("1.0.0rc1", "ok"), ("0.1.0.dev0", "missing"), ("0.1.1.dev3+g1234567", "missing")],
)
def test_a_development_version_is_no_release(version: str, verdict: str) -> None:
    assert check.check_version(version).verdict == verdict


@pytest.mark.parametrize(
    ("heading", "verdict"),
    [("0.1.0 (2026-12-01)", "ok"), ("0.1.0 (unreleased)", "missing"), ("0.0.9 (2026-12-01)", "missing")],
)
def test_the_changelog_has_the_version_and_its_day(heading: str, verdict: str) -> None:
    text = f"# Changelog\n\n## {heading}\n\n## 0.0.1 (2026-01-01)\n"
    assert check.check_changelog(text, "0.1.0").verdict == verdict


def test_what_is_not_committed_is_counted() -> None:
    assert check.check_tree("").verdict == "ok"
    assert "2 files" in check.check_tree(" M cli.py\n?? new.py\n").text


def test_addresses_are_missing_until_the_project_has_some() -> None:
    assert check.check_links({"project": {}}).verdict == "missing"
    assert check.check_links({"project": {"urls": {"Source": "https://example.org"}}}).verdict == "ok"


@pytest.mark.parametrize("name", sorted(path.name for path in WORKFLOWS.glob("*.yml")))
def test_actions_are_pinned_to_a_commit_whose_release_is_named(name: str) -> None:
    used = re.findall(r"uses: (.*)", (WORKFLOWS / name).read_text())
    moving = [each for each in used if not re.match(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)]
    # its maintainers ask for this branch
    assert [each.partition(" ")[0] for each in moving] in ([], ["pypa/gh-action-pypi-publish@release/v1"])


def test_a_wheel_without_a_compiled_part_or_with_tests_fails() -> None:
    whole = ["kohort/cli.py", "kohort/protocol/_native.cpython-311-x86_64-linux-gnu.so"]
    assert check.check_wheel(whole, COMPILED).verdict == "ok"
    assert "kohort.protocol._native" in check.check_wheel(["kohort/cli.py"], COMPILED).text
    failed = check.check_wheel([*whole, "kohort/tests/test_cli.py"], COMPILED)
    assert failed.verdict == "failed"
    assert "kohort/tests/" in failed.text


def test_an_sdist_without_the_source_of_a_compiled_part_fails() -> None:
    names = [f"kohort-0.1.0/{name}" for name in check._IN_SDIST]
    assert check.check_sdist(names).verdict == "ok"
    failed = check.check_sdist([name for name in names if "_native" not in name])
    assert failed.verdict == "failed"
    assert "protocol/_native.pyx" in failed.text


def test_an_sbom_that_leaves_something_out_fails() -> None:
    def sbom(**versions: str) -> str:
        return json.dumps({"components": [{"name": name, "version": at} for name, at in versions.items()]})

    assert check.check_sbom(sbom(kohort="0.1.0", pydantic="2.7")).verdict == "ok"
    for text in ("{}", sbom(pydantic="2.7", rich="13"), sbom(kohort="0.1.0"), sbom(kohort="0.1.0", rich="")):
        assert check.check_sbom(text).verdict == "failed"


def test_a_python_that_only_seems_to_be_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, code in (("3.98", 0), ("3.99", 127)):
        stand_in = tmp_path / f"python{version}"
        stand_in.write_text(f"#!/bin/sh\nexit {code}\n")
        stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check.find_python("3.98") == str(tmp_path / "python3.98")
    assert check.find_python("3.99") is None
    assert check.find_python("3.97") is None


def test_every_supported_python_is_built_and_tried_everywhere() -> None:
    versions = check.supported_pythons(PROJECT)
    assert "3.11" in versions
    built = re.findall(r"cp3(\d+)-", PROJECT["tool"]["cibuildwheel"]["build"])
    assert [f"3.{minor}" for minor in built] == versions
    for name, job in (("publish.yml", "try"), ("ci.yml", "check"), ("ci.yml", "install")):
        assert workflow(name)["jobs"][job]["strategy"]["matrix"]["python"] == versions


def test_nothing_is_published_before_all_was_tried_and_only_at_a_tag() -> None:
    jobs = workflow("publish.yml")["jobs"]
    before = set(jobs) - {"publish", "publish-image"}
    assert before >= {"wheels", "sdist", "try", "image"}
    assert set(jobs["publish"]["needs"]) == before
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert jobs["publish-image"]["needs"] == ["publish"]
    may_write = {name for name, job in jobs.items() if "write" in job.get("permissions", {}).values()}
    assert may_write == {"publish", "publish-image"}
