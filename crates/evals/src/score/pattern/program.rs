//! A pattern as instructions for the backtracking engine. Repetition is counted, never unrolled,
//! so a program is no longer than its pattern.

use regex::Regex;

use super::head::head;
use super::sets::QuickSet;
use super::syntax::{At, Fold, Greed, Node, Side};

/// A place in the program.
pub type Pc = usize;

#[derive(Debug)]
pub enum Step {
    One(QuickSet),
    At(At),
    /// Go on at the next step; if that fails, at the other.
    Or(Pc),
    Jump(Pc),
    /// The start (even) or end (odd) of a group is here.
    Mark(usize),
    /// One character again and again, without leaving this step.
    Many(Many),
    /// Enters a loop; its `Turn` comes next.
    Enter(usize),
    /// Whether the loop goes round again (at the next step) or ends (at `exit`).
    Turn(Loop),
    /// The next steps up to their `Done` as one atom, then on at `exit`.
    Atom {
        exit: Pc,
    },
    /// The next steps up to their `Done`, as often as they match, each time an atom.
    Atoms {
        min: u32,
        max: Option<u32>,
        exit: Pc,
    },
    Look {
        side: Side,
        wanted: bool,
        exit: Pc,
    },
    Same {
        group: usize,
        fold: Option<Fold>,
    },
    /// Go on at the next step if the group matched, else at the other.
    IfMatched(usize, Pc),
    Done,
}

#[derive(Debug)]
pub struct Many {
    pub set: QuickSet,
    pub min: u32,
    pub max: Option<u32>,
    pub greed: Greed,
}

#[derive(Debug, Clone, Copy)]
pub struct Loop {
    /// Which of the program's loops it is.
    pub index: usize,
    pub min: u32,
    pub max: Option<u32>,
    pub lazy: bool,
    pub exit: Pc,
}

#[derive(Debug)]
pub struct Program {
    pub steps: Vec<Step>,
    /// How many loops count their turns.
    pub loops: usize,
    pub groups: usize,
    /// No match has fewer characters.
    pub shortest: u64,
    /// Finds the places where a match can begin, where they are few.
    pub head: Option<Regex>,
}

impl Program {
    pub fn new(node: &Node, groups: usize) -> Self {
        let mut program =
            Self { steps: Vec::new(), loops: 0, groups, shortest: node.width().min, head: head(node) };
        program.add(node);
        program.steps.push(Step::Done);
        program
    }

    fn add(&mut self, node: &Node) {
        match node {
            Node::One(set) => self.steps.push(Step::One(QuickSet::new(set))),
            Node::At(at) => self.steps.push(Step::At(*at)),
            Node::All(nodes) => nodes.iter().for_each(|node| self.add(node)),
            Node::Either(nodes) => self.add_either(nodes),
            Node::Capture(group, node) => {
                self.steps.push(Step::Mark(group * 2));
                self.add(node);
                self.steps.push(Step::Mark(group * 2 + 1));
            }
            Node::Repeat { node, min, max, greed } => self.add_repeat(node, *min, *max, *greed),
            Node::Atomic(node) => self.add_enclosed(node, |exit| Step::Atom { exit }),
            Node::Look { side, wanted, node } => {
                self.add_enclosed(node, |exit| Step::Look { side: *side, wanted: *wanted, exit });
            }
            Node::Same { group, fold, .. } => self.steps.push(Step::Same { group: *group, fold: *fold }),
            Node::IfMatched { group, then, otherwise } => {
                let question = self.placeholder();
                self.add(then);
                let jump = self.placeholder();
                self.steps[question] = Step::IfMatched(*group, self.steps.len());
                self.add(otherwise);
                self.steps[jump] = Step::Jump(self.steps.len());
            }
        }
    }

    fn add_either(&mut self, nodes: &[Node]) {
        let mut jumps = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            if index + 1 == nodes.len() {
                self.add(node);
                break;
            }
            let or = self.placeholder();
            self.add(node);
            jumps.push(self.placeholder());
            self.steps[or] = Step::Or(self.steps.len());
        }
        for jump in jumps {
            self.steps[jump] = Step::Jump(self.steps.len());
        }
    }

    fn add_repeat(&mut self, node: &Node, min: u32, max: Option<u32>, greed: Greed) {
        if let Node::One(set) = node {
            self.steps.push(Step::Many(Many { set: QuickSet::new(set), min, max, greed }));
            return;
        }
        let lazy = match greed {
            Greed::Greedy => false,
            Greed::Lazy => true,
            Greed::Possessive => {
                self.add_enclosed(node, |exit| Step::Atoms { min, max, exit });
                return;
            }
        };
        let index = self.loops;
        self.loops += 1;
        self.steps.push(Step::Enter(index));
        let turn = self.placeholder();
        self.add(node);
        self.steps.push(Step::Jump(turn));
        self.steps[turn] = Step::Turn(Loop { index, min, max, lazy, exit: self.steps.len() });
    }

    fn add_enclosed(&mut self, node: &Node, step: impl FnOnce(Pc) -> Step) {
        let opening = self.placeholder();
        self.add(node);
        self.steps.push(Step::Done);
        self.steps[opening] = step(self.steps.len());
    }

    /// A step to be filled in when the place it leads to is known.
    fn placeholder(&mut self) -> Pc {
        self.steps.push(Step::Done);
        self.steps.len() - 1
    }
}
