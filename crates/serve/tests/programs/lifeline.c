/* A program that is its own server: a thread of it hands a lifeline out with READY, and then
 *
 *   lifeline late    says one thing more on the socket of the handshake, as if the kernel had delivered the notification
 *                    of READY only now: the program lives on, and ends with 0
 *   lifeline close   closes its end of the lifeline: the kernel kills the program */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct message {
    uint64_t magic, kind, a, b, c;
};

static int door, caller, lifeline[2];
static struct message message;
static size_t bytes;

static void fail(const char *what) {
    perror(what);
    exit(9);
}

static void expect(uint64_t kind) {
    if (recv(caller, &message, sizeof message, 0) != sizeof message || message.kind != kind) fail("recv");
}

static void say(uint64_t kind, int fd) {
    struct message packet = {message.magic, kind, bytes, 4096, 0};
    char room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec vector = {&packet, sizeof packet};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS, rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    if (sendmsg(caller, &header, MSG_NOSIGNAL) != sizeof packet) fail("sendmsg");
}

static void *serve(void *unused) {
    caller = accept(door, NULL, NULL);
    int file = memfd_create("window", 0);
    if (caller < 0 || file < 0 || ftruncate(file, bytes)) fail("serve");
    expect(1);
    say(2, file);
    expect(3);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lifeline)) fail("socketpair");
    say(4, lifeline[1]);
    close(lifeline[1]);
    return unused;
}

int main(int count, char **arguments) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat about;
    pthread_t server;
    int fd = open(getenv("NVLAB_WINDOW"), O_RDWR);
    if (count < 2 || fd < 0 || fstat(fd, &about)) return 2;
    bytes = about.st_size;
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "nvlab-test-lifeline-%d", getpid());
    setenv("NVLAB_WINDOW_SOCKET", address.sun_path + 1, 1);
    door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(door, (void *)&address, sizeof address) || listen(door, 1)) fail("bind");
    if (pthread_create(&server, NULL, serve, NULL)) return 2;
    if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) fail("mmap");
    pthread_join(server, NULL);
    if (!strcmp(arguments[1], "close")) {
        close(lifeline[0]);
        sleep(5);
        return 7;
    }
    /* The program may have closed it. */
    send(caller, &message, sizeof message, MSG_NOSIGNAL);
    usleep(100000);
    return 0;
}
