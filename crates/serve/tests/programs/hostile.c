/* Calls the server's door in every wrong way it knows. It must be refused each time, and the server must live on. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct message {
    uint64_t magic, kind, a, b, c;
};

static const uint64_t MAGIC = 0x6e766c6162773032u; /* nvlabw02 */
static uint64_t window;

static int dial(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    strncpy(address.sun_path + 1, getenv("NVLAB_WINDOW_SOCKET"), sizeof address.sun_path - 2);
    if (fd < 0 || connect(fd, (void *)&address, sizeof address)) perror("dial"), exit(3);
    return fd;
}

static void say(int door, const void *packet, size_t bytes, int count, const int *fds) {
    char room[CMSG_SPACE(64 * sizeof(int))] = {0};
    struct iovec vector = {(void *)packet, bytes};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    if (count) {
        header.msg_control = room, header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS, rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
    }
    sendmsg(door, &header, MSG_NOSIGNAL);
}

/* Up to the offer. */
static int greet(void) {
    int door = dial();
    struct message message = {MAGIC, 1, 0, 0, 0};
    say(door, &message, sizeof message, 0, NULL);
    if (recv(door, &message, sizeof message, 0) != sizeof message || message.kind != 2) exit(4);
    window = message.a;
    return door;
}

/* An attach that must be refused: the server closes the socket. */
static void attach(const char *what, uint64_t a, uint64_t b, uint64_t c, int count, const int *fds) {
    int door = greet();
    struct message message = {MAGIC, 3, a, b, c};
    say(door, &message, sizeof message, count, fds);
    if (recv(door, &message, sizeof message, 0) > 0) fprintf(stderr, "accepted: %s\n", what), exit(5);
    close(door);
}

int main(void) {
    /* Silent for as long as this program lives: others wait for their turn, not for ever. */
    dial();
    close(greet());
    char bytes[4096];
    srandom(1);
    for (int i = 0; i < 300; i++) {
        for (size_t j = 0; j < sizeof bytes; j++) bytes[j] = random();
        int door = i % 2 ? dial() : greet();
        say(door, bytes, i % 3 ? random() % sizeof bytes : sizeof(struct message), i % 5 ? 0 : 1, (int[]){0});
        close(door);
    }
    struct message hello = {MAGIC, 1, 0, 0, 0}, kind = {MAGIC, 99, 0, 0, 0};
    for (size_t length = 0; length < sizeof hello; length++) {
        int door = dial();
        say(door, &hello, length, 0, NULL);
        close(door);
    }
    int door = dial();
    say(door, &kind, sizeof kind, 0, NULL);
    close(door);

    char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t here = (uintptr_t)memory;
    int device = open("/dev/userfaultfd", O_RDWR), faults = ioctl(device, 0xaa00, O_CLOEXEC);
    int file = open("/dev/null", O_RDWR);
    attach("no descriptor", here, 0, 4096, 0, NULL);
    attach("a file", here, 0, 4096, 1, &file);
    attach("a userfaultfd without a handshake with the kernel", here, 0, 4096, 1, &faults);
    uint64_t api[3] = {0xaa, 0, 0};
    if (faults < 0 || ioctl(faults, 0xc018aa3f, api)) perror("userfaultfd"), exit(6);
    attach("a userfaultfd that watches nothing", here, 0, 4096, 1, &faults);
    attach("odd address", here + 1, 0, 4096, 1, &faults);
    attach("odd offset", here, 5, 4096, 1, &faults);
    attach("no bytes", here, 0, 0, 1, &faults);
    attach("beyond the window", here, window - 4096, 8192, 1, &faults);
    attach("far beyond the window", here, -4096, 8192, 1, &faults);
    attach("beyond all addresses", -4096, 0, 8192, 1, &faults);
    for (int feature = 1; feature < 7; feature += feature == 3 ? 3 : 1) {
        uint64_t events[3] = {0xaa, 1 << feature, 0}, range[4] = {here, 4096, 2, 0};
        int other = ioctl(device, 0xaa00, O_CLOEXEC);
        if (other < 0 || ioctl(other, 0xc018aa3f, events) || ioctl(other, 0xc020aa00, range)) perror("events"), exit(7);
        attach("a userfaultfd that reports forks and the like", here, 0, 4096, 1, &other);
        close(other);
    }
    int many[64];
    for (int i = 0; i < 64; i++) many[i] = file;
    attach("64 descriptors", here, 0, 4096, 64, many);
    int two[2] = {faults, file};
    attach("two descriptors", here, 0, 4096, 2, two);
    puts("refused every time");
    return 0;
}
