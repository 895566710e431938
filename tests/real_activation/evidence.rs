//! The evidence that is compared: the recorded requests, and the agent's own stream and session files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use practicum::agents::{
    SessionRecord, SkillTextLines, SkillTextWatch, find_decoder, read_session_files, text_findings,
};
use practicum::model::{ObservedActivation, Step};
use practicum::skill::Skill;
use practicum::workspace::observe::{ProcessEnd, RawRun, RawTurn, observe};
use serde_json::Value;

use crate::common::Project;
use crate::scenarios::{Agent, Scenario};
use crate::{BODY, Decision};

/// The requests of a run, as its cassette has them.
pub struct RecordedRequests {
    texts: HashMap<String, String>,
    /// The trial of each request, and the digests of the texts that were not written by the model.
    requests: Vec<(String, Vec<String>)>,
}

impl RecordedRequests {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a cassette");
        let (mut texts, mut requests) = (HashMap::new(), Vec::new());
        for line in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
            let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match line["line"].as_str() {
                Some("text") => {
                    texts.insert(said(&line["digest"]), said(&line["text"]));
                }
                Some("exchange") => {
                    let parts = line["request"].as_array().expect("parts").iter();
                    let received = parts.filter(|part| !said(&part["at"]).contains(" assistant "));
                    requests
                        .push((said(&line["trial"]), received.map(|part| said(&part["digest"])).collect()));
                }
                _ => {}
            }
        }
        Self { texts, requests }
    }

    /// Says whether the skill's text is in a request of this scenario; `None` if a part of it is.
    pub fn show_text(&self, scenario: &Scenario) -> Option<bool> {
        let prefix = format!("{}-", scenario.id());
        let of_scenario = self.requests.iter().filter(|(trial, _)| trial.starts_with(&prefix));
        let texts: Vec<String> = of_scenario
            .flat_map(|(_, digests)| digests)
            .filter_map(|digest| self.texts.get(digest))
            .map(|text| text.to_lowercase())
            .collect();
        assert!(!texts.is_empty(), "{}: no requests", scenario.name);
        let is_shown = |line: &&&str| texts.iter().any(|text| text.contains(&line.to_lowercase()));
        match BODY.iter().filter(is_shown).count() {
            0 => Some(false),
            shown if shown == BODY.len() => Some(true),
            _ => None,
        }
    }
}

/// Decides a scenario without the gateway: by the stream that the run stored, and the session files in the home of
/// the agent.
pub fn decide_without_gateway(
    agent: Agent,
    project: &Project,
    scenario: &Scenario,
    workspaces: &Path,
) -> Decision {
    let decoder = find_decoder(agent.decoder()).expect("a decoder");
    let skill = Skill::read(&project.path().join("greeter")).expect("a skill");
    let skills = [SkillTextLines::new(vec!["greeter".to_owned()], &skill)];
    let transcript = {
        let mut decoder = (decoder.new_decoder)();
        stored_stream(project, scenario).lines().for_each(|line| assert!(decoder.read_line(line), "{line}"));
        decoder.finish()
    };
    let turn = RawTurn { prompt: scenario.prompt(), transcript, bytes: 0, process: ProcessEnd::Exited(0) };
    let mut seen = observe(RawRun { turns: vec![turn], seconds: 0.0 }, Vec::new(), false);
    let recorded = homes(workspaces).iter().find_map(|home| match read_session_files(decoder, home) {
        SessionRecord::Conversations(sessions) => {
            let is_ours = sessions.iter().any(|session| format!("{session:?}").contains(&scenario.prompt()));
            let mut watch = SkillTextWatch::new(skills.to_vec());
            sessions.iter().for_each(|session| watch.read_request(session));
            is_ours.then(|| watch.findings("a session"))
        }
        SessionRecord::NotKept | SessionRecord::Missing(_) => None,
    });
    assert_eq!(recorded.is_some(), agent == Agent::Codex, "{}: session files", scenario.name);
    assert!(seen.steps.iter().any(|step| matches!(step, Step::Tool(_))) || agent == Agent::Codex);
    seen.apply_text_findings(text_findings(&skills, &seen.steps, recorded));
    match seen.activation_of("greeter") {
        ObservedActivation::Yes(_) => Decision::Yes,
        ObservedActivation::No => Decision::No,
        ObservedActivation::Unknown(_) => Decision::Unknown,
    }
}

fn stored_stream(project: &Project, scenario: &Scenario) -> String {
    let trials = project.only_run().join("trials");
    let prefix = format!("{}-", scenario.id());
    let mut folders = std::fs::read_dir(trials).expect("trials").flatten();
    let folder = folders.find(|folder| folder.file_name().to_string_lossy().starts_with(&prefix));
    let path = folder.expect("a trial").path().join("transcript.jsonl");
    std::fs::read_to_string(path).expect("a transcript")
}

/// Gives the home of every trial: `<workspaces>/<first letter>/<trial>/home`.
fn homes(workspaces: &Path) -> Vec<PathBuf> {
    let below =
        |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    below(workspaces.to_owned()).flat_map(below).map(|trial| trial.join("home")).collect()
}
