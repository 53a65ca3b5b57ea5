"""Pages that are made from the code say what the code does."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.broker.apis import served_apis
from kohort.broker.apis._guards import open_to_all
from kohort.protocol import ApiKey
from tests.broker.authorizer.answers import recorded

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

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
    made = str(getattr(importlib.import_module(module), function)()).strip()
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


#: What stands for the reader's own on a page: a function, a class, a session.
READERS_OWN = {
    "service.md": ["Database", "Settings"],
    "simulation.md": ["TenantAssignor", "overloaded", "make_service", "make_record", "look"],
    "spark.md": ["handle", "newest_of_each_key", "write"],
    "spark-from-kafka-source.md": ["spark"],
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
    open_ones = {api.key for api in served_apis().values() if api.guard is open_to_all}
    assert open_ones == {api.key for api in served_apis().values() if not api.access} == WITHOUT_RIGHTS


def test_every_error_of_the_table_is_among_the_answers() -> None:
    told = recorded()
    missing = [
        f"{api.key.name}: {access.words}"
        for api in served_apis().values()
        if not api.private
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
