//! The part of promptfoo's format that is about skills: providers that are agents, prompts with variables, and tests
//! with assertions.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::reading::{self, UniqueIds, UnusedKeys};
use super::{Dialect, EvalFileLocation, EvalFolder, ExportedSuite, FormatMatch};
use practicum_core::model::{Case, Diagnostics, RunPolicy, Suite, WorkspaceBase};
use practicum_core::tree::{ObjectReader, SourceFile, TreeNode};

mod assertions;
mod export;
mod files;
mod providers;
mod schema;
mod scripts;
mod template;
mod test_cases;

use files::ConfigFiles;
use providers::{ProviderSettings, is_agent, read_providers};
use test_cases::{DefaultTest, TestReader, read_prompts};

/// The adapter for promptfoo's format.
pub struct Promptfoo;

const NAME: &str = "promptfoo";
const MOST_RUNS: i64 = 1000;

impl Dialect for Promptfoo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json"]
    }

    fn recognition_rule(&self) -> &'static str {
        "a file with \"providers\", and \"prompts\" or \"tests\"; refused if no provider is an agent that loads skills"
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        let root = &source.root;
        let providers = root.get("providers").or_else(|| root.get("targets"));
        let is_config =
            providers.is_some() && ["prompts", "tests", "scenarios"].iter().any(|key| root.has(key));
        if !is_config {
            return FormatMatch::NO;
        }
        let nodes = providers.map_or(&[][..], |node| node.as_list().unwrap_or(std::slice::from_ref(node)));
        FormatMatch::with_points(150, "it has \"providers\", and \"prompts\" or \"tests\"").and(
            nodes.iter().any(is_agent),
            20,
            "a provider is an agent that loads skills",
        )
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut file = ObjectReader::new(&source.root, "a config", diagnostics)?;
        let providers = read_providers(&mut file, source, place, diagnostics)?;
        let files = ConfigFiles { source, place };
        let description = file.text("description", diagnostics).map(|text| text.trim().to_owned());
        let prompts = read_prompts(&mut file, &files, diagnostics);
        let (repeat, timeout) = read_options(&mut file, diagnostics);
        let default = file.get_non_null("defaultTest");
        let default_file = match default.and_then(TreeNode::as_text) {
            Some(path) => match files.read_document(path.trim_start_matches("file://")) {
                Ok(document) => Some(document),
                Err(why) => {
                    diagnostics.error("unreadable-file", default.map(|node| node.span), why);
                    return None;
                }
            },
            None => None,
        };
        let default = default_file.as_ref().map_or(default, |document| Some(&document.root));
        let mut unsupported = None;
        for key in ["extensions", "nunjucksFilters"] {
            if file.get_non_null(key).is_some_and(|node| !node.as_list().is_some_and(<[_]>::is_empty)) {
                unsupported = Some(format!("\"{key}\" changes the tests with code"));
            }
        }
        let ProviderSettings { agents, model, arms, skills, plugins, .. } = &providers;
        let (agents, model, arms) = (agents.clone(), model.clone(), arms.clone());
        let (skills, plugins) = (skills.clone(), plugins.clone());
        let mut providers = providers;
        let why = std::mem::take(&mut providers.unsupported).into_reason();
        let unsupported =
            [why, unsupported].into_iter().flatten().reduce(|one, other| format!("{one}; {other}"));
        let mut reader = TestReader {
            files: &files,
            providers: &providers,
            prompts: &prompts,
            default: DefaultTest::new(default),
            unsupported,
            ids: UniqueIds::default(),
        };
        let cases = read_tests(&mut file, &files, &mut reader, diagnostics);
        // These choose how promptfoo runs and shows results, and not what is asked or expected.
        for key in [
            "assertionTemplates",
            "commandLineOptions",
            "env",
            "outputPath",
            "sharing",
            "tags",
            "metadata",
            "tracing",
            "writeLatestResults",
            "$schema",
            "version",
        ] {
            file.get(key);
        }
        let meta = UnusedKeys::refusing_unread_cases().collect_unused(&file, "a config", diagnostics);
        let name = skills.first().map_or_else(|| NAME.to_owned(), |skill| skill.name.clone());
        Some(Suite {
            description,
            skills,
            plugins,
            cases,
            run_policy: RunPolicy { agents, model, repeat, timeout, ..RunPolicy::default() },
            format_defaults: RunPolicy {
                repeat: Some(1),
                arms,
                workspace: Some(WorkspaceBase::Empty),
                ..RunPolicy::default()
            },
            gates: reading::all_cases_pass(),
            meta,
            ..reading::blank_suite(NAME, source, name)
        })
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn export_suite(&self, suite: &Suite, folder: &Path) -> ExportedSuite {
        export::export(suite, folder)
    }
}

/// Reads how often each test runs, and for how long.
fn read_options(
    file: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> (Option<u32>, Option<Duration>) {
    let Some(node) = file.get_non_null("evaluateOptions") else { return (None, None) };
    let Some(mut options) = ObjectReader::new(node, "\"evaluateOptions\"", diagnostics) else {
        return (None, None);
    };
    let repeat =
        options.int("repeat", 1, MOST_RUNS, diagnostics).and_then(|repeat| u32::try_from(repeat).ok());
    let timeout = options.int("timeoutMs", 1, i64::from(u32::MAX), diagnostics);
    let timeout = timeout.and_then(|timeout| u64::try_from(timeout).ok()).map(Duration::from_millis);
    for key in ["maxConcurrency", "cache", "delay", "showProgressBar", "maxEvalTimeMs", "generateSuggestions"]
    {
        options.get(key);
    }
    UnusedKeys::default().collect_unused(&options, "\"evaluateOptions\"", diagnostics);
    (repeat, timeout)
}

/// Reads the tests of a config, also those in files that it names. A file of tests that is not read is an error.
fn read_tests(
    file: &mut ObjectReader<'_>,
    files: &ConfigFiles<'_>,
    reader: &mut TestReader<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Case> {
    let mut cases = Vec::new();
    if let Some(node) = file.get_non_null("scenarios") {
        diagnostics.error("unread-cases", node.span, "\"scenarios\" are not read; write them as \"tests\"");
    }
    let Some(node) = file.get_non_null("tests") else {
        // Without tests, promptfoo runs each prompt once, with the assertions of the default test.
        let empty = TreeNode::from_value(&serde_json::json!({}), files.source.root.span);
        return reader.read(&empty, diagnostics);
    };
    let nodes = node.as_list().unwrap_or(std::slice::from_ref(node));
    for node in nodes {
        let Some(path) = node.as_text() else {
            if node.has("path") && !node.has("vars") && !node.has("assert") {
                let message = "tests that code makes are not read; write them as a list";
                diagnostics.error("unread-cases", node.span, message);
                continue;
            }
            cases.extend(reader.read(node, diagnostics));
            continue;
        };
        let path = path.trim_start_matches("file://");
        let found = EvalFolder::open(files.source.folder())
            .map_err(|why| why.to_string())
            .and_then(|folder| folder.find_files(path.trim_start_matches("./")));
        match found {
            Ok(found) if found.is_empty() => {
                diagnostics.error("unread-cases", node.span, format!("no file of tests matches {path}"));
            }
            Ok(found) => {
                for path in found {
                    read_test_file(path.as_str(), files, reader, &mut cases, node, diagnostics);
                }
            }
            Err(why) => diagnostics.error("unread-cases", node.span, why),
        }
    }
    if cases.is_empty() && !diagnostics.has_errors() {
        diagnostics.error("no-cases", files.source.root.span, "there is no test, so there is nothing to run");
    }
    cases
}

fn read_test_file(
    path: &str,
    files: &ConfigFiles<'_>,
    reader: &mut TestReader<'_>,
    cases: &mut Vec<Case>,
    node: &TreeNode,
    diagnostics: &mut Diagnostics,
) {
    let is_data = [".yaml", ".yml", ".json", ".jsonl"].iter().any(|ending| path.ends_with(ending));
    if !is_data {
        let message = format!("{path} is not read: tests are YAML, JSON or JSONL here");
        return diagnostics.error("unread-cases", node.span, message);
    }
    match files.read_document(path) {
        Ok(document) => {
            let mut problems = Diagnostics::default();
            let tests = document.root.as_list().unwrap_or(std::slice::from_ref(&document.root));
            for test in tests {
                cases.extend(reader.read(test, &mut problems));
            }
            reading::parts::report_part(path, &document.text, problems, diagnostics);
        }
        Err(why) => diagnostics.error("unreadable-file", node.span, why),
    }
}
