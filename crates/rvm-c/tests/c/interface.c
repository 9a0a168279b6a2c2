/* Every function of rvm.h, rvm_segment.h and rvm_statistics.h, every mode, every code that can be provoked, threads, and
   crashes. The argument is an empty folder. */
#include "check.h"
#include <pthread.h>
#include <rvm/rvm_segment.h>
#include <rvm/rvm_statistics.h>
#include <sys/mman.h>

#define PAGE 4096UL

static void before_the_start(void)
{
    rvm_options_t *options = rvm_malloc_options();
    rvm_region_t *region = rvm_malloc_region();
    rvm_tid_t *tid = rvm_malloc_tid();
    rvm_statistics_t statistics;
    char byte = 0;
    rvm_init_statistics(&statistics);
    RETURNS(RVM_EINIT, rvm_begin_transaction(NULL, restore));
    RETURNS(RVM_EINIT, rvm_begin_transaction(tid, restore));
    RETURNS(RVM_EINIT, rvm_set_range(tid, &byte, 1));
    RETURNS(RVM_EINIT, rvm_modify_bytes(tid, &byte, &byte, 1));
    RETURNS(RVM_EINIT, rvm_end_transaction(tid, flush));
    RETURNS(RVM_EINIT, rvm_abort_transaction(tid));
    RETURNS(RVM_EINIT, rvm_map(region, NULL));
    RETURNS(RVM_EINIT, rvm_unmap(region));
    RETURNS(RVM_EINIT, rvm_flush());
    RETURNS(RVM_EINIT, rvm_truncate());
    RETURNS(RVM_EINIT, rvm_set_options(options));
    RETURNS(RVM_EINIT, rvm_query(options, NULL));
    RETURNS(RVM_EINIT, RVM_STATISTICS(&statistics));
    RETURNS(RVM_EINIT, rvm_terminate());
    RETURNS(RVM_EVERSION_SKEW, rvm_initialize("RVM Interface Version 1.2", options));
    RETURNS(RVM_EOPTIONS, RVM_INIT((rvm_options_t *)region));

    /* Without a log. */
    WORKS(RVM_INIT(NULL));
    WORKS(RVM_INIT(NULL));
    RETURNS(RVM_ELOG, rvm_begin_transaction(tid, restore));
    RETURNS(RVM_ELOG, rvm_flush());
    RETURNS(RVM_ELOG, rvm_map(region, NULL));
    RETURNS(RVM_ELOG, RVM_STATISTICS(&statistics));
    options->log_dev = data_path;
    errno = 0;
    RETURNS(RVM_EIO, rvm_set_options(options));
    CHECK(errno == ENOENT && strlen(rvm_errmsg) > 0);
    make_file(data_path, 100000);
    RETURNS(RVM_ELOG_VERSION_SKEW, rvm_set_options(options));
    char *longest = malloc(MAXPATHLEN + 1);
    memset(longest, 'x', MAXPATHLEN);
    longest[MAXPATHLEN] = 0;
    options->log_dev = longest;
    RETURNS(RVM_ENAME_TOO_LONG, rvm_set_options(options));
    WORKS(rvm_terminate());
    WORKS(rvm_terminate());
    RETURNS(RVM_EINIT, RVM_INIT(NULL));
}

static void names_and_records(void)
{
    CHECK(strcmp(rvm_return(RVM_SUCCESS), "RVM_SUCCESS") == 0);
    CHECK(strcmp(rvm_return(RVM_EVM_OVERLAP), "RVM_EVM_OVERLAP") == 0);
    CHECK(strlen(rvm_return(203)) > 0 && strlen(rvm_return(-7)) > 0);
    CHECK(strcmp(rvm_mode(no_restore), "no_restore") == 0);
    CHECK(strcmp(rvm_type(rvm_tid_id), "rvm_tid_t") == 0);

    rvm_options_t options, *copy;
    rvm_init_options(&options);
    CHECK(options.struct_id == rvm_options_id && options.from_heap == rvm_false);
    CHECK(options.truncate == TRUNCATE && options.recovery_buf_len == RECOVERY_BUF_LEN);
    CHECK(options.flush_buf_len == FLUSH_BUF_LEN && options.max_read_len == MAX_READ_LEN);
    options.log_dev = log_path;
    options.n_uncommit = 1;
    options.tid_array = rvm_malloc_tid();
    copy = rvm_copy_options(&options);
    CHECK(copy->from_heap == rvm_true && copy->log_dev == log_path);
    CHECK(copy->tid_array != options.tid_array && copy->tid_array->struct_id == rvm_tid_id);
    rvm_free_options(copy);
    rvm_free_options(&options);
    CHECK(options.struct_id == rvm_options_id);
    CHECK(rvm_copy_region((rvm_region_t *)&options) == NULL);
    rvm_free_tid(NULL);

    rvm_offset_t most = RVM_OFFSET_INITIALIZER(0, ~0UL), one = RVM_LENGTH_TO_OFFSET(1), sum, page;
    sum = RVM_ADD_OFFSETS(most, one);
    CHECK(RVM_OFFSET_HIGH_BITS_TO_LENGTH(sum) == 1 && RVM_OFFSET_TO_LENGTH(sum) == 0);
    CHECK(RVM_OFFSET_LSS(most, sum) && RVM_OFFSET_GTR(sum, most) && RVM_OFFSET_LEQ(most, most));
    CHECK(RVM_OFFSET_GEQ(sum, sum) && !RVM_OFFSET_EQL(sum, most));
    sum = RVM_SUB_LENGTH_FROM_OFFSET(sum, 1);
    CHECK(RVM_OFFSET_EQL(sum, most));
    sum = RVM_SUB_OFFSETS(sum, most);
    CHECK(RVM_OFFSET_EQL_ZERO(sum));
    page = RVM_ADD_LENGTH_TO_OFFSET(one, PAGE);
    page = RVM_ROUND_OFFSET_UP_TO_PAGE_SIZE(page);
    CHECK(RVM_OFFSET_TO_LENGTH(page) == 2 * PAGE);
    page = RVM_SUB_LENGTH_FROM_OFFSET(page, 1);
    page = RVM_ROUND_OFFSET_DOWN_TO_PAGE_SIZE(page);
    CHECK(RVM_OFFSET_TO_LENGTH(page) == PAGE);
    RVM_ZERO_OFFSET(page);
    CHECK(RVM_OFFSET_EQL_ZERO(page));
    CHECK(RVM_PAGE_SIZE == PAGE && RVM_ROUND_LENGTH_UP_TO_PAGE_SIZE(1) == PAGE);
    CHECK(RVM_ROUND_LENGTH_DOWN_TO_PAGE_SIZE(PAGE + 1) == PAGE);
    CHECK(RVM_ROUND_ADDR_UP_TO_PAGE_SIZE((char *)PAGE + 1) == (char *)(2 * PAGE));
    CHECK(RVM_ROUND_ADDR_DOWN_TO_PAGE_SIZE((char *)PAGE + 1) == (char *)PAGE);
    CHECK(RVM_SUB_LENGTH_FROM_ADDR(RVM_ADD_LENGTH_TO_ADDR(5, (char *)PAGE), 5) == (char *)PAGE);
}

static void creating_a_log(void)
{
    struct stat file;
    rvm_options_t options;
    rvm_offset_t length = RVM_MK_OFFSET(0, 1 << 20), huge = RVM_MK_OFFSET(1, 0);
    create_log(1 << 20);
    CHECK(stat(log_path, &file) == 0 && (file.st_mode & 0777) == 0640 && file.st_size >= 1 << 20);
    rvm_init_options(&options);
    RETURNS(RVM_EOPTIONS, rvm_create_log(&options, &length, 0600));
    RETURNS(RVM_EOPTIONS, rvm_create_log(NULL, &length, 0600));
    options.log_dev = log_path;
    RETURNS(RVM_EOPTIONS, rvm_create_log(&options, NULL, 0600));
    RETURNS(RVM_ETOO_BIG, rvm_create_log(&options, &huge, 0600));
    errno = 0;
    RETURNS(RVM_EIO, rvm_create_log(&options, &length, 0600));
    CHECK(errno == EEXIST);
    make_file(data_path, 16 * PAGE);
}

static void mapping(void)
{
    rvm_region_t region, other;
    start();
    rvm_init_region(&region);
    RETURNS(RVM_EREGION, rvm_map(NULL, NULL));
    RETURNS(RVM_EREGION, rvm_map((rvm_region_t *)rvm_malloc_tid(), NULL));
    RETURNS(RVM_EREGION, rvm_map(&region, NULL));
    region.data_dev = "/does/not/exist";
    errno = 0;
    RETURNS(RVM_EIO, rvm_map(&region, NULL));
    CHECK(errno == ENOENT);
    region.data_dev = data_path;
    region.offset = RVM_MK_OFFSET(0, 16 * PAGE);
    RETURNS(RVM_EOFFSET, rvm_map(&region, NULL));
    region.offset = RVM_MK_OFFSET(1, 0);
    RETURNS(RVM_EOFFSET, rvm_map(&region, NULL));
    region.offset = RVM_MK_OFFSET(0, PAGE + 5);
    region.length = 2 * PAGE;
    region.vmaddr = (char *)1;
    RETURNS(RVM_ERANGE, rvm_map(&region, NULL));
    region.vmaddr = NULL;
    rvm_options_t *options = rvm_malloc_options();
    options->pager = "pager";
    RETURNS(RVM_EPAGER, rvm_map(&region, options));
    options->pager = NULL;
    options->truncate = 101;
    RETURNS(RVM_EOPTIONS, rvm_map(&region, options));
    options->truncate = 30;
    options->flags = RVM_ALL_OPTIMIZATIONS | RVM_MAP_PRIVATE;
    WORKS(rvm_map(&region, options));
    CHECK(region.vmaddr != NULL && RVM_OFFSET_TO_LENGTH(region.offset) == PAGE && region.length == 3 * PAGE);

    /* The same part of the segment, and the same memory. */
    rvm_init_region(&other);
    other.data_dev = data_path;
    other.offset = RVM_MK_OFFSET(0, 3 * PAGE);
    RETURNS(RVM_EOVERLAP, rvm_map(&other, NULL));
    other.offset = RVM_MK_OFFSET(0, 8 * PAGE);
    other.vmaddr = region.vmaddr + 2 * PAGE;
    other.length = PAGE;
    RETURNS(RVM_EVM_OVERLAP, rvm_map(&other, NULL));

    /* Memory that the program has: an address it chooses. */
    char *mine = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    other.vmaddr = mine;
    other.length = 0;
    other.dev_length = RVM_MK_OFFSET(0, 10 * PAGE);
    WORKS(rvm_map(&other, NULL));
    CHECK(other.vmaddr == mine && other.length == 2 * PAGE);

    /* Part of a region, none, and one with a transaction. */
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_set_range(&tid, mine, 1));
    RETURNS(RVM_EUNCOMMIT, rvm_unmap(&other));
    WORKS(rvm_end_transaction(&tid, no_flush));
    other.length = PAGE;
    RETURNS(RVM_ERANGE, rvm_unmap(&other));
    other.length = 3 * PAGE;
    RETURNS(RVM_ENOT_MAPPED, rvm_unmap(&other));
    other.length = 2 * PAGE;
    strcpy(mine, "stays");
    WORKS(rvm_unmap(&other));
    CHECK(strcmp(mine, "stays") == 0);
    RETURNS(RVM_ENOT_MAPPED, rvm_unmap(&other));
    RETURNS(RVM_EREGION, rvm_unmap(NULL));
    /* What was not in a transaction is not there when it is mapped again. */
    WORKS(rvm_map(&other, NULL));
    CHECK(other.vmaddr == mine && mine[0] == 0);

    char name[MAXPATHLEN + 1];
    rvm_free_options(options);
    options = rvm_malloc_options();
    options->log_dev = name;
    WORKS(rvm_query(options, NULL));
    CHECK(strcmp(name, log_path) == 0 && options->truncate == TRUNCATE && options->n_uncommit == 0);
    CHECK(options->flags == (RVM_ALL_OPTIMIZATIONS | RVM_MAP_PRIVATE));
    RETURNS(RVM_EOPTIONS, rvm_query(NULL, NULL));
    RETURNS(RVM_EREGION, rvm_query(options, (rvm_region_t *)&tid));
    other.vmaddr = name;
    RETURNS(RVM_ENOT_MAPPED, rvm_query(options, &other));
    options->log_dev = data_path;
    RETURNS(RVM_ELOG, rvm_set_options(options));
    RETURNS(RVM_EOPTIONS, rvm_set_options(NULL));
    WORKS(rvm_terminate());
    CHECK(mine[0] == 0);
    RETURNS(RVM_EINIT, rvm_begin_transaction(&tid, restore));
}

static void transactions(void)
{
    start();
    char *memory = map_at(0, 4 * PAGE, NULL);
    rvm_tid_t *tid = rvm_malloc_tid(), *second = rvm_malloc_tid(), *copy;

    RETURNS(RVM_ETID, rvm_begin_transaction(NULL, restore));
    RETURNS(RVM_ETID, rvm_begin_transaction((rvm_tid_t *)rvm_malloc_region(), restore));
    RETURNS(RVM_EMODE, rvm_begin_transaction(tid, flush));
    RETURNS(RVM_EMODE, rvm_begin_transaction(tid, (rvm_mode_t)123));
    RETURNS(RVM_ETID, rvm_set_range(tid, memory, 1));
    RETURNS(RVM_ETID, rvm_end_transaction(tid, flush));
    RETURNS(RVM_ETID, rvm_abort_transaction(tid));

    /* Committed durably. */
    WORKS(rvm_begin_transaction(tid, restore));
    CHECK(tid->uname.tv_sec > 0);
    RETURNS(RVM_ENOT_MAPPED, rvm_set_range(tid, memory + 4 * PAGE - 1, 2));
    RETURNS(RVM_ENOT_MAPPED, rvm_set_range(tid, &tid, 8));
    RETURNS(RVM_ENOT_MAPPED, rvm_modify_bytes(tid, memory + 4 * PAGE, "x", 1));
    RETURNS(RVM_ESRC, rvm_modify_bytes(tid, memory, NULL, 1));
    WORKS(rvm_set_range(tid, memory, 0));
    WORKS(rvm_set_range(tid, memory, 16));
    strcpy(memory, "flushed");
    RETURNS(RVM_EMODE, rvm_end_transaction(tid, restore));
    WORKS(rvm_end_transaction(tid, flush));
    RETURNS(RVM_ETID, rvm_end_transaction(tid, flush));

    /* Aborted, with ranges that overlap; the copy of a record names the same transaction. */
    WORKS(rvm_begin_transaction(tid, restore));
    WORKS(rvm_modify_bytes(tid, memory, "lost", 5));
    WORKS(rvm_set_range(tid, memory + 2, 100));
    memset(memory + 2, 'z', 100);
    WORKS(rvm_modify_bytes(tid, memory + 50, memory + 49, 100));
    copy = rvm_copy_tid(tid);
    WORKS(rvm_abort_transaction(copy));
    CHECK(strcmp(memory, "flushed") == 0 && memory[101] == 0 && memory[149] == 0);
    RETURNS(RVM_ETID, rvm_abort_transaction(tid));

    /* Aborted without restore: memory keeps the change, the log does not. */
    WORKS(rvm_begin_transaction(tid, no_restore));
    WORKS(rvm_modify_bytes(tid, memory + 200, "kept", 5));
    WORKS(rvm_abort_transaction(tid));
    CHECK(strcmp(memory + 200, "kept") == 0);

    /* Two at once, in three modes; the first is neither committed nor aborted. */
    WORKS(rvm_begin_transaction(tid, restore));
    WORKS(rvm_begin_transaction(second, no_restore));
    CHECK(memcmp(&tid->uname, &second->uname, sizeof tid->uname) != 0);
    WORKS(rvm_modify_bytes(tid, memory + 300, "open", 5));
    WORKS(rvm_modify_bytes(second, memory + 400, "spooled", 8));
    rvm_options_t options;
    rvm_region_t region;
    rvm_init_options(&options);
    rvm_init_region(&region);
    region.vmaddr = memory;
    region.length = 4 * PAGE;
    WORKS(rvm_query(&options, &region));
    CHECK(options.n_uncommit == 2 && options.log_empty == rvm_false);
    CHECK(memcmp(&options.tid_array[0].uname, &tid->uname, sizeof tid->uname) == 0);
    WORKS(rvm_end_transaction(second, no_flush));
    WORKS(rvm_query(&options, NULL));
    CHECK(options.n_uncommit == 1);
    /* A record of the array names the transaction, too. */
    WORKS(rvm_set_range(&options.tid_array[0], memory + 310, 5));
    RETURNS(RVM_EUNCOMMIT, rvm_terminate());

    rvm_statistics_t statistics;
    rvm_init_statistics(&statistics);
    RETURNS(RVM_ESTAT_VERSION_SKEW, rvm_statistics("1", &statistics));
    RETURNS(RVM_ESTATISTICS, RVM_STATISTICS(NULL));
    RETURNS(RVM_ESTATISTICS, RVM_STATISTICS((rvm_statistics_t *)tid));
    WORKS(RVM_STATISTICS(&statistics));
    CHECK(statistics.n_flush_commit == 1 && statistics.n_no_flush_commit == 1 && statistics.n_abort == 2);
    CHECK(statistics.n_uncommit == 1 && statistics.n_no_flush == 1 && statistics.from_heap == rvm_false);
    CHECK(RVM_OFFSET_TO_LENGTH(statistics.no_flush_length) == 8 && statistics.range_lengths[3] == 1);
    WORKS(rvm_flush());
    WORKS(RVM_STATISTICS(&statistics));
    CHECK(statistics.n_rvm_flush == 1 && statistics.n_no_flush == 0 && statistics.log_dev_max < 100);
    WORKS(rvm_truncate());
    WORKS(RVM_STATISTICS(&statistics));
    CHECK(statistics.n_flush_commit == 0 && statistics.tot_flush_commit == 1 && statistics.tot_rvm_truncate == 1);
    CHECK(statistics.tot_abort == 2 && statistics.tot_rvm_flush == 1);
    rvm_statistics_t *copied = rvm_copy_statistics(&statistics);
    FILE *out = tmpfile();
    WORKS(rvm_print_statistics(copied, out));
    CHECK(ftell(out) > 100);
    fclose(out);
    rvm_free_statistics(copied);
    WORKS(rvm_query(&options, NULL));
    CHECK(options.log_empty == rvm_true);
    free(options.tid_array);

    /* After the truncation: once durable, once not, and then the process ends. */
    WORKS(rvm_begin_transaction(second, no_restore));
    WORKS(rvm_modify_bytes(second, memory + 3 * PAGE, "logged", 7));
    WORKS(rvm_end_transaction(second, flush));
    WORKS(rvm_begin_transaction(second, restore));
    WORKS(rvm_modify_bytes(second, memory + 600, "forgotten", 10));
    WORKS(rvm_end_transaction(second, no_flush));
}

static void after_the_crash(void)
{
    rvm_statistics_t statistics;
    start();
    char *memory = map_at(0, 0, NULL);
    CHECK(strcmp(memory, "flushed") == 0 && strcmp(memory + 400, "spooled") == 0);
    CHECK(strcmp(memory + 3 * PAGE, "logged") == 0);
    CHECK(memory[200] == 0 && memory[300] == 0 && memory[600] == 0);
    rvm_init_statistics(&statistics);
    WORKS(RVM_STATISTICS(&statistics));
    CHECK(statistics.tot_recovery == 1);
    WORKS(rvm_terminate());
    CHECK(strcmp(memory, "flushed") == 0);
}

/* Threads with a counter each. A counter is told to the parent once it is durable. */
#define THREADS 4
static int told;
static char *counters;

static void *count_up(void *argument)
{
    unsigned long thread = (unsigned long)argument, value;
    volatile unsigned long *counter = (unsigned long *)(counters + 64 * thread);
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    for (;;) {
        WORKS(rvm_begin_transaction(&tid, *counter % 2 ? restore : no_restore));
        WORKS(rvm_set_range(&tid, (void *)counter, sizeof *counter));
        value = ++*counter;
        if (value % 3 == 0) {
            WORKS(rvm_end_transaction(&tid, no_flush));
            WORKS(rvm_flush());
        } else {
            WORKS(rvm_end_transaction(&tid, flush));
        }
        unsigned long message[2] = { thread, value };
        CHECK(write(told, message, sizeof message) == sizeof message);
    }
    return NULL;
}

static void count_until_killed(void)
{
    pthread_t threads[THREADS];
    start();
    counters = map_at(0, 0, NULL);
    for (unsigned long thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, count_up, (void *)thread) == 0);
    pause();
}

static unsigned long acknowledged[THREADS];

static void counters_are_there(void)
{
    start();
    counters = map_at(0, 0, NULL);
    for (unsigned long thread = 0; thread < THREADS; thread++) {
        unsigned long found = *(unsigned long *)(counters + 64 * thread);
        /* The last may have been durable before it was told. */
        CHECK(found == acknowledged[thread] || found == acknowledged[thread] + 1);
    }
    WORKS(rvm_terminate());
}

static void killed_threads(void)
{
    make_file(data_path, PAGE);
    create_log(16384);
    for (int round = 0; round < 6; round++) {
        int ends[2];
        unsigned long message[2], before = acknowledged[0];
        CHECK(pipe(ends) == 0);
        told = ends[1];
        pid_t child = fork();
        if (child == 0)
            count_until_killed();
        close(ends[1]);
        for (int count = 0; read(ends[0], message, sizeof message) == sizeof message;) {
            /* One that was counted in the round before and not told. */
            CHECK(message[1] > acknowledged[message[0]] && message[1] <= acknowledged[message[0]] + 2);
            acknowledged[message[0]] = message[1];
            if (++count == 150 + 70 * round)
                kill(child, SIGKILL);
        }
        close(ends[0]);
        CHECK(waitpid(child, NULL, 0) == child && acknowledged[0] > before);
        CHECK(ended(counters_are_there) == 0);
    }
}

static void a_small_log(void)
{
    make_file(data_path, 64 * PAGE);
    create_log(8192);
    start();
    char *memory = map_at(0, 0, NULL);
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_modify_bytes(&tid, memory, "small", 6));
    RETURNS(RVM_ETOO_BIG, rvm_set_range(&tid, memory + PAGE, 8 * PAGE));
    WORKS(rvm_end_transaction(&tid, flush));
    /* Many times what the log takes: it truncates itself. */
    for (int i = 0; i < 100; i++) {
        WORKS(rvm_begin_transaction(&tid, no_restore));
        WORKS(rvm_set_range(&tid, memory + 8 + 1000 * i, 1000));
        memset(memory + 8 + 1000 * i, i, 1000);
        WORKS(rvm_end_transaction(&tid, no_flush));
    }
    rvm_statistics_t statistics;
    rvm_init_statistics(&statistics);
    WORKS(RVM_STATISTICS(&statistics));
    CHECK(statistics.tot_async_truncation > 5);
    WORKS(rvm_flush());
}

static void the_small_log_kept_all(void)
{
    start();
    char *memory = map_at(0, 0, NULL);
    CHECK(strcmp(memory, "small") == 0);
    for (int i = 0; i < 100000; i++)
        CHECK(memory[8 + i] == i / 1000);
}

static void log_in_use(void)
{
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        start();
        CHECK(write(ends[1], "", 1) == 1);
        pause();
    }
    CHECK(read(ends[0], &byte, 1) == 1);
    rvm_options_t options;
    rvm_init_options(&options);
    options.log_dev = log_path;
    RETURNS(RVM_ELOG, RVM_INIT(&options));
    CHECK(errno == EBUSY);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    WORKS(RVM_INIT(&options));
}

/* The log's descriptor becomes one that cannot be written. */
static void a_failing_log(void)
{
    start();
    char *memory = map_at(0, 0, NULL), link[64], path[MAXPATHLEN + 1];
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_modify_bytes(&tid, memory, "early", 6));
    WORKS(rvm_end_transaction(&tid, flush));
    int broken = open("/dev/null", O_RDONLY), found = 0;
    for (int fd = 3; fd < 50; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, MAXPATHLEN);
        path[length < 0 ? 0 : length] = 0;
        if (strcmp(path, log_path) == 0)
            found += dup2(broken, fd) == fd;
    }
    CHECK(found > 0);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_modify_bytes(&tid, memory, "late!", 6));
    errno = 0;
    RETURNS(RVM_EIO, rvm_end_transaction(&tid, flush));
    CHECK(errno == EBADF && strlen(rvm_errmsg) > 0);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_modify_bytes(&tid, memory, "never", 6));
    RETURNS(RVM_ETERMINATED, rvm_end_transaction(&tid, flush));
    RETURNS(RVM_ETERMINATED, rvm_flush());
    RETURNS(RVM_ETERMINATED, rvm_truncate());
}

static void the_failing_log_kept_what_it_had(void)
{
    start();
    CHECK(strcmp(map_at(0, 0, NULL), "early") == 0);
}

static void segments(void)
{
    char *base = (char *)0x50000000;
    rvm_offset_t whole = RVM_MK_OFFSET(0, 0);
    rvm_region_def_t regions[2], *loaded;
    unsigned long count;
    RVM_INIT_REGION(regions[0], whole, 2 * PAGE, base);
    RVM_INIT_REGION(regions[1], whole, PAGE, base + PAGE);
    RETURNS(RVM_EINIT, rvm_create_segment(data_path, whole, NULL, 2, regions));
    make_file(data_path, 6 * PAGE);
    create_log(1 << 16);
    start();
    RETURNS(RVM_ESEGMENT_HDR, rvm_load_segment(data_path, whole, NULL, &count, &loaded));
    RETURNS(RVM_EVM_OVERLAP, rvm_create_segment(data_path, whole, NULL, 2, regions));
    regions[1].vmaddr = NULL;
    regions[1].length = PAGE + 1;
    RETURNS(RVM_ERANGE, rvm_create_segment(data_path, whole, NULL, 2, regions));
    regions[1].length = 9 * PAGE;
    RETURNS(RVM_EOFFSET, rvm_create_segment(data_path, whole, NULL, 2, regions));
    RETURNS(RVM_EREGION_DEF, rvm_create_segment(data_path, whole, NULL, 0, regions));
    RETURNS(RVM_ENO_MEMORY, rvm_create_segment(data_path, whole, NULL, 1000, calloc(1000, sizeof *regions)));
    regions[1].length = PAGE;
    WORKS(rvm_create_segment(data_path, whole, NULL, 2, regions));
    CHECK(RVM_OFFSET_TO_LENGTH(regions[0].offset) == RVM_SEGMENT_HDR_SIZE);

    char *taken = mmap(base + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    RETURNS(RVM_ERANGE, rvm_load_segment(data_path, whole, NULL, &count, &loaded));
    CHECK(munmap(taken, PAGE) == 0);
    WORKS(rvm_load_segment(data_path, whole, NULL, &count, &loaded));
    CHECK(count == 2 && loaded[0].vmaddr == base && loaded[1].vmaddr != NULL && loaded[1].length == PAGE);
    RETURNS(RVM_EVM_OVERLAP, rvm_load_segment(data_path, whole, NULL, &count, &(rvm_region_def_t *){ 0 }));
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_modify_bytes(&tid, loaded[1].vmaddr, "static", 7));
    WORKS(rvm_end_transaction(&tid, flush));
    WORKS(rvm_release_segment(count, &loaded));
    CHECK(loaded == NULL);
    RETURNS(RVM_EREGION_DEF, rvm_release_segment(count, &loaded));
    WORKS(rvm_load_segment(data_path, whole, NULL, &count, &loaded));
    CHECK(strcmp(loaded[1].vmaddr, "static") == 0);
    WORKS(rvm_release_segment(count, &loaded));

    /* A damaged header. */
    int fd = open(data_path, O_WRONLY);
    CHECK(pwrite(fd, "x", 1, 30) == 1);
    RETURNS(RVM_ESEGMENT_HDR, rvm_load_segment(data_path, whole, NULL, &count, &loaded));
    CHECK(pwrite(fd, "\2", 1, 8) == 1);
    RETURNS(RVM_EVERSION_SKEW, rvm_load_segment(data_path, whole, NULL, &count, &loaded));
}

/* The library runs before there is a log; names are relative. */
extern long rvm_no_yield;

static void a_log_created_later(void)
{
    rvm_options_t *options = rvm_malloc_options();
    rvm_region_t *region = rvm_malloc_region();
    rvm_tid_t *tid = rvm_malloc_tid();
    rvm_offset_t length = RVM_MK_OFFSET(0, 4096);
    char *slash = strrchr(log_path, '/');
    *slash = 0;
    CHECK(chdir(log_path) == 0);
    make_file("late.data", PAGE);
    rvm_no_yield = 1;
    WORKS(rvm_initialize(RVM_VERSION, NULL));
    options->log_dev = "late.log";
    options->truncate = 30;
    options->flags |= RVM_ALL_OPTIMIZATIONS;
    WORKS(rvm_create_log(options, &length, 0644));
    WORKS(rvm_set_options(options));
    options->truncate = 60;
    WORKS(rvm_set_options(options));
    region->data_dev = "late.data";
    WORKS(rvm_map(region, NULL));
    CHECK(region->length == PAGE);
    WORKS(rvm_begin_transaction(tid, restore));
    WORKS(rvm_set_range(tid, region->vmaddr, 100));
    memset(region->vmaddr, 7, 100);
    WORKS(rvm_end_transaction(tid, flush));
    options->log_dev = NULL;
    WORKS(rvm_query(options, NULL));
    CHECK(options->truncate == 30 && options->log_empty == rvm_false);
    WORKS(rvm_truncate());
    FILE *file = fopen("late.data", "r");
    char found[PAGE];
    CHECK(fread(found, 1, PAGE, file) == PAGE && memcmp(found, region->vmaddr, PAGE) == 0 && found[99] == 7);
    WORKS(rvm_unmap(region));
    WORKS(rvm_terminate());
    RETURNS(RVM_EINIT, RVM_INIT(NULL));
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    CHECK(count == 2);
    set_paths(arguments[1]);
    RUN(before_the_start);
    RUN(names_and_records);
    RUN(creating_a_log);
    RUN(mapping);
    RUN(transactions);
    RUN(after_the_crash);
    RUN(log_in_use);
    RUN(a_failing_log);
    RUN(the_failing_log_kept_what_it_had);
    RUN(a_small_log);
    RUN(the_small_log_kept_all);
    RUN(killed_threads);
    RUN(segments);
    RUN(a_log_created_later);
    return 0;
}
