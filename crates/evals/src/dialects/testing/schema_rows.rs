//! Documents of every format, valid and invalid, for tests of both schema and reader.

/// Documents that use everything that a format has and that the fixtures do not use.
pub const VALID_DOCUMENTS: &[(&str, &str)] = &[
    (
        "native",
        r#"{"practicum": 1, "about_skill": [{"id": "a", "statement": "s"}, {"id": "b", "statement": "s", "context": "c",
            "scale": "1-5"}], "cases": [{"id": "a", "prompt": "p", "activation": "must"}]}"#,
    ),
    (
        "skillet",
        r#"{"schema_version": 1, "timestamp": "2025-01-15T10:30:00Z", "name": "n", "prompt": "p", "expected": "e",
            "actual": "a", "setup": "true", "teardown": "true", "assertions": [{"type": "tool_called", "value": "Read"}]}"#,
    ),
    (
        "skill-test",
        r#"{"name": "n", "description": "d", "runs_per_case": 20, "skills": [{"name": "s", "plugin": "p",
            "test_cases": [{"id": 1, "input": "i", "expectation": "acceptable", "rationale": "r"}]}],
            "negative_cases": [{"prompt": "p", "expectation": "must_not"}]}"#,
    ),
    (
        "skill-test",
        r#"{"skill_name": "s", "plugin": "p", "cases": [{"id": "a", "prompt": "p", "expectation": "must_pass"}]}"#,
    ),
    ("skill-test", r#"{"skill": "s", "cases": [{"prompt": "p", "expectation": "ok"}]}"#),
    (
        "skill-test",
        r#"[{"query": "q", "expected_skill": "s"}, {"prompt": "p", "expected_skill": null}, {"input": "i", "expected_skill": ""}]"#,
    ),
    (
        "bmad",
        r#"{"skill_name": "s", "_design_notes": ["n"], "evals": [{"id": "A", "prompt": "p", "expected_output": "o",
            "files": [], "expectations": ["e"], "timeout": 900, "_why": "w"}]}"#,
    ),
    ("bmad", r#"{"cases": [{"input": "i", "state_prefix": null, "rubric": "r"}]}"#),
    ("bmad", r#"[{"input": "i", "rubric": ["r"]}]"#),
    (
        "triggers",
        r#"[{"id": 1, "query": "q", "should_trigger": true}, {"query": "r", "should_trigger": false}]"#,
    ),
    (
        "clauditor",
        r#"{"skill_name": "s", "description": "d", "test_args": "a", "input_files": [], "output_file": "o.md",
            "output_files": ["o/*.md"], "user_prompt": "u", "system_prompt": "s", "timeout": 60, "transport": "cli",
            "harness": "codex", "sync_tasks": true, "allow_hang_heuristic": false, "grading_model": "m",
            "grading_provider": "openai", "grade_thresholds": {"min_pass_rate": 0.5, "min_mean_score": 1},
            "variance": {"n_runs": 3, "min_stability": 0.5},
            "trigger_tests": {"should_trigger": ["a"], "should_not_trigger": ["b"]},
            "grading_criteria": [{"id": "c", "criterion": "Is it so?"}],
            "sections": [{"name": "s", "tiers": [{"label": "t", "description": "d", "min_entries": 1,
              "max_entries": 3, "fields": [{"id": "f", "name": "n", "required": true, "format": "^\\d+$"}]}]}],
            "assertions": [
              {"id": "1", "type": "contains", "needle": ""}, {"id": "2", "type": "not_contains", "needle": "x"},
              {"id": "3", "type": "regex", "pattern": "x", "name": "n"}, {"id": "4", "type": "min_count", "pattern": "^- ", "count": 3},
              {"id": "5", "type": "min_length", "length": 5}, {"id": "6", "type": "max_length", "length": 9},
              {"id": "7", "type": "has_urls"}, {"id": "8", "type": "has_entries", "count": 2},
              {"id": "9", "type": "urls_reachable"}, {"id": "10", "type": "has_format", "format": "email", "count": 2}]}"#,
    ),
    (
        "clauditor",
        r#"{"skill_name": null, "description": null, "test_args": null, "output_file": null, "user_prompt": null,
            "system_prompt": null, "timeout": null, "grading_model": null, "grading_provider": null,
            "grade_thresholds": null, "variance": null, "trigger_tests": {"should_trigger": null, "should_not_trigger": null},
            "sections": [{"name": "s", "tiers": [{"label": "t", "max_entries": null,
              "fields": [{"id": "f", "name": "n", "required": null, "format": null}]}]}]}"#,
    ),
    ("clauditor", r#"{"grade_thresholds": {"min_pass_rate": null}, "variance": {}, "trigger_tests": null}"#),
    (
        "writing-skills",
        r#"{"version": 1, "skill_name": "s", "evals": [{"id": 1, "prompt": "p", "files": ["f"],
            "expectations": [{"criterion": "c", "description": "d"}, {"criterion": "e", "description": "f", "required": false}]}]}"#,
    ),
    (
        "writing-skills",
        r#"{"version": "1.0", "skill": "s", "cases": [{"id": "a", "prompt": "p", "expectations": [{"criterion": "c", "description": "d", "required": true}]}]}"#,
    ),
    (
        "skill-creator",
        r#"{"skill_name": "s", "evals": [{"id": 1, "name": "n", "prompt": "p", "expected_output": "o", "files": [],
            "timeout": 60, "expectations": ["e"], "assertions": [
              {"id": "i", "name": "n", "type": "contains", "values": ["a"], "ignore_case": true, "required": false},
              {"type": "contains", "needle": "a", "case_insensitive": true}, {"type": "contains", "value": "a", "case_sensitive": false},
              {"type": "transcript_regex", "pattern": "x", "expect": "absent"}, {"type": "file_exists", "path": "a.md", "expect": true},
              {"type": "file_contains", "file": "a.md", "value": "x"}, {"type": "script", "command": "true", "expect_exit_code": 1},
              {"type": "script", "script": ["true"]}, {"text": "t"}, {"statement": "s"}, {"assertion": "a"}, {"criterion": "c"},
              {"type": "contains", "value": "a", "expected": false, "path": "a.md"}, {"type": "contains", "value": "a", "negate": true},
              {"type": "contains", "value": "a", "negated": true}, {"type": "contains", "value": "a", "not": true},
              {"type": "contains", "value": "a", "invert": true, "target": "a.md"}, {"criteria": ["c"]}, {"rubric": "r"},
              {"description": "d", "check": "c"}]}]}"#,
    ),
    ("skill-creator", r#"{"evals": [{"id": 1, "prompt": "p", "expected_output": "o"}]}"#),
    (
        "skillet",
        r#"{"timestamp": "2025-01-15", "name": "n", "prompt": "p", "expected": "e", "should_trigger": true, "should_activate": true, "skill_should_trigger": true, "expected_trigger": true,
            "expect_trigger": true, "expect_activation": true}"#,
    ),
    (
        "skillet",
        r#"{"timestamp": "2025-01-15", "name": "n", "prompt": "p", "expected": "e", "expected_skill": "s", "expect_skill": "s",
            "expected_activation": "s", "must_not_activate": ["t"], "target_skill": "s"}"#,
    ),
    (
        "skill-test",
        r#"{"cases": [{"prompt": "p", "should_trigger": true, "should_activate": true, "skill_should_trigger": true, "expected_trigger": true,
            "expect_trigger": true, "expect_activation": true}, {"prompt": "q",
            "expected_skill": null, "expect_skill": null, "expected_activation": false, "must_not_activate": "t", "target_skill": "s"}]}"#,
    ),
    (
        "skill-test",
        r#"[{"question": "q", "expected_skill": "s", "expected_behavior": ["b"], "ground_truth": "t", "rationale": "r"}]"#,
    ),
    (
        "bmad",
        r#"{"evals": [{"id": "A", "prompt": "p", "should_trigger": true, "should_activate": true, "skill_should_trigger": true, "expected_trigger": true,
            "expect_trigger": true, "expect_activation": true}, {"id": "B", "prompt": "p",
            "expectations": [], "expected_skill": null, "expect_skill": null, "expected_activation": null,
            "must_not_activate": ["t"], "target_skill": "s"}]}"#,
    ),
    (
        "triggers",
        r#"[{"prompt": "p", "should_trigger": true, "should_activate": true, "skill_should_trigger": true, "expected_trigger": true,
            "expect_trigger": true, "expect_activation": true}, {"query": "r",
            "expected_skill": null, "expect_skill": null, "expected_activation": null, "must_not_activate": ["t"],
            "target_skill": "s"}]"#,
    ),
    (
        "writing-skills",
        r#"{"version": 1, "cases": [{"id": 1, "prompt": "p", "should_trigger": true, "should_activate": true, "skill_should_trigger": true, "expected_trigger": true,
            "expect_trigger": true, "expect_activation": true}, {"id": 2, "prompt": "p",
            "expectations": [{"criterion": "c", "description": "d", "required": false}], "expected_skill": null,
            "expect_skill": null, "expected_activation": null, "must_not_activate": [], "target_skill": "s"}]}"#,
    ),
    (
        "skill-creator",
        r#"{"evals": [{"id": 1, "prompt": "p", "should_trigger": true, "should_activate": true, "skill_should_trigger": true, "expected_trigger": true,
            "expect_trigger": true, "expect_activation": true}, {"id": 2, "prompt": "p",
            "expected_skill": null, "expect_skill": null, "expected_activation": null, "must_not_activate": ["t"],
            "target_skill": "s"}], "trigger_evals": {"description": "d", "should_trigger": ["q"],
            "should_not_trigger": [{"id": "a", "query": "r", "rationale": "w"}]}}"#,
    ),
    (
        "skill-creator",
        r#"{"evals": [{"id": 1, "prompt": "p", "expected_output": "o"}], "trigger_evals": [{"query": "q", "should_trigger": true}]}"#,
    ),
];

/// Documents that both the schema and the reader refuse.
pub const INVALID_DOCUMENTS: &[(&str, &str)] = &[
    ("native", r#"{"practicum": 2, "cases": [{"id": "a", "prompt": "p", "activation": "must"}]}"#),
    ("native", r#"{"practicum": 1, "cases": []}"#),
    (
        "native",
        r#"{"practicum": 1, "about_skill": [{"id": "a"}], "cases": [{"id": "a", "prompt": "p", "activation": "must"}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "about_skill": ["short"], "cases": [{"id": "a", "prompt": "p", "activation": "must"}]}"#,
    ),
    ("native", r#"{"practicum": 1}"#),
    (
        "native",
        r#"{"practicum": 1, "case": [], "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    ("native", r#"{"practicum": 1, "cases": [{"prompt": "p", "checks": [{"judge": "j"}]}]}"#),
    ("native", r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p"}]}"#),
    ("native", r#"{"practicum": 1, "cases": [{"id": "a", "prompt": " ", "checks": [{"judge": "j"}]}]}"#),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "command": "c", "checks": [{"judge": "j"}]}]}"#,
    ),
    ("native", r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"contain": "x"}]}]}"#),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"contains": "x", "regex": "y"}]}]}"#,
    ),
    ("native", r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"id": "x"}]}]}"#),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"file": {"exists": true}}]}]}"#,
    ),
    ("native", r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"limit": {}}]}]}"#),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"has_format": "mail"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": {"statement": "s", "scale": "1-10"}}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j", "on": "file"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "timeout": "soon", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "cases": [{"id": "a", "prompt": "p", "pass_when": {"pass_rate": 1}, "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "run": {"arms": ["witout"]}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "judge": {"votes": 2}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "gates": {"passrate": 1}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "gates": {"f1": 80}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "gates": {"pass_rate": {"at_least": 0.8}}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "gates": {"pass_rate": {"at_least": 0.8, "confidence": 1}}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "gates": {"pass_rate": {"at_least": 8, "confidence": 0.9}}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "gates": {"pass_rate": {"at_least": 0.8, "confidence": 0.9, "x": 1}}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "gates": {"stability": {"at_least": 0.8, "confidence": 0.9}}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    (
        "native",
        r#"{"practicum": 1, "skill": {"plugin": "p"}, "cases": [{"id": "a", "prompt": "p", "checks": [{"judge": "j"}]}]}"#,
    ),
    ("skillet", r#"{"name": "n", "prompt": "p", "expected": "e"}"#),
    ("skillet", r#"{"timestamp": "yesterday", "name": "n", "prompt": "p", "expected": "e"}"#),
    ("skillet", r#"{"timestamp": "2025-01-15", "name": "n", "prompt": [], "expected": "e"}"#),
    (
        "skillet",
        r#"{"timestamp": "2025-01-15", "schema_version": 2, "name": "n", "prompt": "p", "expected": "e"}"#,
    ),
    (
        "skillet",
        r#"{"timestamp": "2025-01-15", "name": "n", "prompt": "p", "expected": "e", "assertions": [{"type": "has", "value": "x"}]}"#,
    ),
    (
        "skillet",
        r#"{"timestamp": "2025-01-15", "name": "n", "prompt": "p", "expected": "e", "assertions": []}"#,
    ),
    ("skill-test", r#"{"name": "n", "skills": []}"#),
    (
        "skill-test",
        r#"{"name": "n", "skills": [{"name": "s", "test_cases": [{"prompt": "p", "expectation": "must"}]}]}"#,
    ),
    (
        "skill-test",
        r#"{"name": "n", "runs_per_case": 21, "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "p", "expectation": "must"}]}]}"#,
    ),
    (
        "skill-test",
        r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "p", "expectation": "maybe"}]}]}"#,
    ),
    (
        "skill-test",
        r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": []}], "negative_cases": [{"prompt": "p", "expectation": "acceptable"}]}"#,
    ),
    ("skill-test", r#"{"cases": [{"prompt": "p"}]}"#),
    ("skill-test", r#"[{"input": "i", "expected_skill": null}]"#),
    ("bmad", r#"{"evals": []}"#),
    ("bmad", r#"{"evals": [{"prompt": "p", "expectations": ["e"]}]}"#),
    ("bmad", r#"{"evals": [{"id": "A", "prompt": "p", "expectations": []}]}"#),
    ("bmad", r#"{"evals": [{"id": "A", "prompt": "p", "expectations": [{"criterion": "c"}]}]}"#),
    ("bmad", r#"{"evals": [{"id": "A", "prompt": "p", "expectations": ["e"], "timeout": "10m"}]}"#),
    ("bmad", r#"{"evals": [{"id": "A", "prompt": "p", "input": "i", "expectations": ["e"]}]}"#),
    ("triggers", r#"[{"query": "q"}]"#),
    ("triggers", r#"[{"query": "q", "should_trigger": "yes"}]"#),
    ("triggers", "[]"),
    ("clauditor", r#"{"assertions": null}"#),
    ("clauditor", r#"{"assertions": [{"type": "contains", "needle": "x"}]}"#),
    ("clauditor", r#"{"assertions": [{"id": "1", "type": "contains", "value": "x"}]}"#),
    ("clauditor", r#"{"assertions": [{"id": "1", "type": "min_length", "length": "500"}]}"#),
    ("clauditor", r#"{"assertions": [{"id": "1", "type": "has_format", "format": "phone"}]}"#),
    ("clauditor", r#"{"grading_criteria": ["Is it so?"]}"#),
    ("clauditor", r#"{"grade_thresholds": {"min_pass_rate": 70}}"#),
    ("clauditor", r#"{"timeout": true}"#),
    ("clauditor", r#"{"harness": null}"#),
    ("clauditor", r#"{"system_prompt": " "}"#),
    ("clauditor", r#"{"sections": [{"name": "s", "fields": []}]}"#),
    (
        "writing-skills",
        r#"{"version": "2.0", "skill": "s", "cases": [{"id": "a", "prompt": "p", "expectations": [{"criterion": "c", "description": "d", "required": true}]}]}"#,
    ),
    (
        "writing-skills",
        r#"{"skill": "s", "cases": [{"id": "a", "prompt": "p", "expectations": [{"criterion": "c", "description": "d", "required": false}]}]}"#,
    ),
    ("writing-skills", r#"{"skill": "s", "cases": [{"id": "a", "prompt": "p", "expectations": ["d"]}]}"#),
    ("skill-creator", r#"{"evals": [{"id": 1, "prompt": "p"}]}"#),
    ("skill-creator", r#"{"evals": [{"id": 1.5, "prompt": "p", "expectations": ["e"]}]}"#),
    ("skill-creator", r#"{"evals": [{"id": 1, "prompt": "p", "assertions": [3]}]}"#),
];
