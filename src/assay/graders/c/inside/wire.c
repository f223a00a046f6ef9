/* A message, written and read the same way on both sides. assay_fail ends the process. */
#include <stdlib.h>
#include <string.h>
#include "wire.h"
#include "sides.h"

void assay_put(assay_wire *wire, const void *from, size_t size)
{
    if (size > ASSAY_LARGEST - wire->size)
        assay_fail("a call's values are larger than 64 MiB");
    if (wire->size + size > wire->room) {
        wire->room = 2 * (wire->size + size) + 256;
        wire->data = realloc(wire->data, wire->room);
        if (!wire->data)
            assay_fail("out of memory");
    }
    if (size)
        memcpy(wire->data + wire->size, from, size);
    wire->size += size;
}

void assay_get(assay_wire *wire, void *into, size_t size)
{
    if (size > wire->size - wire->at)
        assay_fail("a message ends too early");
    if (size)
        memcpy(into, wire->data + wire->at, size);
    wire->at += size;
}

static int present(assay_wire *wire)
{
    unsigned char flag;
    assay_get(wire, &flag, 1);
    return flag != 0;
}

void assay_put_text(assay_wire *wire, const char *text)
{
    uint64_t size = text ? strlen(text) : 0;
    unsigned char flag = text != NULL;
    assay_put(wire, &flag, 1);
    assay_put(wire, &size, sizeof size);
    assay_put(wire, text, size);
}

char *assay_get_text(assay_wire *wire)
{
    int there = present(wire);
    uint64_t size;
    assay_get(wire, &size, sizeof size);
    if (size > wire->size - wire->at)
        assay_fail("a text is longer than its message");
    if (!there)
        return NULL;
    char *text = malloc(size + 1);
    if (!text)
        assay_fail("out of memory");
    assay_get(wire, text, size);
    text[size] = 0;
    return text;
}

size_t assay_count(long long count)
{
    return count > 0 ? (size_t)count : 0;
}

size_t assay_put_row(assay_wire *wire, const void *row, size_t count)
{
    unsigned char flag = row != NULL;
    uint64_t size = row ? count : 0;
    assay_put(wire, &flag, 1);
    assay_put(wire, &size, sizeof size);
    return size;
}

void *assay_get_row(assay_wire *wire, size_t size, size_t *count)
{
    int there = present(wire);
    uint64_t told;
    assay_get(wire, &told, sizeof told);
    *count = told;
    if (!there)
        return NULL;
    if (told > ASSAY_LARGEST / (size ? size : 1))
        assay_fail("a row is larger than 64 MiB");
    void *row = calloc(told ? told : 1, size);
    if (!row)
        assay_fail("out of memory");
    return row;
}
