use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::expected_activation::seems_meant;
use crate::model::{Diagnostic, Diagnostics, Severity};
use crate::tree::Object;

/// Keys that a format permits and no stage uses. They are kept, so that converting loses nothing,
/// and told once for each key, so that a hundred cases do not say the same thing a hundred times.
#[derive(Debug, Default)]
pub struct Kept {
    told: HashSet<(&'static str, String)>,
    /// Keys beginning with `_` are notes to oneself and not worth a word.
    underscore_is_silent: bool,
}

impl Kept {
    pub fn with_silent_underscores() -> Self {
        Self { told: HashSet::new(), underscore_is_silent: true }
    }

    /// What nobody asked for in an object. `what` names the object: "an eval".
    pub fn rest(
        &mut self,
        object: &Object<'_>,
        what: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> BTreeMap<String, Value> {
        let mut meta = BTreeMap::new();
        for entry in object.rest() {
            meta.insert(entry.key.clone(), entry.value.to_value());
            let silent = self.underscore_is_silent && entry.key.starts_with('_');
            if silent || !self.told.insert((what, entry.key.clone())) {
                continue;
            }
            if seems_meant(&entry.key) {
                diagnostics.warning_help(
                    "unchecked-activation",
                    entry.key_span,
                    format!(
                        "{what} has a key \"{}\" that seems to say whether a skill is activated; it is not \
                         understood here, so nothing checks it",
                        entry.key
                    ),
                    "say it with \"should_trigger\" or \"expected_skill\"",
                );
                continue;
            }
            let misspelt = object.misspelt(&entry.key);
            let meant = misspelt.or_else(|| object.perhaps(&entry.key));
            diagnostics.push(Diagnostic {
                // What a misspelt key should do is not done, and a run must not hide that.
                severity: if misspelt.is_some() { Severity::Warning } else { Severity::Notice },
                code: "unknown-key",
                message: format!("{what} has a key \"{}\" that means nothing here; it is kept", entry.key),
                span: Some(entry.key_span),
                help: meant.map(|known| format!("did you mean \"{known}\"?")),
            });
        }
        meta
    }
}
