//! One line of text as glyphs: direction, fonts, shapes, and where a longer text is broken.

use super::fonts::{Face, faces};
use harfrust::{Direction, Feature, Tag, UnicodeBuffer};
use krilla::{
    geom::Point,
    surface::Surface,
    text::{GlyphId, KrillaGlyph},
};
use std::ops::Range;
use unicode_bidi::ParagraphBidiInfo;

/// Glyphs of one font in one direction, from left to right.
struct Run {
    face: &'static Face,
    text: String,
    glyphs: Vec<KrillaGlyph>,
}

/// A line that can be drawn.
pub(super) struct Line {
    runs: Vec<Run>,
    size: f32,
    pub(super) width: f32,
}

impl Line {
    /// Shapes a text of one line. Parts of it that are written from right to left are put in that order.
    pub(super) fn new(text: &str, size: f32, bold: bool) -> Self {
        if text.is_empty() {
            // `visual_runs` panics without a character.
            return Self { runs: Vec::new(), size, width: 0.0 };
        }
        let bidi = ParagraphBidiInfo::new(text, None);
        let (levels, ranges) = bidi.visual_runs(0..text.len());
        let mut runs = Vec::new();
        for range in ranges {
            let from_right = levels.get(range.start).is_some_and(|level| level.is_rtl());
            let Some(part) = text.get(range) else { continue };
            let mut pieces = by_font(part, bold);
            if from_right {
                pieces.reverse();
            }
            let shaped = pieces.into_iter().filter_map(|(face, piece)| Some(shape(face, part.get(piece)?, from_right)));
            runs.extend(shaped);
        }
        let advances = runs.iter().flat_map(|run| &run.glyphs).map(|glyph| glyph.x_advance);
        Self { width: advances.sum::<f32>() * size, runs, size }
    }

    /// The characters that no font has.
    pub(super) fn not_shown(&self) -> impl Iterator<Item = char> {
        self.runs.iter().flat_map(|run| {
            let boxes = run.glyphs.iter().filter(|glyph| glyph.glyph_id == GlyphId::new(0));
            boxes.filter_map(|glyph| run.text.get(glyph.text_range.clone())).flat_map(str::chars)
        })
    }

    /// Draws the line with its baseline from `(x, y)` on.
    pub(super) fn draw(&self, surface: &mut Surface<'_>, x: f32, y: f32) {
        let mut x = x;
        for run in &self.runs {
            surface.draw_glyphs(Point::from_xy(x, y), &run.glyphs, run.face.font.clone(), &run.text, self.size, false);
            x += run.glyphs.iter().map(|glyph| glyph.x_advance).sum::<f32>() * self.size;
        }
    }
}

/// Breaks a text into lines of at most `width`.
pub(super) fn wrapped(text: &str, size: f32, bold: bool, width: f32) -> Vec<Line> {
    let whole = Line::new(text.trim_end(), size, bold);
    if whole.width <= width {
        return vec![whole];
    }
    let (mut lines, mut line) = (Vec::new(), String::new());
    let mut filled = 0.0;
    for part in parts(text) {
        for piece in fitting(part, size, bold, width) {
            let needed = Line::new(piece, size, bold).width;
            let visible = Line::new(piece.trim_end(), size, bold).width;
            if !line.is_empty() && filled + visible > width {
                lines.push(Line::new(line.trim_end(), size, bold));
                line.clear();
                filled = 0.0;
            }
            line.push_str(piece);
            filled += needed;
        }
    }
    if !line.trim_end().is_empty() || lines.is_empty() {
        lines.push(Line::new(line.trim_end(), size, bold));
    }
    lines
}

/// Splits a text where a line may end: after white space and hyphens, and around characters of East Asian scripts.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut characters = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((_, character)) = characters.next() {
            let Some((next_at, next)) = characters.peek().copied() else { break };
            let after_space = character.is_whitespace() && !is_glued(character) && !next.is_whitespace();
            let around = is_east_asian(character) && !ends_a_phrase(next) || is_east_asian(next);
            if after_space || character == '-' || around {
                end = next_at;
                break;
            }
        }
        let (part, after) = rest.split_at_checked(end)?;
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// White space at which no line ends.
fn is_glued(character: char) -> bool {
    matches!(character, '\u{a0}' | '\u{202f}' | '\u{2007}')
}

/// Punctuation of East Asian scripts with which no line begins.
fn ends_a_phrase(character: char) -> bool {
    matches!(character, '、' | '。' | '，' | '．' | '！' | '？' | '：' | '；' | '）' | '」' | '』' | '】' | '》' | 'ー')
}

fn is_east_asian(character: char) -> bool {
    matches!(u32::from(character), 0x3041..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

/// Cuts a part that is wider than a line. The cut is at a character, so it can fall inside of a word.
fn fitting(part: &str, size: f32, bold: bool, width: f32) -> Vec<&str> {
    let mut pieces = vec![part];
    while let Some(last) = pieces.pop() {
        let middle = last.char_indices().map(|(at, _)| at).nth(last.chars().count() / 2).unwrap_or_default();
        if middle == 0 || Line::new(last.trim_end(), size, bold).width <= width {
            pieces.push(last);
            break;
        }
        let (first, second) = last.split_at(middle);
        let first = fitting(first, size, bold, width);
        pieces.extend(first);
        pieces.push(second);
    }
    pieces
}

/// Splits a text into parts that one font has. Characters that no font has are shown as a box.
fn by_font(text: &str, bold: bool) -> Vec<(&'static Face, Range<usize>)> {
    let mut pieces: Vec<(&'static Face, Range<usize>)> = Vec::new();
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        let present = pieces.last().map(|(face, _)| *face);
        // Spaces, signs and marks stay in the font of what is before them.
        let stays = present.filter(|face| !character.is_alphanumeric() && face.has(character));
        let found = stays.or_else(|| faces(bold).find(|face| face.has(character)));
        let Some(face) = found.or(present).or_else(|| faces(bold).next()) else { continue };
        match pieces.last_mut() {
            Some((last, range)) if std::ptr::eq(*last, face) => range.end = end,
            _ => pieces.push((face, at..end)),
        }
    }
    pieces
}

fn shape(face: &'static Face, text: &str, from_right: bool) -> Run {
    let mut buffer = UnicodeBuffer::new();
    buffer.push_str(text);
    buffer.set_direction(if from_right { Direction::RightToLeft } else { Direction::LeftToRight });
    buffer.guess_segment_properties();
    // A glyph for several letters is read from left to right by programs that extract text. This font joins letters without
    // such glyphs, except for a few words.
    let apart = [Feature::new(Tag::new(b"liga"), 0, ..), Feature::new(Tag::new(b"dlig"), 0, ..)];
    let features: &[Feature] = if from_right { &apart } else { &[] };
    let shaped = face.shaping.shaper(&face.file).build().shape(buffer, features);
    let starts: Vec<usize> = shaped.glyph_infos().iter().map(|info| info.cluster as usize).collect();
    // A cluster ends where the next one in the text begins.
    let mut ends = starts.clone();
    ends.push(text.len());
    ends.sort_unstable();
    ends.dedup();
    let end = |start: usize| ends.get(ends.partition_point(|at| *at <= start)).copied().unwrap_or(text.len());
    let em = |units: i32| units as f32 / face.units_per_em;
    let glyphs =
        shaped.glyph_infos().iter().zip(shaped.glyph_positions()).zip(starts).map(|((info, at), start)| KrillaGlyph {
            glyph_id: GlyphId::new(info.glyph_id),
            text_range: start..end(start),
            x_advance: em(at.x_advance),
            x_offset: em(at.x_offset),
            y_offset: em(at.y_offset),
            y_advance: em(at.y_advance),
            location: None,
        });
    Run { face, glyphs: glyphs.collect(), text: text.to_owned() }
}
