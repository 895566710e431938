use std::path::{Path, PathBuf};

use super::{DIALECTS, Dialect, Fit, Place};
use crate::model::{Diagnostics, Lowered, Suite};
use crate::tree::Source;

/// A file after reading: what it says, and the text to show excerpts from.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub path: PathBuf,
    pub root: PathBuf,
    pub text: String,
    pub dialect: Option<&'static str>,
    pub lowered: Lowered,
}

/// Reads one eval file, in the given dialect or in the one that fits best.
pub fn load(path: &Path, place: &Place, forced: Option<&'static dyn Dialect>) -> Loaded {
    let mut diagnostics = Diagnostics::default();
    let (text, source) = Source::read(path, &mut diagnostics);
    let mut loaded = Loaded {
        path: path.to_owned(),
        root: place.root.clone(),
        text,
        dialect: None,
        lowered: Lowered { suite: None, diagnostics },
    };
    let Some(source) = source else { return loaded };
    let diagnostics = &mut loaded.lowered.diagnostics;
    let Some(dialect) = forced.or_else(|| recognise(&source, diagnostics)) else { return loaded };
    loaded.dialect = Some(dialect.name());
    let suite = dialect.lower(&source, place, diagnostics);
    // Half a suite is only good for finding more problems.
    loaded.lowered.suite = suite.filter(|_| !diagnostics.has_errors());
    loaded
}

fn recognise(source: &Source, diagnostics: &mut Diagnostics) -> Option<&'static dyn Dialect> {
    let fits: Vec<(Fit, &'static dyn Dialect)> = DIALECTS
        .iter()
        .map(|dialect| (dialect.recognise(source), *dialect))
        .filter(|(fit, _)| *fit > Fit::No)
        .collect();
    // The first of the best, so that the order of `DIALECTS` decides between equals.
    let best = fits.iter().map(|(fit, _)| *fit).max();
    let Some((_, chosen)) = fits.iter().copied().find(|(fit, _)| Some(*fit) == best) else {
        diagnostics.error_help(
            "unknown-format",
            None,
            "this is none of the eval formats",
            format!("name one with --dialect: {}", super::names().join(", ")),
        );
        return None;
    };
    let others: Vec<&str> =
        fits.iter().map(|(_, dialect)| dialect.name()).filter(|name| *name != chosen.name()).collect();
    if !others.is_empty() {
        diagnostics.notice(
            "ambiguous-format",
            None,
            format!(
                "read as {}; it could also be {} (choose with --dialect)",
                chosen.name(),
                others.join(" or ")
            ),
        );
    }
    Some(chosen)
}

/// Files whose folder is the suite become one suite for each folder they were found in.
pub fn merge_folders(loaded: Vec<(Suite, PathBuf)>) -> Vec<(Suite, PathBuf)> {
    let mut suites: Vec<(Suite, PathBuf)> = Vec::new();
    for (mut suite, root) in loaded {
        let merges = super::dialect(&suite.origin.dialect).is_some_and(Dialect::folder_is_suite);
        let known = suites.iter_mut().find(|(known, known_root)| {
            merges && known.origin.dialect == suite.origin.dialect && *known_root == root
        });
        match known {
            Some((known, _)) => known.cases.extend(suite.cases),
            None => {
                if merges {
                    suite.origin.path.clone_from(&root);
                }
                suites.push((suite, root));
            }
        }
    }
    suites
}
