/*
 * Statistics of recoverable virtual memory. Include <rvm/rvm.h> first, or let this header do it.
 *
 * Fields n_... and the histograms without a prefix count from the last call of rvm_truncate; fields tot_... count from
 * rvm_initialize up to that call, so that the total is the sum of both. What this library never does (splitting records at the
 * end of the log, merging transactions) is counted as 0.
 */
#ifndef RVM_STATISTICS_VERSION

#define RVM_STATISTICS_VERSION "RVM Statistics Version 1.1 8 Dec 1992"

#include <rvm/rvm.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Histograms. Each has a number of counters, ..._len, and the upper bounds of all but the last, ..._dist, as an
 * initializer: a value is counted by the first counter whose bound is not below it.
 */

/* Durations of flushes, ms. */
#define flush_times_len 10
#define flush_times_dist 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000
/* Durations of truncations, s. */
#define truncation_times_len 5
#define truncation_times_dist 1, 10, 100, 500
/* Lengths of ranges, bytes. */
#define range_lengths_len 13
#define range_lengths_dist 0, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096
/* Bytes of a transaction declared more than once. */
#define range_overlaps_len 13
#define range_overlaps_dist 0, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096
/* Bytes saved by merging transactions. */
#define trans_overlaps_len 13
#define trans_overlaps_dist 0, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096
/* Ranges of a transaction joined with others. */
#define range_elims_len 6
#define range_elims_dist 0, 5, 10, 50, 100
/* Ranges saved by merging transactions. */
#define trans_elims_len 6
#define trans_elims_dist 0, 5, 10, 50, 100
/* Transactions merged per flush. */
#define trans_coalesces_len 6
#define trans_coalesces_dist 0, 5, 10, 50, 100

typedef struct {
    rvm_struct_id_t struct_id;
    rvm_bool_t from_heap;

    /* Since the last rvm_truncate: transactions. */
    rvm_length_t n_abort;
    rvm_length_t n_flush_commit;
    rvm_length_t n_no_flush_commit;
    rvm_length_t n_uncommit;        /* not ended now */
    rvm_length_t n_no_flush;        /* committed and not durable now */
    rvm_length_t n_truncation_wait; /* always 0: waiting transactions are not counted */
    rvm_offset_t no_flush_length;   /* bytes of ranges committed and not durable now */

    /* Since the last rvm_truncate: the log. */
    rvm_length_t n_split;     /* always 0 */
    rvm_length_t n_flush;     /* flushes by commits */
    rvm_length_t n_rvm_flush; /* calls of rvm_flush */
    rvm_length_t n_special;   /* always 0 */
    rvm_length_t n_wrap;      /* always 0 */
    rvm_length_t log_dev_cur; /* percentage of the log in use now */
    rvm_offset_t log_written; /* bytes in use now */
    rvm_offset_t range_overlap;
    rvm_offset_t trans_overlap; /* always 0 */
    rvm_length_t n_range_elim;
    rvm_length_t n_trans_elim;      /* always 0 */
    rvm_length_t n_trans_coalesced; /* always 0 */
    struct timeval flush_time;      /* of flushes by commits and by rvm_flush */
    rvm_length_t last_flush_time;   /* ms */
    rvm_length_t last_truncation_time; /* s */
    rvm_length_t last_tree_build_time; /* always 0 */
    rvm_length_t last_tree_apply_time; /* always 0 */
    rvm_length_t flush_times[flush_times_len];
    rvm_length_t range_lengths[range_lengths_len];
    rvm_length_t range_elims[range_elims_len];
    rvm_length_t trans_elims[trans_elims_len];
    rvm_length_t range_overlaps[range_overlaps_len];
    rvm_length_t trans_overlaps[range_overlaps_len];

    /* From rvm_initialize to the last rvm_truncate: transactions. */
    rvm_length_t tot_abort;
    rvm_length_t tot_flush_commit;
    rvm_length_t tot_no_flush_commit;

    /* The log. */
    rvm_length_t tot_split;
    rvm_length_t tot_flush;
    rvm_length_t tot_rvm_flush;
    rvm_length_t tot_special;
    rvm_length_t tot_wrap;
    rvm_length_t log_dev_max; /* largest log_dev_cur returned so far */
    rvm_offset_t tot_log_written;
    rvm_offset_t tot_range_overlap;
    rvm_offset_t tot_trans_overlap;
    rvm_length_t tot_range_elim;
    rvm_length_t tot_trans_elim;
    rvm_length_t tot_trans_coalesced;

    /* Truncations. */
    rvm_length_t tot_rvm_truncate; /* calls of rvm_truncate */
    rvm_length_t tot_async_truncation; /* truncations by others: the background, commits, rvm_map */
    rvm_length_t tot_sync_truncation;  /* always 0: counted with those */
    rvm_length_t tot_truncation_wait;  /* always 0 */
    rvm_length_t tot_recovery; /* 1 if opening the log found commits */
    struct timeval tot_flush_time;
    struct timeval tot_truncation_time; /* of rvm_truncate */
    rvm_length_t tot_tree_build_times[truncation_times_len];
    rvm_length_t tot_tree_apply_times[truncation_times_len];
    rvm_length_t tot_truncation_times[truncation_times_len];
    rvm_length_t tot_flush_times[flush_times_len];
    rvm_length_t tot_range_lengths[range_lengths_len];
    rvm_length_t tot_range_elims[range_elims_len];
    rvm_length_t tot_trans_elims[trans_elims_len];
    rvm_length_t tot_range_overlaps[range_overlaps_len];
    rvm_length_t tot_trans_overlaps[range_overlaps_len];
    rvm_length_t tot_trans_coalesces[trans_coalesces_len];
} rvm_statistics_t;

rvm_statistics_t *rvm_malloc_statistics(void);
void rvm_init_statistics(rvm_statistics_t *statistics);
rvm_statistics_t *rvm_copy_statistics(rvm_statistics_t *statistics);
void rvm_free_statistics(rvm_statistics_t *statistics);

/* Stores the statistics now. RVM_ELOG if no log is open. */
rvm_return_t rvm_statistics(const char *version, rvm_statistics_t *statistics);
#define RVM_STATISTICS(statistics) rvm_statistics(RVM_STATISTICS_VERSION, (statistics))

/* Prints a record: one line per field that is not 0, then the histograms. RVM_EIO if the stream fails. */
rvm_return_t rvm_print_statistics(rvm_statistics_t *statistics, FILE *out_stream);

#ifdef __cplusplus
}
#endif

#endif
