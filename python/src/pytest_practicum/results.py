"""What the program found, as types. "No answer" is None or `not_scored`, never a number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

from .program import Answer

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Gate:
    name: str
    ok: bool
    threshold: float
    #: None when nothing was measured.
    value: Optional[float]

    @classmethod
    def of(cls, document: Document) -> Gate:
        return cls(document["name"], document["ok"], document["threshold"], document["value"])

    def __str__(self) -> str:
        value = "nothing measured" if self.value is None else f"{self.value:.3g}"
        word = "holds" if self.ok else "does not hold"
        return f"gate {self.name}: {value}, {self.threshold:.3g} wanted, {word}"


@dataclass(frozen=True)
class GradedCheck:
    id: str
    #: pass, fail or not_scored
    verdict: str
    score: Optional[float]
    why: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Graded:
    """What was found in a text. True if every gate holds."""

    ok: bool
    #: 0, 1 (a gate failed) or 3 (a required check that was asked has no answer)
    exit: int
    checks: tuple[GradedCheck, ...]
    gates: tuple[Gate, ...]
    stderr: str = field(repr=False)

    @classmethod
    def of(cls, answer: Answer) -> Graded:
        document = answer.document
        checks = tuple(
            GradedCheck(one["id"], one["verdict"], one["score"], one["why"], tuple(one["evidence"]))
            for one in document["results"]
        )
        gates = tuple(Gate.of(one) for one in document["gates"])
        return cls(document["ok"], answer.exit, checks, gates, answer.stderr)

    def __bool__(self) -> bool:
        return self.ok

    def __getitem__(self, id: str) -> GradedCheck:
        for check in self.checks:
            if check.id == id:
                return check
        raise KeyError(f"{id}; there are {', '.join(check.id for check in self.checks)}")

    @property
    def failed(self) -> tuple[GradedCheck, ...]:
        return self._having("fail")

    @property
    def not_scored(self) -> tuple[GradedCheck, ...]:
        return self._having("not_scored")

    def _having(self, verdict: str) -> tuple[GradedCheck, ...]:
        return tuple(check for check in self.checks if check.verdict == verdict)

    def __str__(self) -> str:
        checks = [f"{check.verdict} {check.id}: {check.why}" for check in self.checks]
        return "\n".join([*checks, *map(str, self.gates)])

    def assert_passes(self) -> None:
        """Fails the test, with what every check found, unless every gate holds."""
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError(f"the text does not pass\n{self}")


@dataclass(frozen=True)
class Interval:
    """An estimate with its ends, from `n` runs; None where nothing was measured."""

    value: Optional[float]
    low: Optional[float]
    high: Optional[float]
    n: int

    @classmethod
    def of(cls, document: Optional[Document]) -> Optional[Interval]:
        if document is None:
            return None
        return cls(document["value"], document["low"], document["high"], document["n"])


@dataclass(frozen=True)
class BlindCase:
    """A pair of outputs, judged in both orders."""

    case: str
    #: first, second, tie (the two orders contradict each other) or not_compared
    outcome: str


@dataclass(frozen=True)
class BlindComparison:
    """Two sides, judged by a model that does not know whose output is whose. True if the second is not
    worse: it lost no more pairs than it won, and every pair was compared."""

    #: How many pairs the second won and lost, and in how many neither did.
    wins: int
    losses: int
    ties: int
    not_compared: int
    #: What may be said of the second beyond chance: better, worse, equivalent or inconclusive. One pair
    #: says nothing beyond chance.
    verdict: str
    win_rate: Interval
    cases: tuple[BlindCase, ...]
    cost_usd: Optional[float]
    #: 0, 1 (the second is worse beyond chance) or 3 (a pair was not compared)
    exit: int
    document: Document = field(repr=False)
    stderr: str = field(repr=False)

    @classmethod
    def of(cls, answer: Answer) -> BlindComparison:
        document = answer.document
        counts = (document[key] for key in ("wins", "losses", "ties", "not_compared"))
        cases = tuple(BlindCase(one["case"], one["outcome"]) for one in document["cases"])
        win_rate = Interval.of(document["win_rate"]) or Interval(None, None, None, 0)
        return cls(
            *counts,
            document["verdict"],
            win_rate,
            cases,
            document["cost_usd"],
            answer.exit,
            document,
            answer.stderr,
        )

    def __bool__(self) -> bool:
        return self.not_compared == 0 and self.losses <= self.wins

    @property
    def winner(self) -> Optional[str]:
        """first, second or tie; None where a pair was not compared."""
        if self.not_compared:
            return None
        if self.wins == self.losses:
            return "tie"
        return "second" if self.wins > self.losses else "first"

    def __str__(self) -> str:
        cases = [f"{one.case}: {one.outcome.replace('_', ' ')}" for one in self.cases]
        told = f"{self.wins} won, {self.losses} lost, {self.ties} ties, {self.not_compared} not compared"
        return "\n".join([*cases, f"the second: {told}; {self.verdict}"])

    def assert_not_worse(self) -> None:
        """Fails the test, with what was found of every pair, if the second lost more than it won, or if
        a pair was not compared."""
        __tracebackhide__ = True
        if not self:
            why = f"\n{self.stderr}" if self.not_compared else ""
            raise AssertionError(f"the second is not shown to be as good\n{self}{why}")


@dataclass(frozen=True)
class Activation:
    """The rates of right and wrong activations of a skill."""

    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int
    precision: Optional[Interval]
    recall: Optional[Interval]
    f1: Optional[Interval]
    accuracy: Optional[Interval]

    @classmethod
    def of(cls, document: Optional[Document]) -> Optional[Activation]:
        if document is None:
            return None
        counts = (document[key] for key in ("tp", "fp", "tn", "fn"))
        rates = (Interval.of(document[key]) for key in ("precision", "recall", "f1", "accuracy"))
        return cls(*counts, *rates)


@dataclass(frozen=True)
class CheckCount:
    id: str
    passed: int
    failed: int
    not_scored: int


@dataclass(frozen=True)
class Case:
    """The trials of one case with one agent in one arm."""

    id: str
    suite: str
    agent: str
    arm: str
    passed: int
    failed: int
    not_scored: int
    #: The number of trials in which the skill was activated, and in which it was not. Unknown trials are in neither.
    fired: int
    quiet: int
    fire_rate: Optional[Interval]
    checks: tuple[CheckCount, ...]

    @classmethod
    def of(cls, document: Document) -> Case:
        counts = (document[key] for key in ("passed", "failed", "not_scored"))
        fired = document["fired"]
        checks = tuple(
            CheckCount(one["id"], one["passed"], one["failed"], one["not_scored"])
            for one in document["checks"]
        )
        names = (document[key] for key in ("id", "suite", "agent", "arm"))
        rate = Interval.of(document.get("fire_rate"))
        return cls(*names, *counts, fired["yes"], fired["no"], rate, checks)

    def __str__(self) -> str:
        text = f"{self.id} ({self.agent}, {self.arm}): {self.passed} passed"
        for count, word in [(self.failed, "failed"), (self.not_scored, "not scored")]:
            if count:
                text += f", {count} {word}"
        wanting = ", ".join(check.id for check in self.checks if check.failed)
        return f"{text} ({wanting})" if wanting else text


@dataclass(frozen=True)
class Run:
    """What a run came to. True if it was completed and every gate holds."""

    id: str
    ok: bool
    #: 0, 1 (a gate failed), 3 (not completed), 4 (budget used up) or 130 (interrupted)
    exit: int
    trials: int
    passed: int
    failed: int
    not_scored: int
    #: None where nobody knows, which is not 0.
    cost_usd: Optional[float]
    cases: tuple[Case, ...]
    gates: tuple[Gate, ...]
    #: None if no case checks whether the skill is activated.
    activation: Optional[Activation]
    #: Everything, as `practicum schema` describes it.
    document: Document = field(repr=False)
    stderr: str = field(repr=False)

    @classmethod
    def of(cls, answer: Answer) -> Run:
        document = answer.document
        totals = (document["totals"][key] for key in ("trials", "passed", "failed", "not_scored"))
        cases = tuple(Case.of(one) for one in document["cases"])
        gates = tuple(Gate.of(one) for one in document["gates"])
        return cls(
            document["run"],
            document["ok"],
            answer.exit,
            *totals,
            document["cost_usd"],
            cases,
            gates,
            Activation.of(document.get("activation")),
            document,
            answer.stderr,
        )

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        head = f"run {self.id}, exit code {self.exit}"
        return "\n".join([head, *map(str, self.cases), *map(str, self.gates)])

    def assert_passes(self) -> None:
        """Fails the test, with what every case came to, unless every gate holds."""
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError(f"the evals did not pass\n{self}\n{self.stderr}")
