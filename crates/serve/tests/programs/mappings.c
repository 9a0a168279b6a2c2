/* Maps a page of the window and unmaps it again, as often as it is told: each mapping is a handshake of its own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int count, char **arguments) {
    int fd = open(getenv("NVLAB_WINDOW"), O_RDWR);
    if (fd < 0 || count < 2) return 2;
    for (long i = atol(arguments[1]); i > 0; i--) {
        void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED || munmap(page, 4096)) {
            perror("mmap");
            return 3;
        }
    }
    return 0;
}
