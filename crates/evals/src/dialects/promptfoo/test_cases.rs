//! The tests of a promptfoo config: each prompt with each set of variables is a case.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::reading::graders::{Unsupported, make_ids_unique};
use super::super::reading::{self, UniqueIds, UnusedKeys, slug};
use super::assertions::PromptfooAssertionReader;
use super::files::ConfigFiles;
use super::providers::ProviderSettings;
use super::template::{TestVariables, render, resolve};
use practicum_core::model::{
    Case, CasePrompt, Diagnostics, PassRule, Ratio, ScoreOf, ScoreRule, WorkspaceBase, WorkspaceSpec,
};
use practicum_core::tree::{ObjectReader, TreeNode};

/// The most cases that one test may become.
const MOST_COMBINATIONS: usize = 1000;

/// A prompt of a config, with its variables not yet replaced.
pub struct ConfigPrompt {
    pub text: String,
    /// Why it cannot be used.
    pub unsupported: Option<String>,
}

/// Reads the prompts: texts, files, or mappings. Without any, the test's variable `prompt` is the prompt.
pub fn read_prompts(
    file: &mut ObjectReader<'_>,
    files: &ConfigFiles<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<ConfigPrompt> {
    let Some(node) = file.get_non_null("prompts") else {
        return vec![ConfigPrompt { text: "{{prompt}}".to_owned(), unsupported: None }];
    };
    let nodes: Vec<&TreeNode> = node.as_list().map_or_else(|| vec![node], |nodes| nodes.iter().collect());
    let mut prompts = Vec::new();
    for node in nodes {
        let text =
            node.as_text().or_else(|| node.get("raw")?.as_text()).or_else(|| node.get("id")?.as_text());
        match text {
            Some(text) => prompts.extend(read_prompt(text, files)),
            None => {
                diagnostics.error("wrong-type", node.span, "a prompt must be a text, or have a \"raw\" text")
            }
        }
    }
    prompts
}

fn read_prompt(text: &str, files: &ConfigFiles<'_>) -> Vec<ConfigPrompt> {
    let unsupported = |why: String| vec![ConfigPrompt { text: text.to_owned(), unsupported: Some(why) }];
    let is_code =
        |path: &str| [".js", ".cjs", ".mjs", ".ts", ".py", ".j2"].iter().any(|end| path.ends_with(end));
    let path = text.strip_prefix("file://").or_else(|| {
        let bare = !text.contains(['\n', ' ', '{']) && (text.ends_with(".txt") || text.ends_with(".md"));
        bare.then_some(text)
    });
    match path {
        None => vec![ConfigPrompt { text: text.to_owned(), unsupported: None }],
        Some(path) if is_code(path) => unsupported(format!("its prompt is made by code, {path}")),
        Some(path) if path.contains('*') => unsupported("its prompts are found by a pattern".to_owned()),
        Some(path) => match files.read_text(path) {
            // A line of three dashes separates prompts in a file.
            Ok(content) => split_prompts(&content),
            Err(why) => unsupported(why),
        },
    }
}

fn split_prompts(content: &str) -> Vec<ConfigPrompt> {
    let mut texts = vec![String::new()];
    for line in content.split_inclusive('\n') {
        match (line.trim_end() == "---", texts.last_mut()) {
            (true, _) => texts.push(String::new()),
            (false, Some(text)) => text.push_str(line),
            (false, None) => {}
        }
    }
    let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    texts.map(|text| ConfigPrompt { text: text.to_owned(), unsupported: None }).collect()
}

/// What every test has, unless it says otherwise.
#[derive(Default)]
pub struct DefaultTest<'n> {
    node: Option<&'n TreeNode>,
}

impl<'n> DefaultTest<'n> {
    pub fn new(node: Option<&'n TreeNode>) -> Self {
        Self { node }
    }

    fn get(&self, key: &str) -> Option<&'n TreeNode> {
        self.node?.get(key).filter(|node| !node.is_null())
    }

    fn option(&self, key: &str) -> Option<&'n TreeNode> {
        self.get("options")?.get(key).filter(|node| !node.is_null())
    }
}

/// Reads tests into cases.
pub struct TestReader<'r> {
    pub files: &'r ConfigFiles<'r>,
    pub providers: &'r ProviderSettings,
    pub prompts: &'r [ConfigPrompt],
    pub default: DefaultTest<'r>,
    /// Why no case of the config can be run.
    pub unsupported: Option<String>,
    pub ids: UniqueIds,
}

impl TestReader<'_> {
    /// Reads one test: a case for each prompt and each combination of its variables.
    pub fn read(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Vec<Case> {
        let Some(mut test) = ObjectReader::new(node, "a test", diagnostics) else { return Vec::new() };
        let note = test.text("description", diagnostics).map(|text| text.trim().to_owned());
        let mut unsupported = Unsupported::default();
        unsupported_reason(&mut unsupported, self.unsupported.clone());
        let threshold = match test.get_non_null("threshold") {
            Some(_) => test.number("threshold", 0.0, 1.0, diagnostics),
            None => self.default.get("threshold").and_then(|node| node.to_value().as_f64()),
        };
        let own_options = test.get_non_null("options");
        let option = |key: &str| {
            let own = own_options.and_then(|options| options.get(key)).filter(|node| !node.is_null());
            own.or_else(|| self.default.option(key))
        };
        let is_on = |key: &str| option(key).is_some_and(|node| node.to_value() == Value::Bool(true));
        for key in ["transform", "postprocess", "transformVars"] {
            if option(key).is_some() || test.get_non_null(key).is_some() {
                unsupported.add(format!("\"{key}\" changes the test with code"));
            }
        }
        for key in ["provider", "providers", "prompts", "assertScoringFunction", "providerOutput"] {
            if test.get_non_null(key).is_some() {
                unsupported.add(format!("\"{key}\" of a test is not known here"));
            }
        }
        let affix = |key: &str| option(key).and_then(TreeNode::as_text).unwrap_or_default().to_owned();
        let (prefix, suffix) = (affix("prefix"), affix("suffix"));
        let skips_defaults = is_on("disableDefaultAsserts");
        let variables = self.read_variables(&mut test, &mut unsupported);
        let combinations = match is_on("disableVarExpansion") {
            true => vec![variables],
            false => combine(variables),
        };
        if combinations.len() > MOST_COMBINATIONS {
            let message = format!("the variables of this test make more than {MOST_COMBINATIONS} cases");
            diagnostics.error("too-many-cases", node.span, message);
            return Vec::new();
        }
        let own = test.list("assert", diagnostics).unwrap_or_default();
        let shared = self.default.get("assert").and_then(TreeNode::as_list).filter(|_| !skips_defaults);
        let asserts: Vec<&TreeNode> = shared.unwrap_or_default().iter().chain(own).collect();
        let mut meta = BTreeMap::new();
        if let Some(node) = test.get_non_null("metadata") {
            meta.insert("metadata".to_owned(), node.to_value());
        }
        test.get("id");
        meta.extend(UnusedKeys::default().collect_unused(&test, "a test", diagnostics));
        if asserts.is_empty() {
            let message = "this test has no assertion; promptfoo lets it pass, here nothing decides it";
            diagnostics.warning("no-checks", node.span, message);
        }
        let why = unsupported.into_reason();
        let mut cases = Vec::new();
        let mut first = Some(diagnostics);
        for combination in &combinations {
            for prompt in self.prompts {
                let parts = TestParts {
                    note: note.as_deref(),
                    prompt,
                    affixes: [&prefix, &suffix],
                    variables: combination.clone(),
                    asserts: &asserts,
                    threshold,
                    metadata: meta.get("metadata"),
                    unsupported: why.clone(),
                };
                // Each case has the same assertions, so problems with them are reported once.
                let mut ignored = Diagnostics::default();
                let diagnostics = first.take();
                let case = self.build(parts, diagnostics.unwrap_or(&mut ignored));
                let id = self.ids.make_unique(&case.id);
                cases.push(Case { id, meta: meta.clone(), ..case });
            }
        }
        cases
    }

    fn read_variables(&self, test: &mut ObjectReader<'_>, unsupported: &mut Unsupported) -> TestVariables {
        let mut variables = TestVariables::new();
        let own = test.get_non_null("vars");
        for node in [self.default.get("vars"), own].into_iter().flatten() {
            let document = match node.as_text().map(|text| text.trim_start_matches("file://")) {
                Some(path) => match self.files.read_document(path) {
                    Ok(document) => Some(document),
                    Err(why) => {
                        unsupported.add(why);
                        continue;
                    }
                },
                None => None,
            };
            let node = document.as_ref().map_or(node, |document| &document.root);
            let Some(entries) = node.as_map() else {
                unsupported.add("its \"vars\" are no mapping");
                continue;
            };
            for entry in entries {
                let value = match entry.value.to_value() {
                    Value::String(text) => match text.strip_prefix("file://") {
                        Some(path) => self.read_variable(path, unsupported),
                        None => Value::String(text),
                    },
                    other => other,
                };
                match variables.iter_mut().find(|(name, _)| *name == entry.key) {
                    Some((_, known)) => *known = value,
                    None => variables.push((entry.key.clone(), value)),
                }
            }
        }
        variables
    }

    /// Reads the value of a variable from a file. A document becomes its text, as in promptfoo.
    fn read_variable(&self, path: &str, unsupported: &mut Unsupported) -> Value {
        let value = match path.ends_with(".json") {
            true => self.files.read_text(path).map(|text| Value::String(text.trim().to_owned())),
            false => self.files.read_value(path),
        };
        match value {
            Ok(text @ Value::String(_)) => text,
            Ok(document) => Value::String(document.to_string()),
            Err(why) => {
                unsupported.add(why);
                Value::Null
            }
        }
    }

    fn build(&self, parts: TestParts<'_>, diagnostics: &mut Diagnostics) -> Case {
        let mut unsupported = Unsupported::default();
        unsupported_reason(&mut unsupported, parts.unsupported);
        unsupported_reason(&mut unsupported, parts.prompt.unsupported.clone());
        let mut variables = parts.variables;
        if let Err(why) = resolve(&mut variables) {
            unsupported.add(why);
        }
        let [prefix, suffix] = parts.affixes;
        let prompt = render(&format!("{prefix}{}{suffix}", parts.prompt.text), &variables);
        let prompt = prompt.unwrap_or_else(|why| {
            unsupported.add(why);
            parts.prompt.text.clone()
        });
        let mut prompt = prompt.trim().to_owned();
        if prompt.is_empty() {
            unsupported.add("its prompt is empty");
            // A case has a prompt, also one that is never run.
            prompt = format!("(empty: {})", parts.prompt.text.trim());
        }
        let values: serde_json::Map<String, Value> = variables.iter().cloned().collect();
        let context = json!({
            "prompt": prompt,
            "vars": values,
            "test": {
                "vars": values,
                "description": parts.note,
                "threshold": parts.threshold,
                "metadata": parts.metadata,
            },
        });
        let mut reader = PromptfooAssertionReader {
            files: self.files,
            skills: &self.providers.skills,
            variables: &variables,
            context: &context,
            by_score: parts.threshold.is_some(),
            ids: UniqueIds::default(),
            checks: Vec::new(),
        };
        for node in parts.asserts {
            reader.read(node, &mut unsupported, diagnostics);
        }
        let mut checks = reader.checks;
        make_ids_unique(&mut checks);
        let pass_rule = match parts.threshold.and_then(Ratio::new) {
            Some(at_least) => PassRule::Score(ScoreRule { at_least, of: ScoreOf::EachTrial }),
            None => PassRule::EveryRequiredCheck,
        };
        let id = slug(parts.note.unwrap_or(&prompt), "test");
        Case {
            note: parts.note.map(str::to_owned),
            prompt: CasePrompt::Turns(vec![prompt]),
            workspace: WorkspaceSpec {
                base: self.providers.base.unwrap_or(WorkspaceBase::Empty),
                overlays: self.providers.working_dir.iter().cloned().collect(),
                ..WorkspaceSpec::default()
            },
            checks,
            pass_rule,
            unsupported: unsupported.into_reason(),
            ..reading::blank_case(id, String::new())
        }
    }
}

fn unsupported_reason(unsupported: &mut Unsupported, why: Option<String>) {
    if let Some(why) = why {
        unsupported.add(why);
    }
}

/// What makes one case.
struct TestParts<'t> {
    note: Option<&'t str>,
    prompt: &'t ConfigPrompt,
    /// What comes before and after the prompt.
    affixes: [&'t str; 2],
    variables: TestVariables,
    asserts: &'t [&'t TreeNode],
    threshold: Option<f64>,
    metadata: Option<&'t Value>,
    unsupported: Option<String>,
}

/// Makes all combinations of the variables whose values are lists of texts.
fn combine(variables: TestVariables) -> Vec<TestVariables> {
    let mut combinations = vec![TestVariables::new()];
    for (name, value) in variables {
        let values = match value {
            Value::Array(items) if items.first().is_some_and(Value::is_string) => items,
            other => vec![other],
        };
        if combinations.len().saturating_mul(values.len()) > MOST_COMBINATIONS {
            // The caller reports that there are too many.
            return vec![TestVariables::new(); MOST_COMBINATIONS + 1];
        }
        let add = |combination: TestVariables| {
            let name = name.clone();
            values.clone().into_iter().map(move |value| {
                let mut more = combination.clone();
                more.push((name.clone(), value));
                more
            })
        };
        combinations = combinations.into_iter().flat_map(add).collect();
    }
    combinations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_texts_make_a_case_for_each_text() {
        let variables = |value: Value| {
            let Value::Object(map) = value else { panic!("an object") };
            map.into_iter().collect::<TestVariables>()
        };
        assert_eq!(combine(variables(json!({"a": ["x", "y"], "b": ["1", "2", "3"]}))).len(), 6);
        assert_eq!(combine(variables(json!({"a": [1, 2], "b": "c"}))).len(), 1);
        assert_eq!(combine(TestVariables::new()).len(), 1);
        let many: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        assert!(combine(variables(json!({"a": many}))).len() > MOST_COMBINATIONS);
    }

    #[test]
    fn three_dashes_separate_prompts() {
        let texts: Vec<String> =
            split_prompts("one\ntwo\n---\nthree\n").into_iter().map(|prompt| prompt.text).collect();
        assert_eq!(texts, ["one\ntwo", "three"]);
    }
}
