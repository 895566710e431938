//! The files of the page, which are part of the program.

use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::ViewerError;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The files of the page. A new file is a line here.
static ASSETS: &[(&str, &str, &str)] = &[
    ("style.css", STYLE, include_str!("web/style.css")),
    ("app.js", SCRIPT, include_str!("web/app.js")),
    ("dom.js", SCRIPT, include_str!("web/dom.js")),
    ("api.js", SCRIPT, include_str!("web/api.js")),
    ("keys.js", SCRIPT, include_str!("web/keys.js")),
    ("parts.js", SCRIPT, include_str!("web/parts.js")),
    ("chart.js", SCRIPT, include_str!("web/chart.js")),
    ("figures.js", SCRIPT, include_str!("web/figures.js")),
    ("transcript.js", SCRIPT, include_str!("web/transcript.js")),
    ("rich.js", SCRIPT, include_str!("web/rich.js")),
    ("runs.js", SCRIPT, include_str!("web/runs.js")),
    ("run.js", SCRIPT, include_str!("web/run.js")),
    ("routing.js", SCRIPT, include_str!("web/routing.js")),
    ("case.js", SCRIPT, include_str!("web/case.js")),
    ("trial.js", SCRIPT, include_str!("web/trial.js")),
    ("label.js", SCRIPT, include_str!("web/label.js")),
    ("compare.js", SCRIPT, include_str!("web/compare.js")),
    ("search.js", SCRIPT, include_str!("web/search.js")),
    ("trends.js", SCRIPT, include_str!("web/trends.js")),
];

pub async fn page() -> Response {
    ([(CONTENT_TYPE, HTML)], include_str!("web/index.html")).into_response()
}

pub async fn asset(Path(name): Path<String>) -> Result<Response, ViewerError> {
    let (_, kind, text) = ASSETS
        .iter()
        .find(|(known, _, _)| *known == name)
        .ok_or(ViewerError::Missing("there is no such file"))?;
    Ok(([(CONTENT_TYPE, *kind)], *text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page requests only files that are part of the program, and nothing from elsewhere.
    #[test]
    fn every_file_that_is_asked_for_is_there() {
        let import = regex::Regex::new(r#"(?:from|import) "\./([^"]+)""#).expect("a pattern");
        let mut asked: Vec<String> = Vec::new();
        for (name, _, text) in ASSETS {
            asked.extend(import.captures_iter(text).map(|found| found[1].to_owned()));
            assert!(
                !text.contains("http://") || *name == "dom.js" || *name == "chart.js",
                "{name} names an address"
            );
            assert!(!text.contains("https://"), "{name} names an address");
            for unsafe_way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text.contains(unsafe_way), "{name}: {unsafe_way}");
            }
        }
        for name in asked.iter().map(String::as_str).chain(["style.css", "app.js"]) {
            assert!(ASSETS.iter().any(|(known, _, _)| *known == name), "{name}");
        }
    }
}
