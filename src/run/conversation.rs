use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::process::{Cancel, Output, supervise};
use super::tree::bury;
use crate::agents::{Agent, Launch, Said, Transcript, Turn};
use crate::observe::{ProcessEnd, RawRun, RawTurn};
use crate::sandbox::Confinement;
use crate::stage::Workspace;

/// One trial's talk with an agent: its user messages, in one session, under one time limit.
pub struct Conversation<'c> {
    pub agent: &'c Agent,
    pub turns: &'c [String],
    pub model: Option<&'c str>,
    pub append_system: Option<&'c str>,
    pub gateway: Option<&'c str>,
    pub user_env: &'c BTreeMap<String, String>,
    /// Added to what the agent's descriptor sets.
    pub extra_env: &'c [(String, String)],
    pub limit: Duration,
    pub walls: &'c Confinement,
    /// Names the trial's processes.
    pub marker: &'c str,
    /// Where transcript and standard error are kept.
    pub record: &'c Path,
}

/// Holds the conversation. It ends early when a turn does not come to a proper end.
pub async fn converse(
    talk: &Conversation<'_>,
    workspace: &Workspace,
    cancel: &Cancel,
) -> (RawRun, Vec<String>) {
    let started = Instant::now();
    let mut raw = RawRun::default();
    let mut notes = Vec::new();
    let mut session = uuid::Uuid::new_v4().to_string();
    let output =
        Output { stdout: talk.record.join("transcript.jsonl"), stderr: talk.record.join("stderr.txt") };
    let mut before = 0;
    for (index, prompt) in talk.turns.iter().enumerate() {
        let turn = Turn {
            prompt,
            workspace: &workspace.folder,
            home: &workspace.home,
            tmp: &workspace.tmp,
            model: talk.model,
            session: Some(&session),
            later: index > 0,
            append_system: talk.append_system,
            gateway: talk.gateway,
            walled: talk.walls.holds(),
        };
        let mut launch = match ready(talk, &turn).await {
            Ok(launch) => launch,
            Err(why) => {
                let process = ProcessEnd::NotLaunched(why);
                raw.turns.push(RawTurn {
                    prompt: prompt.clone(),
                    transcript: Transcript::default(),
                    bytes: 0,
                    process,
                });
                break;
            }
        };
        launch.env.extend(talk.extra_env.iter().cloned());
        let mut decoder = (talk.agent.decoder.start)();
        let limit = talk.limit.saturating_sub(started.elapsed());
        let folder = &workspace.folder;
        let launch = talk.walls.wrap(launch, folder);
        let supervised =
            supervise(&launch, folder, talk.marker, limit, &output, decoder.as_mut(), cancel).await;
        if talk.walls.have_a_first_process() {
            bury(talk.marker).await;
        }
        notes.extend(supervised.notes);
        let transcript = decoder.finish();
        if let Some(named) = &transcript.session {
            session.clone_from(named);
        }
        let goes_on =
            supervised.end == ProcessEnd::Exited(0) && matches!(transcript.said, Said::Done | Said::Asked);
        let until = std::fs::metadata(&output.stdout).map_or(0, |kept| kept.len());
        let (prompt, bytes) = (prompt.clone(), until.saturating_sub(before));
        before = until;
        raw.turns.push(RawTurn { prompt, transcript, bytes, process: supervised.end });
        if !goes_on {
            break;
        }
    }
    raw.seconds = started.elapsed().as_secs_f64();
    (raw, notes)
}

/// Everything before the process itself: what to start, and the files it must find.
async fn ready(talk: &Conversation<'_>, turn: &Turn<'_>) -> Result<Launch, String> {
    let launch = talk.agent.launch(turn, talk.user_env).map_err(|error| error.to_string())?;
    for (path, content) in &launch.files {
        let written = async {
            if let Some(folder) = path.parent() {
                tokio::fs::create_dir_all(folder).await?;
            }
            tokio::fs::write(path, content).await
        };
        written.await.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(launch)
}
