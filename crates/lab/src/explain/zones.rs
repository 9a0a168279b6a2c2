//! The article on zones.

use super::topic::Topic;

/// `ftl.kind = "zoned"`.
pub const TOPIC: Topic = Topic {
    names: &["zones", "zns", "zone"],
    title: "Zoned drives: written in order, erased whole, nothing to clean",
    text: "\
\x20 nvlab run zns-ssd -w 'zones open=4 qd=32 bs=128KiB append until=10s'
  ftl = { kind = \"zoned\", zone = { size = \"2 GiB\", capacity = \"1077 MiB\", dies = 5,
          open_max = 14, active_max = 14 } }

A zone is written at its write pointer only, and reset as a whole (NVMe Zoned Namespace Command Set
1.1). The controller keeps no map of units and moves nothing: waf is 1, plus padding of zones that
are finished early and, with a buffer that a power cut empties, the log of partly filled pages.
What makes room is what the host resets; the price is on its side.

`ftl.zone.dies` dies share a zone, page by page: one zone is as fast as they are, zones of the same
group of dies disturb each other, those of different groups do not. A zone that is first written
takes the least worn erased blocks of its dies. A reset erases the blocks that were written, the
first one alone and then on all dies at once, and ends when that is done; reads suspend erases
where the part can. To finish a zone is to write the rest of it, as fast as its dies can.

States: empty, implicitly open (written), explicitly open, closed (partly written), full, read only
(a block failed and its die has no other), offline (too few good blocks). At most `open_max` zones
are open; if all are, a write to another closes the one that was opened first by a write. At most
`active_max` are open or closed; a write to one more fails. When a die has too few good blocks,
empty zones lose capacity, the last one first. A trim of a whole zone resets it, any other is
ignored.

A power cut leaves of each zone a beginning of what was written: all that was flushed and, if the
write buffer has a capacitor, all that was acknowledged. The write pointer says how much; open zones
are closed. A reset that ended stays; one under way is done or not. A mount reads the first and the
last page of each block.

The host has one write of a zone in flight, as Linux has it (the zone write lock), because a write
that overtakes another is an error. More zones (open=8) or appends, whose place the drive chooses,
use the depth.

'zones key=value ...' writes zones one after another, from the first of its span on, and resets each
before it writes it: open=1 (zones written by turns), append, fill=100% (of each zone, then the
next), random (choose zones at random), noreset (on a new drive), read=30% (of what it wrote), and
bs, qd, rate, span, offset, until as other generators. 'sequential' does the same with one zone.
Other generators may only read. fio jobs: zonemode=zbd with zonesize, max_open_zones,
job_max_open_zones, zone_reset_threshold and zone_reset_frequency; offset=9z and size=2z count
zones. zonemode=strided is for any device.

Closed forms: nvlab reproduce zns.",
};
