/*
 * The least that a server of NBD over a socket does, for cost.sh: one connection, no checks, one thread. A request costs
 * one receive and one send, as many requests as have arrived are answered together, and data is copied once: writes are
 * received where they stay, reads are sent from there.
 *
 * With `sums` it also computes the CRC-32C of what is written, as a device must whose memory can be damaged.
 *
 * usage: floor SOCKET BYTES [sums]
 */
#include <endian.h>
#include <nmmintrin.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER = 256 << 10, HEAD = 28, REPLY = 16, REPLIES = 4096, COPIED_MAX = 16 << 10 };

static unsigned char buffer[BUFFER], replies[REPLIES * REPLY + BUFFER];
static size_t start, end, queued;
static unsigned char *memory;
static uint64_t size;
static int client;
/* Where the next connection is waited for. */
static jmp_buf next;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void receive(void *into, size_t bytes) {
    for (ssize_t got; bytes > 0; into = (char *)into + got, bytes -= got)
        if ((got = recv(client, into, bytes, 0)) <= 0)
            longjmp(next, 1);
}

static void flush(const void *more, size_t bytes) {
    struct iovec parts[2] = {{replies, queued}, {(void *)more, bytes}};
    queued = 0;
    for (size_t left = parts[0].iov_len + bytes; left > 0;) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t sent = sendmsg(client, &message, MSG_NOSIGNAL);
        if (sent < 0)
            longjmp(next, 1);
        left -= sent;
        for (int i = 0; i < 2; i++) {
            size_t of = (size_t)sent < parts[i].iov_len ? (size_t)sent : parts[i].iov_len;
            parts[i].iov_base = (char *)parts[i].iov_base + of;
            parts[i].iov_len -= of;
            sent -= of;
        }
    }
}

static void need(size_t bytes) {
    while (end - start < bytes) {
        if (queued > 0)
            flush(NULL, 0);
        if (start == end)
            start = end = 0;
        else if (start + bytes > BUFFER) {
            memmove(buffer, buffer + start, end - start);
            end -= start, start = 0;
        }
        ssize_t got = recv(client, buffer + end, BUFFER - end, 0);
        if (got <= 0)
            longjmp(next, 1);
        end += got;
    }
}

static void reply(uint64_t cookie) {
    uint32_t head[2] = {htobe32(0x67446698), 0};
    memcpy(replies + queued, head, 8);
    memcpy(replies + queued + 8, &cookie, 8);
    queued += REPLY;
}

static uint64_t sum(const unsigned char *data, size_t bytes) {
    /* Three at a time: an instruction takes three cycles and one can begin in each. */
    uint64_t a = 0, b = 0, c = 0, word[3];
    for (size_t at = 0; at + 24 <= bytes; at += 24) {
        memcpy(word, data + at, 24);
        a = _mm_crc32_u64(a, word[0]), b = _mm_crc32_u64(b, word[1]), c = _mm_crc32_u64(c, word[2]);
    }
    return a ^ b ^ c;
}

static void serve(int with_sums) {
    volatile uint64_t sums = 0;
    for (;;) {
        need(HEAD);
        uint16_t command;
        uint64_t cookie, offset;
        uint32_t bytes;
        memcpy(&command, buffer + start + 6, 2), memcpy(&cookie, buffer + start + 8, 8);
        memcpy(&offset, buffer + start + 16, 8), memcpy(&bytes, buffer + start + 24, 4);
        command = be16toh(command), offset = be64toh(offset), bytes = be32toh(bytes);
        start += HEAD;
        if (command == 2)
            return;
        if (command < 2 && (offset > size || bytes > size - offset))
            return;
        if (command == 1) {
            size_t here = end - start < bytes ? end - start : bytes;
            memcpy(memory + offset, buffer + start, here);
            start += here;
            if (here < bytes && queued > 0)
                flush(NULL, 0);
            receive(memory + offset + here, bytes - here);
            if (with_sums)
                sums ^= sum(memory + offset, bytes);
        }
        reply(cookie);
        if (command == 0 && bytes > COPIED_MAX)
            flush(memory + offset, bytes);
        else if (command == 0) {
            memcpy(replies + queued, memory + offset, bytes);
            queued += bytes;
        }
        if (queued >= sizeof replies - COPIED_MAX - REPLY || end - start < HEAD)
            flush(NULL, 0);
    }
}

static void say(const void *data, size_t bytes) {
    if (send(client, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        longjmp(next, 1);
}

static void option_reply(uint32_t option, uint32_t kind, const void *data, uint32_t bytes) {
    uint64_t magic = htobe64(0x3e889045565a9);
    uint32_t rest[3] = {htobe32(option), htobe32(kind), htobe32(bytes)};
    say(&magic, 8), say(rest, 12);
    if (bytes > 0)
        say(data, bytes);
}

/* Fixed newstyle; of the options only GO is known. */
static void greet(void) {
    uint64_t hello[2] = {htobe64(0x4e42444d41474943), htobe64(0x49484156454f5054)};
    uint16_t flags = htobe16(3);
    uint32_t theirs;
    say(hello, 16), say(&flags, 2), receive(&theirs, 4);
    for (;;) {
        uint64_t magic;
        uint32_t head[2];
        char data[4096];
        receive(&magic, 8), receive(head, 8);
        uint32_t option = be32toh(head[0]), bytes = be32toh(head[1]);
        if (bytes > sizeof data)
            longjmp(next, 1);
        receive(data, bytes);
        if (option != 7) {
            option_reply(option, 0x80000001, NULL, 0);
            continue;
        }
        /* Export: size; has flags, knows flush. */
        unsigned char info[12] = {0};
        uint64_t whole = htobe64(size);
        memcpy(info + 2, &whole, 8);
        info[11] = 5;
        option_reply(option, 3, info, sizeof info);
        option_reply(option, 1, NULL, 0);
        return;
    }
}

int main(int count, char **arguments) {
    if (count < 3)
        return fprintf(stderr, "usage: floor SOCKET BYTES [sums]\n"), 2;
    size = strtoull(arguments[2], NULL, 10);
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path, arguments[1], sizeof at.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1))
        fail(arguments[1]);
    for (;;) {
        if ((client = accept(listener, NULL, NULL)) < 0)
            fail("accept");
        start = end = queued = 0;
        if (setjmp(next) == 0) {
            greet();
            serve(count > 3);
        }
        close(client);
    }
}
