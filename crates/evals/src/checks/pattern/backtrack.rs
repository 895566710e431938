//! The backtracking engine, for what the linear-time engine cannot do: look-around, back-references, atomic
//! groups, conditions. It tries the possibilities in Python's order. Every step is counted, so that no pattern can
//! hold up a run, and the same pattern and text always give the same result.

use std::ops::Range;

use super::TooMuchBacktracking;
use super::case_folding::is_same_letter;
use super::program::{CharacterRepeat, CountedLoop, PatternProgram, PatternStep, StepIndex};
use super::sets::is_word;
use super::syntax::{CaseFolding, Greediness, LookSide, PatternAnchor};

/// The steps allowed for one search: about a fraction of a second of work, plus some for every byte, so that a
/// harmless pattern can search a long text.
const BASE_STEPS: usize = 8_000_000;
const STEPS_PER_BYTE: usize = 32;

/// The largest number of open choices at a time. It limits memory.
const MOST_OPEN_CHOICES: usize = 2_000_000;

/// The position of a group that has not matched yet.
const NO_POSITION: usize = usize::MAX;

/// One search of one pattern in one text.
pub struct Backtracker<'p, 't> {
    program: &'p PatternProgram,
    text: &'t str,
    steps_left: usize,
    positions: Vec<usize>,
    loop_turns: Vec<LoopTurns>,
    open_choices: Vec<OpenChoice>,
}

/// The number of turns of a loop, and where the last turn began.
#[derive(Clone, Copy)]
struct LoopTurns {
    count: u32,
    last: usize,
}

/// A choice to return to when the current path fails; the newest comes first.
enum OpenChoice {
    GoTo(StepIndex, usize),
    /// A greedy `CharacterRepeat` may give back characters down to `least`.
    TakeFewer {
        next: StepIndex,
        least: usize,
        at: usize,
    },
    /// A lazy `CharacterRepeat` may take more characters.
    TakeMore {
        many: StepIndex,
        count: u32,
        at: usize,
    },
    /// A lazy loop may take another turn.
    RepeatLoop {
        turn: StepIndex,
        at: usize,
    },
    /// No choice: the old position of a group, restored on the way back.
    RestoreMark(usize, usize),
    RestoreTurns(usize, LoopTurns),
}

/// The condition on the position where the whole pattern ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchGoal {
    Anywhere,
    /// Any position but this one: the search just found an empty match here.
    NotAt(usize),
    EndOfText,
}

impl<'p, 't> Backtracker<'p, 't> {
    pub fn new(program: &'p PatternProgram, text: &'t str) -> Self {
        Self {
            program,
            text,
            steps_left: BASE_STEPS.saturating_add(text.len().saturating_mul(STEPS_PER_BYTE)),
            positions: vec![NO_POSITION; program.group_count * 2],
            loop_turns: vec![LoopTurns { count: 0, last: NO_POSITION }; program.loop_count],
            open_choices: Vec::new(),
        }
    }

    /// Finds the first match at or after `start`. With `advance`, an empty match right at `start` does not count.
    pub fn find(&mut self, start: usize, advance: bool) -> Result<Option<Range<usize>>, TooMuchBacktracking> {
        let mut goal = if advance { MatchGoal::NotAt(start) } else { MatchGoal::Anywhere };
        let mut at = start;
        loop {
            self.spend_steps(1)?;
            if let Some(head) = &self.program.match_start {
                match head.find_at(self.text, at) {
                    None => return Ok(None),
                    Some(found) if found.start() > at => {
                        at = found.start();
                        goal = MatchGoal::Anywhere;
                    }
                    Some(_) => {}
                }
            }
            if self.program.min_length > (self.text.len() - at) as u64 {
                return Ok(None);
            }
            if let Some(end) = self.match_at(at, goal)? {
                return Ok(Some(at..end));
            }
            goal = MatchGoal::Anywhere;
            match self.char_at(at) {
                Some(c) => at += c.len_utf8(),
                None => return Ok(None),
            }
        }
    }

    pub fn matches_whole_text(&mut self) -> Result<bool, TooMuchBacktracking> {
        Ok(self.match_at(0, MatchGoal::EndOfText)?.is_some())
    }

    fn match_at(&mut self, at: usize, goal: MatchGoal) -> Result<Option<usize>, TooMuchBacktracking> {
        self.spend_steps(self.positions.len() / 16)?;
        self.positions.fill(NO_POSITION);
        self.open_choices.clear();
        self.run_from(0, at, goal)
    }

    /// Runs from a step to its `Done` and gives the position there. The choices that were opened inside are then
    /// dropped; the values to restore are kept.
    fn run_from(
        &mut self,
        pc: StepIndex,
        at: usize,
        goal: MatchGoal,
    ) -> Result<Option<usize>, TooMuchBacktracking> {
        let floor = self.open_choices.len();
        let mut way = Some((pc, at));
        loop {
            let Some((pc, at)) = way else {
                way = self.backtrack(floor)?;
                if way.is_none() {
                    return Ok(None);
                }
                continue;
            };
            self.spend_steps(1)?;
            if matches!(self.program.steps[pc], PatternStep::Done) {
                let reached = match goal {
                    MatchGoal::Anywhere => true,
                    MatchGoal::NotAt(start) => at != start,
                    MatchGoal::EndOfText => at == self.text.len(),
                };
                if reached {
                    self.drop_choices(floor);
                    return Ok(Some(at));
                }
                way = None;
                continue;
            }
            way = self.run_step(pc, at)?;
        }
    }

    /// Runs one step. Gives the next step and position, or `None` if the step fails.
    fn run_step(
        &mut self,
        pc: StepIndex,
        at: usize,
    ) -> Result<Option<(StepIndex, usize)>, TooMuchBacktracking> {
        let program = self.program;
        Ok(match &program.steps[pc] {
            PatternStep::OneCharacter(set) => match self.char_at(at) {
                Some(c) if set.contains(c) => Some((pc + 1, at + c.len_utf8())),
                Some(_) | None => None,
            },
            PatternStep::Anchor(place) => self.anchor_holds(*place, at).then_some((pc + 1, at)),
            PatternStep::Branch(other) => {
                self.push_choice(OpenChoice::GoTo(*other, at))?;
                Some((pc + 1, at))
            }
            PatternStep::Jump(to) => Some((*to, at)),
            PatternStep::MarkGroup(slot) => {
                self.push_choice(OpenChoice::RestoreMark(*slot, self.positions[*slot]))?;
                self.positions[*slot] = at;
                Some((pc + 1, at))
            }
            PatternStep::RepeatCharacter(many) => self.run_character_repeat(pc, at, many)?,
            PatternStep::EnterLoop(index) => {
                self.set_turns(*index, LoopTurns { count: 0, last: NO_POSITION })?;
                Some((pc + 1, at))
            }
            PatternStep::LoopTurn(round) => self.run_loop_turn(pc, at, *round)?,
            PatternStep::Atom { exit } => {
                self.run_from(pc + 1, at, MatchGoal::Anywhere)?.map(|end| (*exit, end))
            }
            PatternStep::Atoms { min, max, exit } => {
                self.run_atoms(pc, at, *min, *max)?.map(|end| (*exit, end))
            }
            PatternStep::LookAround { side, wanted, exit } => {
                (self.look_around(pc, at, *side, *wanted)?).then_some((*exit, at))
            }
            PatternStep::BackReference { group, fold } => {
                self.back_reference_end(*group, *fold, at)?.map(|end| (pc + 1, end))
            }
            PatternStep::IfMatched(group, other) => match self.group_range(*group) {
                Some(_) => Some((pc + 1, at)),
                None => Some((*other, at)),
            },
            PatternStep::Done => None,
        })
    }

    /// Goes back to the newest open choice above `floor` and restores all values that were changed after it.
    fn backtrack(&mut self, floor: usize) -> Result<Option<(StepIndex, usize)>, TooMuchBacktracking> {
        while self.open_choices.len() > floor {
            self.spend_steps(1)?;
            match self.open_choices.pop() {
                None => break,
                Some(OpenChoice::RestoreMark(slot, before)) => self.positions[slot] = before,
                Some(OpenChoice::RestoreTurns(turns, before)) => self.loop_turns[turns] = before,
                Some(OpenChoice::GoTo(pc, at)) => return Ok(Some((pc, at))),
                Some(OpenChoice::TakeFewer { next, least, at }) => {
                    let at = self.previous_position(at);
                    if at > least {
                        self.push_choice(OpenChoice::TakeFewer { next, least, at })?;
                    }
                    return Ok(Some((next, at)));
                }
                Some(OpenChoice::TakeMore { many, count, at }) => {
                    if let PatternStep::RepeatCharacter(CharacterRepeat { set, max, .. }) =
                        &self.program.steps[many]
                        && let Some(c) = self.char_at(at).filter(|c| set.contains(*c))
                    {
                        let (count, at) = (count.saturating_add(1), at + c.len_utf8());
                        if max.is_none_or(|max| count < max) {
                            self.push_choice(OpenChoice::TakeMore { many, count, at })?;
                        }
                        return Ok(Some((many + 1, at)));
                    }
                }
                Some(OpenChoice::RepeatLoop { turn, at }) => {
                    if let PatternStep::LoopTurn(CountedLoop { index, .. }) = self.program.steps[turn] {
                        let count = self.loop_turns[index].count.saturating_add(1);
                        self.set_turns(index, LoopTurns { count, last: at })?;
                        return Ok(Some((turn + 1, at)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn run_character_repeat(
        &mut self,
        pc: StepIndex,
        at: usize,
        many: &CharacterRepeat,
    ) -> Result<Option<(StepIndex, usize)>, TooMuchBacktracking> {
        let CharacterRepeat { set, min, max, greed } = many;
        let most = if *greed == Greediness::Lazy { *min } else { max.unwrap_or(u32::MAX) };
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
        self.spend_steps(count as usize)?;
        if count < *min {
            return Ok(None);
        }
        match greed {
            Greediness::Greedy if end > least => {
                self.push_choice(OpenChoice::TakeFewer { next: pc + 1, least, at: end })?
            }
            Greediness::Lazy if max.is_none_or(|max| count < max) => {
                self.push_choice(OpenChoice::TakeMore { many: pc, count, at: end })?;
            }
            Greediness::Greedy | Greediness::Lazy | Greediness::Possessive => {}
        }
        Ok(Some((pc + 1, end)))
    }

    /// Takes another turn of a loop or leaves it. A turn that matched nothing is the last one.
    fn run_loop_turn(
        &mut self,
        pc: StepIndex,
        at: usize,
        round: CountedLoop,
    ) -> Result<Option<(StepIndex, usize)>, TooMuchBacktracking> {
        let CountedLoop { index, min, max, lazy, exit } = round;
        let LoopTurns { count, last } = self.loop_turns[index];
        let next = count.saturating_add(1);
        if count < min {
            self.set_turns(index, LoopTurns { count: next, last })?;
            return Ok(Some((pc + 1, at)));
        }
        if max.is_some_and(|max| count >= max) || at == last {
            return Ok(Some((exit, at)));
        }
        if lazy {
            self.push_choice(OpenChoice::RepeatLoop { turn: pc, at })?;
            return Ok(Some((exit, at)));
        }
        self.push_choice(OpenChoice::GoTo(exit, at))?;
        self.set_turns(index, LoopTurns { count: next, last: at })?;
        Ok(Some((pc + 1, at)))
    }

    fn run_atoms(
        &mut self,
        pc: StepIndex,
        start: usize,
        min: u32,
        max: Option<u32>,
    ) -> Result<Option<usize>, TooMuchBacktracking> {
        let (mut at, mut count) = (start, 0u32);
        while max.is_none_or(|max| count < max) {
            self.spend_steps(1)?;
            match self.run_from(pc + 1, at, MatchGoal::Anywhere)? {
                Some(end) if end == at && count >= min => break,
                Some(end) => at = end,
                None => break,
            }
            count = count.saturating_add(1);
        }
        Ok((count >= min).then_some(at))
    }

    fn look_around(
        &mut self,
        pc: StepIndex,
        at: usize,
        side: LookSide,
        wanted: bool,
    ) -> Result<bool, TooMuchBacktracking> {
        let from = match side {
            LookSide::Ahead => Some(at),
            LookSide::Behind(width) => self.chars_before(at, width)?,
        };
        let Some(from) = from else { return Ok(!wanted) };
        let found = self.run_from(pc + 1, from, MatchGoal::Anywhere)?.is_some();
        Ok(found == wanted)
    }

    /// Gives the position after the repeated text of a group.
    fn back_reference_end(
        &mut self,
        group: usize,
        fold: Option<CaseFolding>,
        at: usize,
    ) -> Result<Option<usize>, TooMuchBacktracking> {
        let Some(range) = self.group_range(group) else { return Ok(None) };
        let wanted = &self.text[range];
        self.spend_steps(wanted.len())?;
        let Some(fold) = fold else {
            return Ok(self.text[at..].starts_with(wanted).then(|| at + wanted.len()));
        };
        let mut there = self.text[at..].chars();
        let mut end = at;
        for c in wanted.chars() {
            match there.next() {
                Some(other) if is_same_letter(c, other, fold) => end += other.len_utf8(),
                Some(_) | None => return Ok(None),
            }
        }
        Ok(Some(end))
    }

    fn group_range(&self, group: usize) -> Option<Range<usize>> {
        let (start, end) = (self.positions[group * 2], self.positions[group * 2 + 1]);
        (start != NO_POSITION && end != NO_POSITION && start <= end).then_some(start..end)
    }

    fn anchor_holds(&self, place: PatternAnchor, at: usize) -> bool {
        let rest = &self.text.as_bytes()[at..];
        match place {
            PatternAnchor::Start => at == 0,
            PatternAnchor::End => rest.is_empty(),
            PatternAnchor::EndOrLastNewline => rest.is_empty() || rest == b"\n",
            PatternAnchor::LineStart => at == 0 || self.text.as_bytes()[at - 1] == b'\n',
            PatternAnchor::LineEnd => rest.first().is_none_or(|&byte| byte == b'\n'),
            PatternAnchor::WordEdge { ascii } => self.is_word_edge(at, ascii),
            // In Python up to 3.13, neither `\b` nor `\B` matches in an empty text.
            PatternAnchor::NotWordEdge { ascii } => !self.text.is_empty() && !self.is_word_edge(at, ascii),
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

    fn previous_position(&self, at: usize) -> usize {
        self.text[..at].char_indices().next_back().map_or(0, |(before, _)| before)
    }

    fn chars_before(&mut self, at: usize, count: u32) -> Result<Option<usize>, TooMuchBacktracking> {
        self.spend_steps((count as usize).min(at))?;
        if count == 0 {
            return Ok(Some(at));
        }
        let back = count as usize - 1;
        Ok(self.text[..at].char_indices().rev().nth(back).map(|(before, _)| before))
    }

    fn set_turns(&mut self, turns: usize, now: LoopTurns) -> Result<(), TooMuchBacktracking> {
        self.push_choice(OpenChoice::RestoreTurns(turns, self.loop_turns[turns]))?;
        self.loop_turns[turns] = now;
        Ok(())
    }

    fn push_choice(&mut self, open: OpenChoice) -> Result<(), TooMuchBacktracking> {
        if self.open_choices.len() >= MOST_OPEN_CHOICES {
            return Err(TooMuchBacktracking);
        }
        self.open_choices.push(open);
        Ok(())
    }

    /// Drops the choices above `floor`, but keeps the values that must be restored when an earlier choice is
    /// taken.
    fn drop_choices(&mut self, floor: usize) {
        let mut kept = floor;
        for index in floor..self.open_choices.len() {
            if matches!(self.open_choices[index], OpenChoice::RestoreMark(..) | OpenChoice::RestoreTurns(..))
            {
                self.open_choices.swap(kept, index);
                kept += 1;
            }
        }
        self.open_choices.truncate(kept);
    }

    fn spend_steps(&mut self, steps: usize) -> Result<(), TooMuchBacktracking> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(TooMuchBacktracking)?;
        Ok(())
    }
}
