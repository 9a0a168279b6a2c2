//! The model: an array of bytes, and every change of it as an atom with its times; and the two ways to hold a
//! medium against it, random workloads and a cut at every moment.

use nvlab_medium::{InPlace, PowerCut};
use nvlab_units::{Rng, Served, Span, Time};
use std::collections::BTreeSet;

pub const PS: Span = Span::from_ps(1);

/// Something a cut finds done, under way or not begun. Under way, any number of its parts are new, from the
/// first on; or, with `garbage`, the words of that many bytes they lie in hold anything.
pub struct Atom {
    pub bank: usize,
    pub begin: Time,
    pub done: Time,
    pub parts: Vec<(usize, Vec<u8>)>,
    pub garbage: Option<usize>,
}

/// When things happen: banks are free at a time, and each medium has its own way of filling them.
pub struct Model {
    pub free: Vec<Time>,
    pub image: Vec<u8>,
    pub atoms: Vec<Atom>,
}

/// A medium that the model knows.
pub trait Modelled: InPlace + PowerCut {
    /// Occupies the banks for a read.
    fn model_read(&self, model: &mut Model, at: Time, offset: usize, bytes: usize) -> Served;
    /// Occupies the banks for a write and lists its atoms; `model.image` still holds the old bytes.
    fn model_write(&self, model: &mut Model, at: Time, offset: usize, data: &[u8]) -> Served;
}

impl Model {
    fn new(banks: usize, bytes: usize) -> Model {
        Model { free: vec![Time::ZERO; banks], image: vec![0; bytes], atoms: Vec::new() }
    }

    fn write<M: Modelled>(&mut self, medium: &M, at: Time, offset: usize, data: &[u8]) -> Served {
        let served = medium.model_write(self, at, offset, data);
        self.image[offset..offset + data.len()].copy_from_slice(data);
        served
    }

    /// Checks what a cut left, byte by byte, against `before`, what the medium held before the first atom.
    /// Returns for every atom under way how many of its parts were new.
    fn check_cut(&self, before: &[u8], at: Time, found: &[u8]) -> Vec<usize> {
        let mut expected = before.to_vec();
        for atom in self.atoms.iter().filter(|atom| atom.done <= at) {
            for (offset, data) in &atom.parts {
                expected[*offset..offset + data.len()].copy_from_slice(data);
            }
        }
        let mut torn = Vec::new();
        for atom in self.atoms.iter().filter(|atom| atom.begin < at && at < atom.done) {
            if let Some(word) = atom.garbage {
                for (offset, data) in &atom.parts {
                    let range = offset / word * word..(offset + data.len()).next_multiple_of(word);
                    expected[range.clone()].copy_from_slice(&found[range]);
                }
                continue;
            }
            let is_new = |(offset, data): &&(usize, Vec<u8>)| found[*offset..offset + data.len()] == data[..];
            let new = atom.parts.iter().take_while(is_new).count();
            for (offset, data) in &atom.parts[..new] {
                expected[*offset..offset + data.len()].copy_from_slice(data);
            }
            torn.push(new);
        }
        if let Some(wrong) = (0..found.len()).find(|&i| found[i] != expected[i]) {
            panic!("cut at {at:?}: byte {wrong} is {:#04x}, allowed {:#04x}", found[wrong], expected[wrong]);
        }
        torn
    }

    /// Every moment at which something begins or ends, its neighbours, and the middle of everything.
    fn moments(&self) -> BTreeSet<Time> {
        let mut moments = BTreeSet::new();
        for Atom { begin, done, .. } in &self.atoms {
            let middle = *begin + (*done - *begin) / 2;
            moments.extend([
                begin.before(PS),
                *begin,
                *begin + PS,
                middle,
                done.before(PS),
                *done,
                *done + PS,
            ]);
        }
        moments
    }
}

/// One operation of a workload; `data` is empty for a read.
pub struct Op {
    pub at: Time,
    pub offset: usize,
    pub bytes: usize,
    pub data: Vec<u8>,
}

/// A random workload. New bytes come from four values, so that writes often leave words as they are.
pub fn workload(
    rng: &mut Rng,
    count: usize,
    from: Time,
    gap_ns: u64,
    capacity: usize,
    most: usize,
) -> Vec<Op> {
    let mut at = from;
    let mut op = |_| {
        at += Span::from_ns(rng.below(gap_ns));
        let bytes = 1 + rng.below(most as u64) as usize;
        let offset = rng.below((capacity - bytes + 1) as u64) as usize;
        let data = match rng.chance(0.25) {
            true => Vec::new(),
            false => (0..bytes).map(|_| rng.below(4) as u8).collect(),
        };
        Op { at, offset, bytes, data }
    };
    (0..count).map(&mut op).collect()
}

/// Runs a workload on medium and model and compares times and bytes.
pub fn run<M: Modelled>(medium: &mut M, model: &mut Model, ops: &[Op], seed: u64) {
    for (i, op) in ops.iter().enumerate() {
        let (offset, bytes) = (op.offset as u64, op.bytes as u64);
        let (got, expected) = if op.data.is_empty() {
            let mut into = vec![0; op.bytes];
            let got = medium.read(op.at, offset, bytes, &mut into).unwrap();
            assert!(into == model.image[op.offset..op.offset + op.bytes], "seed {seed} op {i}: bytes");
            (got, medium.model_read(model, op.at, op.offset, op.bytes))
        } else {
            let got = medium.write(op.at, offset, bytes, &op.data).unwrap();
            (got, model.write(medium, op.at, op.offset, &op.data))
        };
        assert_eq!(got, expected, "seed {seed} op {i}");
    }
}

pub fn contents<M: InPlace>(medium: &mut M, at: Time) -> Vec<u8> {
    let mut all = vec![0; medium.capacity() as usize];
    medium.read(at, 0, medium.capacity(), &mut all).unwrap();
    all
}

/// Random workloads with random settling and cut after cut; the contents and the times are as the model's.
pub fn against_the_model<M: Modelled>(make: impl Fn(u64) -> M, banks: usize, gap_ns: u64, most: usize) {
    for seed in 0..60 {
        let mut rng = Rng::stream(seed, "model");
        let mut medium = make(seed);
        let capacity = medium.capacity() as usize;
        let mut model = Model::new(banks, capacity);
        let mut from = Time::ZERO;
        for _ in 0..4 {
            let before = model.image.clone();
            let ops = workload(&mut rng, 40, from, gap_ns, capacity, most);
            run(&mut medium, &mut model, &ops, seed);
            let end = model.free.iter().max().unwrap().max(&ops.last().unwrap().at);
            let cut = from + Span::from_ps(rng.below((*end - from).ps() + 1));
            medium.settle(from + Span::from_ps(rng.below((cut - from).ps() + 1)));
            medium.cut(cut);
            from = cut;
            let found = contents(&mut medium, cut);
            model.check_cut(&before, cut, &found);
            model = Model::new(banks, capacity);
            model.image = found;
            // The read of everything occupied the medium (and the arm): begin when it is over.
            medium.cut(cut);
        }
    }
}

/// One small workload, cut at every moment: returns how many parts were new in the atoms found under way.
pub fn cut_everywhere<M: Modelled>(
    make: impl Fn(u64) -> M,
    banks: usize,
    gap_ns: u64,
    most: usize,
) -> BTreeSet<usize> {
    let mut torn = BTreeSet::new();
    for seed in 0..4 {
        let mut rng = Rng::stream(seed, "cuts");
        let sample = make(0);
        let capacity = sample.capacity() as usize;
        let ops = workload(&mut rng, 8, Time::from_ns(1), gap_ns, capacity, most);
        let mut model = Model::new(banks, capacity);
        run(&mut make(seed), &mut model, &ops, seed);
        for (i, cut) in model.moments().into_iter().enumerate() {
            let mut medium = make(i as u64);
            run(&mut medium, &mut Model::new(banks, capacity), &ops, seed);
            medium.cut(cut);
            let found = contents(&mut medium, cut);
            torn.extend(model.check_cut(&vec![0; capacity], cut, &found));
        }
    }
    torn
}
