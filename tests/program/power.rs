//! How many runs a comparison needs.

use crate::common::Project;
use serde_json::Value;

fn ask(args: &[&str]) -> Value {
    Project::new(&[]).run(&[&["power", "--json"], args].concat()).exits(0).json()
}

#[test]
fn what_is_left_out_is_looked_for() {
    let found = ask(&["--baseline", "0.6", "--effect", "0.2"]);
    assert_eq!((&found["sought"], &found["repeat"]), (&"cases".into(), &1.into()));
    let once = found["cases"].as_u64().expect("a number");
    assert!((70..120).contains(&once), "{once}");
    let thrice = ask(&["--baseline", "0.6", "--effect", "0.2", "--repeat", "3"]);
    assert!(thrice["cases"].as_u64().is_some_and(|cases| cases < once));
    let back = ask(&["--baseline", "0.8", "--effect", "-0.2", "--cases", "30"]);
    assert_eq!(back["sought"], "repeat");
    let least = ask(&["--baseline", "0.6", "--cases", "12", "--repeat", "5"]);
    assert_eq!(least["sought"], "effect");
    assert!(least["effect"].as_f64().is_some_and(|effect| (0.15..0.4).contains(&effect)), "{least}");
    assert!(least["power"].as_f64().is_some_and(|power| power >= 0.8), "{least}");
}

#[test]
fn what_cannot_be_shown_is_said() {
    let found = ask(&["--baseline", "0.5", "--effect", "0.05", "--cases", "3", "--spread", "0.4"]);
    assert_eq!((&found["repeat"], &found["power"]), (&Value::Null, &Value::Null));
    let project = Project::new(&[]);
    let ran =
        project.run(&["power", "--baseline", "0.5", "--effect", "0.2", "--usd-per-run", "0.1"]).exits(0);
    assert!(ran.stdout.contains("runs in all, about $"), "{}", ran.stdout);
    for (args, why) in [
        (&["--baseline", "0.9", "--effect", "0.2"] as &[&str], "cannot become 1.10"),
        (&["--baseline", "0.9"], "--effect"),
        (&["--baseline", "1.9", "--effect", "0.2"], "between 0 and 1"),
    ] {
        let ran = project.run(&[&["power"], args].concat()).exits(2);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}
