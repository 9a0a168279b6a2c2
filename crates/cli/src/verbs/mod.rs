//! The verbs of the command line, a file each.

mod bench;
mod choose;
mod compare;
mod completions;
mod cut;
mod design;
mod doctor;
mod explain;
mod facts;
mod fit;
mod heap;
mod image;
mod log;
mod parts;
mod probe;
mod pts;
mod report;
mod reproduce;
mod run;
mod serve;
mod stack;
mod sweep;
mod trace;

use crate::args::Verb;
use crate::failure::Failure;
use crate::output::Output;

pub fn dispatch(output: &Output, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Run(args) => run::run(output, &args),
        Verb::Compare(args) => compare::compare(output, &args),
        Verb::Sweep(args) => sweep::sweep(output, &args),
        Verb::Choose(args) => choose::choose(output, &args),
        Verb::Fit(args) => fit::fit(output, &args),
        Verb::Probe(args) => probe::probe(output, &args),
        Verb::Pts(args) => pts::run(output, &args),
        Verb::Serve(args) => serve::serve(output, &args),
        Verb::Cut(args) => cut::cut(output, &args),
        Verb::Image(args) => image::image(output, &args),
        Verb::Heap(verb) => heap::heap(output, verb),
        Verb::Log(verb) => log::log(output, verb),
        Verb::Trace(verb) => trace::trace(output, verb),
        Verb::Design(verb) => design::design(output, verb),
        Verb::Parts { verb } => parts::parts(output, verb),
        Verb::Report(args) => report::report(output, &args),
        Verb::Reproduce(args) => reproduce::reproduce(output, &args),
        Verb::Explain { topic } => explain::explain(output, topic.as_deref()),
        Verb::Stack(args) => stack::stack(output, &args),
        Verb::Doctor => doctor::doctor(output),
        Verb::Completions { shell } => completions::completions(output, shell),
        Verb::Man { dir } => completions::man(output, &dir),
        Verb::Bench(args) => bench::bench(output, &args),
        Verb::CheckTheory => bench::check_theory(output),
    }
}
