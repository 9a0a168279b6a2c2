//! Tests of quantities: what is read, what is refused, and what is printed back.

use super::*;
use proptest::prelude::*;

fn says<T: std::fmt::Debug>(result: Result<T, QuantityError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn sizes_are_exact() {
    for (text, value) in [
        ("512 B", 512),
        ("512B", 512),
        ("4 KiB", 4096),
        ("4 kB", 4000),
        ("0.5 KiB", 512),
        ("16 MiB", 16 << 20),
        ("1.92 TB", 1_920_000_000_000),
        ("1_024 MiB", 1 << 30),
        ("2e3 MB", 2_000_000_000),
        ("0.000000000001 TB", 1),
    ] {
        assert_eq!(bytes(text), Ok(value), "{text}");
    }
}

#[test]
fn a_doubtful_size_is_refused_with_a_hint() {
    assert_eq!(says(bytes("4k")), "`4k` is not a size: there is no unit `k`; write \"4 KiB\" or \"4 kB\"");
    assert_eq!(
        says(bytes("64 MIB")),
        "`64 MIB` is not a size: there is no unit `MIB`; write \"64 MiB\" or \"64 MB\""
    );
    assert_eq!(says(bytes("4096")), format!("`4096` is not a size: it has no unit; {BYTES_HELP}"));
    assert_eq!(
        says(bytes("0.3 KiB")),
        format!("`0.3 KiB` is not a size: it is not a whole number of bytes; {BYTES_HELP}")
    );
    assert_eq!(says(bytes("-1 B")), format!("`-1 B` is not a size: it is negative; {BYTES_HELP}"));
    assert!(says(bytes("4  KiB")).contains("more than one space"));
    assert!(says(bytes("99999999 TiB")).contains("at most 18446744073709551615 bytes"));
    for text in [
        "",
        " ",
        "KiB",
        ".5 KiB",
        "5. KiB",
        "1.2.3 B",
        "_1 B",
        "1_ B",
        "4 KiB 3",
        "1e999 B",
        "1e99999999999 B",
    ] {
        assert!(bytes(text).is_err(), "{text}");
    }
}

#[test]
fn times_are_exact() {
    for (text, ps) in [
        ("100 ns", 100_000),
        ("0.1 us", 100_000),
        ("0.001 ns", 1),
        ("8.33 ms", 8_330_000_000),
        ("4us", 4_000_000),
        ("4 \u{b5}s", 4_000_000),
        ("2 min", 120_000_000_000_000),
        ("0 s", 0),
    ] {
        assert_eq!(span(text), Ok(Span::from_ps(ps)), "{text}");
    }
    assert_eq!(says(span("4")), format!("`4` is not a time: it has no unit; {SPANS_HELP}"));
    assert_eq!(says(span("4 k")), format!("`4 k` is not a time: there is no unit `k`; {SPANS_HELP}"));
    assert!(says(span("0.0001 ns")).contains("not a whole number of picoseconds"));
    assert!(says(span("300 d")).contains("too large"));
}

#[test]
fn shares() {
    for (text, value) in
        [("80 %", 0.8), ("12%", 0.12), ("0.8", 0.8), ("1e-4", 1e-4), ("100 %", 1.0), ("0", 0.0)]
    {
        assert_eq!(fraction(text), Ok(value), "{text}");
    }
    assert_eq!(says(fraction("12")), "`12` is not a share: it has no unit; write \"12 %\" for a percentage");
    assert!(says(fraction("1")).contains("write \"1 %\""));
    assert!(says(fraction("101 %")).contains("more than 100 %"));
    assert!(says(fraction("5 kB")).contains("no unit `kB`"));
}

#[test]
fn rates_and_counts() {
    assert_eq!(rate_per_second("20k/s"), Ok(20_000.0));
    assert_eq!(rate_per_second("0.5 /s"), Ok(0.5));
    assert_eq!(rate_per_second("90/min"), Ok(1.5));
    assert_eq!(
        says(rate_per_second("20k")),
        "`20k` is not a rate: it does not say per what time; write \"20k/s\""
    );
    assert_eq!(count("1_000_000"), Ok(1_000_000));
    assert_eq!(count("15.5M"), Ok(15_500_000));
    assert_eq!(count("1e6"), Ok(1_000_000));
    assert!(count("1.5").is_err() && count("3 KiB").is_err());
    assert_eq!(bandwidth("7 GB/s"), Ok(7_000_000_000));
    assert_eq!(bandwidth("64 KiB/s"), Ok(65_536));
    assert_eq!(
        says(bandwidth("7 GB")),
        "`7 GB` is not a transfer rate: it is not per second; write \"7 GB/s\""
    );
    assert_eq!(
        says(bandwidth("40 mb/s")),
        "`40 mb/s` is not a transfer rate: there is no unit `mb/s`; write \"40 MiB/s\" or \"40 MB/s\""
    );
    assert_eq!(
        says(bandwidth("40M")),
        "`40M` is not a transfer rate: it is not per second; write \"40 MiB/s\" or \"40 MB/s\""
    );
    assert_eq!(rate("30 ns/B").unwrap().transfer(2048), Span::from_ns(61_440));
    assert_eq!(rate("1 GB/s"), Ok(Rate::from_bytes_per_second(1_000_000_000)));
    assert!(says(rate("0 B/s")).contains("nothing would ever arrive") && rate("9 s/B").is_err());
    assert!(says(rate("30/B")).starts_with("`30/B` is not a transfer rate"));
}

#[test]
fn prices() {
    let price_of = |text: &str, bytes: u64| price(text).unwrap().of(bytes);
    assert!((price_of("0.06 USD/GiB", 128 << 30) - 7.68).abs() < 1e-9);
    assert!((price_of("30 USD/MB", 2_000_000) - 60.0).abs() < 1e-9);
    assert_eq!(price("0.06 USD/GiB").unwrap().to_string(), "0.06 USD/GiB");
    assert!(
        says(price("30")).contains("it has no unit")
            && says(price("3 EUR/GiB")).contains("no unit `EUR/GiB`")
    );
}

#[test]
fn texts_for_people() {
    for (bytes, text) in [(0, "0 B"), (4096, "4 KiB"), (128_000_000_000, "119 GiB"), (3 << 39, "1.5 TiB")] {
        assert_eq!(display_bytes(bytes), text);
    }
    assert_eq!(exact_bytes(1_920_000_000_000), "1.92 TB");
    assert_eq!(exact_bytes(16 << 20), "16 MiB");
    assert_eq!(told_bytes(119_380_376 << 10), "114 GiB (122245505024 B)");
    assert_eq!([told_bytes(16 << 20), told_bytes(32_770 << 10)], ["16 MiB", "32770 KiB"]);
    assert_eq!(exact_span(Span::from_ps(8_330_000_000)), "8.33 ms");
    assert_eq!(exact_bandwidth(7_000_000_000), "7 GB/s");
    assert_eq!(display_fraction(0.12), "12 %");
}

proptest! {
    #[test]
    fn exact_texts_read_back(value: u64) {
        prop_assert_eq!(bytes(&exact_bytes(value)), Ok(value));
        prop_assert_eq!(span(&exact_span(Span::from_ps(value))), Ok(Span::from_ps(value)));
    }

    #[test]
    fn any_text_is_a_quantity_or_an_error_that_repeats_it(text in "\\PC{0,12}", number in "[0-9._eE+-]{0,12} ?[a-zA-Z%/]{0,6}") {
        for text in [&text, &number] {
            let errors = [
                bytes(text).err(),
                span(text).err(),
                fraction(text).err(),
                count(text).err(),
                rate_per_second(text).err(),
                bandwidth(text).err(),
                rate(text).err(),
                price(text).err(),
            ];
            for error in errors.into_iter().flatten() {
                prop_assert!(error.to_string().contains(text.trim()), "{text}: {error}");
            }
        }
    }
}
