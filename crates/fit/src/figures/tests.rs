//! Files of figures: what is read, what is refused, what cannot be.

use super::*;

fn file(figures: &str) -> String {
    format!(
        "schema = 1\n[drive]\nname = \"d\"\ncapacity = \"1 TB\"\ninterface = \"PCIe 3.0 x4\"\nclass = \"client\"\n\
         cells = \"TLC\"\n{figures}"
    )
}

fn refused(figures: &str) -> String {
    Figures::read("d.toml", &file(figures)).unwrap_err().to_string()
}

#[test]
fn the_template_is_a_file_of_figures() {
    let figures = Figures::read("t.toml", &template("my-own")).unwrap();
    assert_eq!(figures.drive.name, "my-own");
    assert_eq!(figures.figures.len(), 8);
    assert_eq!(figures.figures[3].what.workload(128), "uniform rw=randread bs=4KiB qd=128");
    assert_eq!(figures.name(&figures.figures[2]), "sequential write 128 KiB QD32, after the cache");
    assert_eq!(doubts::doubts(&figures), []);
}

#[test]
fn mistakes_are_told_at_their_lines() {
    assert_eq!(refused(""), "d.toml:1: a figures file needs [[figure]], at least one");
    let text = refused("[[figure]]\nwhat = \"random raed\"\nvalue = \"600k IOPS\"\n");
    assert!(text.starts_with("d.toml:9: `what` is one of sequential read,"), "{text}");
    let text = refused("[[figure]]\nwhat = \"random read\"\nvalue = \"600\"\n");
    assert!(text.starts_with("d.toml:10: `value` is requests or bytes a second"), "{text}");
    let text = refused("[[figure]]\nwhat = \"cache\"\nvalue = \"42 GB\"\ntollerance = \"5 %\"\n");
    assert!(text.contains("did you mean `tolerance`?"), "{text}");
}

#[test]
fn what_cannot_be_is_said() {
    let text = file(
        "[[figure]]\nwhat = \"sequential read\"\nvalue = \"5 GB/s\"\n[[figure]]\nwhat = \"random read\"\nvalue = \"600k IOPS\"\nqd = 32\n\
         [[figure]]\nwhat = \"random read\"\nvalue = \"85 us\"\n",
    );
    let doubts = doubts::doubts(&Figures::read("d.toml", &text).unwrap());
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    assert!(doubts[0].text.contains("more than PCIe 3.0 x4 can carry"), "{}", doubts[0].text);
    assert!(
        doubts[1].text.contains("would need a latency of 53.3 us, and 85.0 us is stated"),
        "{}",
        doubts[1].text
    );
    assert_eq!(doubts[1].figures, [1, 2]);
}
