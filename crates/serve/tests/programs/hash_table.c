/* A program that knows nothing of nvlab: it maps the file it is given and keeps a hash table in it.
 *
 *   hash_table update FILE ACK FIRST   operations FIRST, FIRST + 1, ... for ever: each stores one value under one key
 *   hash_table dump FILE OUT           writes every key and value (16 B each) to OUT
 *
 * Operation n stores the value n under a key drawn from n. When its stores are done, n is acknowledged: written to ACK,
 * with the process id after it. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct slot {
    volatile uint64_t key, value;
};

static uint64_t mix(uint64_t x) {
    x ^= x >> 30, x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27, x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void *fail(const char *what) {
    perror(what);
    exit(9);
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    struct stat about;
    int fd = open(arguments[2], O_RDWR);
    if (fd < 0 || fstat(fd, &about)) fail(arguments[2]);
    struct slot *table = mmap(NULL, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (table == MAP_FAILED) fail("mmap");
    close(fd);
    uint64_t slots = about.st_size / sizeof *table;
    int out = open(arguments[3], O_RDWR | O_CREAT, 0600);
    if (out < 0) fail(arguments[3]);
    if (!strcmp(arguments[1], "dump")) {
        for (uint64_t i = 0; i < slots; i++) {
            uint64_t pair[2] = {table[i].key, table[i].value};
            if (pair[0] && write(out, pair, sizeof pair) != sizeof pair) fail("write");
        }
        return 0;
    }
    for (uint64_t n = strtoull(arguments[4], NULL, 10);; n++) {
        uint64_t key = 1 + mix(n) % (slots / 2), at = mix(key) % slots;
        while (table[at].key && table[at].key != key) at = (at + 1) % slots;
        /* The value first: a key is never there without one. */
        table[at].value = n;
        if (!table[at].key) table[at].key = key;
        uint64_t done[2] = {n, getpid()};
        if (pwrite(out, done, sizeof done, 0) != sizeof done) fail("pwrite");
    }
}
