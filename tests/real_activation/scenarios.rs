//! The scenarios: what the model does with the file of a skill, and whether that brings it the text.

use serde_json::{Value, json};

/// An agent CLI with the names of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    Opencode,
}

/// One thing that the model does.
#[derive(Debug, Clone)]
pub enum Act {
    /// Runs a shell command. `DIR` stands for the folder of the skill, `SKILLS` for the folder of all skills.
    Shell(&'static str),
    /// Reads a file with the agent's tool for that.
    Read(&'static str),
    /// Calls the agent's tool for skills.
    Skill(&'static str),
    /// Searches with the agent's tool for that.
    Search,
    /// Gives work to a subagent, which does one thing.
    Delegate(Option<&'static str>),
}
use Act::{Delegate, Read, Search, Shell, Skill};

/// What the model does in one case.
#[derive(Debug, Clone)]
pub struct Scenario {
    agent: Agent,
    number: usize,
    pub name: &'static str,
    act: Act,
    /// Whether the text reaches the model; `None` if that depends on what is installed, or only a part of it does.
    pub expected: Option<bool>,
}

/// Commands that show the text.
const SHOWING: &[(&str, &str)] = &[
    ("cat", "cat DIR/SKILL.md"),
    ("cd and cat", "cd DIR && cat SKILL.md"),
    ("cat through another folder", "cat ./DIR/references/../SKILL.md"),
    ("find and exec", "find SKILLS -path '*greeter*' -name SKILL.md -exec cat {} \\;"),
    ("grep of every line", "grep -n '' DIR/SKILL.md"),
    ("sed", "sed -n 1,50p DIR/SKILL.md"),
    ("head", "head -40 DIR/SKILL.md"),
    ("awk", "awk 1 DIR/SKILL.md"),
    ("here-string", "cat <<< \"$(cat DIR/SKILL.md)\""),
    ("shell in a shell", "bash -lc 'cat DIR/SKILL.md'"),
    ("xargs", "find DIR -name SKILL.md | xargs cat"),
    ("loop over a pattern", "for f in SKILLS/gree*/SKILL.md; do cat \"$f\"; done"),
    ("a failure after it", "cat DIR/SKILL.md; exit 3"),
    ("a copy", "cp DIR/SKILL.md copy.md && cat copy.md"),
    ("capitals", "tr a-z A-Z < DIR/SKILL.md"),
];

/// Commands that do not show it.
const HIDING: &[(&str, &str)] = &[
    ("counted lines", "cat DIR/SKILL.md | wc -l"),
    ("thrown away", "cat DIR/SKILL.md > /dev/null"),
    ("ls", "ls -l DIR/SKILL.md"),
    ("echo of the name", "echo DIR/SKILL.md"),
    ("test", "test -f DIR/SKILL.md && echo there"),
    ("grep that counts", "grep -c . DIR/SKILL.md"),
    ("cp", "cp DIR/SKILL.md copy.md"),
    ("no such file", "cat DIR/none/SKILL.md"),
    ("frontmatter only", "head -3 DIR/SKILL.md"),
    ("another skill", "cat SKILLS/waver/SKILL.md"),
    ("another file of the skill", "cat DIR/references/phrases.md"),
];

/// Commands that depend on what is installed, or show a part.
const OTHER: &[(&str, &str)] = &[
    ("python", "python3 -c \"print(open('DIR/SKILL.md').read())\""),
    ("less", "less DIR/SKILL.md"),
    ("one line", "grep -n ahoy DIR/SKILL.md"),
];

/// Commands that only Codex is tried with, whose stream shows them best. The reader of commands is the same for all.
const ONLY_CODEX: [&str; 9] = [
    "head",
    "awk",
    "here-string",
    "loop over a pattern",
    "capitals",
    "no such file",
    "another file of the skill",
    "less",
    "thrown away",
];

/// Gives the scenarios of an agent.
pub fn all_scenarios(agent: Agent) -> Vec<Scenario> {
    let shell = |rows: &'static [(&str, &str)], expected: Option<bool>| {
        rows.iter().map(move |(name, command)| (*name, Shell(command), expected))
    };
    let reading = "cat DIR/SKILL.md";
    let mut rows = vec![
        ("a subagent that reads it", Delegate(Some(reading)), Some(true)),
        ("a subagent that does not", Delegate(Some("ls")), Some(false)),
        ("a subagent that only answers", Delegate(None), Some(false)),
    ];
    if agent != Agent::Codex {
        rows.extend([
            ("skill tool", Skill("greeter"), Some(true)),
            ("skill tool, another skill", Skill("waver"), Some(false)),
            ("skill tool, no such skill", Skill("greter"), Some(false)),
            ("read tool", Read("DIR/SKILL.md"), Some(true)),
            ("read tool, odd path", Read("DIR/./references/../SKILL.md"), Some(true)),
            ("read tool, another file", Read("DIR/references/phrases.md"), Some(false)),
            ("search tool", Search, None),
        ]);
    }
    let shells = shell(SHOWING, Some(true)).chain(shell(HIDING, Some(false))).chain(shell(OTHER, None));
    let tried = shells.filter(|(name, ..)| agent == Agent::Codex || !ONLY_CODEX.contains(name));
    let all = tried.chain(rows).enumerate();
    all.map(|(number, (name, act, expected))| Scenario { agent, number, name, act, expected }).collect()
}

impl Agent {
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Opencode => "opencode",
        }
    }

    pub fn decoder(self) -> &'static str {
        match self {
            Agent::Claude => "claude-stream-json",
            Agent::Codex => "codex-jsonl",
            Agent::Opencode => "opencode-json",
        }
    }

    /// Gives the number of scenarios that nothing but the requests shows.
    pub fn hidden_scenarios(self) -> usize {
        match self {
            Agent::Claude | Agent::Codex => 0,
            // Its stream does not show what a subagent does.
            Agent::Opencode => 3,
        }
    }

    fn skills_folder(self) -> &'static str {
        match self {
            Agent::Claude => ".claude/skills",
            Agent::Codex | Agent::Opencode => ".agents/skills",
        }
    }

    fn shell_call(self, command: &str) -> Value {
        match self {
            Agent::Claude => tool("Bash", json!({"command": command, "description": "looks"})),
            Agent::Codex => tool("exec_command", json!({"cmd": command})),
            Agent::Opencode => tool("bash", json!({"command": command, "description": "looks"})),
        }
    }
}

fn tool(name: &str, input: Value) -> Value {
    json!({"tools": [{"name": name, "input": input}]})
}

impl Scenario {
    pub fn id(&self) -> String {
        format!("s{:02}", self.number)
    }

    pub fn prompt(&self) -> String {
        format!("Say hello to the guests at table {:02}.", self.number)
    }

    fn errand(&self) -> String {
        format!("Help with the guests of row {:02}.", self.number)
    }

    /// Gives the scenarios of the script: what the model answers, and its subagent.
    pub fn script(&self) -> Vec<Value> {
        let errand = self.errand();
        let mut steps = match &self.act {
            Shell(command) => vec![self.agent.shell_call(&self.filled(command))],
            Read(path) => vec![self.read_call(path)],
            Skill(name) if self.agent == Agent::Claude => vec![tool("Skill", json!({"skill": name}))],
            Skill(name) => vec![tool("skill", json!({"name": name}))],
            Search if self.agent == Agent::Claude => {
                // It has no tool for searching here; its shell does that.
                vec![self.agent.shell_call(&self.filled("grep -rn hearty SKILLS"))]
            }
            Search => vec![tool("grep", json!({"pattern": "hearty", "path": ".agents"}))],
            Delegate(_) => self.delegate_calls(&errand),
        };
        steps.push(json!("Hello."));
        let mut script = vec![json!({"name": self.id(), "when": self.prompt(), "steps": steps})];
        if let Delegate(command) = &self.act {
            let call = command.map(|command| self.agent.shell_call(&self.filled(command)));
            let steps: Vec<Value> = call.into_iter().chain([json!("Helped.")]).collect();
            script.push(json!({"name": errand.clone(), "when": errand, "steps": steps}));
        }
        script
    }

    fn delegate_calls(&self, errand: &str) -> Vec<Value> {
        match self.agent {
            Agent::Claude => vec![tool(
                "Agent",
                json!({"description": "help", "prompt": errand, "subagent_type": "general-purpose",
                       "run_in_background": false}),
            )],
            Agent::Codex => vec![
                tool(
                    "collaboration.spawn_agent",
                    json!({"task_name": "help", "message": errand, "fork_turns": "none"}),
                ),
                tool("collaboration.wait_agent", json!({"timeout_ms": 30000})),
            ],
            Agent::Opencode => vec![tool(
                "task",
                json!({"description": "help", "prompt": errand, "subagent_type": "general"}),
            )],
        }
    }

    fn read_call(&self, path: &str) -> Value {
        // The folder of the workspace is not known to the script, and both tools take paths below it.
        let path = self.filled(path);
        match self.agent {
            Agent::Claude => tool("Read", json!({"file_path": path})),
            Agent::Codex | Agent::Opencode => tool("read", json!({"filePath": path})),
        }
    }

    fn filled(&self, text: &str) -> String {
        let folder = self.agent.skills_folder();
        text.replace("DIR", &format!("{folder}/greeter")).replace("SKILLS", folder)
    }
}
