/* What the two sides agree on beyond the values. */
#ifndef ASSAY_SIDES_H
#define ASSAY_SIDES_H
#include <stddef.h>
#include <stdint.h>

#define ASSAY_LINK 900 /* the descriptor of the connection */
#define ASSAY_LARGEST ((size_t)64 << 20)
#define ASSAY_TOKENS ((size_t)1 << 20)

/* A frame is this and `size` bytes. A reply has the number of its call. */
struct assay_frame {
    uint32_t size, number;
};

/* How a pointer is written: whose it is, and which. */
enum { ASSAY_NULL, ASSAY_SUBMISSION, ASSAY_JUDGE };
struct assay_token {
    uint64_t owner, which;
};

_Noreturn void assay_fail(const char *why);
#endif
