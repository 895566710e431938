//! Digests of content.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A content digest. Two things with one digest are one thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Gives the digest of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// Gives the digest of several parts. The length of each part is hashed before it, so that two different lists
    /// of parts never produce the same bytes.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().to_hex().to_string())
    }

    /// Gives the digest of everything that a reader gives, without holding it in memory.
    pub fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(hasher.finalize().to_hex().to_string()))
    }

    /// Gives the digest as hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Gives the first characters of the digest: enough to tell a few thousand things apart in a folder name.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        let one = Digest::of_parts([b"ab".as_slice(), b"c"]);
        let other = Digest::of_parts([b"a".as_slice(), b"bc"]);
        assert_ne!(one, other);
    }
}
