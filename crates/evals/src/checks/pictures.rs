//! Decodes pictures within limits, whoever wrote them.

use std::io::Cursor;

use png::{ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The greatest width and height of a picture, in pixels. Model APIs accept no larger ones.
const LARGEST_SIDE: u32 = 8000;

/// The most pixels of a picture: decoding it takes a few times as many bytes.
const MOST_PIXELS: u64 = 32_000_000;

/// A picture with its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedPicture {
    /// The format, such as `image/png`.
    pub media_type: &'static str,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// Red, green, blue and opacity of each pixel, row by row.
    pub pixels: Vec<[u8; 4]>,
}

/// Decodes a PNG or JPEG picture. The error says why that is not possible.
pub fn decode_picture(bytes: &[u8]) -> Result<DecodedPicture, String> {
    let unreadable = |why: String| format!("it cannot be read as a picture ({why})");
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        decode_png(bytes).map_err(unreadable)
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        decode_jpeg(bytes).map_err(unreadable)
    } else {
        Err("it is no PNG or JPEG picture".to_owned())
    }
}

/// Refuses a picture whose header names a size that is too large, before anything is reserved for it.
fn check_size(width: u64, height: u64) -> Result<(), String> {
    let most = u64::from(LARGEST_SIDE);
    match width <= most && height <= most && width * height <= MOST_PIXELS {
        true => Ok(()),
        false => Err(format!("{width} x {height} pixels are too many")),
    }
}

fn decode_png(bytes: &[u8]) -> Result<DecodedPicture, String> {
    let in_words = |error: png::DecodingError| error.to_string();
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(in_words)?;
    let (width, height) = reader.info().size();
    check_size(width.into(), height.into())?;
    let mut buffer = vec![0; reader.output_buffer_size().ok_or("it is too large")?];
    let frame = reader.next_frame(&mut buffer).map_err(in_words)?;
    reader.finish().map_err(in_words)?;
    let parts = &buffer[..frame.buffer_size()];
    let pixels = match frame.color_type {
        ColorType::Grayscale => parts.iter().map(|grey| [*grey, *grey, *grey, 255]).collect(),
        ColorType::GrayscaleAlpha => {
            parts.chunks_exact(2).map(|part| [part[0], part[0], part[0], part[1]]).collect()
        }
        ColorType::Rgb => parts.chunks_exact(3).map(|part| [part[0], part[1], part[2], 255]).collect(),
        ColorType::Rgba => parts.chunks_exact(4).map(|part| [part[0], part[1], part[2], part[3]]).collect(),
        ColorType::Indexed => return Err("its palette is missing".to_owned()),
    };
    Ok(DecodedPicture { media_type: "image/png", width, height, pixels })
}

fn decode_jpeg(bytes: &[u8]) -> Result<DecodedPicture, String> {
    let side = LARGEST_SIDE as usize;
    let options = DecoderOptions::default().set_strict_mode(true).set_max_width(side).set_max_height(side);
    let options = options.jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let info = decoder.info().ok_or("its size is missing")?;
    let (width, height) = (u32::from(info.width), u32::from(info.height));
    check_size(width.into(), height.into())?;
    let parts = decoder.decode().map_err(|error| error.to_string())?;
    let pixels = parts.chunks_exact(3).map(|part| [part[0], part[1], part[2], 255]).collect();
    Ok(DecodedPicture { media_type: "image/jpeg", width, height, pixels })
}

/// Pictures for tests.
#[cfg(test)]
pub mod testing {
    /// Makes a PNG picture of this size, whose pixels a function gives.
    pub fn png(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgba);
        let pixel = &pixel;
        let parts: Vec<u8> = (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(&parts).expect("a picture");
        writer.finish().expect("a picture");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pictures_within_the_limits_are_decoded() {
        let good = testing::png(3, 2, |_, _| [1, 2, 3, 255]);
        let decoded = decode_picture(&good).expect("a picture");
        assert_eq!((decoded.media_type, decoded.width, decoded.height), ("image/png", 3, 2));
        assert_eq!(decoded.pixels, [[1, 2, 3, 255]; 6]);
        let large = testing::png(8001, 1, |_, _| [0; 4]);
        for (bytes, part) in [
            (&good[..good.len() / 2], "cannot be read as a picture"),
            (&large, "8001 x 1 pixels are too many"),
            (b"\xff\xd8\xff\xe0", "cannot be read as a picture"),
            (b"GIF89a", "no PNG"),
            (b"%PDF-1.4", "no PNG"),
            (b"<svg/>", "no PNG"),
            (b"", "no PNG"),
        ] {
            let why = decode_picture(bytes).expect_err("an error");
            assert!(why.contains(part), "{why}");
        }
    }
}
