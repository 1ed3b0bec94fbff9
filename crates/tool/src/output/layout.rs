//! The layout of a table: widths of columns, and cells that fit them and cannot send commands to a terminal.

use larimar_model::escape;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The columns of a terminal that the text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The widths of the columns that fit, from those that their cells have: wide columns are cut first; if that is not
/// enough, the last columns are left out.
pub(super) fn fit(mut natural: Vec<usize>, total: Option<usize>) -> Vec<usize> {
    for width in &mut natural {
        *width = (*width).clamp(1, CELL_COLUMNS_MAX);
    }
    let Some(total) = total else { return natural };
    let least = |widths: &[usize]| widths.iter().map(|width| (*width).min(CELL_COLUMNS_MIN)).sum::<usize>();
    while natural.len() > 1 && least(&natural) + GAP.len() * (natural.len() - 1) > total {
        natural.pop();
    }
    let room = total.saturating_sub(GAP.len() * natural.len().saturating_sub(1)).max(1);
    // The largest limit with which all columns fit; narrower columns keep their width.
    let with = |limit: usize| natural.iter().map(|width| (*width).min(limit)).sum::<usize>();
    let mut limit = natural.iter().copied().max().unwrap_or(1);
    while limit > 1 && with(limit) > room {
        limit -= 1;
    }
    let mut rest = room.saturating_sub(with(limit));
    for width in &mut natural {
        let cut = (*width).min(limit);
        let more = usize::from(*width > cut && rest > 0);
        (*width, rest) = (cut + more, rest - more);
    }
    natural
}

/// One line of a table. The last cell is not padded.
pub(super) fn line(cells: &[String], widths: &[usize], numbers: &[bool]) -> String {
    let mut line = String::new();
    for (place, (cell, columns)) in cells.iter().zip(widths).enumerate() {
        let cell = cut(&escape(cell), *columns);
        let padding = columns.saturating_sub(width(&cell));
        if place > 0 {
            line.push_str(GAP);
        }
        match numbers[place] {
            true => line.extend(std::iter::repeat_n(' ', padding).chain(cell.chars())),
            false => line.extend(cell.chars().chain(std::iter::repeat_n(' ', padding))),
        }
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// The beginning of the text that fits, with an ellipsis if it is not all.
fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut taken = 1;
    for character in text.chars() {
        taken += character.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        cut.push(character);
    }
    cut.push('…');
    cut
}

/// Between two columns.
const GAP: &str = "  ";
/// A column is not cut below this.
const CELL_COLUMNS_MIN: usize = 8;
/// The widest column, in a file too.
const CELL_COLUMNS_MAX: usize = 1000;
