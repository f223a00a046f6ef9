/* What generated code may call, on either side. It includes no system header, so that nothing
   meets the names that an author's header declares. */
#ifndef ASSAY_WIRE_H
#define ASSAY_WIRE_H

typedef struct {
    unsigned char *data;
    __SIZE_TYPE__ size, room, at;
} assay_wire;

void assay_put(assay_wire *wire, const void *from, __SIZE_TYPE__ size);
void assay_get(assay_wire *wire, void *into, __SIZE_TYPE__ size);
void assay_put_text(assay_wire *wire, const char *text);
char *assay_get_text(assay_wire *wire);
void assay_put_pointer(assay_wire *wire, const void *pointer);
void *assay_get_pointer(assay_wire *wire);
__SIZE_TYPE__ assay_count(long long count);
/* A row of values: whether there is one, and how many. */
__SIZE_TYPE__ assay_put_row(assay_wire *wire, const void *row, __SIZE_TYPE__ count);
void *assay_get_row(assay_wire *wire, __SIZE_TYPE__ size, __SIZE_TYPE__ *count);

/* The judge's side. */
assay_wire *assay_call(unsigned function);
void assay_ask(assay_wire *wire);
void assay_done(assay_wire *wire);
/* A row that comes back into the test's own, and one that is new. */
void assay_row_back(assay_wire *wire, const void *row, __SIZE_TYPE__ count);
void *assay_new_row(assay_wire *wire, __SIZE_TYPE__ size, __SIZE_TYPE__ count);

/* The submission's side. */
typedef void assay_handler(assay_wire *wire);
extern assay_handler *const assay_handlers[];
extern const unsigned assay_handlers_count;
void *assay_symbol(const char *name);
assay_wire *assay_reply(void);

#endif
