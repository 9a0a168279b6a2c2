//! Tests of the page: texts cannot break out of it, and the same results produce the same page.

use super::*;
use nvlab_design::Design;
use nvlab_run::result::{
    FlashResult, Lifetime, OpResult, Precision, Price, TenantResult, WriteAmplification,
};
use nvlab_run::sample;

/// `NVLAB_REPORT_OUT=/tmp/out cargo test -p nvlab-report example_pages` also writes the pages to files.
#[test]
fn example_pages_have_every_run_and_every_section_once() {
    let out = std::env::var_os("NVLAB_REPORT_OUT").map(std::path::PathBuf::from);
    let runs = [
        sample::rich("ssd-tlc", 1, 1.0),
        sample::rich("ssd-tlc ftl.clean.kind=fifo", 1, 1.25),
        sample::rich("ssd-qlc", 1, 1.7),
    ];
    for (file, runs, title) in [
        ("three.html", &runs[..], "Cleaning policies on a small TLC drive"),
        ("one.html", &runs[..1], "ssd-tlc"),
    ] {
        let page = html(runs, title);
        assert_eq!(count(&page, &format!("<h1>{title}</h1>")), 1, "{file}");
        for run in runs {
            assert!(page.contains(&run.design.name), "{file}: {}", run.design.name);
        }
        for id in ["summary", "latency", "time", "writes", "busy", "wear", "cost", "again"] {
            assert_eq!(count(&page, &format!("<section id=\"{id}\">")), 1, "{file}: {id}");
        }
        assert_eq!(count(&page, "<section "), count(&page, "</section>"), "{file}");
        if let Some(dir) = &out {
            std::fs::write(dir.join(file), page).unwrap();
        }
    }
}

/// How often a text occurs.
fn count(page: &str, text: &str) -> usize {
    page.matches(text).count()
}

/// Stages are shown if there are any, with each time once in the bars and once in the table.
#[test]
fn the_software_has_a_section_of_its_own() {
    let plain = sample::run("x", 1);
    let mut staged = sample::run("y", 1);
    staged.software = Some(sample::software());
    assert_eq!(count(&html(std::slice::from_ref(&plain), "x"), "Where the time above the device goes"), 0);
    let page = html(&[plain, staged], "x");
    assert_eq!(count(&page, "Where the time above the device goes"), 1 + count(&page, "#software"));
    for text in ["<td>mine</td>", "<td>wake-up</td>", "3.50 us", "40.0 us", "1.25"] {
        assert!(page.contains(text), "{text}");
    }
}

/// In the summary, under wear and under cost, and at the top: the values are marked, and a paragraph says why.
#[test]
fn a_lifetime_has_its_caveat_wherever_it_stands() {
    let mut run = sample::rich("ssd-tlc", 1, 1.0);
    assert_eq!(count(&html(std::slice::from_ref(&run), "x"), "<p class=\"about\">! "), 0);
    run.lifetime.caveat = Some("the cost of cleaning is not in it".to_string());
    run.precision = vec![Precision { metric: "waf".into(), within: Some(0.081) }];
    let page = html(&[run], "x");
    assert_eq!(count(&page, "<p class=\"about\">! "), 3, "{page}");
    assert_eq!(count(&page, "the cost of cleaning is not in it</p>"), 2);
    assert_eq!(count(&page, "the cost of cleaning is not in it; WA ± 8.1 %: too short</p>"), 2);
    assert!(count(&page, "<abbr title=\"the cost of cleaning is not in it\">!</abbr>") > 3, "{page}");
    assert_eq!(count(&page, "<abbr title=\"± 8.1 %: too short\">!</abbr>"), 1);
}

#[test]
fn hostile_texts_stay_text_in_pages() {
    let evil = "x</script><script>alert(1)</script><!--\"'&";
    let plain = sample::run("x", 1);
    let mut run = sample::run(evil, 1);
    run.design.about = evil.to_string();
    run.design.cite = evil.to_string();
    run.design.resolved_toml = format!("# {evil}\n");
    (run.workload, run.workload_about, run.nvlab) = (evil.to_string(), evil.to_string(), evil.to_string());
    run.precondition.kind = evil.to_string();
    run.key = format!("{evil}{}", run.key);
    run.price.parts[0].name = evil.to_string();
    let (mut plain, mut software) = (plain, sample::software());
    plain.software = Some(software.clone());
    (software.stack, software.stages[0].name) = (evil.to_string(), evil.to_string());
    run.software = Some(software);
    let (page, harmless) = (html(&[run], evil), html(&[plain], "x"));
    for text in ["<script", "</script", "<!--", "<style", "style=\"", " onload"] {
        assert_eq!(count(&page, text), count(&harmless, text), "{text}");
    }
    assert!(!page.contains("alert(1)</script>"));
    assert!(page.contains("x&lt;/script&gt;&lt;script&gt;alert(1)"));
}

#[test]
fn the_distribution_of_latency_ends_at_the_rarest() {
    let page = html(&[sample::rich("ssd-tlc", 1, 1.0)], "A title");
    assert!(page.contains("<title>A title</title>") && page.contains("<h1>A title</h1>"));
    for text in
        ["Share of requests that took at least this long", ">100 %</text>", ">0.001 %</text>", ">1 ms</text>"]
    {
        assert!(page.contains(text), "{text}");
    }
    for text in [
        "Share of requests that took at most this long",
        "99 % latency",
        "Write amplification",
        "mean ",
        "ssd-tlc: erase count of each block: ",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("nothing to show"));
}

/// The first lines are the answer, what limits it, and what must be known; with one run its kinds of requests differ in colour and
/// marker.
#[test]
fn the_answer_is_above_all_else() {
    let page = html(&[sample::rich("ssd-tlc", 1, 1.0)], "t");
    let (lead, rest) = page.split_once("<nav>").unwrap();
    assert!(
        lead.contains("<p class=\"answer\">IOPS 30.0 k/s, write p99 1.65 ms, read p99 877 us, WA 3.08</p>"),
        "{lead}"
    );
    let latency = rest.split_once("Share of requests that took at most this long").unwrap().1;
    let latency = latency.split_once("</figure>").unwrap().0;
    assert!(latency.contains("line c0 d0") && latency.contains("line c1 d1"), "{latency}");
    let name = |kind: &str| format!("ssd-tlc ftl.clean.kind={kind}");
    let mut runs = [sample::run(&name("greedy"), 1), sample::run(&name("fifo"), 1)];
    runs[1].write_amplification.total *= 1.5;
    let page = html(&runs, "t");
    let lead = page.split_once("<nav>").unwrap().0;
    assert!(lead.contains("<p class=\"about\">Designs: ssd-tlc, by ftl.clean.kind</p>"), "{lead}");
    assert!(lead.contains("greedy needed 1.50 times fewer programs than fifo</p>"), "{lead}");
}

/// The mean of a histogram stands where the axis has its value, and so do the bars.
#[test]
fn a_mean_lies_on_the_bar_of_its_value() {
    let mut run = sample::run("ssd-tlc", 1);
    let flash = run.flash.as_mut().unwrap();
    (flash.cycles_min, flash.cycles_mean, flash.cycles_max) = (4, 4.0, 4);
    flash.cycles_histogram = vec![(4, 100)];
    let page = html(&[run], "t");
    let after = |from: &str, text: &str| -> f64 {
        let part = from.split_once(text).unwrap().1;
        part[..part.find([' ', '"', 'V', 'v']).unwrap()].parse().unwrap()
    };
    let plot =
        page.split_once("Histogram: blocks by erase count").unwrap().1.split_once("</figure>").unwrap().0;
    let bar = plot.split_once("class=\"part").unwrap().1;
    let middle = after(bar, "d=\"M") + after(bar, "h") / 2.0;
    let mean = after(plot, "class=\"mean\" d=\"M");
    assert!((middle - mean).abs() < 0.2, "{middle} {mean}");
    let tick = plot.split(">4</text>").next().unwrap().rsplit_once("x=\"").unwrap().1;
    assert!((tick.split('"').next().unwrap().parse::<f64>().unwrap() - mean).abs() < 0.2);
}

#[test]
fn figures_are_in_the_page() {
    let runs = [sample::run("ssd-tlc", 1), sample::run("ssd-tlc", 2), sample::run("ssd-tlc", 2)];
    let page = html(&runs, "t");
    for text in [
        "ssd-tlc · seed 1</th>",
        "ssd-tlc · seed 2 · run 3</th>",
        "prepared: filled once in order, then 4.1 capacities of the workload&#39;s own writes, steady at WA 2.97",
        "<td class=\"n\">1.24 ms</td>",
        "<td class=\"n\">2.97</td><td class=\"n\">1.00</td><td class=\"n\">1.92</td>",
        "nvlab run ssd-tlc -w &#39;zipf theta=0.99 read=70% bs=4KiB qd=32&#39; --seed 2 --precondition steady",
        "kind = &quot;greedy&quot;",
        "tlc 129 GiB: 55.2 USD",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page, html(&runs, "t"), "the same results give the same bytes");
}

#[test]
fn empty_results_make_a_page() {
    let mut run = sample::run("idle", 1);
    (run.read, run.write) = (OpResult::default(), OpResult::default());
    run.write_amplification = WriteAmplification::default();
    run.flash = Some(FlashResult::default());
    (run.lifetime, run.price) = (Lifetime::default(), Price::default());
    (run.simulated_s, run.wall_s) = (0.0, 0.0);
    run.series.clear();
    let page = html(std::slice::from_ref(&run), "t");
    assert!(page.contains("The host wrote nothing."));
    assert!(html(&[sample::run("ssd-tlc", 1), run], "t").contains("<td class=\"n\">unlimited</td>"));
    assert!(!page.contains("NaN"));
    assert!(html(&[], "t").contains("There are no results."));
}

/// What the terminal says about limits and streams is in the page too, and nothing that was not run.
#[test]
fn streams_and_what_limits_a_run_are_in_the_page() {
    let plain = sample::run("x", 1);
    let mut run = sample::run("ssd-tlc", 1);
    assert_eq!(count(&html(std::slice::from_ref(&plain), "x"), "id=\"streams\""), 0);
    let stream = |name: &str, write: &OpResult| TenantResult {
        name: name.to_string(),
        from_s: 1.5,
        to_s: 61.5,
        read: OpResult::default(),
        write: write.clone(),
        trim: OpResult::default(),
        flush: OpResult::default(),
        arrivals: None,
    };
    run.tenants = vec![stream("log <1>", &run.write), stream("data", &run.write)];
    run.design.resolved_toml = Design::load("ssd-tlc", &[]).unwrap().resolved_toml();
    run.flash.as_mut().unwrap().busy_program = 0.95;
    let page = html(std::slice::from_ref(&run), "x");
    for text in ["id=\"streams\"", "log &lt;1&gt;", "<td>data</td>", "61.5 s", "id=\"why\""] {
        assert!(page.contains(text), "{text}");
    }
    let reasons = crate::reasons(&run);
    assert!(!reasons.is_empty() && reasons.iter().all(|reason| page.contains(reason)), "{reasons:?}");
}
