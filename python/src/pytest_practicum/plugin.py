"""The fixtures, and the marker of tests that cost money."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Protocol

import pytest

from .program import Program
from .spec import AnyPath, BlindCompare, Examiner, Grader, Spec, Triggers

MARKER = "practicum_paid"
OPTION = "--practicum-paid"


class LoadSpec(Protocol):
    def __call__(
        self, path: AnyPath, *, skill: Optional[AnyPath] = None, case: Optional[str] = None
    ) -> Spec: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("practicum", "exams of AI-agent skills")
    group.addoption(OPTION, action="store_true", help=f"run the tests marked {MARKER}, which cost money")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}: asks a real model and is skipped without {OPTION};"
        " a run with a script or a replay is not paid and needs no marker",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption(OPTION):
        return
    skip = pytest.mark.skip(reason=f"costs money; {OPTION} runs it")
    for item in items:
        if item.get_closest_marker(MARKER):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def practicum_program() -> Program:
    """The program: PRACTICUM_BIN, else practicum on the PATH."""
    return Program.find()


@pytest.fixture
def _practicum_examiner(practicum_program: Program, request: pytest.FixtureRequest) -> Examiner:
    return Examiner(practicum_program, Path(request.path).parent)


@pytest.fixture
def practicum_spec(_practicum_examiner: Examiner, tmp_path: Path) -> LoadSpec:
    """Loads an eval file, or a skill's evals, and puts its input files into tmp_path.

    Relative paths are seen from the test's folder.
    """

    def load(path: AnyPath, *, skill: Optional[AnyPath] = None, case: Optional[str] = None) -> Spec:
        return Spec.load(_practicum_examiner, path, tmp_path, skill, case)

    return load


@pytest.fixture
def practicum_grader(_practicum_examiner: Examiner) -> Grader:
    """Marks a text against an eval file."""
    return Grader(_practicum_examiner.program, _practicum_examiner.base)


@pytest.fixture
def practicum_blind_compare(
    _practicum_examiner: Examiner, tmp_path_factory: pytest.TempPathFactory
) -> BlindCompare:
    """Has a judge compare two outputs without knowing whose they are."""
    folder = tmp_path_factory.mktemp("compared")
    return BlindCompare(_practicum_examiner.program, _practicum_examiner.base, folder)


@pytest.fixture
def practicum_triggers(_practicum_examiner: Examiner) -> Triggers:
    """Runs only the cases that check whether skills are activated."""
    return Triggers(_practicum_examiner)
