"""The `practicum` program: where it is, and what it answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

VARIABLE = "PRACTICUM_BIN"
SCHEMA_VERSION = 1


class PracticumError(Exception):
    """The program gave no document that could be used."""


class BinaryMissing(PracticumError):
    """There is no `practicum` on this machine."""


@dataclass(frozen=True)
class Answer:
    """What the program printed with --json."""

    document: Mapping[str, Any]
    exit: int
    stderr: str


@dataclass(frozen=True)
class Program:
    path: Path

    @classmethod
    def find(cls, environment: Optional[Mapping[str, str]] = None) -> Program:
        """That which PRACTICUM_BIN names, else the first on the PATH."""
        environment = os.environ if environment is None else environment
        named = environment.get(VARIABLE)
        if named:
            found = shutil.which(str(Path(named).absolute()))
            if found is None:
                raise BinaryMissing(f"{VARIABLE} is {named}, which is no program that can be run")
            return cls(Path(found))
        found = shutil.which("practicum", path=environment.get("PATH"))
        if found is None:
            raise BinaryMissing(
                f"there is no practicum on the PATH; install it, or let {VARIABLE} say where it is"
            )
        return cls(Path(found).absolute())

    def ask(self, arguments: Sequence[str], stdin: str = "") -> Answer:
        """Runs a command with --json. What was found wanting is an answer; what could not be asked
        (exit code 2) is an error."""
        command = [str(self.path), *arguments, "--json"]
        ran = subprocess.run(command, input=stdin.encode(), capture_output=True, check=False)
        stderr = ran.stderr.decode(errors="replace")
        told = f"{' '.join(command)}\nended with exit code {ran.returncode} and said:\n{stderr}"
        if ran.returncode == 2:
            raise PracticumError(told)
        try:
            document = json.loads(ran.stdout)
        except ValueError:
            raise PracticumError(f"{told}(standard output was no JSON document)") from None
        version = document.get("schema_version")
        if version != SCHEMA_VERSION:
            raise PracticumError(
                f"{self.path} writes documents of version {version}, and this plugin reads"
                f" {SCHEMA_VERSION}; install the two in versions that belong together"
            )
        return Answer(document, ran.returncode, stderr)
