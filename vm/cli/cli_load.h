/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_load.h: the parts of crownyc load.
 *
 *   cli_load.c         options, the run, progress
 *   cli_load_plan.c    from URLs and a list to rows
 *   cli_load_tls.c     https
 *   cli_load_report.c  what is told at the end
 */
#ifndef CY_CLI_CLI_LOAD_H
#define CY_CLI_CLI_LOAD_H

#include "vm/cli/cli.h"
#include "vm/http/load.h"

#define CLI_LOAD_SECONDS_MAX 1000000.0 /* of any time that is given */

/* The options as they were written; NULL and false where they were not. */
struct cli_load_words {
#define LOAD_VALUE(field, short_name, name, value, range, initial, english, korean) const char *field;
#define LOAD_TEXTS(field, short_name, name, value, range, initial, english, korean) \
    const char **field;                                                             \
    uint32_t field##_count;
#define LOAD_SWITCH(field, short_name, name, english, korean) bool field;
#include "vm/cli/load_option.def"
#undef LOAD_VALUE
#undef LOAD_TEXTS
#undef LOAD_SWITCH
};

/* What is to be sent, and where. Views point into argv and `list`. */
struct cli_load_plan {
    struct load_row *rows;
    uint32_t row_count, row_capacity;
    struct builder list;
    struct builder body;
    bool has_base, secure;
    cy_bytes base_authority; /* of the first URL */
    cy_bytes connect;        /* host or host:port to connect to */
    cy_bytes url;            /* the first one, for the report */
};
/* False after a message. `defaults` has the method and expectation of rows that say nothing else. */
bool cli_load_plan_fill(const struct cli_options *options, const struct cli_load_words *words, char **urls,
                        int url_count, const struct load_row *defaults, struct cli_load_plan *plan);
void cli_load_plan_fini(struct cli_load_plan *plan);
/* Name or number to an address, waiting for it. False after a message. */
bool cli_load_resolve(const struct cli_options *options, struct loop *loop, const struct cli_load_plan *plan,
                      struct address *address_out);

/* -- cli_load_tls.c -- */
struct tls_target;
/* For https: whom to trust, and what makes each connection's stream. False after a message. */
bool cli_load_tls_open(const struct cli_options *options, const struct cli_load_words *words,
                       const struct cli_load_plan *plan, struct tls_target **target_out);
void cli_load_tls_close(struct tls_target **target);
cy_err cli_load_tls_stream(void *context, struct loop *loop, struct loop_socket *owned_socket,
                           struct stream **stream_out);

/* Text on stdout, or JSON with --json. */
void cli_load_report(const struct cli_options *options, const struct cli_load_plan *plan,
                     const struct load_options *load, const struct load_result *result);

#endif
