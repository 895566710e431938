from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a copy of the examples, so that no record is left in this checkout, in which
    tests run as a user's would."""
    source = Path(__file__).parents[1] / "src"
    monkeypatch.setenv("PYTHONPATH", str(source))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest_practicum.plugin")
    shutil.copytree(EXAMPLES, pytester.path / "examples")
    return pytester
