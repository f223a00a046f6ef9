/* The submission's process: host SOCKET LIBRARY. For each test it connects to the judge and forks;
   the child loads the library and answers calls until the judge hangs up or the child dies. What
   the submission does to this program only harms itself: nothing is decided here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "wire.h"
#include "sides.h"

static void *library;
static const char *trouble;
static int error_before, printed = -1;
static char *pages;
static assay_wire out;
static uint32_t number;

_Noreturn void assay_fail(const char *why)
{
    dprintf(2, "assay: %s\n", why);
    _exit(97);
}

void assay_put_pointer(assay_wire *w, const void *pointer)
{
    struct assay_token token = {pointer ? ASSAY_SUBMISSION : ASSAY_NULL, (uintptr_t)pointer};
    uintptr_t offset = (uintptr_t)pointer - (uintptr_t)pages;
    if (pages && offset < ASSAY_TOKENS * 16) {
        token.owner = ASSAY_JUDGE;
        token.which = offset / 16;
    }
    assay_put(w, &token, sizeof token);
}

void *assay_get_pointer(assay_wire *w)
{
    struct assay_token token;
    assay_get(w, &token, sizeof token);
    if (token.owner == ASSAY_NULL)
        return NULL;
    if (token.owner == ASSAY_SUBMISSION)
        return (void *)(uintptr_t)token.which;
    if (!pages)
        pages = mmap(NULL, ASSAY_TOKENS * 16, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages + 16 * token.which;
}

static int all(int sending, void *data, size_t size)
{
    for (char *at = data; size;) {
        ssize_t done = sending ? send(ASSAY_LINK, at, size, MSG_NOSIGNAL)
                               : recv(ASSAY_LINK, at, size, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return 0;
        at += done;
        size -= (size_t)done;
    }
    return 1;
}

static void answer(void)
{
    struct assay_frame frame = {(uint32_t)out.size, number};
    if (!all(1, &frame, sizeof frame) || !all(1, out.data, out.size))
        _exit(0);
}

static void begin(uint32_t status, int error, const char *said)
{
    uint32_t head[2] = {status, (uint32_t)error};
    out.size = 0;
    assay_put(&out, head, sizeof head);
    assay_put_text(&out, said);
}

void *assay_symbol(const char *name)
{
    char why[600];
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        snprintf(why, sizeof why, "it has no function %s%s%.300s", name, trouble ? ": " : "",
                 trouble ? trouble : "");
        begin(1, 0, why);
        answer();
        _exit(0);
    }
    errno = error_before;
    return found;
}

assay_wire *assay_reply(void)
{
    int error = errno;
    char *said = NULL;
    fflush(NULL);
    off_t size = printed < 0 ? 0 : lseek(printed, 0, SEEK_END);
    if (size > 0 && size < (off_t)ASSAY_LARGEST / 2 && (said = malloc((size_t)size + 1))) {
        ssize_t got = pread(printed, said, (size_t)size, 0);
        said[got > 0 ? got : 0] = 0;
    }
    if (size > 0 && (ftruncate(printed, 0) || lseek(printed, 0, SEEK_SET)))
        printed = -1;
    begin(0, error, said);
    free(said);
    return &out;
}

static void serve(const char *path)
{
    assay_wire in = {0};
    struct assay_frame frame;
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    trouble = library ? NULL : dlerror();
    while (all(0, &frame, sizeof frame) && frame.size >= 8) {
        in.data = realloc(in.data, in.room = frame.size);
        if (!in.data || !all(0, in.data, frame.size))
            break;
        uint32_t head[2];
        in.size = frame.size;
        in.at = 0;
        assay_get(&in, head, sizeof head);
        number = frame.number;
        error_before = (int)head[1];
        if (head[0] >= assay_handlers_count)
            break;
        assay_handlers[head[0]](&in);
        answer();
    }
    _exit(0);
}

static void note(int signal)
{
    (void)signal;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    strncpy(place.sun_path, words[1], sizeof place.sun_path - 1);
    sigset_t blocked, open;
    struct sigaction action = {.sa_handler = note};
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &open);
    for (;;) {
        int link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        while (connect(link, (struct sockaddr *)&place, sizeof place))
            usleep(2000);
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (!child) {
            setsid();
            sigprocmask(SIG_SETMASK, &open, NULL);
            signal(SIGCHLD, SIG_DFL);
            FILE *file = tmpfile();
            if (file && (printed = fileno(file)) >= 0)
                dup2(printed, 1);
            dup2(link, ASSAY_LINK);
            close(link);
            serve(words[2]);
        }
        /* A copy of the connection would keep the judge from hearing that the child has died. */
        struct pollfd ends = {.fd = link, .events = POLLRDHUP};
        for (;;) {
            int status;
            if (waitpid(child, &status, WNOHANG) == child)
                break;
            if (ppoll(&ends, 1, NULL, &open) > 0) {
                kill(-child, SIGKILL);
                kill(child, SIGKILL);
                waitpid(child, &status, 0);
                break;
            }
        }
        close(link);
    }
}
