/*
 * Recoverable dynamic storage: a heap in a mapped region, whose every change is part of a transaction.
 *
 * A heap is created once with rds_zap_heap and loaded by each run of the program with rds_load_heap, at the same address,
 * so that objects may hold pointers to each other. rds_malloc and rds_free work within the program's transaction, or,
 * given a null one, in one of their own, committed in mode `no_flush`.
 *
 * Within the program's transaction, begun in mode `restore`, an abort undoes the allocation as well; until it ends, no
 * other transaction may allocate or free, because the abort would undo that too.
 *
 * Functions that store an error code through `err` store SUCCESS, a code below, or a positive code of rvm.h.
 */
#ifndef _RDS_H_
#define _RDS_H_

#include <rvm/rvm.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SUCCESS 0
#define ERVM_FAILED -1        /* never stored: the code of rvm.h is */
#define EBAD_LIST -2          /* a free list is damaged */
#define EBAD_SEGMENT_HDR -3   /* the segment does not hold a heap and a static region */
#define EHEAP_VERSION_SKEW -4 /* no heap, or one of another version */
#define EHEAP_INIT -5         /* no heap has been loaded or started */
#define EBAD_ARGS -6          /* an address that is no block's, or a null pointer */
#define ECORRUPT -7           /* the words around a block have been overwritten */
#define EFREED_TWICE -8       /* the block is already free */
#define ENO_ROOM -9           /* no free block is large enough */

/* Smallest allocation unit in bytes, and fewest free lists. */
#define RDS_MIN_CHUNK_SIZE 32
#define RDS_MIN_FREE_LISTS 1

/* Makes an existing file a segment with a heap of `heap_length` bytes, to be mapped at `start_addr`, and a static region of
   `static_length` bytes after it. Neither is mapped when it returns. Lengths are whole pages. There are `n_lists` free lists, for blocks of 1, 2, ... units of
   `chunk_size` bytes; the last holds all larger blocks. Durable on return. */
int rds_zap_heap(char *dev_name, rvm_offset_t dev_length, char *start_addr, rvm_length_t static_length,
                 rvm_length_t heap_length, unsigned long n_lists, unsigned long chunk_size, int *err);

/* Makes mapped memory a heap, in the given transaction, which the program commits. */
int rds_init_heap(char *base, rvm_length_t length, unsigned long chunk_size, unsigned long n_lists, rvm_tid_t *tid,
                  int *err);

/* Maps a segment created by rds_zap_heap, starts its heap and stores the address of the static region. */
int rds_load_heap(char *dev_name, rvm_offset_t dev_length, char **static_addr, int *err);

/* Unmaps what rds_load_heap has mapped. Not to be called once a copy of RegionDefs has been passed to rvm_release_segment
   (rvm_segment.h). */
int rds_unload_heap(int *err);

/* Uses the heap at `start_addr`, which the program has mapped. One heap is used at a time. */
int rds_start_heap(char *start_addr, int *err);

/* Stops using the heap; it stays mapped. */
int rds_stop_heap(int *err);

/* Puts `n_blocks` blocks of `size` bytes on the free list of that size. */
int rds_prealloc(unsigned long size, unsigned long n_blocks, rvm_tid_t *tid, int *err);

/* Allocates a block, aligned to 16 bytes, whose contents are undefined. Returns null if it fails. */
char *rds_malloc(unsigned long size, rvm_tid_t *tid, int *err);

/* Frees a block. */
int rds_free(char *addr, rvm_tid_t *tid, int *err);

/* 1 if a block of `size` bytes could be allocated now, otherwise 0. */
int rds_maxblock(unsigned long size);

/* Blocks to be freed when a transaction commits. The program zeroes it before first use. */
typedef struct intlist {
    unsigned long size; /* bytes allocated for the table */
    unsigned long count;
    char **table;
} intentionList_t;

/* Bytes of the first table. */
#define STARTSIZE 128

/* Adds a block to the list, which is freed later or, if the transaction aborts, not at all. Returns a code. */
int rds_fake_free(char *addr, intentionList_t *list);

/* Frees all blocks of the list in one transaction, committed in `mode`, and the table. Returns a code. */
int rds_do_free(intentionList_t *list, rvm_mode_t mode);

/* Counts since the heap was created or the statistics were cleared. */
typedef struct {
    unsigned malloc;       /* allocations */
    unsigned prealloc;     /* calls of rds_prealloc */
    unsigned free;         /* blocks freed */
    unsigned coalesce;     /* always 0: blocks are merged as they are freed */
    unsigned hits;         /* allocations from the list of their size */
    unsigned misses;       /* allocations that split a larger block of another list */
    unsigned large_list;   /* times the list of large blocks became empty or ceased to be */
    unsigned large_hits;   /* large blocks allocated whole */
    unsigned large_misses; /* large blocks split */
    unsigned merged;       /* free neighbours merged with a freed block */
    unsigned unmerged;     /* freed blocks without a free neighbour */
    unsigned freebytes;    /* free now */
    unsigned mallocbytes;  /* allocated now, with the headers of the blocks */
} rds_stats_t;

int rds_print_stats(void);
int rds_clear_stats(int *err);
int rds_get_stats(rds_stats_t *stats);

/* A trace of allocations, one line each, for as long as it is on. */
extern int rds_tracing;
extern FILE *rds_tracing_file;
int rds_trace_on(FILE *file);
int rds_trace_off(void);
int rds_trace_dump_heap(void);
#define RDS_LOG(...)                                \
    do {                                            \
        if (rds_tracing && rds_tracing_file) {      \
            fprintf(rds_tracing_file, __VA_ARGS__); \
            fflush(rds_tracing_file);               \
        }                                           \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
