/* The judge's side of a call. All that arrives is checked: its number, its size, each length in it.
   Whatever is wrong ends this test's process with a status that is no pass. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "wire.h"
#include "sides.h"

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static assay_wire wire;
static uint32_t number;
static int number_of_error;

_Noreturn void assay_fail(const char *why)
{
    fflush(stdout);
    dprintf(2, "assay: the submission: %s\n", why);
    _exit(97);
}

/* Handles. What only the submission can look into is, here, an address in pages that nobody can
   read; what the submission is given to keep is a number there. */
static char *pages;
static uint64_t *theirs; /* by handle: the submission's address */
static uint32_t *slots;  /* a hash table of handles, plus one */
static size_t handles;
static const void **ours;
static size_t kept;

static void *handle_of(uint64_t address)
{
    if (!pages) {
        pages = mmap(NULL, ASSAY_TOKENS * 16, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        theirs = calloc(ASSAY_TOKENS, sizeof *theirs);
        slots = calloc(2 * ASSAY_TOKENS, sizeof *slots);
        if (pages == MAP_FAILED || !theirs || !slots)
            assay_fail("out of memory");
    }
    size_t slot = (address * 0x9E3779B97F4A7C15u) >> 43;
    while (slots[slot] && theirs[slots[slot] - 1] != address)
        slot = (slot + 1) % (2 * ASSAY_TOKENS);
    if (!slots[slot]) {
        if (handles == ASSAY_TOKENS)
            assay_fail("too many pointers were returned");
        theirs[handles++] = address;
        slots[slot] = (uint32_t)handles;
    }
    return pages + 16 * (size_t)(slots[slot] - 1);
}

void assay_put_pointer(assay_wire *w, const void *pointer)
{
    struct assay_token token = {ASSAY_NULL, 0};
    uintptr_t offset = (uintptr_t)pointer - (uintptr_t)pages;
    if (pages && offset < handles * 16) {
        token.owner = ASSAY_SUBMISSION;
        token.which = theirs[offset / 16];
    } else if (pointer) {
        size_t which = 0;
        while (which < kept && ours[which] != pointer)
            which++;
        if (which == kept) {
            ours = realloc(ours, ++kept * sizeof *ours);
            if (!ours || kept >= ASSAY_TOKENS)
                assay_fail("out of memory");
            ours[which] = pointer;
        }
        token.owner = ASSAY_JUDGE;
        token.which = which;
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
        return handle_of(token.which);
    if (token.owner != ASSAY_JUDGE || token.which >= kept)
        assay_fail("a pointer was returned that it was never given");
    return (void *)ours[token.which];
}

static void all(int sending, void *data, size_t size)
{
    for (char *at = data; size;) {
        ssize_t done = sending ? send(ASSAY_LINK, at, size, MSG_NOSIGNAL)
                               : recv(ASSAY_LINK, at, size, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            assay_fail("its process ended in a call");
        at += done;
        size -= (size_t)done;
    }
}

assay_wire *assay_call(unsigned function)
{
    int before = errno;
    pthread_mutex_lock(&turn);
    wire.size = wire.at = 0;
    uint32_t head[2] = {function, (uint32_t)before};
    assay_put(&wire, head, sizeof head);
    return &wire;
}

void assay_ask(assay_wire *w)
{
    struct assay_frame frame = {(uint32_t)w->size, ++number}, reply;
    fflush(stdout);
    all(1, &frame, sizeof frame);
    all(1, w->data, w->size);
    all(0, &reply, sizeof reply);
    if (reply.number != frame.number || reply.size > ASSAY_LARGEST || reply.size < 8)
        assay_fail("what it answered is not a reply to the call");
    if (reply.size > w->room) {
        w->data = realloc(w->data, w->room = reply.size);
        if (!w->data)
            assay_fail("out of memory");
    }
    all(0, w->data, reply.size);
    w->size = reply.size;
    w->at = 0;
    uint32_t head[2];
    assay_get(w, head, sizeof head);
    char *said = assay_get_text(w);
    if (head[0])
        assay_fail(said && strlen(said) < 500 ? said : "it could not be called");
    if (said && *said) { /* what it printed, where a test may look for it */
        fputs(said, stdout);
        fflush(stdout);
    }
    free(said);
    number_of_error = (int)head[1];
}

void assay_done(assay_wire *w)
{
    if (w->at != w->size)
        assay_fail("a reply goes on after its end");
    pthread_mutex_unlock(&turn);
    errno = number_of_error;
}

void assay_row_back(assay_wire *w, const void *row, size_t count)
{
    unsigned char flag;
    uint64_t told;
    assay_get(w, &flag, 1);
    assay_get(w, &told, sizeof told);
    if (flag != (row != NULL) || told != (row ? count : 0))
        assay_fail("a row came back with another number of values");
}

void *assay_new_row(assay_wire *w, size_t size, size_t count)
{
    size_t told;
    void *row = assay_get_row(w, size, &told);
    if (told != (row ? count : 0))
        assay_fail("a row was returned with another number of values");
    return row;
}
