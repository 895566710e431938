//! Turns images, PDF files and presentations that an agent wrote into pictures that a judge can be shown.
//!
//! In: files of a workspace, which nobody trusts. Out: `JudgePicture`s, or the reason why there are none. Other programs
//! open PDF files and presentations, in a sandbox of their own. Never: shows a part of a file as if it were all of it.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::workspace::run::{CancelToken, ProgramIsolation, run_blocking};
use practicum_core::model::{RelPath, count_with_noun};
use practicum_core::tree::read_bounded;
use practicum_evals::checks::pictures::decode_picture;

/// The most pictures that a judge is shown at once.
const MOST_PICTURES: usize = 20;

/// The largest picture, in bytes. Model APIs accept no larger ones.
const LARGEST_PICTURE: usize = 3_750_000;

/// The most bytes of all pictures together.
const MOST_BYTES: usize = 15_000_000;

/// The longer side of a page, in pixels. Models make larger pictures smaller before they look at them.
const PAGE_SIDE: &str = "1568";

/// The endings of files that LibreOffice opens.
const OFFICE_ENDINGS: [&str; 9] = ["doc", "docx", "odp", "ods", "odt", "ppt", "pptx", "xls", "xlsx"];

/// A picture that a judge is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgePicture {
    /// What the picture is: a file, or a page of one.
    pub label: String,
    /// The format, such as `image/png`.
    pub media_type: &'static str,
    /// The picture, in base64.
    pub data: String,
}

impl JudgePicture {
    /// Gives the bytes of the picture.
    pub fn bytes(&self) -> Vec<u8> {
        BASE64.decode(&self.data).unwrap_or_default()
    }
}

/// Makes pictures of files.
#[derive(Clone)]
pub struct PictureRenderer(ProgramIsolation);

/// How a file becomes pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileKind {
    Image,
    Pdf,
    /// A file for LibreOffice, with its ending.
    Office(String),
}

impl FileKind {
    fn of(path: &RelPath, bytes: &[u8]) -> Self {
        let start = &bytes[..bytes.len().min(1024)];
        if start.windows(5).any(|part| part == b"%PDF-") {
            return FileKind::Pdf;
        }
        let ending = Path::new(path.as_str()).extension().and_then(|ending| ending.to_str());
        let ending = ending.unwrap_or_default().to_lowercase();
        match OFFICE_ENDINGS.contains(&ending.as_str()) {
            true => FileKind::Office(ending),
            false => FileKind::Image,
        }
    }
}

impl PictureRenderer {
    /// Makes a renderer that uses the programs on this user's PATH.
    pub fn new(user_env: &BTreeMap<String, String>) -> Self {
        Self(ProgramIsolation::new(user_env))
    }

    /// Makes pictures of all files, in their order. The error names the file that cannot be shown as a whole.
    pub async fn render(
        &self,
        files: &[(RelPath, Vec<u8>)],
        marker: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<JudgePicture>, String> {
        let mut pictures: Vec<JudgePicture> = Vec::new();
        let mut total = 0;
        for (path, bytes) in files {
            let named = |why: String| format!("{path}: {why}");
            let pages = match FileKind::of(path, bytes) {
                FileKind::Image => vec![bytes.clone()],
                FileKind::Pdf => self.pdf_pages(bytes, marker, cancel).await.map_err(named)?,
                FileKind::Office(ending) => {
                    let pdf = self.office_to_pdf(bytes, &ending, marker, cancel).await.map_err(named)?;
                    self.pdf_pages(&pdf, marker, cancel).await.map_err(named)?
                }
            };
            let count = pages.len();
            for (at, page) in pages.into_iter().enumerate() {
                let label = match count {
                    1 => path.to_string(),
                    _ => format!("{path}, page {} of {count}", at + 1),
                };
                total += page.len();
                let picture = run_blocking(|| to_picture(label, &page)).map_err(named)?;
                pictures.push(picture);
            }
            if pictures.len() > MOST_PICTURES {
                let most = count_with_noun(MOST_PICTURES, "picture");
                return Err(named(format!("a judge is shown at most {most} at once, and there are more")));
            }
            if total > MOST_BYTES {
                let most = MOST_BYTES / 1_000_000;
                return Err(named(format!("all pictures together are larger than {most} MB")));
            }
        }
        Ok(pictures)
    }

    /// Gives the pages of a PDF file as PNG pictures, at most one more than a judge is shown.
    async fn pdf_pages(
        &self,
        bytes: &[u8],
        marker: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<Vec<u8>>, String> {
        let missing =
            "PDF files are shown with pdftoppm, which is not installed (Debian: apt install poppler-utils)";
        let program = self.0.find("pdftoppm").ok_or(missing)?;
        let folder = folder_with("input.pdf", bytes)?;
        let last = (MOST_PICTURES + 1).to_string();
        let args = ["-png", "-scale-to", PAGE_SIDE, "-f", "1", "-l", &last, "input.pdf", "page"];
        let args = args.map(str::to_owned).to_vec();
        let ran = self.0.run(&program, args, folder.path(), marker, cancel).await;
        ran.map_err(|why| format!("pdftoppm cannot show it: {why}"))?;
        read_pages(folder.path())
    }

    /// Gives a file of an office program as PDF.
    async fn office_to_pdf(
        &self,
        bytes: &[u8],
        ending: &str,
        marker: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        let missing =
            "it is shown with LibreOffice, which is not installed (Debian: apt install libreoffice)";
        let program = self.0.find("soffice").ok_or(missing)?;
        let input = format!("input.{ending}");
        let folder = folder_with(&input, bytes)?;
        let profile = format!("-env:UserInstallation=file://{}/profile", folder.path().display());
        let args = ["--headless", "--norestore", "--nolockcheck", &profile, "--convert-to", "pdf", &input];
        let args = args.map(str::to_owned).to_vec();
        let ran = self.0.run(&program, args, folder.path(), marker, cancel).await;
        ran.map_err(|why| format!("LibreOffice cannot open it: {why}"))?;
        read_made(&folder.path().join("input.pdf"))
            .map_err(|why| format!("LibreOffice cannot open it: {why}"))
    }
}

/// Makes a folder that has only this file.
fn folder_with(name: &str, bytes: &[u8]) -> Result<tempfile::TempDir, String> {
    let make = || {
        let folder = tempfile::Builder::new().prefix("practicum-pictures-").tempdir()?;
        std::fs::write(folder.path().join(name), bytes)?;
        Ok(folder)
    };
    make().map_err(|error: std::io::Error| error.to_string())
}

/// Reads a file that a program made. A link is refused, because the file that it was made from may have chosen it.
fn read_made(path: &Path) -> Result<Vec<u8>, String> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => read_bounded(path, 64 * 1024 * 1024),
        Ok(_) => Err("it gave no regular file".to_owned()),
        Err(_) => Err("it gave no file".to_owned()),
    }
}

/// Reads the pages that were made in a folder, in their order. Their numbers have leading zeros.
fn read_pages(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut pages: Vec<String> =
        names.filter(|name| name.starts_with("page-") && name.ends_with(".png")).collect();
    pages.sort_unstable();
    if pages.is_empty() {
        return Err("pdftoppm found no page in it".to_owned());
    }
    pages.iter().take(MOST_PICTURES + 1).map(|name| read_made(&folder.join(name))).collect()
}

/// Makes a picture of bytes that are one.
fn to_picture(label: String, bytes: &[u8]) -> Result<JudgePicture, String> {
    if bytes.len() > LARGEST_PICTURE {
        return Err(format!("it is larger than {} MB", LARGEST_PICTURE as f64 / 1e6));
    }
    let media_type = decode_picture(bytes)?.media_type;
    Ok(JudgePicture { label, media_type, data: BASE64.encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text).expect("a path")
    }

    #[test]
    fn the_content_decides_what_a_file_is_before_its_name() {
        for (name, bytes, expected) in [
            ("a.pdf", &b"%PDF-1.7"[..], FileKind::Pdf),
            ("a.pptx", b"\n%PDF-1.4", FileKind::Pdf),
            ("a.PPTX", b"PK", FileKind::Office("pptx".to_owned())),
            ("a.pdf", b"hello", FileKind::Image),
            ("a.png", b"\x89PNG", FileKind::Image),
            ("pdf", b"", FileKind::Image),
        ] {
            assert_eq!(FileKind::of(&path(name), bytes), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_shown_as_a_whole_has_a_reason() {
        let renderer = PictureRenderer::new(&BTreeMap::new());
        let render = |files: Vec<(&str, Vec<u8>)>| {
            let files = files.into_iter().map(|(name, bytes)| (path(name), bytes)).collect::<Vec<_>>();
            let renderer = renderer.clone();
            async move { renderer.render(&files, "test", &CancelToken::default()).await }
        };
        // A picture of one dot.
        let dot = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\x0aIDATx\xdac\xf8\x0f\x00\x01\x01\x01\x00\x1c\xb0\x8c\x99\x00\x00\x00\x00IEND\xaeB`\x82".to_vec();
        let shown = render(vec![("a.png", dot.clone()), ("b.png", dot.clone())]).await.expect("pictures");
        let labels: Vec<&str> = shown.iter().map(|picture| picture.label.as_str()).collect();
        assert_eq!((labels, shown[0].media_type), (vec!["a.png", "b.png"], "image/png"));
        assert_eq!(BASE64.decode(&shown[1].data).expect("base64"), dot);
        for (files, part) in [
            (vec![("a.png", dot[..40].to_vec())], "a.png: it cannot be read as a picture"),
            (vec![("a.png", dot.clone()), ("b.txt", b"text".to_vec())], "b.txt: it is no PNG"),
            (vec![("a.pdf", b"%PDF-1.7".to_vec())], "pdftoppm, which is not installed"),
            (vec![("a.pptx", b"PK".to_vec())], "LibreOffice, which is not installed"),
            (vec![("a.png", vec![0; LARGEST_PICTURE + 1])], "larger than 3.75 MB"),
            (vec![("a.png", dot.clone()); 21], "at most 20 pictures"),
        ] {
            let why = render(files).await.expect_err("a reason");
            assert!(why.contains(part), "{why}");
        }
    }
}
