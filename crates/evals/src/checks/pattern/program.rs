//! A pattern as instructions for the backtracking engine. Repetition is counted, never unrolled, so a program is
//! no longer than its pattern.

use regex::Regex;

use super::match_start::start_regex;
use super::sets::QuickSet;
use super::syntax::{CaseFolding, Greediness, LookSide, PatternAnchor, PatternNode};

/// A position in the program.
pub type StepIndex = usize;

/// One instruction of a compiled pattern.
#[derive(Debug)]
pub enum PatternStep {
    OneCharacter(QuickSet),
    Anchor(PatternAnchor),
    /// Continue at the next step; if that fails, at the given one.
    Branch(StepIndex),
    Jump(StepIndex),
    /// Record the current position as the start (even) or end (odd) of a group.
    MarkGroup(usize),
    /// Match one character repeatedly, without leaving this step.
    RepeatCharacter(CharacterRepeat),
    /// Enter a loop; its `LoopTurn` comes next.
    EnterLoop(usize),
    /// Take another turn of the loop (at the next step) or leave it (at `exit`).
    LoopTurn(CountedLoop),
    /// Run the next steps up to their `Done` as one atomic group, then continue at `exit`.
    Atom {
        exit: StepIndex,
    },
    /// Run the next steps up to their `Done` as often as they match, each time as an atomic group.
    Atoms {
        min: u32,
        max: Option<u32>,
        exit: StepIndex,
    },
    LookAround {
        side: LookSide,
        wanted: bool,
        exit: StepIndex,
    },
    BackReference {
        group: usize,
        fold: Option<CaseFolding>,
    },
    /// Continue at the next step if the group matched, otherwise at the given one.
    IfMatched(usize, StepIndex),
    Done,
}

/// A repetition of one character.
#[derive(Debug)]
pub struct CharacterRepeat {
    pub set: QuickSet,
    pub min: u32,
    pub max: Option<u32>,
    pub greed: Greediness,
}

/// A loop that counts its turns.
#[derive(Debug, Clone, Copy)]
pub struct CountedLoop {
    /// The number of this loop in the program.
    pub index: usize,
    pub min: u32,
    pub max: Option<u32>,
    pub lazy: bool,
    pub exit: StepIndex,
}

/// A pattern compiled for the backtracking engine.
#[derive(Debug)]
pub struct PatternProgram {
    pub steps: Vec<PatternStep>,
    /// The number of loops that count their turns.
    pub loop_count: usize,
    pub group_count: usize,
    /// The length in characters of the shortest possible match.
    pub min_length: u64,
    /// A regex for the positions where a match can begin, if these are few.
    pub match_start: Option<Regex>,
}

impl PatternProgram {
    pub fn new(node: &PatternNode, groups: usize) -> Self {
        let mut program = Self {
            steps: Vec::new(),
            loop_count: 0,
            group_count: groups,
            min_length: node.width().min,
            match_start: start_regex(node),
        };
        program.add_node(node);
        program.steps.push(PatternStep::Done);
        program
    }

    fn add_node(&mut self, node: &PatternNode) {
        match node {
            PatternNode::OneCharacter(set) => self.steps.push(PatternStep::OneCharacter(QuickSet::new(set))),
            PatternNode::Anchor(at) => self.steps.push(PatternStep::Anchor(*at)),
            PatternNode::Sequence(nodes) => nodes.iter().for_each(|node| self.add_node(node)),
            PatternNode::Alternatives(nodes) => self.add_alternatives(nodes),
            PatternNode::Capture(group, node) => {
                self.steps.push(PatternStep::MarkGroup(group * 2));
                self.add_node(node);
                self.steps.push(PatternStep::MarkGroup(group * 2 + 1));
            }
            PatternNode::Repeat { node, min, max, greed } => self.add_repeat(node, *min, *max, *greed),
            PatternNode::Atomic(node) => self.add_enclosed(node, |exit| PatternStep::Atom { exit }),
            PatternNode::LookAround { side, wanted, node } => {
                self.add_enclosed(node, |exit| PatternStep::LookAround {
                    side: *side,
                    wanted: *wanted,
                    exit,
                });
            }
            PatternNode::BackReference { group, fold, .. } => {
                self.steps.push(PatternStep::BackReference { group: *group, fold: *fold })
            }
            PatternNode::IfMatched { group, then, otherwise } => {
                let question = self.placeholder();
                self.add_node(then);
                let jump = self.placeholder();
                self.steps[question] = PatternStep::IfMatched(*group, self.steps.len());
                self.add_node(otherwise);
                self.steps[jump] = PatternStep::Jump(self.steps.len());
            }
        }
    }

    fn add_alternatives(&mut self, nodes: &[PatternNode]) {
        let mut jumps = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            if index + 1 == nodes.len() {
                self.add_node(node);
                break;
            }
            let or = self.placeholder();
            self.add_node(node);
            jumps.push(self.placeholder());
            self.steps[or] = PatternStep::Branch(self.steps.len());
        }
        for jump in jumps {
            self.steps[jump] = PatternStep::Jump(self.steps.len());
        }
    }

    fn add_repeat(&mut self, node: &PatternNode, min: u32, max: Option<u32>, greed: Greediness) {
        if let PatternNode::OneCharacter(set) = node {
            self.steps.push(PatternStep::RepeatCharacter(CharacterRepeat {
                set: QuickSet::new(set),
                min,
                max,
                greed,
            }));
            return;
        }
        let lazy = match greed {
            Greediness::Greedy => false,
            Greediness::Lazy => true,
            Greediness::Possessive => {
                self.add_enclosed(node, |exit| PatternStep::Atoms { min, max, exit });
                return;
            }
        };
        let index = self.loop_count;
        self.loop_count += 1;
        self.steps.push(PatternStep::EnterLoop(index));
        let turn = self.placeholder();
        self.add_node(node);
        self.steps.push(PatternStep::Jump(turn));
        self.steps[turn] =
            PatternStep::LoopTurn(CountedLoop { index, min, max, lazy, exit: self.steps.len() });
    }

    fn add_enclosed(&mut self, node: &PatternNode, step: impl FnOnce(StepIndex) -> PatternStep) {
        let opening = self.placeholder();
        self.add_node(node);
        self.steps.push(PatternStep::Done);
        self.steps[opening] = step(self.steps.len());
    }

    /// Adds a step whose target is filled in when it is known.
    fn placeholder(&mut self) -> StepIndex {
        self.steps.push(PatternStep::Done);
        self.steps.len() - 1
    }
}
