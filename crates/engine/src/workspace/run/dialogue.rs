//! Lets the client of an agent talk with the agent's process.

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::oneshot;

use super::decode::LineSplitter;
use practicum_agents::agents::AgentClient;

/// The conversation of a client with a process: reads what the process writes, and writes the answers to its standard
/// input.
pub struct Dialogue {
    client: Box<dyn AgentClient>,
    /// The standard input of the process; `None` after it was closed.
    input: Option<ChildStdin>,
    lines: LineSplitter,
    /// Tells the end of the turn, once.
    end: Option<oneshot::Sender<Result<(), String>>>,
}

impl Dialogue {
    /// Makes a conversation. The receiver gets the end of the turn, or nothing if the process ends before.
    pub fn new(
        client: Box<dyn AgentClient>,
        input: Option<ChildStdin>,
    ) -> (Self, oneshot::Receiver<Result<(), String>>) {
        let (end, ended) = oneshot::channel();
        (Self { client, input, lines: LineSplitter::default(), end: Some(end) }, ended)
    }

    /// Writes the first text of the client.
    pub async fn begin(&mut self) {
        let text = self.client.first_text();
        self.write(&text).await;
    }

    /// Reads what the process wrote, and answers each complete line.
    pub async fn read(&mut self, bytes: &[u8]) {
        let (client, mut answers) = (&mut self.client, Vec::new());
        self.lines.push(bytes, |line| answers.push(client.answer_line(line)));
        for answer in answers {
            self.write(&answer.text).await;
            if let Some((end, sender)) = answer.end.and_then(|end| Some((end, self.end.take()?))) {
                // Many agents end when their standard input is closed.
                self.input = None;
                // Nobody listens any more if the process is already being ended.
                let _ = sender.send(end);
            }
        }
    }

    /// Writes to the process. A process that does not read any more is about to end, which is noticed elsewhere.
    async fn write(&mut self, text: &str) {
        let Some(input) = self.input.as_mut().filter(|_| !text.is_empty()) else { return };
        if input.write_all(text.as_bytes()).await.is_err() {
            self.input = None;
        }
    }
}
