"""The plugin as a user meets it: tests in a folder, run by pytest, with the real program."""

from __future__ import annotations

import pytest

CLAUDITOR = "examples/clauditor/.claude/commands/profile-csv.eval.json"
SCRIPTED = "agent='builtin', script='examples/clauditor/script.yaml'"
GOOD = """\
**1. order_id** 1001 to 1009
**2. placed** 2026-01-04 to 2026-03-01
**3. country** AT to PL
**4. total_eur** amount, 1 missing, 3 to 90
## Oddities
1003 is there twice; 2026-02-30 in line 6 is no date.
"""


def test_a_spec_stages_its_input_files_and_is_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        f"""
        def test_run(practicum_spec, tmp_path):
            spec = practicum_spec({CLAUDITOR!r})
            assert [file.to for file in spec.input_files] == ["orders.csv"]
            staged = tmp_path / "orders.csv"
            assert staged.read_bytes() == spec.input_files[0].source.read_bytes()
            run = spec.run({SCRIPTED})
            run.assert_passes()
            assert run and (run.exit, run.trials, run.passed) == (0, 6, 6)
            first = run.cases[0]
            assert (first.id, first.agent, first.passed) == ("profile-csv", "builtin", 2)
            assert {{check.id for check in first.checks}} >= {{"short", "gaps"}}

        def test_what_a_test_writes_stays_its_own(practicum_spec, tmp_path):
            spec = practicum_spec({CLAUDITOR!r}, case="profile-*")
            (tmp_path / "orders.csv").write_text("spoilt")
            assert spec.input_files[0].source.read_text() != "spoilt"
        """
    )
    suite.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_run_that_fails_says_which_case_and_check(suite: pytest.Pytester) -> None:
    suite.makefile(".yaml", idle="practicum_script: 1\nscenarios:\n  - steps: [I would rather not.]\n")
    suite.makepyfile(
        """
        def test_run(practicum_spec):
            spec = practicum_spec("examples/release-notes", case="notes-*")
            spec.run(agent="builtin", script="idle.yaml", arguments=["--no-judge"]).assert_passes()
        """
    )
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the evals did not pass", "*notes-from-commits*all-changes*"])


def test_a_text_is_marked_and_a_judge_asked_only_if_wanted(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        f"""
        GOOD = {GOOD!r}

        def test_good(practicum_spec, practicum_grader):
            code_alone = ["--allow-unscored", "1"]
            for graded in [practicum_spec({CLAUDITOR!r}).grade(GOOD, arguments=code_alone),
                           practicum_grader({CLAUDITOR!r}, GOOD, arguments=code_alone)]:
                graded.assert_passes()
                assert graded and graded["short"].verdict == "pass" and graded.failed == ()
                assert "gaps" in [check.id for check in graded.not_scored]

        def test_what_nobody_answered_does_not_pass(practicum_grader):
            assert not practicum_grader({CLAUDITOR!r}, GOOD)

        def test_judged(practicum_grader):
            graded = practicum_grader({CLAUDITOR!r}, GOOD, judge=True, script="examples/clauditor/script.yaml",
                                      arguments=["--transport=api", "--grading-provider=anthropic"])
            assert graded["gaps"].verdict != "not_scored", str(graded)

        def test_bad(practicum_grader):
            practicum_grader({CLAUDITOR!r}, "nothing").assert_passes()
        """
    )
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*the text does not pass", '*fail repeated_number: "1003" does not occur'])


def test_triggers_run_nothing_else(suite: pytest.Pytester) -> None:
    suite.makefile(".yaml", idle="practicum_script: 1\nscenarios:\n  - steps: [Hm.]\n")
    suite.makepyfile(
        f"""
        def test_fires(practicum_triggers):
            run = practicum_triggers({CLAUDITOR!r}, {SCRIPTED}, gates={{"recall": 1.0}})
            run.assert_passes()
            assert run.trials == 4
            activation = run.activation
            assert (activation.true_positives, activation.true_negatives) == (2, 2)
            assert activation.recall.value == 1.0 and activation.recall.low < 1.0

        def test_never_fires(practicum_triggers):
            run = practicum_triggers("examples/skill-test", agent="builtin", script="idle.yaml",
                                     gates={{"recall": 0.5}})
            assert not run and run.exit == 1
            assert run.activation.false_negatives == 6
        """
    )
    suite.runpytest_subprocess().assert_outcomes(passed=2)


JUDGE = '''
practicum_script: 1
scenarios:
  - to: judge
    when: { regex: '(?s)Output A:.*1003 is there twice.*Output B:' }
    steps: [{ tools: [{ name: report_comparison, input: { winner: A, reasoning: It names it., quote: 1003 is there twice, scores: SCORES } }] }]
  - to: judge
    when: 1003 is there twice
    steps: [{ tools: [{ name: report_comparison, input: { winner: B, reasoning: It names it., quote: 1003 is there twice, scores: SCORES } }] }]
  - to: judge
    steps: [{ tools: [{ name: report_comparison, input: { winner: A, reasoning: It comes first., quote: one, scores: SCORES } }] }]
'''


def test_outputs_are_compared_by_a_judge_that_does_not_know_whose_they_are(suite: pytest.Pytester) -> None:
    scores = "{ both_oddities: { A: 5, B: 6 }, gaps: { A: 5, B: 6 } }"
    (suite.path / "judge.yaml").write_text(JUDGE.replace("SCORES", scores))
    (suite.path / "mute.yaml").write_text("practicum_script: 1\ndefault: I would rather not say.\n")
    suite.makepyfile(
        f"""
        from pathlib import Path

        GOOD = {GOOD!r}
        ASKED = dict(spec={CLAUDITOR!r}, request="Profile orders.csv.", script="judge.yaml")

        def test_better(practicum_blind_compare):
            found = practicum_blind_compare("Nothing is odd.", GOOD, **ASKED)
            found.assert_not_worse()
            assert found and found.winner == "second" and (found.wins, found.losses) == (1, 0)
            assert found.verdict == "inconclusive", "one pair says nothing beyond chance"
            assert found.win_rate.value == 1.0 and found.win_rate.low < 0.5

        def test_a_judge_that_prefers_what_comes_first_decides_nothing(practicum_blind_compare):
            assert practicum_blind_compare("one", "two", **ASKED).winner == "tie"

        def test_files(practicum_blind_compare, tmp_path):
            for name, text in [("old", "Nothing is odd."), ("new", GOOD)]:
                for day in ["monday.md", "tuesday.md"]:
                    (tmp_path / name).mkdir(exist_ok=True)
                    (tmp_path / name / day).write_text(text)
            found = practicum_blind_compare(tmp_path / "old", tmp_path / "new", **ASKED)
            assert [one.case for one in found.cases] == ["monday.md", "tuesday.md"] and found.wins == 2

        def test_worse(practicum_blind_compare):
            practicum_blind_compare(GOOD, "Nothing is odd.", **ASKED).assert_not_worse()

        def test_no_answer_is_no_win(practicum_blind_compare):
            found = practicum_blind_compare("one", "two", request="Count.", script="mute.yaml")
            assert not found and found.winner is None and found.exit == 3
            found.assert_not_worse()
        """
    )
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*the second is not shown to be as good", "*file: first", "*1 lost*"])
    result.stdout.fnmatch_lines(["*file: not compared"])


@pytest.mark.parametrize(
    ("options", "outcomes"),
    [([], {"skipped": 1, "passed": 1}), (["--practicum-paid"], {"passed": 2})],
)
def test_paid_tests_run_only_if_asked(
    suite: pytest.Pytester, options: list[str], outcomes: dict[str, int]
) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.practicum_paid
        def test_paid():
            pass

        def test_free():
            pass
        """
    )
    suite.runpytest_subprocess("--strict-markers", *options).assert_outcomes(**outcomes)


def test_a_missing_program_is_an_error_that_says_what_to_do(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile("def test_it(practicum_grader):\n    pass\n")
    for variable, expected in [
        ("", "*there is no practicum on the PATH; install it, or let PRACTICUM_BIN say where it is"),
        ("/nowhere/practicum", "*PRACTICUM_BIN is /nowhere/practicum, which is no program*"),
    ]:
        monkeypatch.setenv("PRACTICUM_BIN", variable)
        monkeypatch.setenv("PATH", "/nowhere")
        result = suite.runpytest_subprocess()
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([expected])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("practicum_spec('nowhere.yaml')", "*error: there is no *nowhere.yaml*"),
        (f"practicum_spec({CLAUDITOR!r}, case='none')", "*has no case none; there are: profile-csv, *"),
        (f"practicum_spec({CLAUDITOR!r}).run(agent='nobody')", '*there is no agent "nobody"*'),
        ("practicum_spec('two.practicum.yaml')", "*cases a and b want different files as x.txt*case=*"),
    ],
)
def test_what_cannot_be_asked_is_an_error_with_the_program_s_own_words(
    suite: pytest.Pytester, body: str, expected: str
) -> None:
    case = "{{ id: {0}, prompt: Hi., files: [{{ from: {0}.txt, to: x.txt }}], checks: [contains: a] }}"
    cases = "\n  - ".join(["", case.format("a"), case.format("b")])
    (suite.path / "two.practicum.yaml").write_text(f"practicum: 1\nname: two\ncases:{cases}\n")
    suite.makefile(".txt", a="a", b="b")
    suite.makepyfile(f"def test_it(practicum_spec):\n    {body}\n")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([expected])
