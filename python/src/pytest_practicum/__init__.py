"""Practicum in a pytest suite: eval files marked and run by the `practicum` program."""

from .program import BinaryMissing, PracticumError, Program
from .results import Activation, BlindCase, BlindComparison, Case, CheckCount, Gate, Graded, GradedCheck, Interval, Run
from .spec import BlindCompare, Grader, InputFile, Spec, Triggers

__all__ = [
    "Activation",
    "BlindCase",
    "BlindCompare",
    "BlindComparison",
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
