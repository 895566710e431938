//! Suites that are called alike: what is kept and compared goes by their names, so in one exam each needs
//! its own.

use std::collections::HashMap;

use crate::dialects::Placed;

/// Adds to names that several suites have where each of them comes from. Which others there are decides
/// only whether that is needed, hardly ever what a suite is called then.
pub fn tell_apart(suites: &mut [Placed]) {
    let own = count(suites, |placed| placed.suite.name.clone());
    let in_project = count(suites, |placed| with_place(placed)[0].clone());
    for placed in suites.iter_mut().filter(|placed| own[&placed.suite.name] > 1) {
        let [short, long] = with_place(placed);
        // The same place in two projects.
        placed.suite.name = if in_project[&short] > 1 { long } else { short };
    }
}

/// What a suite is called beside others of its name, as seen from its project and from everywhere.
pub fn with_place(placed: &Placed) -> [String; 2] {
    let Placed { suite, project, .. } = placed;
    let whole = suite.origin.path.as_path();
    let within = whole.strip_prefix(project).unwrap_or(whole);
    [within, whole].map(|path| format!("{} ({})", suite.name, path.display()))
}

fn count(suites: &[Placed], name: impl Fn(&Placed) -> String) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for placed in suites {
        *counts.entry(name(placed)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{Place, load_text};
    use std::path::{Path, PathBuf};

    fn suite(project: &str, file: &str, name: &str) -> Placed {
        let place = Place { root: project.into(), project: project.into(), plugins: None, skill: None };
        let text =
            format!("practicum: 1\nname: {name}\ncases:\n- {{id: a, prompt: p, checks: [{{contains: x}}]}}");
        let loaded = load_text(&Path::new(project).join(file), text, &place);
        let suite = loaded.lowered.suite.expect("a suite");
        Placed { suite, root: place.root, project: PathBuf::from(project) }
    }

    #[test]
    fn names_that_several_have_tell_where_they_come_from() {
        let mut suites = [
            suite("/p", "a/e.yaml", "e"),
            suite("/p", "b/e.yaml", "e"),
            suite("/p", "f.yaml", "f"),
            suite("/q", "a/e.yaml", "e"),
        ];
        tell_apart(&mut suites);
        let names: Vec<&str> = suites.iter().map(|placed| placed.suite.name.as_str()).collect();
        assert_eq!(names, ["e (/p/a/e.yaml)", "e (b/e.yaml)", "f", "e (/q/a/e.yaml)"]);
    }
}
