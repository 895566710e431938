//! Plugins, staged as Claude Code loads them.
