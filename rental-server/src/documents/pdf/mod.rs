//! An invoice as a PDF file: pages of positioned texts, then the file. The text of the file can be searched and copied.

mod fonts;
mod layout;
mod text;

use super::model::Document;
use crate::documents::logo::Logo;
use krilla::{
    color::rgb,
    geom::{PathBuilder, Rect, Size, Transform},
    image::Image,
    metadata::Metadata,
    num::NormalizedF32,
    page::PageSettings,
    paint::{Fill, FillRule},
    surface::Surface,
};
use layout::{Colour, Item, Pages};
use std::collections::BTreeSet;

/// A PDF file.
pub(crate) struct File {
    pub(crate) bytes: Vec<u8>,
    /// The characters that no font has. The pages have boxes in their places.
    pub(crate) not_shown: BTreeSet<char>,
}

/// The file. Needs no clock and no chance: the same document gives the same bytes.
///
/// # Errors
/// Why the file cannot be made, which is a bug.
pub(crate) fn file(document: &Document) -> Result<File, String> {
    let Pages { width, height, pages } = layout::pages(document);
    let logo = document.logo.as_ref().map(image);
    let mut pdf = krilla::Document::new();
    for page in &pages {
        let settings = PageSettings::from_wh(width, height).ok_or("a page has no size")?;
        let mut page_of_file = pdf.start_page_with(settings);
        let mut surface = page_of_file.surface();
        page.iter().for_each(|item| draw(&mut surface, item, logo.as_ref()));
        surface.finish();
        page_of_file.finish();
    }
    let about = Metadata::new()
        .title(document.title())
        .authors(vec![document.seller.clone()])
        .language(document.language.to_owned())
        .producer(concat!("rental-server ", env!("CARGO_PKG_VERSION")).to_owned());
    pdf.set_metadata(about);
    let lines =
        pages.iter().flatten().filter_map(|item| if let Item::Text { line, .. } = item { Some(line) } else { None });
    let not_shown = lines.flat_map(text::Line::not_shown).collect();
    Ok(File { bytes: pdf.finish().map_err(|error| format!("{error:?}"))?, not_shown })
}

fn image(logo: &Logo) -> Image {
    Image::from_rgba8(logo.pixels.clone(), logo.width, logo.height)
}

fn draw(surface: &mut Surface<'_>, item: &Item, logo: Option<&Image>) {
    match item {
        Item::Text { line, x, y, colour } => {
            surface.set_fill(Some(fill(*colour)));
            line.draw(surface, *x, *y);
        }
        Item::Rule { x, y, width, weight } => {
            let mut path = PathBuilder::new();
            if let Some(rect) = Rect::from_xywh(*x, *y, *width, *weight) {
                path.push_rect(rect);
            }
            if let Some(path) = path.finish() {
                surface.set_fill(Some(fill(Colour::Grey)));
                surface.draw_path(&path);
            }
        }
        Item::Logo { x, y, width, height } => {
            if let (Some(logo), Some(size)) = (logo, Size::from_wh(*width, *height)) {
                surface.push_transform(&Transform::from_translate(*x, *y));
                surface.draw_image(logo.clone(), size);
                surface.pop();
            }
        }
    }
}

fn fill(colour: Colour) -> Fill {
    let colour = match colour {
        Colour::Black => rgb::Color::new(17, 17, 17),
        Colour::Grey => rgb::Color::new(85, 85, 85),
        Colour::Green => rgb::Color::new(0, 102, 0),
        Colour::Red => rgb::Color::new(170, 0, 0),
    };
    Fill { paint: colour.into(), opacity: NormalizedF32::ONE, rule: FillRule::NonZero }
}
