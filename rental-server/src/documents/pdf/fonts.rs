//! The fonts of PDF files. They come with the program; `fonts/README.md` has their sources and licences.

use harfrust::ShaperData;
use krilla::text::Font;
use skrifa::{FontRef, MetadataProvider};
use std::sync::LazyLock;

/// A font, ready to shape and to embed.
pub(super) struct Face {
    pub(super) font: Font,
    pub(super) file: FontRef<'static>,
    pub(super) shaping: ShaperData,
    pub(super) units_per_em: f32,
}

impl Face {
    fn load(file: &'static [u8]) -> Option<Self> {
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

/// A font of this folder.
macro_rules! font {
    ($name:literal) => {
        include_bytes!(concat!("../../../fonts/", $name))
    };
}

/// Latin, Greek and Cyrillic.
static REGULAR: &[u8] = font!("NotoSans-Regular.ttf");
static BOLD: &[u8] = font!("NotoSans-Bold.ttf");
/// Fonts for what the first one lacks, in the order in which they are tried.
static OTHERS: [&[u8]; 19] = [
    font!("NotoNaskhArabic-Regular.ttf"),
    font!("NotoSansArmenian-Regular.ttf"),
    font!("NotoSansBengali-Regular.ttf"),
    font!("NotoSansDevanagari-Regular.ttf"),
    font!("NotoSansEthiopic-Regular.ttf"),
    font!("NotoSansGeorgian-Regular.ttf"),
    font!("NotoSansGujarati-Regular.ttf"),
    font!("NotoSansGurmukhi-Regular.ttf"),
    font!("NotoSansHebrew-Regular.ttf"),
    font!("NotoSansKannada-Regular.ttf"),
    font!("NotoSansKhmer-Regular.ttf"),
    font!("NotoSansLao-Regular.ttf"),
    font!("NotoSansMalayalam-Regular.ttf"),
    font!("NotoSansMyanmar-Regular.ttf"),
    font!("NotoSansSinhala-Regular.ttf"),
    font!("NotoSansTamil-Regular.ttf"),
    font!("NotoSansTelugu-Regular.ttf"),
    font!("NotoSansThai-Regular.ttf"),
    // Chinese, Japanese and Korean.
    font!("wqy-microhei.ttf"),
];

/// The fonts: regular, bold, then the others.
static FACES: LazyLock<Vec<Face>> =
    LazyLock::new(|| [REGULAR, BOLD].into_iter().chain(OTHERS).filter_map(Face::load).collect());

/// The fonts in which a text is tried, the best first.
pub(super) fn faces(bold: bool) -> impl Iterator<Item = &'static Face> + Clone {
    let first = usize::from(bold);
    FACES.iter().skip(first).take(1).chain(FACES.iter().skip(2))
}
