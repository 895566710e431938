//! The engine for what linear time cannot do: look-around, back-references, atoms, conditions.
//! It goes through the possibilities in Python's order, and every step it takes is counted, so
//! that no pattern can hold up a run, and the same pattern and text always end the same way.

use std::ops::Range;

use super::TooHard;
use super::fold::same;
use super::program::{Loop, Many, Pc, Program, Step};
use super::sets::is_word;
use super::syntax::{At, Fold, Greed, Side};

/// Steps for one question: a fraction of a second of work, plus a few dozen for every byte, so
/// that a harmless pattern gets through a long text.
const STEPS: usize = 8_000_000;
const STEPS_PER_BYTE: usize = 32;

/// Ways back that may be open at a time; bounds memory.
const MOST_OPEN: usize = 2_000_000;

/// No mark yet.
const NOWHERE: usize = usize::MAX;

/// One question to one text.
pub struct Machine<'p, 't> {
    program: &'p Program,
    text: &'t str,
    steps_left: usize,
    marks: Vec<usize>,
    loops: Vec<Turns>,
    open: Vec<Open>,
}

/// How often a loop went round, and where the last turn began.
#[derive(Clone, Copy)]
struct Turns {
    count: u32,
    last: usize,
}

/// What to do when the present way fails, newest first.
enum Open {
    Go(Pc, usize),
    /// A greedy `Many` may give back characters down to `least`.
    Less {
        next: Pc,
        least: usize,
        at: usize,
    },
    /// A lazy `Many` may take more.
    More {
        many: Pc,
        count: u32,
        at: usize,
    },
    /// A lazy loop may go round again.
    Round {
        turn: Pc,
        at: usize,
    },
    /// Not a way, but something to undo on the way back.
    Mark(usize, usize),
    Turns(usize, Turns),
}

/// What the end of the whole pattern must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Anywhere,
    /// Not where it began: the place just had an empty match.
    NotAt(usize),
    EndOfText,
}

impl<'p, 't> Machine<'p, 't> {
    pub fn new(program: &'p Program, text: &'t str) -> Self {
        Self {
            program,
            text,
            steps_left: STEPS.saturating_add(text.len().saturating_mul(STEPS_PER_BYTE)),
            marks: vec![NOWHERE; program.groups * 2],
            loops: vec![Turns { count: 0, last: NOWHERE }; program.loops],
            open: Vec::new(),
        }
    }

    /// The first match from `start` on. `advance`: one that is empty right at `start` does not
    /// count.
    pub fn find(&mut self, start: usize, advance: bool) -> Result<Option<Range<usize>>, TooHard> {
        let mut goal = if advance { Goal::NotAt(start) } else { Goal::Anywhere };
        let mut at = start;
        loop {
            self.pay(1)?;
            if let Some(head) = &self.program.head {
                match head.find_at(self.text, at) {
                    None => return Ok(None),
                    Some(found) if found.start() > at => {
                        at = found.start();
                        goal = Goal::Anywhere;
                    }
                    Some(_) => {}
                }
            }
            if self.program.shortest > (self.text.len() - at) as u64 {
                return Ok(None);
            }
            if let Some(end) = self.attempt(at, goal)? {
                return Ok(Some(at..end));
            }
            goal = Goal::Anywhere;
            match self.char_at(at) {
                Some(c) => at += c.len_utf8(),
                None => return Ok(None),
            }
        }
    }

    pub fn spans_text(&mut self) -> Result<bool, TooHard> {
        Ok(self.attempt(0, Goal::EndOfText)?.is_some())
    }

    fn attempt(&mut self, at: usize, goal: Goal) -> Result<Option<usize>, TooHard> {
        self.pay(self.marks.len() / 16)?;
        self.marks.fill(NOWHERE);
        self.open.clear();
        self.run(0, at, goal)
    }

    /// Goes on from a step until its `Done`, and says where that was. What could still be tried
    /// inside is then given up, what must be undone is kept.
    fn run(&mut self, pc: Pc, at: usize, goal: Goal) -> Result<Option<usize>, TooHard> {
        let floor = self.open.len();
        let mut way = Some((pc, at));
        loop {
            let Some((pc, at)) = way else {
                way = self.back(floor)?;
                if way.is_none() {
                    return Ok(None);
                }
                continue;
            };
            self.pay(1)?;
            if matches!(self.program.steps[pc], Step::Done) {
                let reached = match goal {
                    Goal::Anywhere => true,
                    Goal::NotAt(start) => at != start,
                    Goal::EndOfText => at == self.text.len(),
                };
                if reached {
                    self.give_up_ways(floor);
                    return Ok(Some(at));
                }
                way = None;
                continue;
            }
            way = self.step(pc, at)?;
        }
    }

    /// Where one step leads, or `None` if it fails.
    fn step(&mut self, pc: Pc, at: usize) -> Result<Option<(Pc, usize)>, TooHard> {
        let program = self.program;
        Ok(match &program.steps[pc] {
            Step::One(set) => match self.char_at(at) {
                Some(c) if set.contains(c) => Some((pc + 1, at + c.len_utf8())),
                Some(_) | None => None,
            },
            Step::At(place) => self.is_at(*place, at).then_some((pc + 1, at)),
            Step::Or(other) => {
                self.open(Open::Go(*other, at))?;
                Some((pc + 1, at))
            }
            Step::Jump(to) => Some((*to, at)),
            Step::Mark(mark) => {
                self.open(Open::Mark(*mark, self.marks[*mark]))?;
                self.marks[*mark] = at;
                Some((pc + 1, at))
            }
            Step::Many(many) => self.many(pc, at, many)?,
            Step::Enter(index) => {
                self.set_turns(*index, Turns { count: 0, last: NOWHERE })?;
                Some((pc + 1, at))
            }
            Step::Turn(round) => self.turn(pc, at, *round)?,
            Step::Atom { exit } => self.run(pc + 1, at, Goal::Anywhere)?.map(|end| (*exit, end)),
            Step::Atoms { min, max, exit } => self.atoms(pc, at, *min, *max)?.map(|end| (*exit, end)),
            Step::Look { side, wanted, exit } => (self.look(pc, at, *side, *wanted)?).then_some((*exit, at)),
            Step::Same { group, fold } => self.same(*group, *fold, at)?.map(|end| (pc + 1, end)),
            Step::IfMatched(group, other) => match self.matched(*group) {
                Some(_) => Some((pc + 1, at)),
                None => Some((*other, at)),
            },
            Step::Done => None,
        })
    }

    /// The newest way that is still open above `floor`, with everything after it undone.
    fn back(&mut self, floor: usize) -> Result<Option<(Pc, usize)>, TooHard> {
        while self.open.len() > floor {
            self.pay(1)?;
            match self.open.pop() {
                None => break,
                Some(Open::Mark(mark, before)) => self.marks[mark] = before,
                Some(Open::Turns(turns, before)) => self.loops[turns] = before,
                Some(Open::Go(pc, at)) => return Ok(Some((pc, at))),
                Some(Open::Less { next, least, at }) => {
                    let at = self.before(at);
                    if at > least {
                        self.open(Open::Less { next, least, at })?;
                    }
                    return Ok(Some((next, at)));
                }
                Some(Open::More { many, count, at }) => {
                    if let Step::Many(Many { set, max, .. }) = &self.program.steps[many]
                        && let Some(c) = self.char_at(at).filter(|c| set.contains(*c))
                    {
                        let (count, at) = (count.saturating_add(1), at + c.len_utf8());
                        if max.is_none_or(|max| count < max) {
                            self.open(Open::More { many, count, at })?;
                        }
                        return Ok(Some((many + 1, at)));
                    }
                }
                Some(Open::Round { turn, at }) => {
                    if let Step::Turn(Loop { index, .. }) = self.program.steps[turn] {
                        let count = self.loops[index].count.saturating_add(1);
                        self.set_turns(index, Turns { count, last: at })?;
                        return Ok(Some((turn + 1, at)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn many(&mut self, pc: Pc, at: usize, many: &Many) -> Result<Option<(Pc, usize)>, TooHard> {
        let Many { set, min, max, greed } = many;
        let most = if *greed == Greed::Lazy { *min } else { max.unwrap_or(u32::MAX) };
        let (mut end, mut count, mut least) = (at, 0, at);
        while count < most {
            match self.char_at(end) {
                Some(c) if set.contains(c) => end += c.len_utf8(),
                Some(_) | None => break,
            }
            count += 1;
            if count == *min {
                least = end;
            }
        }
        self.pay(count as usize)?;
        if count < *min {
            return Ok(None);
        }
        match greed {
            Greed::Greedy if end > least => self.open(Open::Less { next: pc + 1, least, at: end })?,
            Greed::Lazy if max.is_none_or(|max| count < max) => {
                self.open(Open::More { many: pc, count, at: end })?;
            }
            Greed::Greedy | Greed::Lazy | Greed::Possessive => {}
        }
        Ok(Some((pc + 1, end)))
    }

    /// Round again or out. A turn that got nowhere is the last one.
    fn turn(&mut self, pc: Pc, at: usize, round: Loop) -> Result<Option<(Pc, usize)>, TooHard> {
        let Loop { index, min, max, lazy, exit } = round;
        let Turns { count, last } = self.loops[index];
        let next = count.saturating_add(1);
        if count < min {
            self.set_turns(index, Turns { count: next, last })?;
            return Ok(Some((pc + 1, at)));
        }
        if max.is_some_and(|max| count >= max) || at == last {
            return Ok(Some((exit, at)));
        }
        if lazy {
            self.open(Open::Round { turn: pc, at })?;
            return Ok(Some((exit, at)));
        }
        self.open(Open::Go(exit, at))?;
        self.set_turns(index, Turns { count: next, last: at })?;
        Ok(Some((pc + 1, at)))
    }

    fn atoms(&mut self, pc: Pc, start: usize, min: u32, max: Option<u32>) -> Result<Option<usize>, TooHard> {
        let (mut at, mut count) = (start, 0u32);
        while max.is_none_or(|max| count < max) {
            self.pay(1)?;
            match self.run(pc + 1, at, Goal::Anywhere)? {
                Some(end) if end == at && count >= min => break,
                Some(end) => at = end,
                None => break,
            }
            count = count.saturating_add(1);
        }
        Ok((count >= min).then_some(at))
    }

    fn look(&mut self, pc: Pc, at: usize, side: Side, wanted: bool) -> Result<bool, TooHard> {
        let from = match side {
            Side::Ahead => Some(at),
            Side::Behind(width) => self.chars_before(at, width)?,
        };
        let Some(from) = from else { return Ok(!wanted) };
        let found = self.run(pc + 1, from, Goal::Anywhere)?.is_some();
        Ok(found == wanted)
    }

    /// The end of the same text again.
    fn same(&mut self, group: usize, fold: Option<Fold>, at: usize) -> Result<Option<usize>, TooHard> {
        let Some(range) = self.matched(group) else { return Ok(None) };
        let wanted = &self.text[range];
        self.pay(wanted.len())?;
        let Some(fold) = fold else {
            return Ok(self.text[at..].starts_with(wanted).then(|| at + wanted.len()));
        };
        let mut there = self.text[at..].chars();
        let mut end = at;
        for c in wanted.chars() {
            match there.next() {
                Some(other) if same(c, other, fold) => end += other.len_utf8(),
                Some(_) | None => return Ok(None),
            }
        }
        Ok(Some(end))
    }

    fn matched(&self, group: usize) -> Option<Range<usize>> {
        let (start, end) = (self.marks[group * 2], self.marks[group * 2 + 1]);
        (start != NOWHERE && end != NOWHERE && start <= end).then_some(start..end)
    }

    fn is_at(&self, place: At, at: usize) -> bool {
        let rest = &self.text.as_bytes()[at..];
        match place {
            At::Start => at == 0,
            At::End => rest.is_empty(),
            At::EndOrLastNewline => rest.is_empty() || rest == b"\n",
            At::LineStart => at == 0 || self.text.as_bytes()[at - 1] == b'\n',
            At::LineEnd => rest.first().is_none_or(|&byte| byte == b'\n'),
            At::WordEdge { ascii } => self.is_word_edge(at, ascii),
            // Python, up to 3.13, says neither yes nor no of an empty text.
            At::NotWordEdge { ascii } => !self.text.is_empty() && !self.is_word_edge(at, ascii),
        }
    }

    fn is_word_edge(&self, at: usize, ascii: bool) -> bool {
        let before = self.text[..at].chars().next_back().is_some_and(|c| is_word(c, ascii));
        let after = self.char_at(at).is_some_and(|c| is_word(c, ascii));
        before != after
    }

    fn char_at(&self, at: usize) -> Option<char> {
        match self.text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => self.text[at..].chars().next(),
            None => None,
        }
    }

    fn before(&self, at: usize) -> usize {
        self.text[..at].char_indices().next_back().map_or(0, |(before, _)| before)
    }

    fn chars_before(&mut self, at: usize, count: u32) -> Result<Option<usize>, TooHard> {
        self.pay((count as usize).min(at))?;
        if count == 0 {
            return Ok(Some(at));
        }
        let back = count as usize - 1;
        Ok(self.text[..at].char_indices().rev().nth(back).map(|(before, _)| before))
    }

    fn set_turns(&mut self, turns: usize, now: Turns) -> Result<(), TooHard> {
        self.open(Open::Turns(turns, self.loops[turns]))?;
        self.loops[turns] = now;
        Ok(())
    }

    fn open(&mut self, open: Open) -> Result<(), TooHard> {
        if self.open.len() >= MOST_OPEN {
            return Err(TooHard);
        }
        self.open.push(open);
        Ok(())
    }

    /// Ways above `floor` are forgotten; what must be undone when an earlier way is taken stays.
    fn give_up_ways(&mut self, floor: usize) {
        let mut kept = floor;
        for index in floor..self.open.len() {
            if matches!(self.open[index], Open::Mark(..) | Open::Turns(..)) {
                self.open.swap(kept, index);
                kept += 1;
            }
        }
        self.open.truncate(kept);
    }

    fn pay(&mut self, steps: usize) -> Result<(), TooHard> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(TooHard)?;
        Ok(())
    }
}
