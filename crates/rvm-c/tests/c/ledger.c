/* A program in the style of Coda's own clients: recoverable globals in the static region, objects with pointers to each
   other in the heap, macros around transactions, blocks freed through an intention list. The arguments are a folder and
   optionally a number of runs; each run is a process of its own that ends without terminating the library.

   Everything it includes and calls is what Coda's headers have. */

#ifdef __cplusplus
extern "C" {
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <rvm/rds.h>
#include <rvm/rvm.h>
#include <rvm/rvm_segment.h>
#include <rvm/rvm_statistics.h>

#ifdef __cplusplus
}
#endif

#define LOG_SIZE (256 * 1024)
#define DATA_SIZE (1024 * 1024)
#define HEAP_ADDR ((char *)0x50000000)
#define CHUNK_SIZE 64
#define NLISTS 16
#define MAGIC 0x1ed6e4

struct entry {
    struct entry *next;
    long amount;
    char text[1];
};

/* What is in the static region. */
struct globals {
    unsigned magic;
    char *heap_addr;
    long n_entries;
    long balance;
    struct entry *entries;
};

struct thread_data {
    rvm_tid_t *tid;
    rvm_tid_t tids;
    intentionList_t list;
};

static char log_dev[MAXPATHLEN], data_dev[MAXPATHLEN];
static rvm_options_t options;
static struct globals *globals;
static struct thread_data self;

static void choke(const char *what, int code)
{
    fprintf(stderr, "%s failed: %d (%s)\n", what, code, rvm_return(code));
    exit(EXIT_FAILURE);
}

#define ASSERT(condition)                                                     \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);   \
            exit(EXIT_FAILURE);                                               \
        }                                                                     \
    } while (0)

static void begin_trans(rvm_mode_t mode)
{
    rvm_return_t ret;
    rvm_init_tid(&self.tids);
    self.tid = &self.tids;
    self.list.table = NULL;
    self.list.count = 0;
    self.list.size = 0;
    ret = rvm_begin_transaction(self.tid, mode);
    if (ret != RVM_SUCCESS)
        choke("rvm_begin_transaction", ret);
}

static void end_trans(rvm_mode_t mode)
{
    rvm_return_t ret = rvm_end_transaction(self.tid, mode);
    if (ret == RVM_SUCCESS && self.list.table != NULL)
        ret = rds_do_free(&self.list, mode);
    if (ret != RVM_SUCCESS)
        choke("rvm_end_transaction", ret);
    self.tid = NULL;
}

static void abort_trans(void)
{
    rvm_return_t ret = rvm_abort_transaction(self.tid);
    if (ret != RVM_SUCCESS)
        choke("rvm_abort_transaction", ret);
    free(self.list.table);
    self.tid = NULL;
}

#define TRANSACTION(operation) \
    begin_trans(restore);      \
    operation                  \
    end_trans(no_flush);

#define REC_OBJECT(object)                                                              \
    do {                                                                                \
        rvm_return_t ret_ = rvm_set_range(self.tid, (char *)&(object), sizeof(object)); \
        if (ret_ != RVM_SUCCESS)                                                        \
            choke("rvm_set_range", ret_);                                               \
    } while (0)

static void *rec_malloc(unsigned long size)
{
    int err;
    void *block = rds_malloc(size, self.tid, &err);
    if (err != SUCCESS)
        choke("rds_malloc", err);
    return block;
}

static void rec_free(void *block)
{
    int err = rds_fake_free((char *)block, &self.list);
    if (err != SUCCESS)
        choke("rds_fake_free", err);
}

static void init_rvm(int brain_wipe)
{
    rvm_return_t ret;
    rvm_init_options(&options);
    options.log_dev = log_dev;
    options.truncate = 0;
    options.flags = RVM_ALL_OPTIMIZATIONS | RVM_MAP_PRIVATE;
    if (brain_wipe) {
        unlink(log_dev);
        options.create_log_file = rvm_true;
        options.create_log_size = RVM_MK_OFFSET(0, LOG_SIZE);
        options.create_log_mode = 0600;
    }
    ret = RVM_INIT(&options);
    if (ret != RVM_SUCCESS)
        choke("RVM_INIT", ret);
}

static void init_rds(int brain_wipe)
{
    rvm_return_t ret;
    rvm_length_t devsize = RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE(DATA_SIZE);
    rvm_length_t static_size = RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(sizeof(struct globals));
    rvm_length_t heap_size = devsize - static_size - RVM_SEGMENT_HDR_SIZE;
    char *static_addr = NULL;

    if (brain_wipe) {
        int fd = open(data_dev, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ASSERT(fd >= 0 && ftruncate(fd, DATA_SIZE) == 0 && close(fd) == 0);
        rds_zap_heap(data_dev, RVM_LENGTH_TO_OFFSET(devsize), HEAP_ADDR, static_size, heap_size,
                     (unsigned long)NLISTS, (unsigned long)CHUNK_SIZE, &ret);
        if (ret != SUCCESS)
            choke("rds_zap_heap", ret);
    }
    rds_load_heap(data_dev, RVM_LENGTH_TO_OFFSET(DATA_SIZE), &static_addr, &ret);
    if (ret != SUCCESS)
        choke("rds_load_heap", ret);
    ASSERT(static_addr == HEAP_ADDR + heap_size);
    globals = (struct globals *)static_addr;
    if (brain_wipe) {
        TRANSACTION(
            REC_OBJECT(*globals);
            memset(globals, 0, sizeof *globals);
            globals->magic = MAGIC;
            globals->heap_addr = HEAP_ADDR;
        )
    }
    ASSERT(globals->magic == MAGIC && globals->heap_addr == HEAP_ADDR);
}

static void add_entry(long amount, const char *text)
{
    struct entry *entry = (struct entry *)rec_malloc(sizeof *entry + strlen(text));
    rvm_set_range(self.tid, entry, sizeof *entry + strlen(text));
    entry->amount = amount;
    strcpy(entry->text, text);
    entry->next = globals->entries;
    REC_OBJECT(*globals);
    globals->entries = entry;
    globals->n_entries++;
    globals->balance += amount;
}

static void drop_last_entry(void)
{
    struct entry *entry = globals->entries;
    REC_OBJECT(*globals);
    globals->entries = entry->next;
    globals->n_entries--;
    globals->balance -= entry->amount;
    rec_free(entry);
}

static void check(void)
{
    long n = 0, balance = 0;
    struct entry *entry;
    for (entry = globals->entries; entry != NULL; entry = entry->next, n++) {
        char text[64];
        snprintf(text, sizeof text, "entry of %ld", entry->amount);
        ASSERT(strncmp(entry->text, text, strlen(text)) == 0);
        balance += entry->amount;
    }
    ASSERT(n == globals->n_entries && balance == globals->balance);
}

static void one_run(int run)
{
    int i, err;
    rds_stats_t stats, after;
    rvm_statistics_t statistics;
    init_rvm(run == 0);
    init_rds(run == 0);
    check();
    ASSERT(globals->n_entries == 20L * run);
    ASSERT(rds_get_stats(&stats) == SUCCESS);
    for (i = 0; i < 30; i++) {
        char text[1000];
        long amount = 100L * run + i;
        memset(text, 'x', sizeof text);
        text[snprintf(text, 64, "entry of %ld ", amount)] = 'x';
        text[40 + 30 * i] = 0;
        begin_trans(restore);
        add_entry(amount, text);
        end_trans(i % 4 ? no_flush : flush);
    }
    /* What an abort undoes: the allocation, too. */
    ASSERT(rds_get_stats(&stats) == SUCCESS);
    begin_trans(restore);
    add_entry(7777, "never");
    drop_last_entry();
    drop_last_entry();
    abort_trans();
    check();
    ASSERT(rds_get_stats(&after) == SUCCESS && memcmp(&stats, &after, sizeof stats) == 0);
    for (i = 0; i < 10; i++) {
        begin_trans(restore);
        drop_last_entry();
        end_trans(no_flush);
    }
    check();
    ASSERT(rds_get_stats(&after) == SUCCESS && after.free == stats.free + 10 && after.freebytes > stats.freebytes);
    /* A block in a transaction of the heap's own, twice freed. */
    char *block = rds_malloc(100, NULL, &err);
    ASSERT(block != NULL && err == SUCCESS && (unsigned long)block % 16 == 0);
    ASSERT(rds_free(block, NULL, &err) == 0 && err == SUCCESS);
    rvm_init_statistics(&statistics);
    ASSERT(RVM_STATISTICS(&statistics) == RVM_SUCCESS && statistics.n_abort == 1);
    if (run % 2)
        ASSERT(rvm_flush() == RVM_SUCCESS);
    else
        ASSERT(rvm_truncate() == RVM_SUCCESS);
    /* Not flushed, so gone. */
    TRANSACTION(add_entry(-1, "lost");)
    fflush(stdout);
    _exit(EXIT_SUCCESS);
}

/* Allocates and frees, each in a transaction of the heap's own. */
static void *busy(void *unused)
{
    int i, err;
    char *blocks[20] = { NULL };
    (void)unused;
    for (i = 0; i < 2000; i++) {
        char **block = &blocks[i * 7 % 20];
        if (*block != NULL)
            ASSERT(rds_free(*block, NULL, &err) == 0 && err == SUCCESS);
        *block = rds_malloc(10 + i % 700, NULL, &err);
        ASSERT(*block != NULL && err == SUCCESS);
    }
    for (i = 0; i < 20; i++)
        ASSERT(rds_free(blocks[i], NULL, &err) == 0);
    return NULL;
}

static void busy_threads(void)
{
    int i;
    rds_stats_t before, after;
    pthread_t threads[4];
    ASSERT(rds_get_stats(&before) == SUCCESS);
    for (i = 0; i < 4; i++)
        ASSERT(pthread_create(&threads[i], NULL, busy, NULL) == 0);
    for (i = 0; i < 4; i++)
        ASSERT(pthread_join(threads[i], NULL) == 0);
    ASSERT(rds_get_stats(&after) == SUCCESS && after.mallocbytes == before.mallocbytes);
    ASSERT(after.malloc == before.malloc + 8000 && after.free == before.free + 8000);
    ASSERT(rds_trace_dump_heap() == SUCCESS);
}

/* What the heap refuses. */
static void refusals(void)
{
    int err;
    char *address;
    rds_stats_t stats;
    intentionList_t list = { 0, 0, NULL };
    ASSERT(rds_malloc(1, NULL, &err) == NULL && err == EHEAP_INIT);
    ASSERT(rds_free(HEAP_ADDR, NULL, &err) == -1 && err == EHEAP_INIT);
    ASSERT(rds_fake_free(HEAP_ADDR, &list) == EHEAP_INIT && rds_get_stats(&stats) == EHEAP_INIT);
    ASSERT(rds_prealloc(1, 1, NULL, &err) == -1 && err == EHEAP_INIT && rds_maxblock(1) == 0);
    ASSERT(rds_stop_heap(&err) == -1 && err == EHEAP_INIT);
    ASSERT(rds_start_heap(HEAP_ADDR, &err) == -1 && err == RVM_ENOT_MAPPED);
    ASSERT(rds_load_heap(data_dev, RVM_LENGTH_TO_OFFSET(0), &address, &err) == -1 && err == RVM_EINIT);
    init_rvm(0);
    init_rds(0);
    check();
    busy_threads();
    ASSERT(rds_start_heap((char *)globals, &err) == -1 && err == EHEAP_VERSION_SKEW);
    ASSERT(rds_malloc(DATA_SIZE, NULL, &err) == NULL && err == ENO_ROOM);
    ASSERT(rds_maxblock(DATA_SIZE) == 0 && rds_maxblock(1000) == 1);
    char *block = rds_malloc(24, NULL, &err), *behind = block + CHUNK_SIZE;
    ASSERT(rds_free(block + 1, NULL, &err) == -1 && err == EBAD_ARGS);
    ASSERT(rds_free((char *)&err, NULL, &err) == -1 && err == EBAD_ARGS);
    ASSERT(rds_fake_free(NULL, &list) == SUCCESS && list.table == NULL);
    ASSERT(rds_fake_free(block, &list) == SUCCESS && list.count == 1 && list.size == STARTSIZE);
    ASSERT(rds_do_free(&list, flush) == SUCCESS && list.table == NULL);
    ASSERT(rds_fake_free(block, &list) == EFREED_TWICE);
    ASSERT(rds_free(block, NULL, &err) == -1 && err == EFREED_TWICE);
    ASSERT(rds_prealloc(300, 8, NULL, &err) == 0 && err == SUCCESS);
    ASSERT(rds_clear_stats(&err) == 0 && rds_malloc(300, NULL, &err) != NULL);
    ASSERT(rds_get_stats(&stats) == SUCCESS && stats.hits == 1 && stats.malloc == 1);
    /* A program that writes past its block. */
    block = rds_malloc(24, NULL, &err);
    memset(block, 'o', CHUNK_SIZE);
    ASSERT(rds_free(block, NULL, &err) == -1 && err == ECORRUPT);
    (void)behind;
    FILE *trace = tmpfile();
    ASSERT(rds_trace_on(trace) == 0 && rds_tracing == 1 && rds_tracing_file == trace);
    rds_malloc(100, NULL, &err);
    RDS_LOG("the program's own line %d\n", 1);
    ASSERT(ftell(trace) > 50 && rds_trace_off() == 0 && rds_tracing == 0);
    ASSERT(rds_unload_heap(&err) == 0 && rds_unload_heap(&err) == -1 && err == EHEAP_INIT);
    ASSERT(rvm_terminate() == RVM_SUCCESS);
    _exit(EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
    int run, status, runs = argc > 2 ? atoi(argv[2]) : 5;
    if (argc < 2)
        return EXIT_FAILURE;
    snprintf(log_dev, sizeof log_dev, "%.4000s/LOG", argv[1]);
    snprintf(data_dev, sizeof data_dev, "%.4000s/DATA", argv[1]);
    for (run = 0; run <= runs; run++) {
        pid_t child = fork();
        if (child == 0) {
            if (run == runs)
                refusals();
            one_run(run);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            choke("a run", run);
    }
    printf("%d runs\n", runs);
    return EXIT_SUCCESS;
}
