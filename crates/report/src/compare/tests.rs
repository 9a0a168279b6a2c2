//! Tests of the comparison: whole texts of small cases.

use super::*;
use nvlab_run::result::Precision;
use nvlab_run::sample;

/// Runs of a design with `seeds` seeds, its write amplification and throughput multiplied by factors.
fn runs(name: &str, wa: f64, speed: f64, seeds: u64) -> Vec<RunResult> {
    let run = |seed| {
        let mut run = sample::run(name, seed);
        run.write_amplification.total = 3.0 * wa * (1.0 + 0.002 * (seed - 1) as f64);
        run.read.per_s *= speed * (1.0 + 0.004 * (seed - 1) as f64);
        run.write.latency.mean_ns = 120e3 + 1e3 * seed as f64;
        run
    };
    (1..=seeds).map(run).collect()
}

#[test]
fn a_comparison_of_one_seed() {
    let groups = [runs("greedy", 1.0, 1.0, 1), runs("fifo", 1.08, 0.9, 1)];
    let wanted = "\
zipf theta=0.99 read=70% bs=4KiB qd=32, seed 1
prepared: filled once in order, then 4.1 capacities of the workload's own writes, steady at WA 2.97

  design   IOPS       write mean    write p99     write p99.9    read p99      WA     erases
  ─────────────────────────────────────────────────────────────────────────────────────────────────
  greedy   30.0 k/s   121 us        366 us        2.48 ms        183 us        3.00   12.3 k
  fifo     27.9 k/s   121 us same   366 us same   2.48 ms same   183 us same   3.24   12.3 k same

  design   endurance     DWPD        price
  ──────────────────────────────────────────────────
  greedy   240 TB        1.13        62.3 USD
  fifo     240 TB same   1.13 same   62.3 USD same

greedy served 1.08 times more requests per second than fifo

greedy needed 1.08 times fewer programs than fifo
";
    assert_eq!(compare_text::<&str>(&groups, &[], Format::Human, NameStyle::Whole).unwrap(), wanted);
}

/// Single runs of 200,000 requests with few erases: 2.40 and 2.53 are not told apart, where the truth is 2.50 and 2.28.
#[test]
fn short_runs_are_not_ranked() {
    let of = |name, waf, within| {
        let mut run = sample::run(name, 1);
        run.write_amplification.total = waf;
        run.precision = vec![Precision { metric: "waf".into(), within }];
        vec![run]
    };
    let text =
        |groups: &[Vec<RunResult>]| compare_text(groups, &["waf"], Format::Human, NameStyle::Whole).unwrap();
    let both = text(&[of("tlc-pslc", 2.40, Some(0.11)), of("ssd-tlc", 2.53, Some(0.12))]);
    assert!(both.contains("WA: no difference seen") && !both.contains("needed"), "{both}");
    assert!(both.contains("2.53 ± 0.30 same !"), "{both}");
    assert!(both.contains("! ssd-tlc: too short for WA ± 12 %"), "{both}");
    let unknown = text(&[of("tlc-pslc", 2.40, None), of("ssd-tlc", 5.53, Some(0.01))]);
    assert!(unknown.contains("2.40 ± ?    !") && unknown.contains("no difference seen"), "{unknown}");
    let exact = text(&[of("tlc-pslc", 2.40, Some(0.01)), of("ssd-tlc", 2.53, Some(0.012))]);
    assert!(exact.contains("tlc-pslc needed 1.05 ± 0.02 times fewer programs than ssd-tlc"), "{exact}");
    assert!(!exact.contains('!'), "{exact}");
}

#[test]
fn several_seeds_and_three_designs() {
    let groups =
        [runs("fifo", 1.08, 1.0, 5), runs("cost-benefit", 1.0, 1.002, 5), runs("greedy", 1.001, 1.0, 5)];
    let wanted = "\
zipf theta=0.99 read=70% bs=4KiB qd=32, 5 seeds, 95 % interval
prepared: filled once in order, then 4.1 capacities of the workload's own writes, steady at WA 2.97

  design         WA            IOPS
  ──────────────────────────────────────────────────
  fifo           3.25 ± 0.01   30.2 ± 0.2 k/s
  cost-benefit   3.01 ± 0.01   30.2 ± 0.2 k/s same
  greedy         3.02 ± 0.01   30.2 ± 0.2 k/s same

IOPS: no difference seen

cost-benefit needed
    1.08 ± 0.01 times fewer programs than fifo
    no difference seen from greedy
";
    assert_eq!(compare_text(&groups, &["waf", "iops"], Format::Human, NameStyle::Whole).unwrap(), wanted);
}

const PREPARED: &str =
    "filled once in order, then 4.1 capacities of the workload's own writes, steady at WA 2.97";

#[test]
fn a_comparison_for_programs() {
    let groups = [runs("a, \"b\"|", 1.0, 1.0, 2), runs("fifo", 1.0, 1.0, 2)];
    let text = |format| {
        compare_text(&groups, &["cycles.max", "write.mean", "trim.p99"], format, NameStyle::Whole).unwrap()
    };
    assert_eq!(
        text(Format::Csv),
        format!(
            "design,seeds,cycles.max,cycles.max_interval,cycles.max_same,write.mean_ns,write.mean_ns_interval,\
         write.mean_ns_same,trim.p99_ns,trim.p99_ns_interval,trim.p99_ns_same,\
         prepared\n\
         \"a, \"\"b\"\"|\",2,12,0,false,121500,6353,false,,,,\"{PREPARED}\"\n\
         fifo,2,12,0,true,121500,6353,true,,,,\"{PREPARED}\"\n"
        )
    );
    assert_eq!(
        text(Format::Markdown),
        format!(
            "| design | cycles max | write mean | trim p99 |\n|---|---:|---:|---:|\n\
         | a, \"b\"\\| | 12 | 122 ± 6 us ! | – |\n| fifo | 12 same | 122 ± 6 us same ! | – |\n\n\
         prepared: {PREPARED}\n\n\
         ! both designs: too short for write mean ± 5.2 %; --until 2% runs until they are known to 2 %\n"
        )
    );
    let json: serde_json::Value = serde_json::from_str(&text(Format::Json)).unwrap();
    assert_eq!(
        (json["schema"].as_str(), json["baseline"].as_str()),
        (Some("nvlab.compare/2"), Some("a, \"b\"|"))
    );
    assert_eq!(json["designs"][1]["prepared"], PREPARED);
    let values = &json["designs"][1]["values"];
    assert_eq!((values["cycles.max"]["same"].as_bool(), values["trim.p99_ns"].is_null()), (Some(true), true));
    assert_eq!(values["write.mean_ns"]["values"], serde_json::json!([121e3, 122e3]));
    let lines = text(Format::JsonLines);
    assert_eq!(lines.lines().count(), 2);
    for (line, design) in lines.lines().zip(json["designs"].as_array().unwrap()) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["design"], &line["values"]), (&design["design"], &design["values"]));
    }
}

/// What all names share is said once, for people; equal notes are one line. Programs get whole names.
#[test]
fn names_and_notes_are_said_once() {
    let of = |kind: &str| runs(&format!("ssd-tlc ftl.clean.kind={kind} ftl.spare=20 %"), 1.0, 1.0, 1);
    let mut groups = ["greedy", "windowed-greedy", "fifo", "cost-benefit"].map(of);
    groups.iter_mut().for_each(|runs| runs[0].unwritten_read_share = 0.5);
    let text = |format| compare_text(&groups, &["waf"], format, NameStyle::Whole).unwrap();
    let human = text(Format::Human);
    assert!(human.contains("\ndesigns: ssd-tlc ftl.spare=20 %, by ftl.clean.kind\n"), "{human}");
    assert!(human.contains("\n  windowed-greedy   3.00 same\n"), "{human}");
    assert_eq!(human.matches("ftl.clean.kind").count(), 1, "{human}");
    assert_eq!(
        human.matches("! all 4 designs: 50.0 % of the reads were of addresses without data").count(),
        1,
        "{human}"
    );
    assert_eq!(human.matches("addresses without data").count(), 1, "{human}");
    assert!(
        text(Format::Markdown)
            .starts_with("designs: ssd-tlc ftl.spare=20 %, by ftl.clean.kind\n\n| design |")
    );
    assert!(text(Format::Csv).contains("\nssd-tlc ftl.clean.kind=windowed-greedy ftl.spare=20 %,1,3,"));
    let short = compare_text(&groups, &["waf"], Format::Csv, NameStyle::Short).unwrap();
    assert!(short.contains("\nwindowed-greedy,1,3,"), "{short}");
}

#[test]
fn large_requests_are_measured_in_bytes() {
    let mut run = sample::run("ssd-tlc", 1);
    run.write.bytes = run.write.count << 20;
    run.read = Default::default();
    let names: Vec<String> = default_columns(&[vec![run]]).into_iter().map(|column| column.name).collect();
    assert_eq!(names[0], "write.bandwidth");
    assert!(!names.iter().any(|name| name.starts_with("read")), "{names:?}");
}

#[test]
fn a_comparison_reports_faults_and_warnings() {
    let none: [Vec<RunResult>; 1] = [Vec::new()];
    assert!(
        compare_text::<&str>(&none, &[], Format::Human, NameStyle::Whole)
            .unwrap_err()
            .contains("at least one run")
    );
    let mut groups = [runs("same", 1.0, 1.0, 1), runs("same", 1.0, 1.0, 1)];
    assert_eq!(
        compare_text(&groups, &["wav"], Format::Human, NameStyle::Whole).unwrap_err(),
        "there is no metric `wav`; did you mean `waf`?"
    );
    groups[1][0].precondition.converged = false;
    groups[1][0].workload = "another".to_string();
    let text = compare_text(&groups, &["waf"], Format::Human, NameStyle::Whole).unwrap();
    assert!(text.contains("\n  same (2)   3.00 same\n"), "{text}");
    assert!(text.contains("\nsame prepared: filled once in order, then 4.1 capacities of"), "{text}");
    assert!(text.contains("\n! the workloads differ"), "{text}");
    assert!(text.contains("\n! same (2), seed 1: filled once in order, then 4.1 capacities of the workload's own writes, not steady: WA"), "{text}");
}

/// Parquet has the columns and values of the CSV.
#[test]
fn parquet_holds_what_csv_says() {
    use nvlab_table::{Table, Values};
    for seeds in [1, 3] {
        let groups = [runs("a", 2.5, 100.0, seeds), runs("b", 1.5, 120.0, seeds)];
        let metrics = ["waf", "write.mean", "trim.p99"];
        let csv = compare_text(&groups, &metrics, Format::Csv, NameStyle::Whole).unwrap();
        let table = Table::of_bytes(compare_parquet(&groups, &metrics, NameStyle::Whole).unwrap()).unwrap();
        let heads: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let mut lines = csv.lines();
        assert_eq!(lines.next().unwrap(), heads.join(","));
        for (row, line) in lines.enumerate() {
            let cells = table.columns.iter().map(|column| match &column.values {
                Values::Flags(values) => values[row].map(|value| value.to_string()),
                Values::Counts(values) => values[row].map(|value| value.to_string()),
                Values::Numbers(values) => values[row].map(|value| value.to_string()),
                Values::Texts(values) => values[row].clone(),
            });
            let cells = cells.map(Option::unwrap_or_default);
            assert_eq!(
                line,
                cells.collect::<Vec<_>>().join(",").replace(PREPARED, &format!("\"{PREPARED}\""))
            );
        }
    }
}
