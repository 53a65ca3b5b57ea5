"""Shared by every test: pytest must not import the repo root as a package of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


class _RootIsNoPackage:
    """The root's ``__init__.py`` is ``kohort``; collected as a package it would be imported a second time."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_RootIsNoPackage(), "kohort-root-is-no-package")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bootstrap",
        metavar="HOST:PORT",
        default=None,
        help="run end-to-end tests against this cluster (an Apache Kafka, say), not the embedded broker",
    )
