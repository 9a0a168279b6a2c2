/* What the test programs share: checks that name their line, and parts that each run in a process of their own, because a
   library that was terminated cannot be started again. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <rvm/rvm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            _exit(1);                                                                 \
        }                                                                             \
    } while (0)

/* The call returns this code. */
#define RETURNS(expected, call)                                                                    \
    do {                                                                                           \
        rvm_return_t code_ = (call);                                                               \
        if (code_ != (expected)) {                                                                 \
            fprintf(stderr, "%s:%d: %s returned %s, not %s: %s\n", __FILE__, __LINE__, #call,      \
                    rvm_return(code_), rvm_return(expected), rvm_errmsg);                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define WORKS(call) RETURNS(RVM_SUCCESS, call)

static char log_path[MAXPATHLEN + 1], data_path[MAXPATHLEN + 1];

/* Runs a part in a child, which ends without cleaning up, as if killed. Returns how it ended. */
static inline int ended(void (*part)(void))
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        part();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static inline void run(const char *name, void (*part)(void))
{
    int status = ended(part);
    if (status != 0) {
        fprintf(stderr, "%s failed: %d\n", name, status);
        exit(1);
    }
    printf("%s\n", name);
}
#define RUN(part) run(#part, part)

static inline void make_file(const char *path, long bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, bytes) == 0 && close(fd) == 0);
}

static inline void set_paths(const char *folder)
{
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    snprintf(data_path, sizeof data_path, "%s/data", folder);
}

static inline void create_log(unsigned long bytes)
{
    rvm_options_t *options = rvm_malloc_options();
    rvm_offset_t length = RVM_MK_OFFSET(0, bytes);
    options->log_dev = log_path;
    unlink(log_path);
    WORKS(rvm_create_log(options, &length, 0640));
    rvm_free_options(options);
}

static inline void start(void)
{
    rvm_options_t options;
    rvm_init_options(&options);
    options.log_dev = log_path;
    WORKS(RVM_INIT(&options));
}

static inline char *map_at(unsigned long offset, unsigned long length, char *address)
{
    rvm_region_t *region = rvm_malloc_region();
    region->data_dev = data_path;
    region->offset = RVM_MK_OFFSET(0, offset);
    region->length = length;
    region->vmaddr = address;
    WORKS(rvm_map(region, NULL));
    char *mapped = region->vmaddr;
    rvm_free_region(region);
    return mapped;
}

#endif
