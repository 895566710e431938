use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::decode::decode;
use super::lay_out::lay_out;
use super::memory::{Held, Memory};
use super::process::{Cancel, Output, supervise};
use super::tree::see_out;
use crate::observe::{ProcessEnd, RawRun, RawTurn};
use crate::sandbox::Confinement;
use crate::stage::Workspace;
use practicum_agents::agents::{Agent, Launch, Said, Transcript, Turn};

/// A transcript of fewer bytes is read sooner than another thread could take over what waits.
const AT_ONCE: u64 = 256 * 1024;

/// One trial's talk with an agent: its user messages, in one session, under one time limit.
pub struct Conversation<'c> {
    pub agent: &'c Agent,
    pub turns: &'c [String],
    pub model: Option<&'c str>,
    pub append_system: Option<&'c str>,
    /// The only tools that the agent may use, with commas between them.
    pub tools: Option<&'c str>,
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
    pub memory: &'c Memory,
}

/// What came of it.
pub struct Conversed {
    pub raw: RawRun,
    pub notes: Vec<String>,
    /// To be dropped with what was made of `raw`.
    pub held: Held,
}

impl Conversed {
    /// What comes of a conversation that nobody needs: the user's words, and an end.
    pub fn unneeded(turns: &[String]) -> Self {
        let turn = |prompt: &String| RawTurn {
            prompt: prompt.clone(),
            transcript: Transcript { said: Said::Done, cost_usd: Some(0.0), ..Transcript::default() },
            bytes: 0,
            process: ProcessEnd::Exited(0),
        };
        let raw = RawRun { turns: turns.iter().map(turn).collect(), ..RawRun::default() };
        Self { raw, notes: Vec::new(), held: Held::nothing() }
    }
}

/// Holds the conversation. It ends early when a turn does not come to a proper end.
pub async fn converse(talk: &Conversation<'_>, workspace: &Workspace, cancel: &Cancel) -> Conversed {
    // The agents' own time: what we take to read what they said is not theirs.
    let mut spent = Duration::ZERO;
    let mut raw = RawRun::default();
    let mut notes = Vec::new();
    let mut held = Held::nothing();
    let mut session = uuid::Uuid::new_v4().to_string();
    let output =
        Output { stdout: talk.record.join("transcript.jsonl"), stderr: talk.record.join("stderr.txt") };
    for (index, prompt) in talk.turns.iter().enumerate() {
        let started = Instant::now();
        let turn = Turn {
            prompt,
            workspace: &workspace.folder,
            home: &workspace.home,
            tmp: &workspace.tmp,
            model: talk.model,
            session: Some(&session),
            later: index > 0,
            append_system: talk.append_system,
            tools: talk.tools,
            gateway: talk.gateway,
            walled: talk.walls.holds(),
            plugins: &workspace.plugins,
            plugin_servers: workspace.plugin_servers.as_deref(),
        };
        let mut launch = match ready(talk, &turn) {
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
        let said_before = length(&output.stdout);
        let limit = talk.limit.saturating_sub(spent);
        let folder = &workspace.folder;
        let launch = talk.walls.wrap(launch, folder);
        let supervised = supervise(&launch, folder, talk.marker, limit, &output, cancel).await;
        if talk.walls.have_a_first_process() {
            see_out(talk.marker).await;
        }
        spent += started.elapsed();
        notes.extend(supervised.notes);
        // What was held for the turns before is part of this, and nobody may wait while holding some.
        drop(std::mem::replace(&mut held, Held::nothing()));
        let said = length(&output.stdout);
        held = talk.memory.room_for(said).await;
        let read = || decode(&output.stdout, said_before..said, talk.agent.decoder);
        let mut transcript = if said < AT_ONCE { read() } else { super::run_blocking(read) };
        transcript.unread = supervised.cut.or(transcript.unread);
        if let Some(named) = &transcript.session {
            session.clone_from(named);
        }
        let goes_on =
            supervised.end == ProcessEnd::Exited(0) && matches!(transcript.said, Said::Done | Said::Asked);
        let (prompt, bytes) = (prompt.clone(), said.saturating_sub(said_before));
        raw.turns.push(RawTurn { prompt, transcript, bytes, process: supervised.end });
        if !goes_on {
            break;
        }
    }
    raw.seconds = spent.as_secs_f64();
    Conversed { raw, notes, held }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Everything before the process itself: what to start, and the files it must find.
fn ready(talk: &Conversation<'_>, turn: &Turn<'_>) -> Result<Launch, String> {
    let launch = talk.agent.launch(turn, talk.user_env).map_err(|error| error.to_string())?;
    lay_out(&launch)?;
    Ok(launch)
}
