//! The example runs as it is shown, on a runtime with one thread, and its verdict is that of the suite.

use std::process::Command;

#[test]
fn the_example_prints_the_verdict_of_each_case() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/greeter/.practicum");
    let ran = Command::new(env!("CARGO_BIN_EXE_embed-example")).output().expect("the example");
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0), "{out}{errors}");
    assert!(out.contains("greets: 2 of 2 trials passed"), "{out}");
    assert!(out.contains("leaves-sums-alone: 2 of 2 trials passed"), "{out}");
    std::fs::remove_dir_all(folder).expect("the record");
}
