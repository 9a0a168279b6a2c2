//! Stacked bars, as SVG: where writes come from, where die time goes.

use super::text::{Labelled, Table, details, escape, section as section_of, tick_text, ticks};
use crate::report::human::two;
use crate::report::{metric, number};
use crate::result::RunResult;

/// Width of a drawing, and of the space at its right end for a total.
const WIDTH: f64 = 1040.0;
const RIGHT: f64 = 60.0;
/// Height of one bar with its label, and of the bar alone.
const ROW: f64 = 52.0;
const BAR: f64 = 22.0;

/// A part of a bar: class of its colour, name, value.
type Part = (&'static str, &'static str, f64);

/// A drawing of bars.
struct Bars<'a> {
    /// What it shows, for those who cannot see it.
    about: &'a str,
    axis: &'a str,
    max: f64,
    rows: Vec<(String, Vec<Part>, String)>,
    text: fn(f64) -> String,
    tick: fn(f64, f64) -> String,
}

impl Bars<'_> {
    fn svg(&self) -> String {
        let axis = ticks(self.max, 8);
        let (last, step) = (axis[axis.len() - 1], axis[1]);
        let x = |value: f64| value / last * (WIDTH - RIGHT);
        let bottom = ROW * self.rows.len() as f64 + 6.0;
        let height = bottom + 40.0;
        let mut svg = format!(
            "<div class=\"scroll\"><svg class=\"plot\" viewBox=\"-14 0 {:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\n",
            WIDTH + 28.0,
            escape(self.about)
        );
        for value in &axis {
            let (at, text) = (x(*value), (self.tick)(*value, step));
            svg += &format!("<path class=\"grid\" d=\"M{at:.1} 22V{bottom:.1}\"/>");
            svg += &format!("<text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\">{text}</text>\n", bottom + 16.0);
        }
        for (index, (label, parts, total)) in self.rows.iter().enumerate() {
            let top = ROW * index as f64;
            svg +=
                &format!("<text class=\"label\" x=\"0\" y=\"{:.1}\">{}</text>\n", top + 18.0, escape(label));
            let mut from = 0.0;
            for (class, name, value) in parts {
                svg += &self.part(class, name, *value, x(from), x(from + value), top + 24.0);
                from += value;
            }
            let (at, middle) = (x(from) + 7.0, top + 24.0 + BAR / 2.0 + 5.0);
            svg += &format!("<text class=\"total\" x=\"{at:.1}\" y=\"{middle:.1}\">{total}</text>\n");
        }
        let (middle, low) = ((WIDTH - RIGHT) / 2.0, bottom + 34.0);
        svg +=
            &format!("<text class=\"axis\" x=\"{middle:.1}\" y=\"{low:.1}\">{}</text>\n", escape(self.axis));
        svg + "</svg></div>\n"
    }

    fn part(&self, class: &str, name: &str, value: f64, from: f64, to: f64, top: f64) -> String {
        let (wide, text) = (to - from, (self.text)(value));
        let mut svg = format!(
            "<rect class=\"part {class}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR}\">\
             <title>{name} {text}</title></rect>\n",
            wide.max(0.0)
        );
        if wide > 8.0 * text.chars().count() as f64 + 4.0 {
            let (x, y) = (from + wide / 2.0, top + BAR / 2.0 + 5.0);
            svg += &format!("<text class=\"on {class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n");
        }
        svg
    }

    /// The parts that any bar has, each with its colour.
    fn legend(&self) -> String {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for (class, name, _) in self.rows.iter().flat_map(|(_, parts, _)| parts) {
            if !seen.contains(&(class, name)) {
                seen.push((class, name));
            }
        }
        let item = |(class, name): &(&str, &str)| {
            format!(
                "<li><svg class=\"key\" viewBox=\"0 0 12 12\"><rect class=\"part {class}\" width=\"12\" height=\"12\"/></svg>{name}</li>"
            )
        };
        format!("<ul class=\"legend\">{}</ul>\n", seen.iter().map(item).collect::<String>())
    }
}

/// The parts of write amplification.
fn write_parts(run: &RunResult) -> Vec<Part> {
    let wa = &run.write_amplification;
    let parts = [
        ("k-host", "host", wa.host),
        ("k-clean", "cleaning", wa.clean),
        ("k-wear", "wear levelling", wa.wear),
        ("k-retire", "retired blocks", wa.retire),
        ("k-map", "map", wa.map),
        ("k-pad", "padding", wa.padding),
    ];
    parts.into_iter().filter(|(.., value)| *value > 0.0).collect()
}

/// Where writes come from.
pub(super) fn writes(runs: &[Labelled<'_>]) -> String {
    let rows: Vec<_> = runs
        .iter()
        .filter(|labelled| labelled.run.write_amplification.total > 0.0)
        .map(|labelled| {
            let total = two(labelled.run.write_amplification.total);
            (labelled.label.clone(), write_parts(labelled.run), total)
        })
        .collect();
    if rows.is_empty() {
        return section_of("writes", "Where writes come from", "The host wrote nothing.", "");
    }
    let max = runs.iter().map(|labelled| labelled.run.write_amplification.total).fold(1.0, f64::max);
    let axis = "units programmed for each unit the host wrote";
    let bars =
        Bars { about: "Write amplification and its parts", axis, max, rows, text: two, tick: tick_text };
    let content = bars.legend() + &bars.svg() + &details("Table", &writes_table(runs));
    section_of("writes", "Where writes come from", "", &content)
}

fn writes_table(runs: &[Labelled<'_>]) -> String {
    let heads = [
        "design",
        "write amplification",
        "host",
        "cleaning",
        "wear levelling",
        "retired blocks",
        "map",
        "padding",
        "unaligned (extra)",
        "blocks cleaned",
        "live in them",
    ];
    let mut table = Table::new("Units programmed for each unit the host wrote", 1, &heads);
    for labelled in runs {
        let wa = &labelled.run.write_amplification;
        let mut cells = vec![labelled.marked()];
        let parts = [wa.total, wa.host, wa.clean, wa.wear, wa.retire, wa.map, wa.padding, wa.unaligned];
        cells.extend(parts.map(two));
        cells.push(number::count(wa.cleaned_blocks));
        cells.push(number::share(wa.cleaned_live_share).to_string());
        table.row(&cells);
    }
    table.html()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Where die time goes.
pub(super) fn busy(runs: &[Labelled<'_>]) -> String {
    let row = |labelled: &Labelled<'_>| {
        let flash = &labelled.run.flash;
        let idle = (1.0 - metric::busy_flash(labelled.run)).max(0.0);
        let parts = vec![
            ("k-read", "read", flash.busy_read),
            ("k-program", "program", flash.busy_program),
            ("k-erase", "erase", flash.busy_erase),
            ("k-idle", "idle", idle),
        ];
        (labelled.label.clone(), parts, String::new())
    };
    let bars = Bars {
        about: "Share of die time by activity",
        axis: "share of the time of all dies",
        max: 1.0,
        rows: runs.iter().map(row).collect(),
        text: percent,
        tick: |value, _| format!("{:.0} %", value * 100.0),
    };
    let heads = ["design", "read", "program", "erase", "idle", "channels busy"];
    let mut table = Table::new("Share of time", 1, &heads);
    for labelled in runs {
        let flash = &labelled.run.flash;
        let idle = (1.0 - metric::busy_flash(labelled.run)).max(0.0);
        let shares = [flash.busy_read, flash.busy_program, flash.busy_erase, idle, flash.busy_channel];
        let mut cells = vec![labelled.marked()];
        cells.extend(shares.map(percent));
        table.row(&cells);
    }
    let content = bars.legend() + &bars.svg() + &details("Table, with channels", &table.html());
    section_of("busy", "Where die time goes", "Waiting for a resume counts as idle.", &content)
}
