//! Random changes of inputs, the same in every run with the same seed.

/// The largest input.
pub const LARGEST_INPUT: usize = 256 * 1024;

/// A generator of numbers that look random (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Gives a number below `end`; zero if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }
}

/// Pieces that mean something to a reader of some format.
const PIECES: [&str; 56] = [
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\r\n",
    "\t",
    "\\",
    "\u{0}",
    "---\n",
    "- ",
    "? ",
    "&a ",
    "*a",
    "!!binary ",
    "<<: ",
    "|\n",
    ">-\n",
    "#",
    "```\n",
    "$(",
    "`",
    "<<EOF\n",
    "&&",
    "||",
    ";",
    "\\ud800",
    "\\u0000",
    "\u{feff}",
    "\u{202e}",
    "é",
    "𝄞",
    "1e999",
    "-0",
    "18446744073709551616",
    "NaN",
    "null",
    "true",
    "%00",
    "..",
    "../../",
    "/dev/zero",
    "{\"type\":",
    "data: ",
    "event: ",
    "\n\n",
    "[[",
    "[a]\n",
    "=",
    "\"\"\"",
    "$x",
    "**/*",
];

/// Changes an input at one to eight places. Parts of another input may be put in.
pub fn change(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    for _ in 0..=random.below(8) {
        change_once(&mut changed, other, random);
        changed.truncate(LARGEST_INPUT);
    }
    changed
}

fn change_once(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = (at + random.below(64) + 1).min(bytes.len());
    match random.below(11) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).unwrap_or(0),
        2 => drop(bytes.drain(at..end.max(at))),
        3 => bytes.truncate(at),
        4 => insert(bytes, at, PIECES[random.below(PIECES.len())].as_bytes(), 1),
        // Many of one piece are deep, long or wide.
        5 => {
            let times = [2, 10, 200, 5_000, 60_000][random.below(5)];
            insert(bytes, at, PIECES[random.below(PIECES.len())].as_bytes(), times);
        }
        6 if at < end => {
            let part = bytes[at..end].to_vec();
            insert(bytes, end, &part, [1, 2, 50, 2_000][random.below(4)]);
        }
        7 if !other.is_empty() => {
            let from = random.below(other.len());
            let to = (from + random.below(400) + 1).min(other.len());
            insert(bytes, at, &other[from..to], 1);
        }
        8 => swap_lines(bytes, random),
        // A value in the place of another, where that is a number, a word or a text.
        9 => {
            let word = |byte: &u8| byte.is_ascii_alphanumeric();
            let length = bytes[at..].iter().take_while(|byte| word(byte)).count();
            let piece = PIECES[random.below(PIECES.len())].as_bytes();
            bytes.splice(at..at + length, piece.iter().copied());
        }
        _ => {
            let line = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            insert(bytes, line, b" ", random.below(5));
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8], times: usize) {
    let times = times.min(LARGEST_INPUT / piece.len().max(1));
    bytes.splice(at..at, piece.repeat(times));
}

fn swap_lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.len() > 1 {
        let (a, b) = (random.below(lines.len()), random.below(lines.len()));
        lines.swap(a, b);
        *bytes = lines.concat();
    }
}
