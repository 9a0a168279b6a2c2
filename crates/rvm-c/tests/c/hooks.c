/*
 * Links as Coda's stress program does: it declares variables of Coda's libraries that no header does, and its threads are macros of
 * Coda's rvm_pthread.h, which use a few more.
 */
#include "check.h"

#include <pthread.h>
#include <rvm/rds.h>
#include <rvm/rvm_segment.h>

#define HEAP (16 * 4096)

extern rvm_region_def_t *RegionDefs;
extern long NRegionDefs;
extern rvm_bool_t rds_testsw;
extern void clear_free_lists(void);
extern pthread_t rvm_pthreadid;
extern void *rvm_ptstat;
extern int rvm_join_res;
extern int rvm_lock_free(pthread_mutex_t *mutex);

static char *const start_address = (char *)0x20000000;

static void loading(void)
{
    start();
    int error;
    rvm_offset_t whole = RVM_MK_OFFSET(0, 0);
    CHECK(RegionDefs == NULL && NRegionDefs == 0 && rds_testsw == rvm_false);
    CHECK(rds_zap_heap(data_path, whole, start_address, RVM_PAGE_SIZE, HEAP, 10, 32, &error) == 0);
    rds_testsw = rvm_true;
    char *statics;
    CHECK(rds_load_heap(data_path, whole, &statics, &error) == 0 && error == SUCCESS);
    CHECK(NRegionDefs == 2);
    CHECK(RegionDefs[0].vmaddr == start_address && RegionDefs[0].length == HEAP);
    CHECK(RegionDefs[1].vmaddr == statics && RegionDefs[1].length == RVM_PAGE_SIZE);

    /* What is in memory is in the segment, after a truncation. */
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    char *block = rds_malloc(100, NULL, &error);
    CHECK(block != NULL);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_set_range(&tid, block, 100));
    memset(block, 7, 100);
    WORKS(rvm_end_transaction(&tid, no_flush));
    WORKS(rvm_truncate());
    FILE *file = fopen(data_path, "r");
    static char found[HEAP];
    for (long region = 0; region < NRegionDefs; region++) {
        size_t length = RegionDefs[region].length;
        CHECK(fseek(file, RVM_OFFSET_TO_LENGTH(RegionDefs[region].offset), SEEK_SET) == 0);
        CHECK(fread(found, 1, length, file) == length);
        CHECK(memcmp(found, RegionDefs[region].vmaddr, length) == 0);
    }
    fclose(file);
    CHECK(rds_unload_heap(&error) == 0 && RegionDefs == NULL && NRegionDefs == 0);

    /* Loaded again and released as a segment. */
    CHECK(rds_load_heap(data_path, whole, &statics, &error) == 0 && NRegionDefs == 2);
    CHECK(rds_stop_heap(&error) == 0);
    WORKS(rvm_release_segment(NRegionDefs, &RegionDefs));
    CHECK(RegionDefs == NULL);
    clear_free_lists();
    WORKS(rvm_terminate());
}

static void *twice(void *number)
{
    return (char *)number + (size_t)number;
}

static void threads(void)
{
    /* cthread_fork, cthread_join and LOCK_FREE. */
    CHECK(pthread_create(&rvm_pthreadid, NULL, twice, (void *)21) == 0);
    rvm_join_res = pthread_join(rvm_pthreadid, &rvm_ptstat);
    CHECK(rvm_join_res == 0 && rvm_ptstat == (void *)42);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CHECK(rvm_lock_free(&mutex) == rvm_true && rvm_lock_free(&mutex) == rvm_true);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(rvm_lock_free(&mutex) == rvm_false);
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    CHECK(count == 2);
    set_paths(arguments[1]);
    make_file(data_path, 32 * RVM_PAGE_SIZE);
    create_log(1 << 20);
    RUN(loading);
    RUN(threads);
    return 0;
}
