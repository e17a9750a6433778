//! Where everything is on the pages. Lengths are points, 1/72 of an inch, from the top left corner.

use super::text::{Line, wrapped};
use crate::documents::{
    logo::Logo,
    model::{Document, Row, State},
};
use rental_core::resources::organization::PaperSize;

/// 18 mm.
const MARGIN: f32 = 51.0;
const BODY: f32 = 9.5;
const SMALL: f32 = 8.0;
/// The height of a line, of its size.
const LEADING: f32 = 1.4;
/// The room for amounts at the right.
const AMOUNTS: f32 = 110.0;
const LOGO_WIDTH: f32 = 170.0;
const LOGO_HEIGHT: f32 = 56.0;
/// The room at the end of each page for its number.
const FOOTER: f32 = 30.0;

/// The colours of an invoice.
#[derive(Clone, Copy)]
pub(super) enum Colour {
    Black,
    Grey,
    Green,
    Red,
}

/// Something on a page.
pub(super) enum Item {
    /// A line of text whose baseline starts at `(x, y)`.
    Text { line: Line, x: f32, y: f32, colour: Colour },
    /// A horizontal rule.
    Rule { x: f32, y: f32, width: f32, weight: f32 },
    /// The logo.
    Logo { x: f32, y: f32, width: f32, height: f32 },
}

/// The pages of a document.
pub(super) struct Pages {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) pages: Vec<Vec<Item>>,
}

/// Lays out a document.
pub(super) fn pages(document: &Document) -> Pages {
    let (width, height) = match document.paper {
        PaperSize::A4 => (595.28, 841.89),
        PaperSize::Letter => (612.0, 792.0),
    };
    let mut sheet = Sheet { width, height, y: MARGIN, pages: vec![Vec::new()] };
    sheet.head(document);
    sheet.parties(document);
    sheet.table(document);
    sheet.sums(document);
    sheet.payment(document);
    sheet.footers(document);
    Pages { width, height, pages: sheet.pages }
}

struct Sheet {
    width: f32,
    height: f32,
    /// The top of what comes next.
    y: f32,
    pages: Vec<Vec<Item>>,
}

impl Sheet {
    fn add(&mut self, item: Item) {
        if let Some(page) = self.pages.last_mut() {
            page.push(item);
        }
    }

    /// The right end of the text.
    fn right(&self) -> f32 {
        self.width - MARGIN
    }

    fn has_room(&self, height: f32) -> bool {
        self.y + height <= self.height - MARGIN - FOOTER
    }

    fn turn(&mut self) {
        self.pages.push(Vec::new());
        self.y = MARGIN;
    }

    /// A line with its left end at `x`, at the present height; does not move on.
    fn left(&mut self, line: Line, x: f32, size: f32, colour: Colour) {
        let y = self.y + size;
        self.add(Item::Text { line, x, y, colour });
    }

    /// A line with its right end at the right end of the text.
    fn flush_right(&mut self, line: Line, size: f32, colour: Colour) {
        let x = self.right() - line.width;
        self.left(line, x, size, colour);
    }

    /// Wrapped text in a column, downwards from the present height.
    fn column(&mut self, text: &str, (x, width): (f32, f32), (size, bold): (f32, bool), colour: Colour) {
        for line in wrapped(text, size, bold, width) {
            if !self.has_room(size * LEADING) {
                self.turn();
            }
            self.left(line, x, size, colour);
            self.y += size * LEADING;
        }
    }

    fn rule(&mut self, weight: f32) {
        let (y, width) = (self.y, self.right() - MARGIN);
        self.add(Item::Rule { x: MARGIN, y, width, weight });
    }

    /// Logo and seller at the left, the name of the document at the right.
    fn head(&mut self, document: &Document) {
        let name = Line::new(document.heading, 20.0, true);
        let room = (self.right() - MARGIN - name.width - 24.0).max(LOGO_WIDTH);
        self.flush_right(name, 20.0, Colour::Black);
        if let Some((width, height)) = document.logo.as_ref().map(fitted) {
            let y = self.y;
            self.add(Item::Logo { x: MARGIN, y, width, height });
            self.y += height + 10.0;
        }
        self.column(&document.seller, (MARGIN, room), (12.0, true), Colour::Black);
        for line in &document.seller_lines {
            self.column(line, (MARGIN, room), (BODY, false), Colour::Black);
        }
        self.y += 18.0;
    }

    /// The buyer at the left, number and dates at the right.
    fn parties(&mut self, document: &Document) {
        if !self.has_room(220.0) {
            self.turn();
        }
        let (top, half) = (self.y, (self.right() - MARGIN) / 2.0);
        self.column(document.buyer_heading, (MARGIN, half), (SMALL, false), Colour::Grey);
        for (at, line) in document.buyer.iter().enumerate() {
            self.column(line, (MARGIN, half - 12.0), (BODY, at == 0), Colour::Black);
        }
        let left_end = self.y;
        self.y = top;
        let state = match document.state {
            State::Open => Colour::Black,
            State::Paid => Colour::Green,
            State::Void => Colour::Red,
        };
        let last = document.facts.len().saturating_sub(1);
        for (at, (name, value)) in document.facts.iter().enumerate() {
            let (colour, bold) =
                if at == last { (state, document.state != State::Open) } else { (Colour::Black, false) };
            self.left(Line::new(name, BODY, false), MARGIN + half, BODY, Colour::Grey);
            self.flush_right(Line::new(value, BODY, bold), BODY, colour);
            self.y += BODY * LEADING;
        }
        self.y = self.y.max(left_end) + 20.0;
    }

    fn table_head(&mut self, document: &Document) {
        let [description, amount] = &document.columns;
        self.left(Line::new(description, BODY, true), MARGIN, BODY, Colour::Black);
        self.flush_right(Line::new(amount, BODY, true), BODY, Colour::Black);
        self.y += BODY * LEADING + 2.0;
        self.rule(1.0);
        self.y += 6.0;
    }

    fn table(&mut self, document: &Document) {
        let width = self.right() - MARGIN - AMOUNTS;
        self.table_head(document);
        for Row { description, detail, amount } in &document.rows {
            let descriptions = wrapped(description, BODY, false, width);
            let details = detail.as_ref().map(|detail| wrapped(detail, SMALL, false, width)).unwrap_or_default();
            let height = (descriptions.len() as f32 * BODY + details.len() as f32 * SMALL) * LEADING + 8.0;
            if !self.has_room(height) {
                self.turn();
                self.table_head(document);
            }
            self.flush_right(Line::new(amount, BODY, false), BODY, Colour::Black);
            for (lines, size, colour) in [(descriptions, BODY, Colour::Black), (details, SMALL, Colour::Grey)] {
                for line in lines {
                    self.left(line, MARGIN, size, colour);
                    self.y += size * LEADING;
                }
            }
            self.y += 3.0;
            self.rule(0.4);
            self.y += 5.0;
        }
    }

    fn sums(&mut self, document: &Document) {
        let last = document.sums.len().saturating_sub(1);
        if !self.has_room(document.sums.len() as f32 * 20.0) {
            self.turn();
        }
        for (at, (name, sum)) in document.sums.iter().enumerate() {
            let (size, bold) = if at == last { (12.0, true) } else { (BODY, false) };
            let name = Line::new(name, size, bold);
            let x = self.right() - AMOUNTS - 24.0 - name.width;
            self.left(name, x, size, Colour::Black);
            self.flush_right(Line::new(sum, size, bold), size, Colour::Black);
            self.y += size * LEADING;
        }
    }

    /// How to pay. Goes on on the next page when it is long.
    fn payment(&mut self, document: &Document) {
        let Some((name, instructions)) = &document.payment else { return };
        self.y += 18.0;
        let width = self.right() - MARGIN;
        let line_height = BODY * LEADING;
        if !self.has_room(4.0 * line_height) {
            self.turn();
        }
        self.column(name, (MARGIN, width), (SMALL, false), Colour::Grey);
        for line in instructions.iter().flat_map(|text| wrapped(text, BODY, false, width)) {
            if !self.has_room(line_height) {
                self.turn();
            }
            self.left(line, MARGIN, BODY, Colour::Black);
            self.y += line_height;
        }
    }

    /// Seller, number and page at the end of each page.
    fn footers(&mut self, document: &Document) {
        let (count, y) = (self.pages.len(), self.height - MARGIN + SMALL);
        let room = self.right() - MARGIN - AMOUNTS;
        let right = self.right();
        for (at, page) in self.pages.iter_mut().enumerate() {
            let about = format!("{} · {}", document.number, document.seller);
            if let Some(line) = wrapped(&about, SMALL, false, room).into_iter().next() {
                page.push(Item::Text { line, x: MARGIN, y, colour: Colour::Grey });
            }
            let line = Line::new(&document.page_of(at + 1, count), SMALL, false);
            page.push(Item::Text { x: right - line.width, line, y, colour: Colour::Grey });
        }
    }
}

/// The size of a logo on the page: as large as its room allows, at most 4 pixels for 3 points.
fn fitted(logo: &Logo) -> (f32, f32) {
    let (width, height) = (logo.width as f32, logo.height as f32);
    let scale = (LOGO_WIDTH / width).min(LOGO_HEIGHT / height).min(0.75);
    (width * scale, height * scale)
}
