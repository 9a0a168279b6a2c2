//! The names of fio's options: which are implemented, which do not matter here, and which are left out for a reason. Lists
//! without reasons are words with spaces between them.

/// Options that are implemented.
pub(super) const KNOWN: &str = "\
    rw rwmixread rwmixwrite percentage_random bs bsrange bssplit blockalign bs_unaligned size io_size filesize \
    fill_device offset offset_increment iodepth iodepth_low iodepth_batch_complete_min numjobs rate rate_iops \
    rate_process rate_ignore_thinktime thinktime thinktime_spin thinktime_blocks thinktime_blocks_type \
    thinktime_iotime io_submit_mode verify do_verify randrepeat random_generator \
    group_reporting \
    random_distribution norandommap fsync fdatasync end_fsync sync stonewall wait_for_previous wait_for startdelay \
    runtime time_based ramp_time loops number_ios randseed kb_base ioengine filename \
    zonemode zonesize zonecapacity zonerange zoneskip max_open_zones job_max_open_zones zone_reset_threshold \
    zone_reset_frequency";

/// Options that do not matter here: because a simulated device does not know them, because issuing requests together takes no
/// time, or because they mean something only beside one that is refused.
pub(super) const IGNORED: &str = "\
    direct buffered name description directory thread \
    refill_buffers zero_buffers scramble_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk \
    dedupe_percentage dedupe_mode dedupe_global dedupe_working_set_percentage invalidate fallocate create_on_open \
    create_serialize create_fsync allow_file_create unlink unlink_each_loop overwrite gtod_reduce \
    gtod_cpu clocksource disable_lat disable_slat disable_clat disable_bw clat_percentiles lat_percentiles \
    slat_percentiles percentile_list block_error_percentiles write_bw_log write_lat_log write_iops_log \
    write_hist_log log_avg_msec log_hist_msec log_hist_coarseness log_offset log_max_value log_compression \
    log_store_compressed log_unix_epoch log_alternate_epoch log_prio per_job_logs bwavgtime iopsavgtime \
    status_interval eta cpus_allowed cpus_allowed_policy cpumask numa_cpu_nodes numa_mem_policy nice prio prioclass \
    cmdprio cmdprio_percentage cmdprio_class cmdprio_bssplit mem iomem iomem_align mem_align hugepage-size lockmem \
    userspace_reap hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu force_async \
    uncached nowait nonvectored new_group unified_rw_reporting stats unit_base significant_figures disk_util \
    allow_mounted_write openfiles file_service_type filename_format unique_filename opendir lockfile softrandommap \
    ioscheduler uid gid cgroup cgroup_weight cgroup_nodelete exec_prerun exec_postrun fadvise_hint \
    write_hint max_latency continue_on_error ignore_error error_dump profile threads buffer_pattern_percent \
    steadystate_check_interval offset_align number_of_files replay_align idle_prof minimal terse-version output- \
    format busy_poll skip_bad grace_time direct_write_to_pmem busy_wait_polling cmd_type readfua writefua verb \
    program arguments std_redirect cpuload cpumode cpuchunks exit_on_io_done donorname inplace volume brick pool \
    rbdname rbd_name clientname clustername conf touch_objects protocol hostname port listen pingpong ttl interface \
    nodelay serverip bindname gpu_dev_ids gpu_dev_id cuda_io uri nfs_url namenode chunk_size single_instance \
    use_direct cont svc mode object_class xnvme_async xnvme_sync xnvme_admin xnvme_be xnvme_mem xnvme_dev_nsid \
    xnvme_dev_subnqn xnvme_iovec read_beyond_wp sg_write_mode stream_id \
    md_per_io_size pi_act pi_chk apptag iodepth_batch iodepth_batch_complete_max rate_cycle latency_window \
    latency_percentile latency_run flow_id flow_sleep flow_watermark exit_what exitall_on_error \
    ignore_zone_limits recover_zbd_write_error \
    trim_verify_zero trim_backlog_batch steadystate_duration steadystate_ramp_time apptag_mask rocm_io \
    random_sequence_stride";

/// What engines call their own options: they begin so.
pub(super) const IGNORED_PREFIXES: &[&str] =
    &["http_", "https", "rdma_", "libblkio_", "dfs_", "md_", "daos_"];

/// Options that are left out although they would change something, with what to do instead.
pub(super) const LEFT_OUT: &[(&str, &str)] = &[
    ("nrfiles", "one device is one file"),
    ("verify_pattern", "nvlab checks content itself (nvlab cut)"),
    ("verify_interval", "nvlab checks content itself (nvlab cut)"),
    ("verify_offset", "nvlab checks content itself (nvlab cut)"),
    ("verify_fatal", "nvlab checks content itself (nvlab cut)"),
    ("verify_dump", "nvlab checks content itself (nvlab cut)"),
    ("verify_async", "nvlab checks content itself (nvlab cut)"),
    ("verify_async_cpus", "nvlab checks content itself (nvlab cut)"),
    ("verify_backlog_batch", "nvlab checks content itself (nvlab cut)"),
    ("verify_header_seed", "nvlab checks content itself (nvlab cut)"),
    ("verify_write_sequence", "nvlab checks content itself (nvlab cut)"),
    ("verify_state_save", "nvlab checks content itself (nvlab cut)"),
    ("verify_state_load", "nvlab checks content itself (nvlab cut)"),
    ("write_iolog", "use nvlab trace make"),
    ("sync_file_range", "a device does not know files; use fsync"),
    ("write_barrier", "use fsync"),
    ("atomic", "whether a power cut may tear a write is a property of the design (nvlab cut)"),
    ("fdp", "placement hints are not simulated: the controller chooses streams (ftl.streams)"),
    ("fdp_pli", "placement hints are not simulated: the controller chooses streams (ftl.streams)"),
    ("fdp_pli_select", "placement hints are not simulated: the controller chooses streams (ftl.streams)"),
    ("dataplacement", "placement hints are not simulated: the controller chooses streams (ftl.streams)"),
    ("plids", "placement hints are not simulated: the controller chooses streams (ftl.streams)"),
    ("plid_select", "placement hints are not simulated: the controller chooses streams (ftl.streams)"),
    ("dp_scheme", "placement hints are not simulated: the controller chooses streams (ftl.streams)"),
    ("sprandom", "nvlab preconditions the device itself (--precondition steady)"),
    ("spr_op", "nvlab preconditions the device itself (--precondition steady)"),
    ("spr_num_regions", "nvlab preconditions the device itself (--precondition steady)"),
];

/// Options without which a job means something else, the values with which they mean nothing, and what to do instead. A flag
/// without a value is 1.
pub(super) const REFUSED: &[(&str, &[&str], &str)] = &[
    ("read_iolog", &[], "use the log as the workload: -w FILE:iolog"),
    ("latency_target", &["0"], "the depth does not adapt to latencies; give iodepth"),
    ("rate_min", &["0"], "a job is not stopped for being slow; check the result (--assert)"),
    ("rate_iops_min", &["0"], "a job is not stopped for being slow; check the result (--assert)"),
    ("flow", &["0"], "jobs do not balance each other; use rate_iops"),
    ("serialize_overlap", &["0"], "requests for the same blocks may be in flight together; use iodepth=1"),
    ("exitall", &["0"], "every job ends on its own; give all of them runtime and time_based"),
    ("num_range", &["1"], "a trim has one range; give smaller trims (bs)"),
    ("write_mode", &["write"], "only data is written; zeroes, uncor and verify are not simulated"),
    ("bs_is_seq_rand", &["0"], "sizes are per reads and writes"),
    ("rw_sequencer", &["sequential"], "each kind of request has its own position"),
    ("iodepth_mode", &["none"], "the depth is fixed by iodepth; for a run at each depth: nvlab sweep"),
    ("trim_percentage", &["0"], "use rw=randtrimwrite"),
    ("trim_backlog", &["0"], "use rw=randtrimwrite"),
    ("experimental_verify", &["0"], "nothing is read back; give do_verify=0, and a separate job that reads"),
    ("verify_only", &["0"], "nothing is read back; give a job that reads"),
    ("verify_backlog", &["0"], "nothing is read back; give do_verify=0, and a separate job that reads"),
    ("create_only", &["0"], "a job that only creates its files issues no requests; leave it out"),
    ("pre_read", &["0"], "there is no page cache to read into; give a job that reads, and stonewall"),
    ("steadystate", &[], "a job does not end when its results are steady; give runtime"),
];

/// Engines whose jobs request nothing of a device: processor time, networks, and operations on files without their data.
pub(super) const NO_REQUESTS: &str = "\
    cpuio exec net netsplice filecreate filestat filedelete dircreate dirstat dirdelete e4defrag falloc ftruncate";

/// The canonical name of an option that has several.
pub(super) fn canonical(key: &str) -> &str {
    match key {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "blocksize_range" => "bsrange",
        "blocksize_unaligned" => "bs_unaligned",
        "ba" => "blockalign",
        "io_limit" => "io_size",
        "timeout" => "runtime",
        "fileoffset" => "offset",
        "start_delay" => "startdelay",
        "fill_fs" => "fill_device",
        "nr_files" => "nrfiles",
        "allrandrepeat" => "randrepeat",
        "ratemin" => "rate_min",
        "iodepth_batch_submit" => "iodepth_batch",
        "iodepth_batch_complete" => "iodepth_batch_complete_min",
        "ss" => "steadystate",
        "ss_dur" => "steadystate_duration",
        "ss_ramp" => "steadystate_ramp_time",
        other => other,
    }
}

/// True if `list` has the word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_do_not_overlap() {
        let refused = || REFUSED.iter().map(|(name, ..)| *name);
        let left_out = || LEFT_OUT.iter().map(|(name, _)| *name).chain(refused());
        for known in KNOWN.split_whitespace() {
            assert!(!has(IGNORED, known), "{known}");
            assert!(left_out().all(|name| name != known), "{known}");
            assert_eq!(canonical(known), known);
        }
        assert!(left_out().all(|name| !has(IGNORED, name)));
    }
}
