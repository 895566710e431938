"""Practicum in a pytest suite: eval files marked and run by the `practicum` program."""

from .program import BinaryMissing, PracticumError, Program
from .results import Activation, Case, CheckCount, Gate, Graded, GradedCheck, Interval, Run
from .spec import Grader, InputFile, Spec, Triggers

__all__ = [
    "Activation",
    "BinaryMissing",
    "Case",
    "CheckCount",
    "Gate",
    "Graded",
    "GradedCheck",
    "Grader",
    "InputFile",
    "Interval",
    "PracticumError",
    "Program",
    "Run",
    "Spec",
    "Triggers",
]
