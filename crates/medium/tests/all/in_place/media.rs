//! How each medium spends its time and tears its writes, word by word, step by step, sector by sector: written
//! anew from the documentation, without the closed forms the media use.

use crate::in_place::model::{Atom, Model, Modelled};
use nvlab_medium::MemStore;
use nvlab_medium::banks::Access;
use nvlab_medium::disk::Disk;
use nvlab_medium::pcm::{Pcm, Selection, Tear};
use nvlab_medium::ram::Ram;
use nvlab_units::{Served, Span, Time};
use std::collections::BTreeSet;

/// Aligned pieces of `size` in a range, as ranges.
fn split(offset: usize, bytes: usize, size: usize) -> Vec<(usize, usize)> {
    let mut cuts: Vec<usize> = (offset..offset + bytes).filter(|i| i % size == 0).collect();
    cuts.retain(|&cut| cut != offset);
    cuts.insert(0, offset);
    cuts.push(offset + bytes);
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn bank_of(offset: usize, banks: u32, stripe_bytes: u64) -> usize {
    (offset as u64 / stripe_bytes % banks as u64) as usize
}

/// One word of an access: bank, begin, done, range.
type Word = (usize, Time, Time, (usize, usize));

/// Words one after the other.
fn access_words(
    model: &mut Model,
    at: Time,
    words: Vec<(usize, usize)>,
    access: Access,
    (banks, stripe_bytes): (u32, u64),
) -> (Served, Vec<Word>) {
    let mut list = Vec::new();
    let mut met = BTreeSet::new();
    for (start, limit) in words {
        let bank = bank_of(start, banks, stripe_bytes);
        let first = met.insert(bank);
        let begin = if first { at.max(model.free[bank]) } else { model.free[bank] };
        let done = begin + if first { access.first } else { access.next };
        model.free[bank] = done;
        list.push((bank, begin, done, (start, limit)));
    }
    let start = list.iter().map(|word| word.1).min().unwrap();
    let end = list.iter().map(|word| word.2).max().unwrap();
    (Served { start, end }, list)
}

impl Modelled for Ram<MemStore> {
    fn model_read(&self, model: &mut Model, at: Time, offset: usize, bytes: usize) -> Served {
        let config = self.config();
        let words = split(offset, bytes, config.word_bytes as usize);
        access_words(model, at, words, config.read, (config.banks, config.stripe_bytes)).0
    }

    fn model_write(&self, model: &mut Model, at: Time, offset: usize, data: &[u8]) -> Served {
        let config = self.config();
        let words = split(offset, data.len(), config.word_bytes as usize);
        let (served, list) =
            access_words(model, at, words, config.write, (config.banks, config.stripe_bytes));
        for (bank, begin, done, (start, limit)) in list {
            let parts = vec![(start, data[start - offset..limit - offset].to_vec())];
            model.atoms.push(Atom { bank, begin, done, parts, garbage: None });
        }
        served
    }
}

impl Modelled for Pcm<MemStore> {
    fn model_read(&self, model: &mut Model, at: Time, offset: usize, bytes: usize) -> Served {
        let config = self.config();
        let words = split(offset, bytes, config.word_bytes as usize);
        access_words(model, at, words, config.read, (config.banks, config.stripe_bytes)).0
    }

    fn model_write(&self, model: &mut Model, at: Time, offset: usize, data: &[u8]) -> Served {
        let config = self.config().clone();
        let compare = config.selection != Selection::All;
        let words = split(offset, data.len(), config.word_bytes as usize);
        // Without comparing, the banks are only waited for: an access that takes no time.
        let look = if compare { config.read } else { Access::even(Span::ZERO) };
        let (mut served, _) = access_words(model, at, words, look, (config.banks, config.stripe_bytes));
        let (word, unit) = (config.word_bytes as usize, config.atomic_bytes as usize);
        let before = model.atoms.len();
        let differs = |image: &[u8], (start, limit): (usize, usize)| {
            !compare || image[start..limit] != data[start - offset..limit - offset]
        };
        for (start, limit) in split(offset, data.len(), config.step_bytes() as usize) {
            if !differs(&model.image, (start, limit)) {
                continue;
            }
            let bank = bank_of(start, config.banks, config.stripe_bytes);
            let begin = model.free[bank];
            let done = begin + config.program;
            model.free[bank] = done;
            served.end = served.end.max(done);
            let garbage = (config.tear == Tear::Garbage).then_some(word);
            let mut parts = Vec::new();
            for (start, limit) in split(start, limit - start, garbage.unwrap_or(unit)) {
                if garbage.is_none() || differs(&model.image, (start, limit)) {
                    parts.push((start, data[start - offset..limit - offset].to_vec()));
                }
            }
            // Steps of one atomic unit of one write are one atom.
            let mate = model.atoms[before..].last_mut();
            match mate.filter(|mate| {
                garbage.is_none() && mate.bank == bank && mate.parts[0].0 / unit == start / unit
            }) {
                Some(mate) => {
                    mate.done = done;
                    let end = mate.parts[0].0 + mate.parts[0].1.len();
                    mate.parts[0].1.extend_from_slice(&data[end - offset..limit - offset]);
                }
                None => model.atoms.push(Atom { bank, begin, done, parts, garbage }),
            }
        }
        served
    }
}

/// The arm is modelled beside the free time: bank 1's "free time" is the cylinder, in picoseconds.
impl Modelled for Disk<MemStore> {
    fn model_read(&self, model: &mut Model, at: Time, offset: usize, bytes: usize) -> Served {
        let sectors = split(offset, bytes, self.config().sector_bytes as usize);
        let start = at.max(model.free[0]);
        let passes = disk_pass(self, model, at, &sectors);
        Served { start, end: passes.last().unwrap().1 }
    }

    fn model_write(&self, model: &mut Model, at: Time, offset: usize, data: &[u8]) -> Served {
        let sector_bytes = self.config().sector_bytes as usize;
        let sectors = split(offset, data.len(), sector_bytes);
        let start = at.max(model.free[0]);
        let mut passes = disk_pass(self, model, at, &sectors);
        if !offset.is_multiple_of(sector_bytes) || !(offset + data.len()).is_multiple_of(sector_bytes) {
            // Back to where the first sector begins; no overhead and no seek.
            model.free[1] = Time::from_ps(cylinder(self, sectors[0].0) as u64);
            let now = model.free[0];
            passes = disk_pass(self, model, now.before(self.config().overhead), &sectors);
        }
        for ((begin, done), (start, limit)) in passes.iter().zip(&sectors) {
            let parts = vec![(*start, data[start - offset..limit - offset].to_vec())];
            model.atoms.push(Atom { bank: 0, begin: *begin, done: *done, parts, garbage: None });
        }
        Served { start, end: passes.last().unwrap().1 }
    }
}

fn cylinder(disk: &Disk<MemStore>, offset: usize) -> usize {
    let per_cylinder = disk.config().sectors_per_track() as usize * disk.config().surfaces as usize;
    offset / disk.config().sector_bytes as usize / per_cylinder
}

/// Lets sectors pass the head one by one, each at its own angle.
fn disk_pass(
    disk: &Disk<MemStore>,
    model: &mut Model,
    at: Time,
    sectors: &[(usize, usize)],
) -> Vec<(Time, Time)> {
    let config = disk.config();
    let (turn, count) = (config.revolution.ps() as u128, config.sectors_per_track() as u128);
    let angle = |slot: u128| (turn * slot / count) as u64;
    let away = cylinder(disk, sectors[0].0).abs_diff(model.free[1].ps() as usize);
    let mut now = model.free[0].max(at + config.overhead) + disk.seek_time(away as u64);
    let mut passes = Vec::new();
    for (start, _) in sectors {
        let slot = (start / config.sector_bytes as usize) as u128 % count;
        let wait = (angle(slot) as u128 + turn - now.ps() as u128 % turn) % turn;
        let begin = now + Span::from_ps(wait as u64);
        assert!(passes.is_empty() || begin == now, "sectors of a transfer follow each other");
        now = begin + Span::from_ps(angle(slot + 1) - angle(slot));
        passes.push((begin, now));
    }
    let after = (sectors.last().unwrap().0 / config.sector_bytes as usize + 1) * config.sector_bytes as usize;
    model.free = vec![now, Time::from_ps(cylinder(disk, after) as u64)];
    passes
}
