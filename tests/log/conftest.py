"""Apache Kafka's own data folder, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent.parent / "data" / "kafka-data-folder"


@pytest.fixture
def kafka_folder(tmp_path: Path) -> Path:
    """A fresh copy of the data folder that Apache Kafka 4.3.1 wrote."""
    folder = tmp_path / "kafka"
    with tarfile.open(DATA / "data.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder
