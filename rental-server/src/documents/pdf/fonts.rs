//! The fonts of PDF files. They come with the program, packed; `fonts/README.md` has their sources and licences.

use flate2::read::ZlibDecoder;
use harfrust::ShaperData;
use krilla::text::Font;
use skrifa::{FontRef, MetadataProvider};
use std::{io::Read, sync::LazyLock};

/// A font, ready to shape and to embed.
pub(super) struct Face {
    pub(super) font: Font,
    pub(super) file: FontRef<'static>,
    pub(super) shaping: ShaperData,
    pub(super) units_per_em: f32,
}

impl Face {
    fn load(packed: &[u8]) -> Option<Self> {
        let mut file = Vec::new();
        ZlibDecoder::new(packed).read_to_end(&mut file).ok()?;
        let file: &'static [u8] = file.leak();
        let font = Font::new(file.into(), 0)?;
        let units_per_em = font.units_per_em();
        let file = FontRef::from_index(file, 0).ok()?;
        Some(Self { font, shaping: ShaperData::new(&file), file, units_per_em })
    }

    /// Whether the font has a glyph for this character.
    pub(super) fn has(&self, character: char) -> bool {
        self.file.charmap().map(character).is_some_and(|glyph| glyph.to_u32() != 0)
    }
}

/// A font of this folder, unpacked when a text first needs it.
macro_rules! font {
    ($name:literal) => {
        LazyLock::new(|| Face::load(include_bytes!(concat!("../../../fonts/", $name, ".ttf.zlib"))))
    };
}

/// Latin, Greek and Cyrillic: regular and bold. Then fonts for what these lack, in the order in which they are tried.
static FACES: [LazyLock<Option<Face>>; 21] = [
    font!("NotoSans-Regular"),
    font!("NotoSans-Bold"),
    font!("NotoNaskhArabic-Regular"),
    font!("NotoSansArmenian-Regular"),
    font!("NotoSansBengali-Regular"),
    font!("NotoSansDevanagari-Regular"),
    font!("NotoSansEthiopic-Regular"),
    font!("NotoSansGeorgian-Regular"),
    font!("NotoSansGujarati-Regular"),
    font!("NotoSansGurmukhi-Regular"),
    font!("NotoSansHebrew-Regular"),
    font!("NotoSansKannada-Regular"),
    font!("NotoSansKhmer-Regular"),
    font!("NotoSansLao-Regular"),
    font!("NotoSansMalayalam-Regular"),
    font!("NotoSansMyanmar-Regular"),
    font!("NotoSansSinhala-Regular"),
    font!("NotoSansTamil-Regular"),
    font!("NotoSansTelugu-Regular"),
    font!("NotoSansThai-Regular"),
    // Chinese, Japanese and Korean.
    font!("wqy-microhei"),
];

/// The fonts in which a text is tried, the best first.
pub(super) fn faces(bold: bool) -> impl Iterator<Item = &'static Face> + Clone {
    let first = usize::from(bold);
    FACES.iter().skip(first).take(1).chain(FACES.iter().skip(2)).filter_map(|face| face.as_ref())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_font_is_unpacked() {
        assert!(super::FACES.iter().all(|face| face.is_some()));
    }
}
