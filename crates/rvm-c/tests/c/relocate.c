/*
 * A log that was copied with its segments, whose paths it names: rvm_relocate has it recovered into the copies.
 */
#include "check.h"

static char original[MAXPATHLEN / 2], copy[MAXPATHLEN / 2], second[MAXPATHLEN / 2], within[MAXPATHLEN / 2];
static char link_to_original[MAXPATHLEN / 2];

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

/* Maps the segment and ends as if killed: the commit is in the log alone. */
static void commit(char byte)
{
    rvm_region_t *region = mapped();
    rvm_tid_t tid;
    rvm_init_tid(&tid);
    WORKS(rvm_begin_transaction(&tid, restore));
    WORKS(rvm_set_range(&tid, region->vmaddr, 1));
    *region->vmaddr = byte;
    WORKS(rvm_end_transaction(&tid, flush));
}

static void committing(void)
{
    set_paths(original);
    start();
    commit(7);
}

static void recovering_the_copy(void)
{
    set_paths(copy);
    RETURNS(RVM_EOPTIONS, rvm_relocate(NULL, copy));
    RETURNS(RVM_EOPTIONS, rvm_relocate("a", copy));
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

/* What the log names is in none of the folders that moved: it would be recovered into the original. */
static void naming_another_folder(void)
{
    rvm_options_t options;
    set_paths(second);
    WORKS(rvm_relocate("/nowhere/at/all", second));
    rvm_init_options(&options);
    options.log_dev = log_path;
    RETURNS(RVM_EOPTIONS, RVM_INIT(&options));
    CHECK(first_byte(data_path) == 0);
    set_paths(original);
    CHECK(first_byte(data_path) == 0);
}

/* The log has the name without links. */
static void naming_the_original_by_a_link(void)
{
    set_paths(second);
    WORKS(rvm_relocate(link_to_original, second));
    start();
    CHECK(first_byte(data_path) == 7);
    set_paths(original);
    CHECK(first_byte(data_path) == 0);
}

/* The program names the copy, and so does the log after that. */
static void copying_into_the_original(void)
{
    set_paths(within);
    WORKS(rvm_relocate(original, within));
    start();
    CHECK(first_byte(data_path) == 7);
    commit(9);
}

static void recovering_that_again(void)
{
    set_paths(within);
    WORKS(rvm_relocate(original, within));
    start();
    CHECK(first_byte(data_path) == 9);
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

static void copy_folder(const char *from, const char *to)
{
    char command[2 * MAXPATHLEN];
    snprintf(command, sizeof command, "cp -r %s %s", from, to);
    CHECK(system(command) == 0);
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    CHECK(count == 2);
    snprintf(original, sizeof original, "%s/a", arguments[1]);
    snprintf(copy, sizeof copy, "%s/b", arguments[1]);
    snprintf(second, sizeof second, "%s/c", arguments[1]);
    snprintf(within, sizeof within, "%s/a/copy", arguments[1]);
    snprintf(link_to_original, sizeof link_to_original, "%s/link", arguments[1]);
    CHECK(mkdir(original, 0700) == 0);
    set_paths(original);
    make_file(data_path, RVM_PAGE_SIZE);
    create_log(1 << 16);
    RUN(committing);
    copy_folder(original, copy);
    copy_folder(original, second);
    copy_folder(second, within);
    CHECK(symlink(original, link_to_original) == 0);
    RUN(recovering_the_copy);
    RUN(naming_another_folder);
    RUN(naming_the_original_by_a_link);
    RUN(copying_into_the_original);
    RUN(recovering_that_again);
    RUN(recovering_the_original);
    return 0;
}
