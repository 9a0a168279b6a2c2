/*
 * rvm_terminate writes what the log holds into the segments, unless the program wants that only when the log is full: whether the next
 * program has something to recover is what tot_recovery says.
 */
#include "check.h"

#include <rvm/rvm_statistics.h>

static void use(long truncate, rvm_length_t recoveries, int expected)
{
    rvm_options_t options;
    rvm_region_t region;
    rvm_statistics_t statistics;
    rvm_tid_t tid;
    rvm_init_options(&options);
    rvm_init_region(&region);
    rvm_init_statistics(&statistics);
    rvm_init_tid(&tid);
    options.log_dev = log_path;
    options.truncate = truncate;
    WORKS(RVM_INIT(&options));
    WORKS(RVM_STATISTICS(&statistics));
    CHECK(statistics.tot_recovery == recoveries);
    region.data_dev = data_path;
    region.length = RVM_PAGE_SIZE;
    WORKS(rvm_map(&region, NULL));
    int *number = (int *)region.vmaddr;
    CHECK(*number == expected);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_set_range(&tid, number, sizeof *number));
    ++*number;
    /* Termination flushes it. */
    WORKS(rvm_end_transaction(&tid, no_flush));
    WORKS(rvm_terminate());
    CHECK(*number == expected + 1);
}

static void at_the_first_start(void)
{
    use(TRUNCATE, 0, 0);
}

static void after_a_truncation(void)
{
    use(0, 0, 1);
}

static void after_none(void)
{
    use(0, 1, 2);
}

static void after_none_again(void)
{
    use(TRUNCATE, 1, 3);
}

static void after_another_truncation(void)
{
    use(TRUNCATE, 0, 4);
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    CHECK(count == 2);
    set_paths(arguments[1]);
    make_file(data_path, RVM_PAGE_SIZE);
    create_log(1 << 16);
    RUN(at_the_first_start);
    RUN(after_a_truncation);
    RUN(after_none);
    RUN(after_none_again);
    RUN(after_another_truncation);
    return 0;
}
