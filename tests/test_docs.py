"""Pages that are made from the code say what the code does."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from kohort.broker.apis import served_apis
from kohort.broker.apis._guards import OPEN_TO_ALL
from kohort.protocol import ApiKey
from tests.broker.authorizer.answers import recorded
from tests.scripts import script

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: APIs that ask for no right: they come before anyone is known.
WITHOUT_RIGHTS = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS}

LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#]+)")


GENERATED = re.compile(r"<!-- made by ([\w.]+):(\w+) -->\n(.*?)<!-- end -->", re.DOTALL)


@pytest.mark.parametrize(
    ("page", "module", "function", "part"),
    [
        pytest.param(page, *found.groups(), id=f"{page.name}-{found[2]}")
        for page in PAGES
        for found in GENERATED.finditer(page.read_text())
    ],
)
def test_a_generated_part_says_what_the_code_does(page: Path, module: str, function: str, part: str) -> None:
    found = script(module) if module == "docs_tables" else importlib.import_module(module)
    made = str(getattr(found, function)()).strip()
    shown = re.sub(r"^```mermaid\n(.*)\n```$", r"\1", part.strip(), flags=re.DOTALL)
    assert shown == made, f"docs/{page.name} is not current: run 'make docs'"


def test_the_script_finds_every_generated_part_current() -> None:
    script = ROOT / "scripts" / "generated_docs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def site_pages(nav: Any) -> list[str]:
    """The pages of MkDocs' ``nav``, in their order."""
    if isinstance(nav, str):
        return [nav]
    return [page for each in (nav.values() if isinstance(nav, dict) else nav) for page in site_pages(each)]


def test_every_page_is_in_the_sites_navigation_once() -> None:
    # tags such as !!python/name are for MkDocs
    pages = site_pages(yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"])
    docs = ROOT / "docs"
    assert sorted(pages) == sorted(str(page.relative_to(docs)) for page in docs.rglob("*.md"))


def test_what_the_page_of_the_api_names_is_public() -> None:
    names = [name.rpartition(".") for name in script("api_pages").all_objects()]
    assert len(names) > 30
    assert [name for room, _, name in names if name not in importlib.import_module(room).__all__] == []


#: What stands for the reader's own on a page: a function, a class, a session.
READERS_OWN = {
    "simulation.md": ["TenantAssignor", "overloaded", "make_service", "make_record", "look"],
    "spark.md": ["handle", "newest_of_each_key", "write"],
    "spark-from-kafka-source.md": ["spark"],
    "spark-backfill.md": ["merge", "spark", "write"],
    "spark-sizing.md": ["handle", "spark"],
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_a_page_compiles_and_uses_no_name_that_the_page_does_not_make(
    page: Path, tmp_path: Path
) -> None:
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    for snippet in snippets:
        compile(snippet, page.name, "exec")
    # what one snippet imports and defines stands for those below it
    whole = tmp_path / f"{page.stem.replace('-', '_')}.py"
    whole.write_text("\n\n".join(snippets))
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "F821",
        "--quiet",
    ]
    command += ["--config", f"builtins = {READERS_OWN.get(page.name, [])}"]
    done = subprocess.run([*command, str(whole)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_api_that_is_offered_asks_for_rights() -> None:
    open_ones = {api.key for api in served_apis().values() if api.guard is OPEN_TO_ALL}
    assert open_ones == {api.key for api in served_apis().values() if not api.access} == WITHOUT_RIGHTS


def test_every_error_of_the_table_is_among_the_answers() -> None:
    told = recorded()
    missing = [
        f"{api.key.name}: {access.words}"
        for api in served_apis().values()
        # rights to what a cluster alone serves: tests/broker/metadata/test_controller_client.py
        if not api.private and not api.cluster_only
        for access in api.access
        if access.error is not None and not _told(told, api.key, int(access.error))
    ]
    assert missing == [], (
        "make cases of them in tests/broker/authorizer/cases.py, and have an Apache Kafka answer them: "
        "python -m tests.broker.authorizer.answers API, into answers.txt"
    )


def _told(told: dict[str, list[str]], key: ApiKey, error: int) -> bool:
    return any(
        name.startswith(f"{key.name} ") and any(f"error_code={error}" in line for line in lines)
        for name, lines in told.items()
    )


# --- pages about the code -----------------------------------------------------------------------------------

GUIDES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def files() -> set[str]:
    """Files and folders of the repository, in every way that a page may shorten them: from any folder on."""
    rooms = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    paths = [*ROOT.glob("*.*"), *rooms, *(path for room in rooms for path in room.rglob("*"))]
    found = set()
    for path in paths:
        parts = path.relative_to(ROOT).parts
        found |= {"/".join(parts[at:]) + "/" * path.is_dir() for at in range(len(parts))}
    return found


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_file_that_a_guide_names_exists(page: Path) -> None:
    named = set(re.findall(r"`([\w./]+(?:\.py|\.txt|\.toml|\.md|Request\.json|/))`", page.read_text()))
    assert len(named) > 15
    assert sorted(named - files() - {".venv"}) == []


def test_the_architectures_table_of_the_consumer_names_its_files() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text().split("| file | subject |")[1].split("\n\n")[0]
    named = re.findall(r"`([\w/]+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))
    assert [name for name in named if not list((ROOT / "consumer").glob(f"{name.strip('/')}*"))] == []


def test_the_architectures_picture_has_the_layers_of_the_import_contract() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = page.split("```text\n")[1].split("```")[0].splitlines()
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    (contract,) = [c for c in contracts if c["name"] == "imports point down only"]
    lines = []
    for layer in contract["layers"]:
        rooms = [room.strip().removeprefix("kohort.") for room in layer.split(":")]
        found = [
            [at for at, line in enumerate(picture) if re.search(rf"\b{room}(/|\.py)", line)] for room in rooms
        ]
        assert [room for room, at in zip(rooms, found, strict=True) if len(at) != 1] == []
        lines.append([at for (at,) in found])
    assert all(max(upper) < min(lower) for upper, lower in pairwise(lines))


def test_every_target_of_make_that_a_page_names_is_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "".join(page.read_text() for page in PAGES)
    commands = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    named = {*re.findall(r"`make ([\w-]+)", text), *re.findall(r"^make ([\w-]+)", commands, re.MULTILINE)}
    assert {"check", "test", "docs"} <= named
    assert named - targets == set()
