//! The result of a trial as one archive: its record and its files.

use std::fs::File;
use std::path::Path;

use practicum_core::model::{ProbeFailure, TrialRecord};
use practicum_core::tree::{create_private_folder, read_regular};
use practicum_engine::pipeline::TrialOutput;
use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveWriter, PackedArchive, unpack};

const RESULT: &str = "result.json";
const FILES: &str = "files";

/// The document of a result.
#[derive(Serialize, Deserialize)]
struct TrialResult {
    record: TrialRecord,
    failure: Option<ProbeFailure>,
}

/// Packs the record and the files of a trial.
pub fn pack_result(output: TrialOutput) -> std::io::Result<PackedArchive> {
    let mut writer = ArchiveWriter::new()?;
    let result = TrialResult { record: output.record, failure: output.failure };
    writer.add_bytes(Path::new(RESULT), &serde_json::to_vec(&result)?)?;
    if output.folder.is_dir() {
        writer.add_folder(Path::new(FILES))?;
        writer.add_tree(Path::new(FILES), &output.folder)?;
    }
    let archive = writer.finish()?;
    // The files are not needed here any more. A worker may run many trials.
    let _ = std::fs::remove_dir_all(&output.folder);
    Ok(archive)
}

/// Unpacks the result of a trial. The files take the place of an empty folder.
pub fn unpack_result(archive: File, folder: &Path) -> std::io::Result<(TrialRecord, Option<ProbeFailure>)> {
    let beside = folder.parent().unwrap_or(folder);
    let unpacked = tempfile::tempdir_in(beside)?;
    unpack(archive, unpacked.path(), false)?;
    let result: TrialResult = serde_json::from_slice(&read_regular(unpacked.path().join(RESULT))?)?;
    let files = unpacked.path().join(FILES);
    if files.is_dir() {
        std::fs::remove_dir(folder)?;
        std::fs::rename(files, folder)?;
    } else {
        create_private_folder(folder)?;
    }
    Ok((result.record, result.failure))
}
