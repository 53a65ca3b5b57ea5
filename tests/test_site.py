"""The site's API pages (scripts/api_pages.py, site_hook.py) and the plain edition (plain_edition.py)."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scripts import ROOT, script

api_pages = script("api_pages")
hook = script("site_hook")
edition = script("plain_edition")
DOCS = ROOT / "docs"
NAV = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]


def found(name: str) -> Any:
    package, _, short = name.rpartition(".")
    return getattr(importlib.import_module(package), short)


def test_every_name_of_the_api_page_leads_to_a_page_of_its_own() -> None:
    linked = hook.link_objects((DOCS / "api.md").read_text())
    pages = re.findall(r"^\| \[`kohort[\w.]+`\]\(([^)]+)\)", linked, re.MULTILINE)
    assert pages == [api_pages.page_of(name) for name in api_pages.all_objects()]
    assert len(set(pages)) == len(pages) > 50


@pytest.mark.parametrize(
    ("name", "hidden"), [(n, h) for n, each in api_pages.NOT_FOR_USERS.items() for h in sorted(each)]
)
def test_a_member_for_other_packages_exists_and_its_objects_page_leaves_it_out(
    name: str, hidden: str
) -> None:
    assert hasattr(found(name), hidden)
    (filters,) = re.findall(r"filters: (\[.*\])", api_pages.source_of(name))
    patterns = [pattern.removeprefix("!") for pattern in yaml.safe_load(filters)]
    assert any(re.search(pattern, hidden) for pattern in patterns)
    assert not any(re.search(pattern, f"{hidden}_more") for pattern in patterns)


def test_what_a_consumer_offers_has_no_helper_of_its_services() -> None:
    listed = {
        name
        for name in dir(found("kohort.consumer.AsyncGroupConsumer"))
        if not name.startswith("_")
        and name not in api_pages.NOT_FOR_USERS["kohort.consumer.AsyncGroupConsumer"]
    }
    assert {"done", "commit", "getmany", "subscribe", "close"} <= listed
    assert listed & {"parts", "next_run", "done_marked", "close_by", "decoder", "drain"} == set()


@pytest.mark.parametrize(
    "name",
    [
        *(f"kohort.consumer.{each}" for each in ("AsyncGroupConsumer", "GroupConsumer")),
        *(f"kohort.consumer.{each}" for each in ("ShareConsumer", "BlockingShareConsumer")),
        *(f"kohort.service.{each}" for each in ("ConsumerService", "Services")),
        *(f"kohort.producer.{each}" for each in ("Producer", "BlockingProducer")),
    ],
)
def test_a_page_explains_each_member_that_is_listed_and_the_others_are_for_other_packages(name: str) -> None:
    pages = [page.read_text() for page in DOCS.rglob("*.md") if page.name != "api.md"]
    explained = set(re.findall(r"\w+", "".join([*pages, (ROOT / "README.md").read_text()])))
    members = {member for member in dir(found(name)) if not member.startswith("_")}
    assert sorted(members - explained - set(api_pages.NOT_FOR_USERS.get(name, ()))) == []


def test_the_plain_edition_has_every_page_once_and_each_with_a_line(tmp_path: Path) -> None:
    edition.write(DOCS, NAV, tmp_path)
    pages = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    index = (tmp_path / "llms.txt").read_text()
    assert sorted(re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", index, re.MULTILINE)) == pages
    assert sorted(str(page.relative_to(tmp_path)) for page in tmp_path.rglob("*.md")) == pages
    assert index.startswith("# kohort\n\n> Kafka consumer groups in Python")
    whole = (tmp_path / "llms-full.txt").read_text()
    assert [page for page in pages if f"<!-- {page} -->" not in whole] == []
    assert "<!-- made by" not in whole


def test_a_pages_line_is_its_first_sentence_without_links_and_code() -> None:
    text = "# Queues\n\n```sh\nRun it.\n```\n\nA [share group](x.md) reads\ntopics. Then more.\n"
    assert edition.title_and_summary(text) == ("Queues", "A share group reads topics.")
