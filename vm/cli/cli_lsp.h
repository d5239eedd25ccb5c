/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_lsp.h: what the files of the language server share.
 *
 * Parts: cli_lsp_message.c  bytes to messages (framing, JSON as a tree), and JSON being written
 *        cli_lsp_document.c open documents: texts, URIs, positions, and the compiled program of each
 *        cli_lsp_publish.c  messages of the compiler, as diagnostics
 *        cli_lsp_answer.c   hover, definition, references, completion, outline, formatting
 *        cli_lsp_rename.c   rename, through all files of a workspace
 *        cli_lsp.c          the loop and the life of a session
 * What is known about programs stands in compiler/query.h; here is only how an editor asks.
 */
#ifndef CY_CLI_CLI_LSP_H
#define CY_CLI_CLI_LSP_H

#include "compiler/query.h"
#include "vm/base/arena.h"
#include "vm/base/json.h"
#include "vm/base/map.h"
#include "vm/cli/cli.h"

/* -- messages ------------------------------------------------------------------------------------------------------ */

struct lsp_json {
    enum json_event kind;   /* JSON_LIST_BEGIN, JSON_MAP_BEGIN, JSON_TEXT, JSON_INT ... */
    cy_bytes key;           /* in a map */
    cy_bytes text;          /* JSON_TEXT, decoded */
    int64_t integer;        /* JSON_INT */
    struct lsp_json *child; /* the first, of a list or map */
    struct lsp_json *next;
};
/* The document as a tree in the arena; NULL, with the reason, when it is none or too large. */
const struct lsp_json *lsp_json_read(struct arena *arena, cy_bytes input, struct builder *why);
/* The value at `path`, "params.textDocument.uri"; NULL when something on the way is missing. NULL gives NULL. */
const struct lsp_json *lsp_json_at(const struct lsp_json *json, const char *path);
/* Text and numbers; empty, and false, for everything else. */
cy_bytes lsp_json_text(const struct lsp_json *json);
CY_NODISCARD bool lsp_json_u32(const struct lsp_json *json, uint32_t *number_out);
bool lsp_json_true(const struct lsp_json *json);

enum lsp_frame { LSP_FRAME_MORE, LSP_FRAME_WHOLE, LSP_FRAME_BAD };
/* Whether `input` begins with a whole message: `*body_out` is its body, `*used_out` where it ends. BAD, with the
 * reason: the stream cannot be trusted any further. */
enum lsp_frame lsp_frame_read(cy_bytes input, cy_bytes *body_out, size_t *used_out, struct builder *why);
/* Appends text in quotes; bytes that are no UTF-8 become U+FFFD. */
void lsp_put_text(struct builder *out, cy_bytes text);

/* -- documents ----------------------------------------------------------------------------------------------------- */

struct lsp_document {
    struct lsp_document *next;
    struct builder uri;  /* as the client wrote it */
    struct builder path; /* normalised; the URI itself when it names no file */
    struct builder text;
    struct query *query; /* with this document as main; NULL until asked for */
    bool dirty;          /* the query is of an older text of some file */
    bool std_copy;       /* a standard module that we wrote out to be shown */
};

/* A text that stands before documents and the disk while a rename is tried. */
struct lsp_edited {
    cy_bytes path, text;
};

struct lsp_published {
    uint64_t hash;  /* of what the client has been told */
    uint32_t round; /* of publishing, in which there was something to tell */
};

struct lsp_server {
    const struct cli_options *options;
    struct lsp_document *documents;
    uint32_t document_count;
    struct builder root; /* folder of the workspace; count 0 = none */
    bool utf8;           /* positions count bytes, not UTF-16 units */
    bool initialized, shut_down;
    bool publish_wanted;
    struct map published; /* URI to struct lsp_published *, in `arena` */
    uint32_t publish_round;
    const struct lsp_edited *edited;
    uint32_t edited_count;
    struct arena arena;
    cy_err output_err; /* the client has gone */
};

/* The path of a URI, and the other way round. A URI of another scheme is its own path. False for what no path
 * can be. */
CY_NODISCARD bool lsp_path_of_uri(cy_bytes uri, struct builder *path);
void lsp_put_uri(const struct lsp_server *server, cy_bytes path, struct builder *out);
struct lsp_document *lsp_find_document(const struct lsp_server *server, cy_bytes path);
/* Opens or replaces. Changes of documents make all programs they belong to be compiled again when next asked for. */
void lsp_document_open(struct lsp_server *server, cy_bytes uri, cy_bytes text);
void lsp_document_change(struct lsp_server *server, struct lsp_document *document,
                         const struct lsp_json *changes, struct arena *arena);
void lsp_document_close(struct lsp_server *server, struct lsp_document *document);
void lsp_documents_dirty(struct lsp_server *server);
/* The document's program, compiled now if need be. */
struct query *lsp_document_query(struct lsp_server *server, struct lsp_document *document);
/* A program with `path` as main, from documents and the disk. The caller closes it. */
struct query *lsp_open_query(struct lsp_server *server, cy_bytes path);
/* Appends what the compiler would read there. */
cy_err lsp_read_source(void *context, const char *path, struct builder *out);
/* The file of the query that lies at `path`; false when it has none. */
CY_NODISCARD bool lsp_find_file(const struct query *query, cy_bytes path, uint32_t *file_out);
/* The path of a file, normalised; of a standard module that of a copy, which is written if need be. False when there
 * is no place for one. */
CY_NODISCARD bool lsp_file_path(const struct query *query, uint32_t file, struct builder *path);
bool lsp_is_std_copy(cy_bytes path);

/* -- positions ----------------------------------------------------------------------------------------------------- */

/* Where lines begin: behind LF, CR LF and CR. */
struct lsp_lines {
    cy_bytes text;
    uint32_t *starts;
    uint32_t count;
    bool utf8;
};
struct lsp_lines lsp_lines_of(cy_bytes text, bool utf8, struct arena *arena);
/* What lies past the end of a line or text is its end; the inside of a code point is its start. */
uint32_t lsp_offset(const struct lsp_lines *lines, uint32_t line, uint32_t character);
void lsp_put_position(struct builder *out, const struct lsp_lines *lines, uint32_t offset);
void lsp_put_range(struct builder *out, const struct lsp_lines *lines, uint32_t start, uint32_t end);

/* -- answering ----------------------------------------------------------------------------------------------------- */

/* Numbers of JSON-RPC and the protocol. */
enum lsp_error {
    LSP_PARSE_ERROR = -32700,
    LSP_INVALID_REQUEST = -32600,
    LSP_METHOD_NOT_FOUND = -32601,
    LSP_INVALID_PARAMS = -32602,
    LSP_NOT_INITIALIZED = -32002,
    LSP_REQUEST_FAILED = -32803,
    LSP_REQUEST_CANCELLED = -32800,
};

/* One request being answered: the result is written to `out` as JSON, or `error` is set and `out` is its message. */
struct lsp_request {
    struct lsp_server *server;
    const struct lsp_json *params;
    struct arena *arena;
    struct builder *out;
    int error; /* enum lsp_error; 0 = none */
};
void lsp_fail(struct lsp_request *request, enum lsp_error error, const char *message);

/* Sends a whole message. */
void lsp_send(struct lsp_server *server, cy_bytes body);

/* A document and a place in it, as most requests name them. False, with the error set, when they do not. */
struct lsp_place {
    struct lsp_document *document;
    struct query *query;
    struct lsp_lines lines;
    uint32_t offset;
};
CY_NODISCARD bool lsp_request_document(struct lsp_request *request, struct lsp_place *place_out);
CY_NODISCARD bool lsp_request_place(struct lsp_request *request, struct lsp_place *place_out);
/* The name at the place; "null" is written when none is there. */
CY_NODISCARD bool lsp_request_target(struct lsp_request *request, struct lsp_place *place_out,
                                     struct query_target *target_out, struct query_place *where_out);

void lsp_hover(struct lsp_request *request);
void lsp_definition(struct lsp_request *request);
void lsp_references(struct lsp_request *request);
void lsp_highlight(struct lsp_request *request);
void lsp_complete(struct lsp_request *request);
void lsp_symbols(struct lsp_request *request);
void lsp_format(struct lsp_request *request);
void lsp_prepare_rename(struct lsp_request *request);
void lsp_rename(struct lsp_request *request);

/* Compiles what changed and tells the client what it does not know yet. */
void lsp_publish(struct lsp_server *server);

#endif
