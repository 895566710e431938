//! Error messages of the YAML parser in words that help an author.

use granit_parser::ErrorKind;

/// Describes an error in one sentence, with advice if there is any.
pub fn describe_error(kind: &ErrorKind) -> (String, Option<&'static str>) {
    use ErrorKind as Kind;
    let (sentence, help) = match kind {
        Kind::UnclosedFlowCollection { open } => {
            (format!("the \"{open}\" is not closed"), CLOSE_BRACKET_HELP)
        }
        Kind::UnexpectedEofFlowSequence | Kind::ExpectedFlowSequenceSeparator => {
            ("expected a comma or \"]\"".to_owned(), CLOSE_BRACKET_HELP)
        }
        Kind::UnexpectedEofFlowMapping
        | Kind::UnexpectedEofImplicitFlowMapping
        | Kind::ExpectedFlowMappingSeparator => ("expected a comma or \"}\"".to_owned(), CLOSE_BRACKET_HELP),
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            (format!("what \"{open}\" opens cannot end with \"{close}\""), CLOSE_BRACKET_HELP)
        }
        Kind::MisplacedFlowCollectionEnd => {
            ("this bracket closes nothing".to_owned(), "put text that begins with a bracket in quotes")
        }
        kind if is_unclosed_quote(kind) => {
            ("the quote is not closed".to_owned(), "long text is easier to write below a |")
        }
        Kind::InvalidTrailingDoubleQuotedScalar | Kind::InvalidTrailingSingleQuotedScalar => (
            "there is more after the closing quote".to_owned(),
            "write the whole text in quotes, or below a |",
        ),
        Kind::UnknownQuotedScalarEscape | Kind::InvalidQuotedScalarHexEscape => (
            "there is no such escape in double quotes".to_owned(),
            "a backslash itself is written \\\\; in single quotes it needs nothing",
        ),
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement | Kind::InvalidMappingValueWhitespace => {
            ("a colon is not allowed here".to_owned(), "put text with a colon in quotes")
        }
        Kind::SimpleKeyExpected | Kind::ExpectedBlockMappingKey | Kind::InvalidSimpleKey => (
            "expected a key with a colon".to_owned(),
            "keys of one mapping begin in the same column; text of several lines stands below a |, further in",
        ),
        Kind::BlockSequenceEntryNotAllowed => (
            "a list cannot begin on the line of its key".to_owned(),
            "put its first - on the next line, and text that begins with - in quotes",
        ),
        Kind::InvalidIndentation | Kind::ExpectedBlockSequenceEntry => (
            "the indentation fits nothing above it".to_owned(),
            "entries of one list or mapping begin in the same column",
        ),
        kind if is_tab(kind) => {
            ("the indentation has a tab".to_owned(), "indent with spaces; YAML does not allow tabs")
        }
        Kind::UnexpectedCharacter { character } => {
            (format!("text cannot begin with {character:?}"), "put the text in quotes")
        }
        Kind::UnknownAnchor => {
            ("the name after * is not defined above".to_owned(), "put text that begins with * in quotes")
        }
        Kind::InvalidBlockScalarIndent => {
            ("a first blank line is indented further than the text".to_owned(), "remove its spaces")
        }
        Kind::InvalidBlockScalarHeader => {
            ("there is text after the | or >".to_owned(), "it begins on the next line")
        }
        other => return (other.to_string(), None),
    };
    (sentence, Some(help))
}

/// Says whether the error is a tab where only spaces are allowed.
pub fn is_tab(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
    )
}

/// Says whether the parser gave up within quotes that are never closed.
pub fn is_unclosed_quote(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnclosedQuotedScalar
            | ErrorKind::DocumentIndicatorInQuotedScalar
            | ErrorKind::InvalidQuotedScalarIndent
    )
}

const CLOSE_BRACKET_HELP: &str = "put text that begins with a bracket in quotes";
