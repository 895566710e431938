//! The settings below `[limits]`: what the processes of one trial may use.

use std::time::Duration;

use serde_json::Value;

use super::SettingSource;
use super::definitions::SettingDefinition;
use super::layers::{SettingLayers, SettingsError};
use crate::workspace::limits::{ResourceLimits, describe_bytes, parse_bytes};
use practicum_core::model::parse_duration;
use practicum_core::tree::json_schema;

/// The name of the table in a project file, with the dot that follows it in the names of these settings.
pub const LIMITS_PREFIX: &str = "limits.";

/// The names of the limits, without their table.
pub const LIMIT_NAMES: [&str; 6] = ["memory", "processes", "cpu", "open-files", "disk", "files"];

pub(super) static MEMORY: SettingDefinition<u64> = SettingDefinition {
    name: "limits.memory",
    env: &["PRACTICUM_LIMIT_MEMORY"],
    doc: "The most memory that the processes of one trial may use together.",
    schema: amount,
    parse: parse_bytes,
    from_suite: |_| None,
    format_default: |_| None,
    default: || ResourceLimits::default().memory,
};

pub(super) static PROCESSES: SettingDefinition<u64> = SettingDefinition {
    name: "limits.processes",
    env: &["PRACTICUM_LIMIT_PROCESSES"],
    doc: "The most processes and threads of one trial.",
    schema: || json_schema::integer_from(16),
    parse: parse_count,
    from_suite: |_| None,
    format_default: |_| None,
    default: || ResourceLimits::default().processes,
};

pub(super) static CPU: SettingDefinition<Duration> = SettingDefinition {
    name: "limits.cpu",
    env: &["PRACTICUM_LIMIT_CPU"],
    doc: "The most processor time of one trial, of all its processes together.",
    schema: json_schema::duration,
    parse: parse_time,
    from_suite: |_| None,
    format_default: |_| None,
    default: || ResourceLimits::default().cpu,
};

pub(super) static OPEN_FILES: SettingDefinition<u64> = SettingDefinition {
    name: "limits.open-files",
    env: &["PRACTICUM_LIMIT_OPEN_FILES"],
    doc: "The most files that one process of a trial may have open.",
    schema: || json_schema::integer_from(16),
    parse: parse_count,
    from_suite: |_| None,
    format_default: |_| None,
    default: || ResourceLimits::default().open_files,
};

pub(super) static DISK: SettingDefinition<u64> = SettingDefinition {
    name: "limits.disk",
    env: &["PRACTICUM_LIMIT_DISK"],
    doc: "The most disk space that one trial may add to its workspace, home and temporary folder.",
    schema: amount,
    parse: parse_bytes,
    from_suite: |_| None,
    format_default: |_| None,
    default: || ResourceLimits::default().disk,
};

pub(super) static FILES: SettingDefinition<u64> = SettingDefinition {
    name: "limits.files",
    env: &["PRACTICUM_LIMIT_FILES"],
    doc: "The most files and folders that one trial may add.",
    schema: || json_schema::integer_from(16),
    parse: parse_count,
    from_suite: |_| None,
    format_default: |_| None,
    default: || ResourceLimits::default().files,
};

/// Resolves the limits of each trial of a run.
pub fn resource_limits(layers: &SettingLayers) -> Result<ResourceLimits, SettingsError> {
    Ok(ResourceLimits {
        memory: layers.resolve_global(&MEMORY)?.value,
        processes: layers.resolve_global(&PROCESSES)?.value,
        cpu: layers.resolve_global(&CPU)?.value,
        open_files: layers.resolve_global(&OPEN_FILES)?.value,
        disk: layers.resolve_global(&DISK)?.value,
        files: layers.resolve_global(&FILES)?.value,
    })
}

/// Gives the name, the value and the source of each limit, for people.
pub fn explain_limits(
    layers: &SettingLayers,
) -> Result<[(&'static str, String, SettingSource); 6], SettingsError> {
    Ok([
        layers.explain_global(&MEMORY, |bytes| describe_bytes(*bytes))?,
        layers.explain_global(&PROCESSES, u64::to_string)?,
        layers.explain_global(&CPU, |time| format!("{}s", time.as_secs_f64()))?,
        layers.explain_global(&OPEN_FILES, u64::to_string)?,
        layers.explain_global(&DISK, |bytes| describe_bytes(*bytes))?,
        layers.explain_global(&FILES, u64::to_string)?,
    ])
}

/// Describes an amount of bytes in a project file.
fn amount() -> Value {
    json_schema::any_of([
        json_schema::integer_from(1),
        serde_json::json!({"type": "string", "pattern": r"^\s*[0-9.]+\s*([KkMmGgTt]([Ii]?[Bb])?|[Bb])?\s*$"}),
    ])
}

fn parse_count(text: &str) -> Result<u64, String> {
    let count = text.trim().parse().ok().filter(|count: &u64| *count >= 16);
    count.ok_or_else(|| "it must be a whole number, at least 16".to_owned())
}

fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "it must be a time, such as 90s, 10m or 1h".to_owned())
}
