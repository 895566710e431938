//! Frontmatter, read as leniently as the agents read it.
