//! Tests of the kit: pages are closed, plots say what they show.

use super::*;

#[test]
fn a_page_allows_its_style_sheet_and_nothing_else() {
    let mut page = Page::new("<b>");
    page.section("a\"", "<i>", "", "");
    page.section("b", "B", "about", "");
    let html = page.html();
    assert!(html.contains("<title>&lt;b&gt;</title>") && html.contains("<h1>&lt;b&gt;</h1>"));
    assert!(html.contains("<a href=\"#a&quot;\">&lt;i&gt;</a>") && html.contains("<section id=\"a&quot;\">"));
    assert!(html.contains(&policy()));
    assert!(
        html.contains(&format!("<style>{STYLE}</style>")),
        "what is named is what is there, byte for byte"
    );
    for text in ["<script", "style=\"", "http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(text), "{text}");
    }
}

#[test]
fn curves_break_where_there_is_no_value() {
    let series = Series::new("<a>", vec![(1.0, 1.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 4.0)]);
    let plot = Curves::new("T", Axis::linear("x"), Axis::linear("y"), vec![series]).html();
    let path = plot.split("class=\"line").nth(1).unwrap().split("/>").next().unwrap();
    assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1), "{path}");
    assert_eq!(plot.matches("class=\"dot").count(), 3);
    assert!(plot.contains("<title>&lt;a&gt;: 2.00 at 3.00</title>"), "{plot}");
    assert!(plot.contains("role=\"group\" aria-label=\"T. Plot of y by x: &lt;a&gt;\""));
    assert!(
        Curves::new("T", Axis::log("x"), Axis::log("y"), Vec::new()).html().contains("T: nothing to show.")
    );
}

/// The legend switches them without a script; the plot can be saved with its legend.
#[test]
fn curves_are_switched_and_saved() {
    let points = vec![(1.0, 1.0), (2.0, 3.0)];
    let of = |name: &str| Series::new(name, points.clone());
    let plot =
        Curves::new("Time & more", Axis::linear("x"), Axis::linear("y"), vec![of("<a>"), of("b")]).html();
    assert!(
        plot.contains("<input type=\"checkbox\" class=\"s1\" checked>") && plot.contains("<g class=\"g1\">")
    );
    for number in [0, 1, 15] {
        assert!(STYLE.contains(&format!("figure:has(.s{number}:not(:checked)) .g{number}")), "{number}");
    }
    // Two lines on each other are told apart, by name and by dash.
    assert!(plot.contains("b (same as &lt;a&gt;)") && plot.contains("class=\"line c1 d1\""), "{plot}");
    let file = plot.split("download=\"time---more.svg\" href=\"data:image/svg+xml;base64,").nth(1).unwrap();
    let file = STANDARD.decode(file.split('"').next().unwrap()).unwrap();
    let file = String::from_utf8(file).unwrap();
    assert!(file.starts_with("<svg xmlns=") && file.contains("&lt;a&gt;</text>"), "{file}");
    assert_eq!((file.matches("<svg").count(), file.matches("</svg>").count()), (1, 1));
    let alone = Curves::new("T", Axis::linear("x"), Axis::linear("y"), vec![of("a")]).html();
    assert!(!alone.contains("checkbox") && !alone.contains("class=\"g0\""));
}

/// A distribution does not rise where there is no value.
#[test]
fn steps_rise_at_their_point() {
    let series = Series::new("a", vec![(9.0, 0.0), (9.0, 0.5), (64.0, 1.0)]).steps_up();
    let plot = Curves::new("T", Axis::linear("x"), Axis::linear("y"), vec![series]).html();
    let path = plot.split("class=\"line").nth(1).unwrap().split("/>").next().unwrap();
    assert!(path.rfind('H').unwrap() < path.rfind('V').unwrap() && !path.contains('L'), "{path}");
}

#[test]
fn steps_hold_a_value_up_to_its_point() {
    let series = Series::new("a", vec![(0.0, 4.0), (1.0, 2.0)]).steps();
    let plot = Curves::new("T", Axis::linear("x"), Axis::linear("y"), vec![series]).html();
    let path = plot.split("class=\"line").nth(1).unwrap().split("/>").next().unwrap();
    assert!(path.find('V').unwrap() < path.find('H').unwrap(), "{path}");
}

#[test]
fn the_front_steps_along_what_it_reaches() {
    let dots = || {
        vec![
            Dot::new("a", 1.0, 3.0).front(true),
            Dot::new("b", 2.0, 1.0).front(true),
            Dot::new("c", 2.0, 3.0),
        ]
    };
    let plot = |less: bool| {
        let (x, y) = (Axis::linear("x"), Axis::linear("y"));
        Scatter::new("T", x, y, dots()).less_is_better(less, true).html()
    };
    let path = |plot: &str| {
        plot.split("class=\"line c0\" d=\"").nth(2).unwrap().split('"').next().unwrap().to_string()
    };
    // The first line is the legend's.
    let (less, more) = (path(&plot(true)), path(&plot(false)));
    assert!(less.find('H').unwrap() < less.find('V').unwrap(), "{less}");
    assert!(more.find('V').unwrap() < more.find('H').unwrap(), "{more}");
    let plot = plot(true);
    assert!(plot.contains("x (less is better)") && plot.contains("on the front: a; b\""));
    assert_eq!(
        (plot.matches("class=\"dot").count(), plot.matches("class=\"off").count()),
        (3, 2),
        "with the legend"
    );
}

#[test]
fn a_map_has_a_colour_for_each_value() {
    let values = [0, 1, 2, 3, 3, 3, 9, 9];
    let heat = Heat {
        title: "T",
        row: "die",
        column: "block",
        unit: "erases",
        values: &values,
        rows: 2,
        range: [0, 9],
    };
    let map = heat.html();
    for path in ["h0\" d=\"M0 0.5h1\"", "h3\" d=\"M3 0.5h1M0 1.5h2\"", "h9\" d=\"M2 1.5h2\"><title>9 erases<"]
    {
        assert!(map.contains(path), "{path}: {map}");
    }
    let long: Vec<u32> = (0..200_000).collect();
    let heat = Heat { values: &long, rows: 1, range: [0, 199_999], ..heat };
    assert!(heat.html().contains("4 in a cell: their largest value"), "{}", heat.html());
}

#[test]
fn bars_say_their_values() {
    let mut bars = Bars::new("T", Axis::linear("times"), &[("host", 0), ("cleaning", 4), ("map", 2)]);
    bars.row("<a>", &[1.0, 2.5, 0.0], "3.50");
    let html = bars.html();
    assert!(html.contains("aria-label=\"times. &lt;a&gt;: host 1.00, cleaning 2.50\""), "{html}");
    assert!(html.contains("<title>cleaning 2.50</title>") && html.contains("</svg>cleaning</li>"));
    assert!(!html.contains("map"), "what no bar has is not in the legend");
}

/// Contrast as WCAG 2 defines it: text at least 4.5, drawings at least 3.
#[test]
fn colours_can_be_told_from_the_page() {
    let luminance = |color: &str| -> f64 {
        let channel = |at: usize| {
            let value = u8::from_str_radix(&color[at..at + 2], 16).unwrap() as f64 / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    };
    let contrast = |a: &str, b: &str| {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    };
    for scheme in [0, 1] {
        let block = STYLE.split(":root {").nth(scheme + 1).unwrap().split('}').next().unwrap();
        let color = |name: &str| block.split(&format!("--{name}: ")).nth(1).unwrap()[..7].to_string();
        for ground in ["page", "card"].map(color) {
            for text in ["ink", "dim", "warn"] {
                assert!(contrast(&color(text), &ground) >= 4.5, "{scheme} {text}");
            }
        }
        for line in ["c0", "c1", "c2", "c3", "c4", "c5", "c6"] {
            assert!(contrast(&color(line), &color("page")) >= 3.0, "{scheme} {line}");
        }
    }
}
