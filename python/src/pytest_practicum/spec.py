"""What the fixtures give: eval files that are marked with and run, by the program."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional, Sequence, Union

from .program import PracticumError, Program
from .results import BlindComparison, Graded, Run

AnyPath = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class InputFile:
    """A file that a case puts into the agent's room."""

    case: str
    source: Path
    #: Where it is put, seen from the room's root.
    to: str


@dataclass(frozen=True)
class Grader:
    """Marks texts against eval files."""

    program: Program
    #: What relative paths are seen from.
    base: Path

    def __call__(
        self,
        spec: AnyPath,
        output: str,
        *,
        case: Optional[str] = None,
        judge: bool = False,
        script: Optional[AnyPath] = None,
        gates: Optional[Mapping[str, float]] = None,
        arguments: Sequence[str] = (),
    ) -> Graded:
        """Judged checks are asked only with `judge`, which costs money unless a script answers."""
        asked = ["grade", "--output", "-", "--spec", str(self.base / spec)]
        asked += _option("--case", case) + (["--judge"] if judge else [])
        asked += _path_option("--script", self.base, script) + _gates(gates)
        return Graded.of(self.program.ask([*asked, *arguments], stdin=output))


@dataclass(frozen=True)
class Examiner:
    """Runs eval files with an agent."""

    program: Program
    #: What relative paths are seen from.
    base: Path

    def run(
        self,
        path: AnyPath,
        *,
        skill: Optional[AnyPath] = None,
        case: Optional[str] = None,
        only: Optional[str] = None,
        agent: Optional[str] = None,
        model: Optional[str] = None,
        repeat: Optional[int] = None,
        script: Optional[AnyPath] = None,
        replay: Optional[AnyPath] = None,
        max_cost: Optional[float] = None,
        gates: Optional[Mapping[str, float]] = None,
        arguments: Sequence[str] = (),
    ) -> Run:
        """Costs money unless a script (also one that the eval file names) or a replay answers in
        place of the model. `arguments` are further ones of `practicum run`."""
        asked = ["run", str(self.base / path)]
        asked += _path_option("--skill", self.base, skill) + _option("--case", case)
        asked += _option("--only", only) + _option("--agent", agent) + _option("--model", model)
        asked += _option("--repeat", repeat) + _option("--max-cost", max_cost) + _gates(gates)
        asked += _path_option("--script", self.base, script)
        asked += _path_option("--replay", self.base, replay)
        return Run.of(self.program.ask([*asked, *arguments]))


@dataclass(frozen=True)
class Triggers:
    """Runs only the cases that check whether skills are activated, and no other checks."""

    examiner: Examiner

    def __call__(
        self,
        path: AnyPath,
        *,
        skill: Optional[AnyPath] = None,
        case: Optional[str] = None,
        agent: Optional[str] = None,
        model: Optional[str] = None,
        repeat: Optional[int] = None,
        script: Optional[AnyPath] = None,
        replay: Optional[AnyPath] = None,
        max_cost: Optional[float] = None,
        gates: Optional[Mapping[str, float]] = None,
        arguments: Sequence[str] = (),
    ) -> Run:
        """As `Spec.run`. A format without gates of its own fails nothing: give `gates`, as
        `{"recall": 0.9}`, or look at the result's `activation`."""
        return self.examiner.run(
            path,
            skill=skill,
            case=case,
            only="activation",
            agent=agent,
            model=model,
            repeat=repeat,
            script=script,
            replay=replay,
            max_cost=max_cost,
            gates=gates,
            arguments=arguments,
        )


@dataclass(frozen=True)
class BlindCompare:
    """Has a judge say which of two outputs is better, without telling it whose they are."""

    program: Program
    #: What relative paths are seen from.
    base: Path
    #: Where texts are written down to be compared.
    folder: Path

    def __call__(
        self,
        first: Union[str, Path],
        second: Union[str, Path],
        *,
        spec: Optional[AnyPath] = None,
        case: Optional[str] = None,
        request: Optional[str] = None,
        seed: Optional[int] = None,
        script: Optional[AnyPath] = None,
        max_cost: Optional[float] = None,
        arguments: Sequence[str] = (),
    ) -> BlindComparison:
        """A `str` is an output itself; a `Path` is a file with one, or a folder with several, which are
        paired by their names. With `spec` the outputs are compared by what its case asks for and has
        judged; else by `request`. Every pair is judged twice, in both orders. It costs money unless a
        script answers in place of the judge."""
        sides = [self._side("first", first), self._side("second", second)]
        asked = ["compare", *sides, "--blind", f"--project={self.base}"]
        asked += _path_option("--spec", self.base, spec) + _option("--case", case)
        asked += _option("--request", request) + _option("--seed", seed)
        asked += _path_option("--script", self.base, script) + _option("--max-cost", max_cost)
        return BlindComparison.of(self.program.ask([*asked, *arguments]))

    def _side(self, name: str, output: Union[str, Path]) -> str:
        if isinstance(output, Path):
            return str(self.base / output)
        path = self.folder / f"{name}.txt"
        path.write_text(output, encoding="utf-8")
        return str(path)


@dataclass(frozen=True)
class Spec:
    """An eval file, or the skill whose evals are meant, with its input files in `folder`."""

    examiner: Examiner
    path: Path
    skill: Optional[Path]
    case: Optional[str]
    #: Where the input files are.
    folder: Path
    input_files: tuple[InputFile, ...]

    @classmethod
    def load(
        cls,
        examiner: Examiner,
        path: AnyPath,
        folder: Path,
        skill: Optional[AnyPath] = None,
        case: Optional[str] = None,
    ) -> Spec:
        whole = examiner.base / path
        about = None if skill is None else examiner.base / skill
        listed = examiner.program.ask(["list", str(whole), *_option("--skill", about)]).document
        cases = [one for suite in listed["suites"] for one in suite["cases"]]
        chosen = [one for one in cases if case is None or _matches(case, one["id"])]
        if not chosen:
            known = ", ".join(one["id"] for one in cases) or "none"
            raise PracticumError(f"{whole} has no case {case or ''}; there are: {known}")
        files = tuple(
            InputFile(one["id"], Path(file["from"]), file["to"])
            for one in chosen
            for file in one["files"]
        )
        _stage(files, folder)
        return cls(examiner, whole, about, case, folder, files)

    def grade(
        self,
        output: str,
        *,
        judge: bool = False,
        script: Optional[AnyPath] = None,
        gates: Optional[Mapping[str, float]] = None,
        arguments: Sequence[str] = (),
    ) -> Graded:
        """Marks a text with what a text can answer. Judged checks are asked only with `judge`."""
        grader = Grader(self.examiner.program, self.examiner.base)
        return grader(
            self.path,
            output,
            case=self.case,
            judge=judge,
            script=script,
            gates=gates,
            arguments=arguments,
        )

    def run(
        self,
        *,
        only: Optional[str] = None,
        agent: Optional[str] = None,
        model: Optional[str] = None,
        repeat: Optional[int] = None,
        script: Optional[AnyPath] = None,
        replay: Optional[AnyPath] = None,
        max_cost: Optional[float] = None,
        gates: Optional[Mapping[str, float]] = None,
        arguments: Sequence[str] = (),
    ) -> Run:
        """Lets an agent work on the cases, each in a clean room of its own. It costs money unless a
        script (also one that the eval file names) or a replay answers in place of the model."""
        return self.examiner.run(
            self.path,
            skill=self.skill,
            case=self.case,
            only=only,
            agent=agent,
            model=model,
            repeat=repeat,
            script=script,
            replay=replay,
            max_cost=max_cost,
            gates=gates,
            arguments=arguments,
        )


def _stage(files: Sequence[InputFile], folder: Path) -> None:
    """Copies, so that a test that writes to an input changes nothing but its own folder."""
    sources: dict[str, InputFile] = {}
    for file in files:
        first = sources.setdefault(file.to, file)
        if first.source != file.source:
            raise PracticumError(
                f"the cases {first.case} and {file.case} want different files as {file.to};"
                " say which case is meant with case=…"
            )
    for to, file in sources.items():
        target = folder / to
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if file.source.is_dir():
                shutil.copytree(file.source, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(file.source, target)
        except OSError as error:
            raise PracticumError(f"the input file {file.source} cannot be staged: {error}") from error


def _matches(glob: str, id: str) -> bool:
    """As the program does it: only * and ? are wildcards."""
    pattern = re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(pattern, id, re.DOTALL) is not None


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [f"{name}={value}"]


def _path_option(name: str, base: Path, path: Optional[AnyPath]) -> list[str]:
    return [] if path is None else [f"{name}={base / path}"]


def _gates(gates: Optional[Mapping[str, float]]) -> list[str]:
    return [f"--gate={name}={value}" for name, value in (gates or {}).items()]
