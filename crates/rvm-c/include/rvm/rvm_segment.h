/*
 * Segments that know their regions: the first page of the file says which parts are mapped where.
 */
#ifndef _RVM_SEGMENT_H_
#define _RVM_SEGMENT_H_

#include <rvm/rvm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the header at the beginning of the segment. */
#define RVM_SEGMENT_HDR_SIZE RVM_PAGE_SIZE

/* The header is missing or damaged. */
#define RVM_ESEGMENT_HDR 2000

/* A region of a segment. */
typedef struct {
    rvm_offset_t offset; /* where it begins in the segment, in bytes */
    rvm_length_t length; /* bytes, whole pages */
    char *vmaddr;        /* where it is mapped, on a page boundary; null: anywhere */
} rvm_region_def_t;

#define RVM_INIT_REGION(region, off, len, addr) \
    (region).offset = (off);                    \
    (region).length = (len);                    \
    (region).vmaddr = (addr);

/* Writes the header of an existing file and stores the offset of each region, in their order after the header. Nothing is
   mapped, and nothing but the header is changed. */
rvm_return_t rvm_create_segment(char *dev_name, rvm_offset_t dev_length, rvm_options_t *options, rvm_length_t n_regions,
                                rvm_region_def_t *region_defs);

/* Maps every region that the header names and stores their number and an array of them, which the program frees. */
rvm_return_t rvm_load_segment(char *dev_name, rvm_offset_t dev_length, rvm_options_t *options, unsigned long *n_regions,
                              rvm_region_def_t *regions[]);

/* Unmaps the regions of a loaded segment, frees the array and sets *regions to null. The array that rds_load_heap makes,
   RegionDefs, is released by rds_unload_heap or, after rds_stop_heap, by rvm_release_segment(NRegionDefs, &RegionDefs): with
   the address of RegionDefs itself. A program must not pass a copy of that pointer: RegionDefs would keep the freed array,
   and rds_unload_heap would free it again. */
rvm_return_t rvm_release_segment(unsigned long n_regions, rvm_region_def_t *regions[]);

#ifdef __cplusplus
}
#endif

#endif
