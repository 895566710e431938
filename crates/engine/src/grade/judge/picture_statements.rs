//! Statements about pictures: of images, and of the pages of PDF files and presentations that an agent wrote.

use super::evidence::EvidenceText;
use super::{Judge, JudgeContext, TrialEvidence};
use practicum_core::model::{CheckFinding, NotScoredReason, RelPath};
use practicum_evals::checks::written_files;

impl Judge {
    /// Gives the files that match the globs as pictures. The finding says what is missing, or why it cannot be shown.
    pub(super) async fn show_pictures(
        &self,
        globs: &[String],
        exhibit: &TrialEvidence<'_>,
        sitting: &JudgeContext<'_>,
    ) -> Result<EvidenceText, CheckFinding> {
        let unscored = |why: String| CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
        let renderer =
            self.renderer.as_ref().ok_or_else(|| unscored("no pictures can be made here".to_owned()))?;
        let mut files: Vec<(RelPath, Vec<u8>)> = Vec::new();
        for path in written_files(exhibit.observation, globs)? {
            match exhibit.workspace.read(path) {
                Ok(Some(bytes)) => files.push((path.clone(), bytes)),
                Ok(None) => return Err(CheckFinding::new(false, format!("{path} does not exist"))),
                Err(error) => return Err(unscored(format!("cannot read {path}: {error}"))),
            }
        }
        // Secrets cannot be removed from a picture, so a file that has one is not shown.
        let has_secret = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.scrubbed(text.clone()) != text
        };
        if let Some((path, _)) = files.iter().find(|(_, bytes)| has_secret(bytes)) {
            return Err(unscored(format!("{path} has a secret in it, so no judge is shown it")));
        }
        let pictures = renderer.render(&files, sitting.marker, sitting.cancel).await.map_err(unscored)?;
        Ok(exhibit.to_graded_pictures(pictures))
    }
}
