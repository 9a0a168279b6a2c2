//! A disk for the FAT client: every write goes to the device and to a plain image, every read must agree.

use crate::fsms::devices::Behind;
use crate::fsms::walk::Walk;
use fatfs::FatType;
use nvlab_controller::Controller;
use nvlab_controller::fsms::{FatKind, FileSystem, Fsms, SECTOR};
use nvlab_units::{Extent, Lpa, Span, Time};
use std::collections::BTreeSet;
use std::io::{Read, Result, Seek, SeekFrom, Write};

/// Looks at the device after a write: what was written, the image before, and when the write began and ended.
pub type Hook<C> = Box<dyn FnMut(&Fsms<C>, &Image, Written<'_>)>;

/// A write that was just done.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    pub extent: Extent,
    pub old: &'a [u8],
    pub at: Time,
    pub end: Time,
}

/// The plain image.
pub struct Image(pub Vec<u8>);

impl Image {
    pub fn sectors(&self, extent: Extent) -> &[u8] {
        &self.0[extent.start.index() * SECTOR..][..extent.count as usize * SECTOR]
    }
}

pub struct Disk<C> {
    pub device: Fsms<C>,
    pub image: Image,
    pub now: Time,
    position: u64,
    /// Sectors written since they were last trimmed: the others are zero.
    written: BTreeSet<u32>,
    pub hook: Option<Hook<C>>,
    /// Sectors that were trimmed.
    pub absorbed: u32,
}

impl<C: Behind> Disk<C> {
    pub fn new(device: Fsms<C>) -> Disk<C> {
        let image = Image(vec![0; device.capacity_units() as usize * SECTOR]);
        Disk {
            device,
            image,
            now: Time::ZERO,
            position: 0,
            written: BTreeSet::new(),
            hook: None,
            absorbed: 0,
        }
    }

    /// What the device trimmed, the image forgets: whole free clusters, and nothing else.
    fn absorb_trims(&mut self) {
        let FileSystem::Fat(volume) = self.device.file_system() else { return };
        let kind = match volume.kind {
            FatKind::Fat12 => FatType::Fat12,
            FatKind::Fat16 => FatType::Fat16,
            FatKind::Fat32 => FatType::Fat32,
        };
        let walk = Walk::new(&self.image.0, kind);
        let per_cluster = (walk.cluster_bytes / SECTOR) as u32;
        let is_free = |sector: u32| {
            let cluster = sector.checked_sub(walk.sector(2)).map(|at| 2 + at / per_cluster);
            cluster.is_some_and(|cluster| cluster < walk.clusters + 2 && walk.is_free(cluster))
        };
        let mut bytes = [0; SECTOR];
        for sector in self.written.iter().copied().filter(|&sector| is_free(sector)).collect::<Vec<u32>>() {
            self.device.read(self.now, Extent::one(Lpa(sector)), &mut bytes).unwrap();
            if bytes == [0; SECTOR] {
                self.written.remove(&sector);
                let plain = &mut self.image.0[sector as usize * SECTOR..][..SECTOR];
                self.absorbed += u32::from(*plain != [0; SECTOR]);
                plain.fill(0);
            }
        }
    }

    /// At the beginning, where a client expects it.
    pub fn rewound(&mut self) -> &mut Disk<C> {
        self.position = 0;
        self
    }

    fn extent(&self, bytes: usize) -> Extent {
        let start = self.position / SECTOR as u64;
        let end = (self.position + bytes as u64).div_ceil(SECTOR as u64);
        Extent { start: Lpa(start as u32), count: (end - start) as u32 }
    }

    fn room(&self, bytes: usize) -> usize {
        bytes.min((self.image.0.len() as u64).saturating_sub(self.position) as usize)
    }
}

impl<C: Behind> Read for Disk<C> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let count = self.room(into.len());
        let extent = self.extent(count);
        let mut bytes = vec![0xee; extent.count as usize * SECTOR];
        self.now = self.device.read(self.now, extent, &mut bytes).unwrap().end;
        let lead = self.position as usize % SECTOR;
        let expected = &self.image.0[self.position as usize..][..count];
        assert!(bytes[lead..lead + count] == *expected, "{count} B at {} read wrong", self.position);
        into[..count].copy_from_slice(expected);
        self.position += count as u64;
        Ok(count)
    }
}

impl<C: Behind> Write for Disk<C> {
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        let count = self.room(data.len());
        let extent = self.extent(count);
        let old = self.image.sectors(extent).to_vec();
        self.image.0[self.position as usize..][..count].copy_from_slice(&data[..count]);
        self.written.extend(extent.units().map(|sector| sector.0));
        let at = self.now;
        if self.hook.is_some() {
            self.device.behind_mut().settle(at);
        }

        let end = self.device.write(at, extent, self.image.sectors(extent)).unwrap().end;
        self.now = end;
        if let Some(hook) = &mut self.hook {
            hook(&self.device, &self.image, Written { extent, old: &old, at, end });
        } else {
            self.device.behind_mut().settle(end);
        }
        self.position += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> Result<()> {
        // Long enough for the trims behind it.
        self.now = self.device.flush(self.now).unwrap().end + Span::from_ms(5_000);
        if self.device.config().logical_delete {
            self.absorb_trims();
        }
        Ok(())
    }
}

impl<C: Behind> Seek for Disk<C> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.position = match to {
            SeekFrom::Start(position) => position,
            SeekFrom::Current(by) => self.position.wrapping_add_signed(by),
            SeekFrom::End(by) => (self.image.0.len() as u64).wrapping_add_signed(by),
        };
        Ok(self.position)
    }
}
