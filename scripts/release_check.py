"""A dry run of a release with what this machine has: ``make release-check``.

Builds sdist and wheel, looks into them, installs each into empty environments of every supported Python found
here and tries it there (scripts/smoke-test), and builds the image where there is a container engine. Then it
lists what is missing to press the button, and what only the workflow (.github/workflows/publish.yml) can try.
Exits 1 if something failed or is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: What an sdist must have, so that it builds, can be tested, and can be read.
_IN_SDIST = (
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "pyproject.toml",
    "protocol/_native.pyx",
    "docs/index.md",
)
#: What has no business in a wheel.
_NOT_IN_WHEEL = ("kohort/tests/", "kohort/docs/", "kohort/examples/", "kohort/benchmarks/", "kohort/scripts/")
#: Settings of the hosting services, which no script can read.
_BY_HAND = (
    "the index has a (pending) trusted publisher: this repository, publish.yml, environment release",
    "the repository has an environment release, which a person approves",
    "the registry of images lets this repository's workflow write",
)


class Verdict(StrEnum):
    """What came of one point of the list."""

    OK = "ok"
    FAILED = "failed"
    MISSING = "missing"
    ELSEWHERE = "not here"
    BY_HAND = "by hand"


@dataclass(frozen=True)
class Point:
    """One line of the list."""

    verdict: Verdict
    text: str


# --- what the repository says -------------------------------------------------------------------------------


def supported_pythons(project: dict[str, Any]) -> list[str]:
    """The Python versions among the classifiers, such as "3.11"."""
    prefix = "Programming Language :: Python :: 3."
    return [line.rpartition(" ")[2] for line in project["project"]["classifiers"] if line.startswith(prefix)]


def check_version(version: str) -> Point:
    """A release has the version of its tag; any other commit's is a development version."""
    if re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        return Point(Verdict.OK, f"the version is {version}")
    return Point(Verdict.MISSING, f"a tag on this commit, such as v0.1.0: the version is {version}")


def check_changelog(text: str, version: str) -> Point:
    """The changelog's newest heading has the version and a day, no more "unreleased"."""
    heading = next(iter(re.findall(r"^## (.*)$", text, re.MULTILINE)), "")
    if re.fullmatch(r"\S+ \(\d{4}-\d\d-\d\d\)", heading) and heading.split()[0] == version:
        return Point(Verdict.OK, f"CHANGELOG.md begins with {heading}")
    return Point(Verdict.MISSING, f'a version and its day in CHANGELOG.md, which begins with "{heading}"')


def check_links(project: dict[str, Any]) -> Point:
    """The index shows where sources and documentation are."""
    if project["project"].get("urls"):
        return Point(Verdict.OK, "pyproject.toml has the project's addresses")
    return Point(Verdict.MISSING, "[project.urls] in pyproject.toml: sources, documentation, changelog")


def check_tree(status: str) -> Point:
    """What is built is what is committed."""
    if not status.strip():
        return Point(Verdict.OK, "everything is committed")
    return Point(Verdict.MISSING, f"a commit: {len(status.splitlines())} files differ from it")


# --- what was built -----------------------------------------------------------------------------------------


def check_sdist(names: Iterable[str]) -> Point:
    """An sdist has what builds, tests and explains it."""
    inside = {name.partition("/")[2] for name in names}
    lost = [name for name in _IN_SDIST if name not in inside]
    if lost:
        return Point(Verdict.FAILED, f"the sdist has no {', '.join(lost)}")
    return Point(Verdict.OK, f"the sdist has what it needs ({len(inside)} files)")


def check_wheel(names: Iterable[str], compiled: Iterable[str]) -> Point:
    """A wheel has every compiled part and nothing that does not ship."""
    inside = list(names)
    extra = sorted({part for part in _NOT_IN_WHEEL for name in inside if name.startswith(part)})
    lost = [
        module
        for module in compiled
        if not any(re.match(rf"{module.replace('.', '/')}\..*\.(so|pyd)$", name) for name in inside)
    ]
    if extra or lost:
        return Point(Verdict.FAILED, f"the wheel has {extra or 'nothing'} too much, and no {lost or 'gap'}")
    return Point(Verdict.OK, f"the wheel has its compiled parts, and no tests ({len(inside)} files)")


def _members(package: Path) -> list[str]:
    if package.suffix == ".whl":
        return zipfile.ZipFile(package).namelist()
    with tarfile.open(package) as archive:
        return archive.getnames()


# --- running ------------------------------------------------------------------------------------------------


def _try(text: str, command: Sequence[str | Path], **environment: str) -> Point:
    """Run a command; its output is shown only if it fails."""
    print(f"... {text}", flush=True)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode == 0:
        return Point(Verdict.OK, text)
    print(done.stdout[-4000:])
    return Point(Verdict.FAILED, f"{text}: exit code {done.returncode}, output above")


def _build(folder: Path) -> list[Point]:
    shutil.rmtree(folder, ignore_errors=True)
    # of a clone: it has what is committed, and leaves nothing beside the sources
    with tempfile.TemporaryDirectory() as clone:
        _output("git", "clone", "--quiet", "--shared", str(ROOT), clone)
        build = [sys.executable, "-m", "build", "--outdir", folder, clone]
        built = _try("sdist and wheel are built of what is committed", build)
    if built.verdict is not Verdict.OK:
        return [built]
    twine = [sys.executable, "-m", "twine", "check", "--strict", *sorted(folder.iterdir())]
    return [built, _try("the index can show the description", twine)]


def find_python(version: str) -> str | None:
    """The path of a Python of this version that runs: a version manager's stand-in may not."""
    python = shutil.which(f"python{version}")
    if python and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
        return python
    return None


def _install(wheel: Path, sdist: Path, versions: Sequence[str]) -> list[Point]:
    """Try the wheel on the Python that it was built for, and the sdist, which compiles itself, on all."""
    points = []
    for version in versions:
        python = find_python(version)
        if python is None:
            points.append(Point(Verdict.ELSEWHERE, f"Python {version}: none on this machine"))
            continue
        fits = f"cp{version.replace('.', '')}-" in wheel.name
        for package in [wheel, sdist] if fits else [sdist]:
            text = f"Python {version}: {package.name} installs, and a broker, a producer and a consumer run"
            points.append(_try(text, [ROOT / "scripts" / "smoke-test", package], PYTHON=python))
    return points


def _sbom(wheel: Path) -> Point:
    """What the wheel installs can be listed, as the workflow does."""
    with tempfile.TemporaryDirectory() as folder:
        python, listed = Path(folder) / "venv" / "bin" / "python", Path(folder) / "kohort.cdx.json"
        steps = (
            [sys.executable, "-m", "venv", "--without-pip", Path(folder) / "venv"],
            [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel],
            [sys.executable, "-m", "cyclonedx_py", "environment", python, "--output-file", listed],
        )
        for step in steps:
            point = _try("the SBOM is made", step)
            if point.verdict is not Verdict.OK:
                return point
        return check_sbom(listed.read_text())


def check_sbom(text: str) -> Point:
    """An SBOM names kohort and what it needs, each with its version."""
    versions = {part["name"]: part.get("version") for part in json.loads(text).get("components", ())}
    if versions.get("kohort") and all(versions.values()) and len(versions) > 1:
        return Point(Verdict.OK, f"the SBOM names kohort and {len(versions) - 1} other packages")
    return Point(Verdict.FAILED, f"the SBOM names only {versions}")


def _image(folder: Path) -> Point:
    engine = shutil.which("podman") or shutil.which("docker")
    if engine is None or subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
        return Point(Verdict.ELSEWHERE, "the image: no container engine runs on this machine")
    if folder != ROOT / "dist":
        return Point(Verdict.ELSEWHERE, "the image: it is built from dist/ only")
    return _try("the image is built", [engine, "build", "-f", "Containerfile", "-t", "kohort:check", "."])


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def release_points(folder: Path) -> list[Point]:
    """Do the dry run, with what it builds in ``folder``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    points = [check_tree(_output("git", "status", "--porcelain")), *_build(folder)]
    if any(point.verdict is Verdict.FAILED for point in points):
        return points
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    compiled = [module["name"] for module in project["tool"]["setuptools"]["ext-modules"]]
    return [
        *points,
        check_version(version),
        check_changelog((ROOT / "CHANGELOG.md").read_text(), version),
        check_links(project),
        check_sdist(_members(sdist)),
        check_wheel(_members(wheel), compiled),
        *_install(wheel, sdist, supported_pythons(project)),
        _sbom(wheel),
        _image(folder),
        Point(Verdict.ELSEWHERE, "wheels for other machines, attestations: run the workflow by hand"),
        *(Point(Verdict.BY_HAND, text) for text in _BY_HAND),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the list, worst first."""
    parser = argparse.ArgumentParser(description="A dry run of a release; says what is missing.")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="for what is built (dist/)")
    points = release_points(parser.parse_args(arguments).folder.resolve())
    order = [Verdict.FAILED, Verdict.MISSING, Verdict.BY_HAND, Verdict.ELSEWHERE, Verdict.OK]
    print()
    for point in sorted(points, key=lambda point: order.index(point.verdict)):
        print(f"{point.verdict:8}  {point.text}")
    open_points = [point for point in points if point.verdict in (Verdict.FAILED, Verdict.MISSING)]
    print(f"\n{len(open_points)} to do before a release" if open_points else "\nnothing here is in the way")
    return 1 if open_points else 0


if __name__ == "__main__":
    sys.exit(main())
