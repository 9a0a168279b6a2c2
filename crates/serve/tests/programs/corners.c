/* What a program may do with the window besides mapping it once. Every line it prints is a promise kept; the first that
 * is broken ends it with the line's number. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern void *nvlab_window_map(size_t *bytes) __attribute__((weak));

#define CHECK(promise)                                                                                             \
    do {                                                                                                           \
        if (!(promise)) {                                                                                          \
            fprintf(stderr, "broken: %s (%s)\n", #promise, strerror(errno));                                       \
            exit(100);                                                                                             \
        }                                                                                                          \
    } while (0)

int main(void) {
    const char *path = getenv("NVLAB_WINDOW");
    CHECK(path);
    int fd = open(path, O_RDWR);
    struct stat about;
    CHECK(fd >= 0 && !fstat(fd, &about) && about.st_size > 1 << 20);
    size_t bytes = about.st_size;

    /* Only shared mappings, inside the window; nothing can be written to the file. */
    CHECK(mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == ENOTSUP);
    CHECK(mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 4096) == MAP_FAILED && errno == EINVAL);
    CHECK(write(fd, "lost", 4) == -1 && errno == EPERM);
    CHECK(ftruncate(fd, 0) == -1 && errno == EPERM);

    /* Two mappings, one of a part: the same memory. */
    volatile uint8_t *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    volatile uint8_t *part = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, bytes - 8192);
    CHECK(all != MAP_FAILED && part != MAP_FAILED);
    part[8191] = 1;
    CHECK(all[bytes - 1] == 1);
    all[bytes - 8192] = 2;
    CHECK(part[0] == 2);

    /* The same by name. */
    size_t found = 0;
    CHECK(nvlab_window_map);
    volatile uint8_t *named = nvlab_window_map(&found);
    CHECK(named && found == bytes && named[bytes - 8192] == 2);
    CHECK(!munmap((void *)named, found));

    /* It cannot be moved, and other memory can. */
    CHECK(mremap((void *)part, 8192, 4096, 0) == MAP_FAILED && errno == ENOTSUP);
    void *other = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    other = mremap(other, 4096, 1 << 20, MREMAP_MAYMOVE);
    CHECK(other != MAP_FAILED);

    /* The system itself may load from it and store to it. */
    int tube[2];
    CHECK(!pipe(tube) && write(tube[1], (void *)(all + bytes - 4096), 4096) == 4096);
    CHECK(read(tube[0], (void *)(all + 40960), 4096) == 4096 && all[40960 + 4095] == 1);

    /* Pages given up by this process are still in the window. */
    all[77777] = 7;
    CHECK(!madvise((void *)all, bytes, MADV_DONTNEED) && all[77777] == 7);

    /* Removing the contents is refused, and changes nothing. */
    CHECK(madvise((void *)all, 4096 * 64, MADV_REMOVE) == -1 && errno == ENOTSUP && all[77777] == 7);

    /* Mapped again and again, it leaves no descriptor behind; mapped too often at a time, it is refused. */
    int free_fd = dup(0);
    close(free_fd);
    for (int i = 0; i < 300; i++) {
        void *again = mmap(NULL, 40960, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(again != MAP_FAILED && !munmap(again, 40960));
    }
    CHECK(dup(0) == free_fd && !close(free_fd));
    void *often[64];
    int times = 0;
    while (times < 64 && (often[times] = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0)) != MAP_FAILED) times++;
    CHECK(times == 62 && errno == ENOMEM);
    while (times) CHECK(!munmap(often[--times], 4096));
    CHECK(dup(0) == free_fd && !close(free_fd));

    /* A program that locks all its memory has absent pages all the same. */
    for (size_t i = 0; i < bytes; i += 4096) all[i + 5] = i >> 12;
    if (!mlockall(MCL_FUTURE)) {
        volatile uint8_t *locked = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(locked != MAP_FAILED);
        for (size_t i = 0; i < bytes; i += 4096) CHECK(locked[i + 5] == (uint8_t)(i >> 12));
        CHECK(!munlockall() && !munmap((void *)locked, bytes));
    }

    /* A child has no window, until it maps it again; then both see each other's stores, under eviction. */
    pid_t child = fork();
    if (!child) {
        struct sigaction back = {.sa_handler = SIG_DFL};
        sigaction(SIGSEGV, &back, NULL);
        _exit(all[0]);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    child = fork();
    if (!child) {
        volatile uint8_t *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        for (size_t i = 0; i < bytes; i += 4096) mine[i + 2] = 3;
        _exit(0);
    }
    for (size_t i = 0; i < bytes; i += 4096) all[i + 3] = 4;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (size_t i = 0; i < bytes; i += 4096) CHECK(all[i + 2] == 3 && all[i + 3] == 4);
    puts("every promise was kept");
    return 0;
}
