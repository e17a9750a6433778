//! Logos: PNG images of a bounded size.

use bytes::Bytes;
use std::io::Cursor;

/// Largest logo, in bytes.
pub(crate) const MOST_BYTES: usize = 256 << 10;
/// Greatest width and height of a logo, in pixels.
pub(crate) const MOST_PIXELS: u32 = 1200;
/// Memory that decoding may take besides the pixels.
const MOST_MEMORY: usize = 16 << 20;

/// A logo that can be drawn.
#[derive(Clone)]
pub(crate) struct Logo {
    /// The PNG itself.
    pub(super) png: Bytes,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Red, green, blue, opacity of each pixel.
    pub(super) pixels: Vec<u8>,
}

impl Logo {
    /// Decodes a PNG.
    ///
    /// # Errors
    /// A sentence that says which rule the file breaks.
    pub(crate) fn decode(png: Bytes) -> Result<Self, String> {
        if png.len() > MOST_BYTES {
            return Err(format!("must be at most {} KiB", MOST_BYTES >> 10));
        }
        let broken =
            |error: png::DecodingError| format!("must be a PNG image: {}", error.to_string().trim_end_matches('.'));
        let limits = png::Limits { bytes: MOST_MEMORY };
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(&png), limits);
        decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
        let head = decoder.read_header_info().map_err(broken)?;
        let (width, height) = (head.width, head.height);
        if width > MOST_PIXELS || height > MOST_PIXELS {
            return Err(format!("must be at most {MOST_PIXELS} pixels wide and high, and is {width} x {height}"));
        }
        let mut reader = decoder.read_info().map_err(broken)?;

        let mut decoded = vec![0; reader.output_buffer_size()];
        let frame = reader.next_frame(&mut decoded).map_err(broken)?;
        decoded.truncate(frame.buffer_size());
        let pixels = match frame.color_type {
            png::ColorType::Rgba => decoded,
            _ => decoded.chunks_exact(2).flat_map(|pair| [pair[0], pair[0], pair[0], pair[1]]).collect(),
        };
        Ok(Self { png, width, height, pixels })
    }

    /// Width and height, in pixels.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }
}
