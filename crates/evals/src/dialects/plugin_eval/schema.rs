//! The schema of `case.yaml` for editors.

use serde_json::{Value, json};

use super::graders::{ARMS, GRADER_TYPES, TARGETS};
use super::{LONGEST_TIMEOUT, MOST_RUNS, MOST_TURNS};
use practicum_core::tree::json_schema::{self, MappingSchema};

pub fn schema() -> Value {
    json_schema::document(
        "Case of claude plugin eval (case.yaml)",
        "One case of `claude plugin eval`. A prompt.md beside it wins key by key, and graders/*.md are added.",
        case(),
        [],
    )
}

fn case() -> MappingSchema {
    let execution = MappingSchema::closed()
        .optional("prompt", "The prompt, if there is no prompt.md.", json_schema::nonempty_text())
        .optional("model", "The model. It is not used here: choose it with --model.", json_schema::text())
        .optional(
            "max_turns",
            "The most turns. Shown here, and not enforced.",
            json_schema::integer_between(1, MOST_TURNS),
        )
        .optional("timeout_seconds", "The time limit.", json_schema::integer_between(1, LONGEST_TIMEOUT))
        .optional("allowed_tools", "The tools that the agent may use. Kept.", json_schema::text_or_texts())
        .optional(
            "append_system_prompt",
            "Text for the system prompt. Such a case is not scored here.",
            json_schema::text(),
        )
        .optional(
            "system",
            "The system prompt, in version 1.0. Such a case is not scored here.",
            json_schema::text(),
        )
        .optional(
            "env",
            "Variables that begin with EVAL_. Such a case is not scored here.",
            json!({"type": "object"}),
        );
    let context = MappingSchema::closed()
        .optional(
            "scaffold_script",
            "A Bash script of the case, run in the empty workspace. Needs --trust.",
            json_schema::text(),
        )
        .optional(
            "history_file",
            "An earlier conversation. Such a case is not scored here.",
            json_schema::text(),
        )
        .optional("add_dirs", "Folders of the case that the agent may read.", json_schema::text_or_texts());
    MappingSchema::closed()
        .required("schema_version", "The version of the format.", json_schema::one_of_words(&["1.0", "1.1"]))
        .optional("name", "The id of the case; by default the folder's name.", json_schema::text())
        .optional("description", "For people.", json_schema::text())
        .optional("expected_outcome", "For people.", json!({}))
        .optional("tags", "Words by which people choose cases.", json!({}))
        .optional("plugins", "Folders of plugins, relative to the case.", json!({}))
        .optional(
            "runs",
            "How often the case is run in each arm.",
            json_schema::integer_between(1, MOST_RUNS),
        )
        .optional("execution", "How the case runs.", execution)
        .optional("context", "What the case begins with.", context)
        .optional("graders", "The graders.", json_schema::list(grader()))
}

fn grader() -> MappingSchema {
    let file = MappingSchema::closed()
        .required("source", "The kind of text.", json_schema::one_of_words(&["file"]))
        .required("path", "The file in the workspace.", json_schema::nonempty_text());
    let target = || json_schema::any_of([json_schema::one_of_words(&TARGETS), file.clone().into()]);
    let call = MappingSchema::closed()
        .required("tool", "The name of the tool.", json_schema::nonempty_text())
        .optional("input_match", "A pattern for the input, as JSON.", json_schema::text());
    let call = || json_schema::any_of([json_schema::nonempty_text(), call.clone().into()]);
    let count = || json_schema::integer_between(0, u32::MAX.into());
    MappingSchema::closed()
        .required("name", "The name of the grader.", json_schema::nonempty_text())
        .required("type", "The kind of grader.", json_schema::one_of_words(&GRADER_TYPES))
        .optional("weight", "How much it counts.", json!({"type": "number", "exclusiveMinimum": 0}))
        .optional("arm", "The arms in which it counts.", json_schema::one_of_words(&ARMS))
        .optional("pattern", "regex: the pattern.", json_schema::text())
        .optional("flags", "regex: flags as in JavaScript.", json_schema::text())
        .optional("match", "regex: contains, not_contains or count:N.", json_schema::text())
        .optional("target", "regex: the text to look at.", target())
        .optional("tool", "tool_used: the tool.", json_schema::nonempty_text())
        .optional("input_match", "tool_used: a pattern for the input, as JSON.", json_schema::text())
        .optional("min", "tool_used: the fewest calls.", json_schema::with_default(count(), 1))
        .optional("max", "tool_used: the most calls.", count())
        .optional("before", "tool_order: the earlier call.", call())
        .optional("after", "tool_order: the later call.", call())
        .optional("path", "file_exists: a glob for created files.", json_schema::nonempty_text())
        .optional("exists", "file_exists: whether such a file must be there.", json_schema::boolean())
        .optional("criteria", "llm: the rubric.", json_schema::text())
        .optional("focus", "llm: what the judge looks at.", target())
        .optional(
            "baseline_file",
            "baseline: a recorded run. Such a case is not scored here.",
            json_schema::text(),
        )
}
