/*
 * Recoverable virtual memory: the C interface of nvlab's library `rvm`.
 *
 * Names, argument order, modes and return codes are those of Coda's RVM (Satyanarayanan et al., "Lightweight Recoverable
 * Virtual Memory", 1994), so that programs written for it compile and link unchanged. The implementation and the formats
 * of logs and segments are nvlab's own: a log written by Coda's library is refused with RVM_ELOG_VERSION_SKEW.
 *
 * A program calls RVM_INIT with a log, rvm_map for each region, and then, as often as it likes, rvm_begin_transaction,
 * rvm_set_range before each change of mapped memory, and rvm_end_transaction. Changes committed in mode `flush` survive
 * power loss once rvm_end_transaction has returned; those committed in mode `no_flush` once rvm_flush or a later `flush`
 * commit has returned, and until then a crash may drop a suffix of them, never one from the middle.
 *
 * All functions may be called by several threads at once; one transaction is used by one thread at a time. There is no
 * isolation: a program that shares memory between transactions locks it itself.
 *
 * Differences from Coda's library
 *  - Segments are ordinary files. Raw partitions, RVM_EPAGER's external pagers and the `rvmutl` program do not exist; a
 *    non-null `pager` is refused with RVM_EPAGER. `nvlab log` shows what is in a log.
 *  - Regions are always mapped privately and read on demand, as Coda does with RVM_MAP_PRIVATE. The flag and `no_copy`
 *    are accepted and change nothing: `no_copy` memory holds the segment's data rather than being undefined.
 *  - Ranges of one transaction are always coalesced. RVM_COALESCE_TRANS is accepted and returned by rvm_query, but
 *    transactions are not merged with each other in the log.
 *  - `truncate` takes effect when the log is opened and stays as it is. Unless it is 0, the log is truncated earlier, too, if to
 *    recover it would take more than a second. Should the log become full before its background truncation is done, commits wait.
 *  - `recovery_buf_len`, `flush_buf_len` and `max_read_len` are kept and returned, and have no effect.
 *  - rvm_set_range, too, returns RVM_ETOO_BIG, if the transaction would not fit into the log; it goes on without the range.
 *  - The variable `rvm_no_yield`, which programs declare themselves, exists and has no effect. Of Coda's internal functions and
 *    variables those that its stress program uses exist (the table in docs/rvm.md lists them); its packages of coroutines and
 *    threads do not, but the variables that its rvm_pthread.h needs do.
 *  - Cumulative statistics (`tot_...`) count from rvm_initialize, not from the creation of the log.
 *  - The codes RVM_EPORTABILITY and RVM_EEXISTS, which some manual pages name, are in no version of the original's header:
 *    an existing log file is reported by rvm_create_log as RVM_EIO with errno EEXIST.
 */
#ifndef RVM_VERSION

/* The interface this header describes; rvm_initialize compares it with the library's. */
#define RVM_VERSION "RVM Interface Version 1.3  7 Mar 1994"
/* Longest version string, in bytes with the final zero. */
#define RVM_VERSION_MAX 128

/* Coda's header defines it, too. */
#ifndef _PARALLEL_LIBRARIES
#define _PARALLEL_LIBRARIES 1
#endif

#include <sys/param.h>
#include <sys/time.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FALSE
#define FALSE 0
#endif
#ifndef TRUE
#define TRUE 1
#endif

/* ---- Numbers ---- */

/* Lengths of memory in bytes; as wide as a pointer. */
typedef unsigned long rvm_length_t;

/* Offsets in segments and logs, in bytes. Use the macros, not the fields. */
typedef struct {
    rvm_length_t high;
    rvm_length_t low;
} rvm_offset_t;

typedef enum { rvm_false = 0, rvm_true = 1 } rvm_bool_t;

/* ---- Return codes ---- */

typedef int rvm_return_t;

#define RVM_SUCCESS 0
#define rvm_first_code 199
#define RVM_EINIT 200              /* not initialized, or already terminated */
#define RVM_EINTERNAL 201          /* an error of the library itself; rvm_errmsg says more */
#define RVM_EIO 202                /* a file could not be read, written or made durable; see errno */
#define RVM_ELOG 204               /* no log, a damaged one, one in use (errno EBUSY), or another than the open one */
#define RVM_ELOG_VERSION_SKEW 205  /* a file that is no log, or a log of another format */
#define RVM_EMODE 206              /* not a mode of this function */
#define RVM_ENAME_TOO_LONG 207     /* a file name of MAXPATHLEN bytes or more */
#define RVM_ENO_MEMORY 208         /* no memory, or no address space */
#define RVM_ENOT_MAPPED 209        /* the range is not within one mapped region */
#define RVM_EOFFSET 210            /* the offset is beyond the end of the segment */
#define RVM_EOPTIONS 211           /* not an initialized options record */
#define RVM_EOVERLAP 212           /* that part of the segment is mapped already */
#define RVM_EPAGER 213             /* external pagers do not exist */
#define RVM_ERANGE 214             /* an address or length that cannot be mapped or is not that of the region */
#define RVM_EREGION 215            /* not an initialized region descriptor */
#define RVM_EREGION_DEF 216        /* not a valid region definition */
#define RVM_ESRC 217               /* no source for new values */
#define RVM_ESTATISTICS 218        /* not an initialized statistics record */
#define RVM_ESTAT_VERSION_SKEW 219 /* statistics of another version */
#define RVM_ETERMINATED 220        /* an earlier write or force failed: no more work until the log is opened again */
#define RVM_ETHREADS 221           /* never returned: any threads will do */
#define RVM_ETID 222               /* not a transaction, or one that has ended */
#define RVM_ETOO_BIG 223           /* the transaction does not fit into the log */
#define RVM_EUNCOMMIT 224          /* transactions have not ended */
#define RVM_EVERSION_SKEW 225      /* header and library are of different versions */
#define RVM_EVM_OVERLAP 226        /* a region is mapped at that address already */
#define rvm_last_code 227

/* Says more about the last RVM_EINTERNAL, RVM_EIO or RVM_ELOG; empty if there was none. Overwritten by the next. */
extern char *rvm_errmsg;

/* ---- Modes and kinds of records ---- */

typedef enum {
    rvm_first_mode = 139,
    restore,    /* rvm_begin_transaction: an abort restores the memory of every range */
    no_restore, /* rvm_begin_transaction: an abort leaves memory as it is; nothing is copied by rvm_set_range */
    flush,      /* rvm_end_transaction: durable on return */
    no_flush,   /* rvm_end_transaction: durable after the next flush */
    rvm_last_mode
} rvm_mode_t;

/* The first field of every record, set by its initializer and checked by every function. */
typedef enum {
    rvm_first_struct_id = 39,
    rvm_region_id,
    rvm_options_id,
    rvm_tid_id,
    rvm_statistics_id,
    rvm_last_struct_id
} rvm_struct_id_t;

/* The names of codes, modes and record kinds, as constant strings. */
char *rvm_return(rvm_return_t code);
char *rvm_mode(rvm_mode_t mode);
char *rvm_type(rvm_struct_id_t id);

/*
 * ---- Records ----
 *
 * A record is made by its rvm_malloc_ or rvm_copy_ function, or, if the program supplies the memory, by its rvm_init_
 * function. rvm_free_ releases those of the first kind and ignores the others. Strings belong to the program; records and
 * their copies point to them.
 */

/* A transaction. */
typedef struct {
    rvm_struct_id_t struct_id;
    rvm_bool_t from_heap;
    struct timeval uname; /* when it began; no two transactions of a process have the same */
    void *tid;
    rvm_length_t reserved;
} rvm_tid_t;

rvm_tid_t *rvm_malloc_tid(void);
void rvm_init_tid(rvm_tid_t *tid);
rvm_tid_t *rvm_copy_tid(rvm_tid_t *tid);
void rvm_free_tid(rvm_tid_t *tid);

/* Settings, and what rvm_query returns. */
typedef struct {
    rvm_struct_id_t struct_id;
    rvm_bool_t from_heap;
    char *log_dev;                 /* path of the log; for rvm_query null, or a buffer of MAXPATHLEN + 1 bytes */
    long truncate;                 /* percentage of the log in use at which it is truncated; 0: only when full or asked */
    rvm_length_t recovery_buf_len; /* bytes */
    rvm_length_t flush_buf_len;    /* bytes */
    rvm_length_t max_read_len;     /* bytes */
    rvm_bool_t log_empty;          /* from rvm_query: the segments are up to date */
    char *pager;                   /* must be null */
    long n_uncommit;               /* from rvm_query: transactions that have not ended */
    rvm_tid_t *tid_array;          /* from rvm_query: those transactions; in a record not from the heap, the program frees it */
    rvm_length_t flags;            /* RVM_COALESCE_RANGES and others below */
    rvm_bool_t create_log_file;    /* rvm_initialize creates the log first */
    rvm_offset_t create_log_size;  /* its size in bytes */
    long create_log_mode;          /* its permissions, as for open(2) */
} rvm_options_t;

/* What rvm_init_options sets. */
#define TRUNCATE 50
#define RECOVERY_BUF_LEN (256 * 1024)
#define FLUSH_BUF_LEN (256 * 1024)
#define MAX_READ_LEN (512 * 1024)
/* Smaller buffers are raised to these. */
#define MIN_RECOVERY_BUF_LEN (64 * 1024)
#define MIN_FLUSH_BUF_LEN (64 * 1024)

/* Flags. */
#define RVM_COALESCE_RANGES 1
#define RVM_COALESCE_TRANS 2
#define RVM_ALL_OPTIMIZATIONS (RVM_COALESCE_RANGES | RVM_COALESCE_TRANS)
#define RVM_MAP_PRIVATE 8

rvm_options_t *rvm_malloc_options(void);
void rvm_init_options(rvm_options_t *options);
rvm_options_t *rvm_copy_options(rvm_options_t *options);
void rvm_free_options(rvm_options_t *options);

/* A part of a segment and where it is mapped. */
typedef struct {
    rvm_struct_id_t struct_id;
    rvm_bool_t from_heap;
    char *data_dev;          /* path of the segment, an existing file */
    rvm_offset_t dev_length; /* for files 0, or the most of the file that may be mapped, in bytes */
    rvm_offset_t offset;     /* where the region begins, in bytes; rvm_map rounds it down to a page */
    char *vmaddr;            /* where to map it, on a page boundary, or null: rvm_map chooses and stores the address */
    rvm_length_t length;     /* bytes, or 0: to the end of the segment; rvm_map stores the length mapped */
    rvm_bool_t no_copy;
} rvm_region_t;

rvm_region_t *rvm_malloc_region(void);
void rvm_init_region(rvm_region_t *region);
rvm_region_t *rvm_copy_region(rvm_region_t *region);
void rvm_free_region(rvm_region_t *region);

/* ---- The library ---- */

/* Creates a log of `log_len` bytes at options->log_dev, where no file may be, with permissions `mode`. The library need
   not be initialized. */
rvm_return_t rvm_create_log(rvm_options_t *options, rvm_offset_t *log_len, long mode);

/* Starts the library, opens the log and recovers what it holds. Options may be null: then the log is named later, to
   rvm_set_options or rvm_map. Returns RVM_SUCCESS if it is running already and RVM_EINIT after rvm_terminate. */
rvm_return_t rvm_initialize(const char *version, rvm_options_t *options);
#define RVM_INIT(options) rvm_initialize(RVM_VERSION, (options))

/* Not in Coda's library: segments that the log names in folder `old_folder`, an absolute path, are looked for in `new_folder`. To
   be called before the log is opened, for each folder that moved: a log that was copied together with its segments names the
   originals, and would be recovered into them. The program itself names the copies. RVM_EINIT once a log is open, RVM_EIO if
   there is no new folder, RVM_EOPTIONS for a null pointer or a path that is not absolute. Whatever opens the log then returns
   RVM_EOPTIONS, and has changed nothing, if the log changes a segment that it names in none of the old or new folders; one
   that stayed where it is needs rvm_relocate(folder, folder). */
rvm_return_t rvm_relocate(const char *old_folder, const char *new_folder);

/* Flushes, closes the log and forgets the regions, whose memory stays readable. Returns RVM_EUNCOMMIT, and does nothing,
   if transactions have not ended. Unless `truncate` is 0 it also writes what the log holds into the segments, as
   rvm_truncate does, so that rvm_initialize has nothing to recover; Coda's leaves that to the next start. Should this fail,
   the log keeps it: nothing is lost, and nothing reported. */
rvm_return_t rvm_terminate(void);

/* Changes flags and buffer lengths, or opens the log if none is open. RVM_ELOG if another is. */
rvm_return_t rvm_set_options(rvm_options_t *options);

/* Stores the options in force in `options`. The transactions that have not ended are those that declared a range in
   `region`, or all if that is null. */
rvm_return_t rvm_query(rvm_options_t *options, rvm_region_t *region);

/* Maps a region. Its memory holds what was committed last. Options may be null. */
rvm_return_t rvm_map(rvm_region_t *region, rvm_options_t *options);

/* Removes a region, given by the address and length that rvm_map stored. Its memory stays mapped until the process ends or
   maps something else there, but is no longer recoverable. */
rvm_return_t rvm_unmap(rvm_region_t *region);

/* Begins a transaction: mode `restore` or `no_restore`. */
rvm_return_t rvm_begin_transaction(rvm_tid_t *tid, rvm_mode_t mode);

/* Declares that the transaction changes `length` bytes at `dest`; to be called before they are changed. */
rvm_return_t rvm_set_range(rvm_tid_t *tid, void *dest, rvm_length_t length);

/* Declares and copies: `src` and `dest` may overlap. */
rvm_return_t rvm_modify_bytes(rvm_tid_t *tid, void *dest, const void *src, rvm_length_t length);

/* Ends a transaction and drops its changes; begun in mode `no_restore`, memory keeps them nevertheless. */
rvm_return_t rvm_abort_transaction(rvm_tid_t *tid);

/* Ends a transaction and keeps its changes: mode `flush` or `no_flush`. If it fails with RVM_ETOO_BIG or RVM_EMODE, the
   transaction goes on. After RVM_EIO or RVM_ETERMINATED it has ended: its changes are in memory, but whether they are durable
   is known only when the log has been opened again, by another process. */
rvm_return_t rvm_end_transaction(rvm_tid_t *tid, rvm_mode_t mode);

/* Makes all committed transactions durable. */
rvm_return_t rvm_flush(void);

/* Flushes, writes what the log holds into the segments, and empties it. */
rvm_return_t rvm_truncate(void);

/* ---- Arithmetic on offsets, lengths and addresses ---- */

rvm_offset_t rvm_mk_offset(rvm_length_t high, rvm_length_t low);
rvm_offset_t rvm_add_offsets(rvm_offset_t *x, rvm_offset_t *y);
rvm_offset_t rvm_add_length_to_offset(rvm_offset_t *offset, rvm_length_t length);
rvm_offset_t rvm_sub_offsets(rvm_offset_t *x, rvm_offset_t *y);
rvm_offset_t rvm_sub_length_from_offset(rvm_offset_t *offset, rvm_length_t length);
rvm_length_t rvm_page_size(void);
rvm_length_t rvm_page_mask(void);
rvm_offset_t rvm_rnd_offset_up_to_page(rvm_offset_t *x);
rvm_offset_t rvm_rnd_offset_dn_to_page(rvm_offset_t *x);

/* Offsets from a high and a low word, in expressions and in initializers. */
#define RVM_MK_OFFSET(high_word, low_word) rvm_mk_offset((rvm_length_t)(high_word), (rvm_length_t)(low_word))
#define RVM_OFFSET_INITIALIZER(high_word, low_word) { (high_word), (low_word) }
#define RVM_LENGTH_TO_OFFSET(length) RVM_MK_OFFSET(0, (length))
#define RVM_ZERO_OFFSET(x) (x) = RVM_MK_OFFSET(0, 0)

/* The words of an offset. */
#define RVM_OFFSET_TO_LENGTH(x) ((x).low)
#define RVM_OFFSET_HIGH_BITS_TO_LENGTH(x) ((x).high)

/* Sums and differences. Offsets must be variables: their addresses are taken. */
#define RVM_ADD_OFFSETS(x, y) rvm_add_offsets(&(x), &(y))
#define RVM_SUB_OFFSETS(x, y) rvm_sub_offsets(&(x), &(y))
#define RVM_ADD_LENGTH_TO_OFFSET(x, length) rvm_add_length_to_offset(&(x), (length))
#define RVM_SUB_LENGTH_FROM_OFFSET(x, length) rvm_sub_length_from_offset(&(x), (length))
#define RVM_ADD_LENGTH_TO_ADDR(a, b) ((char *)((rvm_length_t)(a) + (rvm_length_t)(b)))
#define RVM_SUB_LENGTH_FROM_ADDR(addr, length) ((char *)((rvm_length_t)(addr) - (rvm_length_t)(length)))

/* Comparisons: 1 or 0. */
#define RVM_OFFSET_EQL(x, y) ((x).low == (y).low && (x).high == (y).high)
#define RVM_OFFSET_EQL_ZERO(x) ((x).low == 0 && (x).high == 0)
#define RVM_OFFSET_LSS(x, y) ((x).high == (y).high ? (x).low < (y).low : (x).high < (y).high)
#define RVM_OFFSET_GTR(x, y) RVM_OFFSET_LSS(y, x)
#define RVM_OFFSET_LEQ(x, y) (!RVM_OFFSET_LSS(y, x))
#define RVM_OFFSET_GEQ(x, y) (!RVM_OFFSET_LSS(x, y))

/* Whole pages. */
#define RVM_PAGE_SIZE rvm_page_size()
#define RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE(x) ((rvm_length_t)(x) & rvm_page_mask())
#define RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(x) RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE((rvm_length_t)(x) + rvm_page_size() - 1)
#define RVM_ROUND_ADDR_DOWN_TO_PAGE_SIZE(x) ((char *)RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE(x))
#define RVM_ROUND_ADDR_UP_TO_PAGE_SIZE(x) ((char *)RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(x))
#define RVM_ROUND_OFFSET_DOWN_TO_PAGE_SIZE(x) rvm_rnd_offset_dn_to_page(&(x))
#define RVM_ROUND_OFFSET_UP_TO_PAGE_SIZE(x) rvm_rnd_offset_up_to_page(&(x))

#ifdef __cplusplus
}
#endif

#endif
