//! Reads files of the workspace whose content stands in the eval file itself.

use practicum_core::model::{Diagnostics, InlineFile, RelPath};
use practicum_core::tree::{ObjectReader, TreeNode};

/// Reads the entries of `files` that have a `content`.
pub fn decode(files: &[TreeNode], diagnostics: &mut Diagnostics) -> Vec<InlineFile> {
    let inline = files.iter().filter(|node| node.has("content"));
    inline.filter_map(|node| decode_inline_file(node, diagnostics)).collect()
}

/// Reads `{to, content}`: a file whose content stands in the eval file.
fn decode_inline_file(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<InlineFile> {
    let mut object = ObjectReader::new(node, "a file", diagnostics)?;
    let to = object.required_text("to", diagnostics);
    let content = object.text("content", diagnostics).map(str::to_owned);
    object.reject_unknown_keys("a file", diagnostics);
    let to = to?;
    let Some(path) = RelPath::new(to) else {
        let message = format!("{to:?} is not a path inside the workspace");
        diagnostics.error_with_help("escaping-path", node.span, message, "give a relative \"to\"");
        return None;
    };
    Some(InlineFile { path, content: content? })
}
