//! The chart of the comparison: how many times Azurite's rate Larimar reaches, on a logarithmic scale.
//!
//! Written as SVG by hand; it needs no program but a browser.

use std::fmt::Write as _;

/// One bar.
pub(crate) struct Bar {
    /// What the bar belongs to; bars of one group follow each other.
    pub(crate) group: String,
    /// Which of the group's bars it is.
    pub(crate) series: usize,
    pub(crate) ratio: f64,
    /// The ratio it should reach.
    pub(crate) goal: Option<f64>,
}

const LEFT: f64 = 220.0;
const PLOT: f64 = 560.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 92.0;
const BAR: f64 = 16.0;
const GAP: f64 = 12.0;
const COLOURS: [&str; 3] = ["#1b7fa8", "#7cc0d8", "#b9a13f"];

/// Draws the chart; `series` names the bars of a group in order.
pub(crate) fn draw(title: &str, series: &[String], bars: &[Bar]) -> String {
    let most = bars.iter().flat_map(|bar| [bar.ratio, bar.goal.unwrap_or(1.0)]).fold(10.0, f64::max);
    let scale = Scale { decades: most.log10().ceil() };
    let mut groups: Vec<&str> = bars.iter().map(|bar| bar.group.as_str()).collect();
    groups.dedup();
    let height = TOP + bars.len() as f64 * BAR + groups.len() as f64 * GAP + 34.0;
    let width = LEFT + PLOT + RIGHT;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>{title}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="16" y="28" font-size="17" font-weight="600" fill="#1d2b33">{title}</text>
"##,
        title = escape(title)
    );
    legend(&mut svg, series);
    axis(&mut svg, scale, height);
    let (mut y, mut group) = (TOP, "");
    for bar in bars {
        if bar.group != group {
            y += GAP;
            group = &bar.group;
            let name = escape(group);
            let _ = writeln!(
                svg,
                r##"<text x="{}" y="{:.1}" text-anchor="end" fill="#1d2b33">{name}</text>"##,
                LEFT - 10.0,
                y + 13.0
            );
        }
        draw_bar(&mut svg, scale, bar, y);
        y += BAR;
    }
    svg.push_str("</svg>\n");
    svg
}

/// Where a ratio lies: 1 at the left edge, each factor of ten as wide as the next.
#[derive(Clone, Copy)]
struct Scale {
    decades: f64,
}

impl Scale {
    fn x(self, ratio: f64) -> f64 {
        let share = ratio.log10() / self.decades;
        LEFT + PLOT * share.clamp(0.0, 1.0)
    }
}

fn legend(svg: &mut String, series: &[String]) {
    let mut x = 16.0;
    for (name, colour) in series.iter().zip(COLOURS) {
        let name = escape(name);
        let _ = writeln!(
            svg,
            r##"<rect x="{x}" y="44" width="12" height="12" fill="{colour}"/><text x="{}" y="54" fill="#44545e">{name}</text>"##,
            x + 18.0
        );
        x += 150.0;
    }
    let _ = writeln!(
        svg,
        r##"<path d="M{x} 44v12" stroke="#c2410c" stroke-width="3"/><text x="{}" y="54" fill="#44545e">target</text>"##,
        x + 10.0
    );
}

fn axis(svg: &mut String, scale: Scale, height: f64) {
    let bottom = height - 18.0;
    for decade in 0..=scale.decades as i32 {
        let x = scale.x(10_f64.powi(decade));
        let _ = writeln!(
            svg,
            r##"<path d="M{x:.1} {TOP}V{bottom:.1}" stroke="#d5dde1"/><text x="{x:.1}" y="{:.1}" text-anchor="middle" fill="#6b7a83">{}×</text>"##,
            TOP - 8.0,
            10_u64.pow(decade.unsigned_abs())
        );
    }
}

fn draw_bar(svg: &mut String, scale: Scale, bar: &Bar, y: f64) {
    let end = scale.x(bar.ratio);
    let colour = COLOURS[bar.series % COLOURS.len()];
    let label = if bar.ratio < 9.95 { format!("{:.1}×", bar.ratio) } else { format!("{:.0}×", bar.ratio) };
    let _ = writeln!(
        svg,
        r##"<rect x="{LEFT}" y="{y:.1}" width="{:.1}" height="{:.1}" fill="{colour}"/><text x="{:.1}" y="{:.1}" fill="#1d2b33">{label}</text>"##,
        end - LEFT,
        BAR - 2.0,
        end + 6.0,
        y + 11.5
    );
    if let Some(goal) = bar.goal {
        let x = scale.x(goal);
        let _ = writeln!(svg, r##"<path d="M{x:.1} {:.1}v{BAR}" stroke="#c2410c" stroke-width="3"/>"##, y - 1.0);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(group: &str, series: usize, ratio: f64, goal: Option<f64>) -> Bar {
        Bar { group: group.into(), series, ratio, goal }
    }

    #[test]
    fn every_bar_group_and_goal_is_drawn_to_scale() {
        let bars = [bar("a & b", 0, 100.0, Some(10.0)), bar("a & b", 1, 0.5, None), bar("c", 0, 1_000.0, None)];
        let svg = draw("T", &["16".into(), "64".into()], &bars);
        assert_eq!(svg.matches("a &amp; b").count(), 1);
        assert_eq!(svg.matches("stroke=\"#c2410c\"").count(), 2, "one goal and the legend");
        // Three decades: 100 lies at two thirds, and what is below 1 has no length.
        assert!(svg.contains(&format!("width=\"{:.1}\"", PLOT * 2.0 / 3.0)), "{svg}");
        assert!(svg.contains("width=\"0.0\"") && svg.contains(">0.5×<"));
        assert!(svg.contains(&format!("width=\"{PLOT:.1}\"")) && svg.contains(">1000×<"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn a_chart_without_bars_is_still_a_picture() {
        assert!(draw("T", &[], &[]).ends_with("</svg>\n"));
    }
}
