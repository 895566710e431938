//! An agent, which is a shell script, and the decoder of what it prints.

use practicum::agents::{AgentCli, Decoder, DecoderKind, StreamEnd, StreamTranscript};
use practicum::model::Step;

/// The script. It gets the prompt on standard input, and prints `say` before each line of its answer.
const SCRIPT: &str = r#"
case "$(cat)" in
    *France*) echo "say Paris" ;;
    *poem*) echo "say Roses are red,"; echo "say violets are blue." ;;
    *) echo "say It is four." ;;
esac
echo "done"
"#;

/// Gives the agent.
pub fn shell_agent() -> AgentCli {
    AgentCli {
        first_turn_args: vec![vec!["-c".to_owned(), SCRIPT.to_owned()]],
        ..AgentCli::new("shell", "sh", &DECODER)
    }
}

/// The kind of decoder.
pub static DECODER: DecoderKind = DecoderKind {
    name: "say",
    shows_skills: false,
    new_decoder: || Box::new(SayDecoder::default()),
    new_client: None,
};

/// A decoder of lines that begin with `say`, and of the last line, `done`.
#[derive(Default)]
struct SayDecoder {
    said: Vec<String>,
    is_done: bool,
}

impl Decoder for SayDecoder {
    fn read_line(&mut self, line: &str) -> bool {
        match line.strip_prefix("say ") {
            Some(said) => self.said.push(said.to_owned()),
            None => self.is_done |= line == "done",
        }
        true
    }

    fn finish(self: Box<Self>) -> StreamTranscript {
        let output = self.said.join("\n");
        StreamTranscript {
            steps: vec![Step::Text(output.clone())],
            output,
            // The stream shows no tool calls, so their absence means nothing.
            hides_tools: true,
            end: if self.is_done { StreamEnd::Done } else { StreamEnd::BrokenOff },
            ..StreamTranscript::default()
        }
    }
}
