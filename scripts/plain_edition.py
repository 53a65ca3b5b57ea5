"""The documentation in plain Markdown, for readers without a browser and for language models.

    python scripts/plain_edition.py FOLDER

writes each page as it is in docs/, ``llms.txt`` (https://llmstxt.org: every page, with its first sentence),
and ``llms-full.txt``, all pages in one file. ``make site`` does the same into the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def chapters(nav: Any, chapter: str = "Overview") -> Iterator[tuple[str, str]]:
    """Each page of MkDocs' ``nav`` with its chapter, in their order."""
    for entry in nav:
        if isinstance(entry, str):
            yield chapter, entry
        else:
            for name, below in entry.items():
                # a chapter within a chapter is part of it
                yield from chapters(below, name if chapter == "Overview" else chapter)


def plain(text: str) -> str:
    """A page without the comments that mark generated parts."""
    return _COMMENT.sub("", text)


def title_and_summary(text: str) -> tuple[str, str]:
    """The heading of a page, and the first sentence below it, without its links."""
    title, _, body = plain(text).partition("\n")
    prose = [part for part in _FENCE.sub("", body).split("\n\n") if re.match(r"\s*[A-Z`*\[]", part)]
    paragraph = " ".join(prose[0].split()) if prose else ""
    paragraph = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", paragraph)
    return title.removeprefix("# ").strip(), re.split(r"(?<=\.)\s", paragraph)[0].rstrip(":")


def index(docs: Path, nav: Any) -> str:
    """The text of ``llms.txt``: the project in a sentence, and every page by chapter."""
    pages = list(chapters(nav))
    title, summary = title_and_summary((docs / "index.md").read_text())
    lines = [f"# {title}", "", f"> {summary}"]
    chapter = ""
    for named, page in pages:
        if named != chapter:
            chapter = named
            lines += ["", f"## {chapter}", ""]
        heading, about = title_and_summary((docs / page).read_text())
        lines.append(f"- [{heading}]({page}): {about}" if about else f"- [{heading}]({page})")
    return "\n".join(lines) + "\n"


def write(docs: Path, nav: Any, folder: Path) -> None:
    """Write the edition into ``folder``."""
    pages = [page for _, page in chapters(nav)]
    for page in pages:
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(plain((docs / page).read_text()))
    (folder / "llms.txt").write_text(index(docs, nav))
    whole = (f"<!-- {page} -->\n\n{plain((docs / page).read_text()).strip()}\n" for page in pages)
    (folder / "llms-full.txt").write_text("\n\n".join(whole))


def main() -> None:
    """Write the edition into the folder that the command line names."""
    import yaml

    nav = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]
    write(ROOT / "docs", nav, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
