/*
 * A log that was copied with its segments, whose paths it names: rvm_relocate has it recovered into the copies.
 */
#include "check.h"

static char original[MAXPATHLEN / 2], copy[MAXPATHLEN / 2];

static rvm_region_t *mapped(void)
{
    rvm_region_t *region = rvm_malloc_region();
    region->data_dev = data_path;
    region->length = RVM_PAGE_SIZE;
    WORKS(rvm_map(region, NULL));
    return region;
}

static int first_byte(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, &byte, 1) == 1 && close(fd) == 0);
    return byte;
}

static void committing(void)
{
    set_paths(original);
    start();
    rvm_region_t *region = mapped();
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_set_range(&tid, region->vmaddr, 1));
    *region->vmaddr = 7;
    WORKS(rvm_end_transaction(&tid, flush));
    /* It ends as if killed: the commit is in the log alone. */
}

static void recovering_the_copy(void)
{
    set_paths(copy);
    RETURNS(RVM_EOPTIONS, rvm_relocate(NULL, copy));
    RETURNS(RVM_EIO, rvm_relocate(original, "/nowhere/at/all"));
    WORKS(rvm_relocate(original, copy));
    start();
    RETURNS(RVM_EINIT, rvm_relocate(original, copy));
    CHECK(first_byte(data_path) == 7 && *mapped()->vmaddr == 7);
    WORKS(rvm_terminate());
    RETURNS(RVM_EINIT, rvm_relocate(original, copy));
    set_paths(original);
    CHECK(first_byte(data_path) == 0);
}

static void recovering_the_original(void)
{
    set_paths(original);
    start();
    CHECK(*mapped()->vmaddr == 7);
    WORKS(rvm_terminate());
}

int main(int count, char **arguments)
{
    char command[2 * MAXPATHLEN];
    setvbuf(stdout, NULL, _IONBF, 0);
    CHECK(count == 2);
    snprintf(original, sizeof original, "%s/a", arguments[1]);
    snprintf(copy, sizeof copy, "%s/b", arguments[1]);
    CHECK(mkdir(original, 0700) == 0);
    set_paths(original);
    make_file(data_path, RVM_PAGE_SIZE);
    create_log(1 << 16);
    RUN(committing);
    snprintf(command, sizeof command, "cp -r %s %s", original, copy);
    CHECK(system(command) == 0);
    RUN(recovering_the_copy);
    RUN(recovering_the_original);
    return 0;
}
