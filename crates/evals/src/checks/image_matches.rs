//! The check `image_matches`: a picture that the agent wrote looks like one beside the eval file.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use super::RuleKind;
use super::pictures::{DecodedPicture, decode_picture};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, Diagnostics, NotScoredReason, RelPath, Rule,
};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    read_bounded,
};

pub static KIND: RuleKind = RuleKind {
    key: "image_matches",
    doc: "a picture in the workspace has the size of an expected one, and at most a share of its pixels differs",
    schema,
    decode: |node, diagnostics| Some(Arc::new(ImageMatchesRule::decode(node, diagnostics)?)),
};

/// The largest expected picture, in bytes. Each record of a run contains it.
const LARGEST_EXPECTED: u64 = 2 * 1024 * 1024;

/// The rule of the check `image_matches`: two pictures, and how much they may differ.
#[derive(Debug, Clone)]
struct ImageMatchesRule {
    /// The picture in the workspace.
    file: RelPath,
    /// The expected picture, in the folder of the eval file.
    expected: RelPath,
    /// The bytes of the expected picture, once they were read.
    content: Option<Arc<[u8]>>,
    /// The greatest share of pixels that may differ.
    at_most: f64,
    /// The greatest difference of a colour at which two pixels still count as equal.
    tolerance: u8,
}

impl ImageMatchesRule {
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let mut path = |key: &'static str, place: &str, diagnostics: &mut Diagnostics| {
            let text = object.required_text(key, diagnostics)?;
            let path = RelPath::new(text);
            if path.is_none() {
                let message = format!("{text:?} is not a path inside {place}");
                diagnostics.error("escaping-path", node.span, message);
            }
            path
        };
        let file = path("file", "the workspace", diagnostics);
        let expected = path("expected", "the folder of the eval file", diagnostics);
        let at_most = object.number("at_most", 0.0, 1.0, diagnostics).unwrap_or(0.0);
        let tolerance = object.int("tolerance", 0, 255, diagnostics).unwrap_or(0);
        let content = match object.text("expected_content", diagnostics) {
            None => None,
            Some(text) => match BASE64.decode(text) {
                Ok(bytes) => Some(Arc::from(bytes)),
                Err(_) => {
                    diagnostics.error("wrong-type", node.span, "\"expected_content\" must be base64");
                    return None;
                }
            },
        };
        object.reject_unknown_keys(KIND.key, diagnostics);
        let tolerance = u8::try_from(tolerance).ok()?;
        Some(Self { file: file?, expected: expected?, content, at_most, tolerance })
    }

    fn read_expected(&self, folder: &Path) -> Result<Vec<u8>, String> {
        let expected = &self.expected;
        let why = |why: String| format!("the expected picture {expected}: {why}");
        let real = expected.join_to(folder).canonicalize().map_err(|error| why(error.to_string()))?;
        if !folder.canonicalize().is_ok_and(|folder| real.starts_with(folder)) {
            return Err(why("it leads out of the folder of the eval file by a link".to_owned()));
        }
        let bytes = read_bounded(&real, LARGEST_EXPECTED).map_err(why)?;
        decode_picture(&bytes).map_err(why)?;
        Ok(bytes)
    }

    fn compare(&self, found: &DecodedPicture, wanted: &DecodedPicture) -> CheckFinding {
        let path = &self.file;
        let size = |picture: &DecodedPicture| format!("{} x {}", picture.width, picture.height);
        if size(found) != size(wanted) {
            let message = format!("{path} is {} pixels, and must be {}", size(found), size(wanted));
            return CheckFinding::new(false, message);
        }
        let pixels = found.pixels.len().max(1);
        let pairs = found.pixels.iter().zip(&wanted.pixels);
        let differ = pairs.filter(|(a, b)| self.is_different(a, b)).count();
        let share = differ as f64 / pixels as f64;
        CheckFinding::new(
            share <= self.at_most,
            format!("{differ} of {pixels} pixels of {path} differ ({:.2} %)", share * 100.0),
        )
    }

    /// Says whether two pixels look different. The colour of a pixel that cannot be seen does not matter.
    fn is_different(&self, a: &[u8; 4], b: &[u8; 4]) -> bool {
        let ([.., opacity_a], [.., opacity_b]) = (a, b);
        (*opacity_a > 0 || *opacity_b > 0) && a.iter().zip(b).any(|(a, b)| a.abs_diff(*b) > self.tolerance)
    }
}

impl Rule for ImageMatchesRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn reads_agent_output(&self) -> bool {
        false
    }

    fn value(&self) -> Value {
        let mut map = Map::from_iter([
            ("file".to_owned(), json!(self.file.as_str())),
            ("expected".to_owned(), json!(self.expected.as_str())),
            ("at_most".to_owned(), json!(self.at_most)),
            ("tolerance".to_owned(), json!(self.tolerance)),
        ]);
        if let Some(content) = &self.content {
            map.insert("expected_content".to_owned(), json!(BASE64.encode(content)));
        }
        Value::Object(map)
    }

    fn read_eval_files(&self, folder: &Path) -> Option<Result<Arc<dyn Rule>, String>> {
        if self.content.is_some() {
            return None;
        }
        let with_content = |bytes: Vec<u8>| -> Arc<dyn Rule> {
            Arc::new(Self { content: Some(Arc::from(bytes)), ..self.clone() })
        };
        Some(self.read_expected(folder).map(with_content))
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let path = &self.file;
        let unscored = |why: String| CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
        let bytes = match evidence.workspace.read(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                let why = evidence.workspace.describe_unreadable(path).unwrap_or("does not exist");
                return CheckFinding::new(false, format!("{path} {why}"));
            }
            Err(error) => return unscored(format!("cannot read {path}: {error}")),
        };
        let Some(content) = &self.content else {
            return unscored(format!("the expected picture {} was not read", self.expected));
        };
        match (decode_picture(&bytes), decode_picture(content)) {
            (Ok(found), Ok(wanted)) => self.compare(&found, &wanted),
            (Err(why), _) => unscored(format!("{path}: {why}")),
            (_, Err(why)) => unscored(format!("the expected picture {}: {why}", self.expected)),
        }
    }
}

fn schema() -> Value {
    MappingSchema::closed()
        .required(
            "file",
            "The picture, relative to the agent's working folder.",
            json_schema::with_examples(json_schema::nonempty_text(), json!(["chart.png"])),
        )
        .required(
            "expected",
            "The expected picture, relative to the eval file: PNG or JPEG, at most 2 MB.",
            json_schema::nonempty_text(),
        )
        .optional(
            "at_most",
            "The greatest share of pixels that may differ.",
            json_schema::with_default(json_schema::ratio(), 0),
        )
        .optional(
            "tolerance",
            "The greatest difference of red, green, blue or opacity at which two pixels are equal, of 255.",
            json_schema::with_default(json_schema::integer_between(0, 255), 0),
        )
        .optional(
            "expected_content",
            "The expected picture itself, in base64. Records of runs have it, so that they can be graded again.",
            json_schema::text(),
        )
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::pictures::testing::png;
    use super::super::rule_tests::{FolderWorkspace, NoFiles, decode, run_rule, run_with_output};
    use super::KIND;

    #[test]
    fn rows() {
        let evals = tempfile::tempdir().expect("a folder");
        let work = tempfile::tempdir().expect("a folder");
        let white = |_, _| [255, 255, 255, 255];
        std::fs::write(evals.path().join("white.png"), png(10, 10, white)).expect("write");
        std::fs::write(evals.path().join("text.png"), "no picture").expect("write");
        for (name, bytes) in [
            ("white.png", png(10, 10, white)),
            ("dot.png", png(10, 10, |x, y| if (x, y) == (3, 4) { [0, 0, 0, 255] } else { [255; 4] })),
            ("grey.png", png(10, 10, |_, _| [250, 250, 250, 255])),
            ("clear.png", png(10, 10, |x, _| [255, 255, 255, if x < 5 { 0 } else { 255 }])),
            ("small.png", png(9, 10, white)),
            ("broken.png", png(10, 10, white)[..40].to_vec()),
            ("text.png", b"no picture".to_vec()),
        ] {
            std::fs::write(work.path().join(name), bytes).expect("write");
        }
        std::os::unix::fs::symlink("/etc/passwd", evals.path().join("out.png")).expect("a link");
        let view = FolderWorkspace(work.path().to_owned());
        for (yaml, expected) in [
            ("{file: white.png, expected: white.png}", "pass"),
            ("{file: dot.png, expected: white.png}", "fail"),
            ("{file: dot.png, expected: white.png, at_most: 0.01}", "pass"),
            ("{file: dot.png, expected: white.png, at_most: 0.009}", "fail"),
            ("{file: grey.png, expected: white.png, tolerance: 4}", "fail"),
            ("{file: grey.png, expected: white.png, tolerance: 5}", "pass"),
            ("{file: clear.png, expected: white.png, at_most: 0.49}", "fail"),
            ("{file: clear.png, expected: white.png, at_most: 0.5}", "pass"),
            ("{file: small.png, expected: white.png, at_most: 1}", "fail"),
            ("{file: broken.png, expected: white.png, at_most: 1}", "not_scored"),
            ("{file: text.png, expected: white.png, at_most: 1}", "not_scored"),
            ("{file: white.png, expected: text.png}", "unreadable"),
            ("{file: white.png, expected: gone.png}", "unreadable"),
            ("{file: white.png, expected: out.png}", "unreadable"),
            ("{file: white.png, expected: ../white.png}", "refused"),
            ("{file: white.png}", "refused"),
            ("{file: white.png, expected: white.png, at_most: 2}", "refused"),
        ] {
            let found = match decode(&KIND, yaml) {
                Err(_) => "refused",
                Ok(rule) => match rule.read_eval_files(evals.path()).expect("it names a file") {
                    Err(_) => "unreadable",
                    Ok(rule) => {
                        // A record has the picture in it, and gives the same answer.
                        let again = decode(&KIND, &rule.value().to_string()).expect("it reads back");
                        assert!(again.read_eval_files(evals.path()).is_none());
                        let run = |rule| run_rule(rule, &run_with_output("done"), &view);
                        assert_eq!(run(rule.as_ref()), run(again.as_ref()), "{yaml}");
                        run(rule.as_ref()).verdict.name()
                    }
                },
            };
            assert_eq!(found, expected, "{yaml}");
        }
        let unread = decode(&KIND, "{file: white.png, expected: white.png}").expect("a rule");
        let found = run_rule(unread.as_ref(), &run_with_output("done"), &view);
        assert_eq!(found.verdict.name(), "not_scored", "an expected picture that nobody read");
        let found = run_rule(unread.as_ref(), &run_with_output("done"), &NoFiles);
        assert_eq!(found.verdict.name(), "fail", "a picture that is missing");
    }
}
