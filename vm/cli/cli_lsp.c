/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_lsp.c: crownyc lsp: a language server on stdin and stdout (LSP 3.17): the loop and the life of a session.
 *
 * In:   messages of an editor. Out: answers, diagnostics; what is wrong with the stream itself on stderr.
 *
 *      initialize ─► running ─► shutdown ─► exit        exit code 0; 1 without shutdown, or when the stream is broken
 *
 * Method: messages are read ahead as far as they have come (LIMIT_LSP_QUEUE), so that a cancellation overtakes the
 *         request it is about. Programs are compiled when no message is left to be read: typing costs one compilation a
 *         pause.
 * Invariant: each request has exactly one answer; a message that is no request has none, but for what is no JSON-RPC at
 *            all. Nothing but messages goes to stdout.
 * Not here: what a method does (cli_lsp_answer.c, cli_lsp_rename.c, cli_lsp_publish.c).
 */
#include "vm/cli/cli_lsp.h"

#include "vm/base/mem.h"
#include "vm/sys/file.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define LSP_READ_BYTES 65536 /* of one read; a pipe holds as much */

/* A message that was read and not yet looked at. */
struct lsp_message {
    struct lsp_message *next;
    struct arena arena;
    const struct lsp_json *root; /* NULL: `text` says why there is none */
    struct builder text;
    bool cancelled;
};

struct lsp_session {
    struct lsp_server server;
    struct builder input;
    struct lsp_message *first, **last;
    uint32_t queue_count;
    uint32_t handled_count; /* since programs were compiled last */
    bool input_ended, exit_asked, broken;
};

/* -- writing ------------------------------------------------------------------------------------------------------- */

void lsp_send(struct lsp_server *server, cy_bytes body)
{
    struct builder message;
    builder_init(&message);
    builder_printf(&message, "Content-Length: %zu\r\n\r\n", body.count);
    builder_bytes(&message, body);
    if (message.failed) mem_exhausted();
    cy_err err = file_write_all(STDOUT_FILENO, builder_view(&message));
    if (cy_failed(err)) server->output_err = err;
    builder_fini(&message);
}

/* The id as it came: a number or a text; null when it cannot be told. */
static void lsp_put_id(struct builder *out, const struct lsp_json *id)
{
    if (id && id->kind == JSON_INT)
        builder_i64_text(out, id->integer);
    else if (id && id->kind == JSON_TEXT)
        lsp_put_text(out, id->text);
    else
        builder_text(out, "null");
}

static void lsp_send_answer(struct lsp_server *server, const struct lsp_json *id, int error, cy_bytes result)
{
    struct builder body;
    builder_init(&body);
    builder_text(&body, "{\"jsonrpc\":\"2.0\",\"id\":");
    lsp_put_id(&body, id);
    if (error) {
        builder_printf(&body, ",\"error\":{\"code\":%d,\"message\":", error);
        lsp_put_text(&body, result);
        builder_text(&body, "}}");
    } else {
        builder_text(&body, ",\"result\":");
        builder_bytes(&body, result);
        builder_u8(&body, '}');
    }
    if (body.failed) mem_exhausted();
    lsp_send(server, builder_view(&body));
    builder_fini(&body);
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

static void lsp_take_root(struct lsp_server *server, const struct lsp_json *params)
{
    const struct lsp_json *folders = lsp_json_at(params, "workspaceFolders");
    cy_bytes uri = lsp_json_text(lsp_json_at(params, "rootUri"));
    if (folders && folders->kind == JSON_LIST_BEGIN && folders->child)
        uri = lsp_json_text(lsp_json_at(folders->child, "uri"));
    if (!lsp_path_of_uri(uri, &server->root)) builder_clear(&server->root);
}

static void lsp_initialize(struct lsp_request *request)
{
    struct lsp_server *server = request->server;
    if (server->initialized) {
        lsp_fail(request, LSP_INVALID_REQUEST, "initialize was asked for already");
        return;
    }
    const struct lsp_json *encodings = lsp_json_at(request->params, "capabilities.general.positionEncodings");
    for (const struct lsp_json *e = encodings ? encodings->child : NULL; e; e = e->next)
        if (cy_bytes_equal(lsp_json_text(e), CY_BYTES("utf-8"))) server->utf8 = true;
    lsp_take_root(server, request->params);
    server->initialized = true;
    builder_printf(request->out,
                   "{\"capabilities\":{\"positionEncoding\":\"%s\","
                   "\"textDocumentSync\":{\"openClose\":true,\"change\":2,\"save\":true},"
                   "\"hoverProvider\":true,\"definitionProvider\":true,\"referencesProvider\":true,"
                   "\"documentHighlightProvider\":true,\"documentSymbolProvider\":true,"
                   "\"completionProvider\":{\"triggerCharacters\":[\".\"]},"
                   "\"documentFormattingProvider\":true,\"renameProvider\":{\"prepareProvider\":true}},"
                   "\"serverInfo\":{\"name\":\"crownyc\",\"version\":\"%s\"}}",
                   server->utf8 ? "utf-8" : "utf-16", CLI_VERSION);
}

static void lsp_shutdown(struct lsp_request *request)
{
    request->server->shut_down = true;
    builder_text(request->out, "null");
}

static const struct {
    const char *method;
    void (*answer)(struct lsp_request *request);
} lsp_requests[] = {
    {"initialize", lsp_initialize},
    {"shutdown", lsp_shutdown},
    {"textDocument/hover", lsp_hover},
    {"textDocument/definition", lsp_definition},
    {"textDocument/references", lsp_references},
    {"textDocument/documentHighlight", lsp_highlight},
    {"textDocument/completion", lsp_complete},
    {"textDocument/documentSymbol", lsp_symbols},
    {"textDocument/formatting", lsp_format},
    {"textDocument/prepareRename", lsp_prepare_rename},
    {"textDocument/rename", lsp_rename},
};

static void lsp_answer_request(struct lsp_request *request, cy_bytes method)
{
    const struct lsp_server *server = request->server;
    bool first = cy_bytes_equal(method, CY_BYTES("initialize"));
    if (!server->initialized && !first) {
        lsp_fail(request, LSP_NOT_INITIALIZED, "initialize comes first");
        return;
    }
    if (server->shut_down) {
        lsp_fail(request, LSP_INVALID_REQUEST, "the server was shut down");
        return;
    }
    for (size_t i = 0; i < CY_COUNT_OF(lsp_requests); i++) {
        if (!cy_bytes_equal(method, cy_bytes_from_text(lsp_requests[i].method))) continue;
        lsp_requests[i].answer(request);
        return;
    }
    lsp_fail(request, LSP_METHOD_NOT_FOUND, "no such method");
}

/* -- notifications ------------------------------------------------------------------------------------------------- */

static struct lsp_document *lsp_named_document(struct lsp_server *server, const struct lsp_json *params)
{
    struct builder path;
    builder_init(&path);
    bool good = lsp_path_of_uri(lsp_json_text(lsp_json_at(params, "textDocument.uri")), &path);
    struct lsp_document *document = good ? lsp_find_document(server, builder_view(&path)) : NULL;
    builder_fini(&path);
    return document;
}

static void lsp_did_open(struct lsp_server *server, const struct lsp_json *params, struct arena *arena)
{
    (void)arena;
    const struct lsp_json *text = lsp_json_at(params, "textDocument.text");
    if (text && text->kind == JSON_TEXT)
        lsp_document_open(server, lsp_json_text(lsp_json_at(params, "textDocument.uri")), text->text);
}

static void lsp_did_change(struct lsp_server *server, const struct lsp_json *params, struct arena *arena)
{
    struct lsp_document *document = lsp_named_document(server, params);
    if (document) lsp_document_change(server, document, lsp_json_at(params, "contentChanges"), arena);
}

static void lsp_did_close(struct lsp_server *server, const struct lsp_json *params, struct arena *arena)
{
    (void)arena;
    struct lsp_document *document = lsp_named_document(server, params);
    if (document) lsp_document_close(server, document);
}

/* What lies on the disk may have changed. */
static void lsp_did_save(struct lsp_server *server, const struct lsp_json *params, struct arena *arena)
{
    (void)params, (void)arena;
    lsp_documents_dirty(server);
}

static const struct {
    const char *method;
    void (*take)(struct lsp_server *server, const struct lsp_json *params, struct arena *arena);
} lsp_notifications[] = {
    {"textDocument/didOpen", lsp_did_open},
    {"textDocument/didChange", lsp_did_change},
    {"textDocument/didClose", lsp_did_close},
    {"textDocument/didSave", lsp_did_save},
    {"workspace/didChangeWatchedFiles", lsp_did_save},
};

static void lsp_take_notification(struct lsp_session *session, struct lsp_message *message, cy_bytes method)
{
    if (cy_bytes_equal(method, CY_BYTES("exit"))) session->exit_asked = true;
    if (!session->server.initialized || session->server.shut_down) return;
    for (size_t i = 0; i < CY_COUNT_OF(lsp_notifications); i++)
        if (cy_bytes_equal(method, cy_bytes_from_text(lsp_notifications[i].method)))
            lsp_notifications[i].take(&session->server, lsp_json_at(message->root, "params"),
                                      &message->arena);
}

/* -- messages ------------------------------------------------------------------------------------------------------ */

static void lsp_handle(struct lsp_session *session, struct lsp_message *message)
{
    struct lsp_server *server = &session->server;
    const struct lsp_json *id = lsp_json_at(message->root, "id"),
                          *method = lsp_json_at(message->root, "method");
    if (!message->root) {
        lsp_send_answer(server, NULL, LSP_PARSE_ERROR, builder_view(&message->text));
        return;
    }
    bool good_id = !id || id->kind == JSON_INT || id->kind == JSON_TEXT;
    if (!method && id && lsp_json_at(message->root, "jsonrpc")) return; /* an answer: we ask nothing */
    if (!method || method->kind != JSON_TEXT || !good_id) {
        lsp_send_answer(server, good_id ? id : NULL, LSP_INVALID_REQUEST, CY_BYTES("no request"));
        return;
    }
    if (!id) {
        lsp_take_notification(session, message, method->text);
        return;
    }
    struct builder result;
    builder_init(&result);
    struct lsp_request request = {.server = server,
                                  .params = lsp_json_at(message->root, "params"),
                                  .arena = &message->arena,
                                  .out = &result};
    if (message->cancelled)
        lsp_fail(&request, LSP_REQUEST_CANCELLED, "cancelled");
    else
        lsp_answer_request(&request, method->text);
    if (result.failed) mem_exhausted();
    lsp_send_answer(server, id, request.error, builder_view(&result));
    builder_fini(&result);
}

static bool lsp_same_id(const struct lsp_json *a, const struct lsp_json *b)
{
    if (!a || !b || a->kind != b->kind) return false;
    return a->kind == JSON_INT ? a->integer == b->integer
                               : a->kind == JSON_TEXT && cy_bytes_equal(a->text, b->text);
}

/* A request that is still in the queue will be answered as cancelled; one that was answered is no longer there. */
static void lsp_cancel(struct lsp_session *session, const struct lsp_json *root)
{
    if (!cy_bytes_equal(lsp_json_text(lsp_json_at(root, "method")), CY_BYTES("$/cancelRequest"))) return;
    const struct lsp_json *id = lsp_json_at(root, "params.id");
    for (struct lsp_message *message = session->first; message; message = message->next)
        if (lsp_same_id(lsp_json_at(message->root, "id"), id)) message->cancelled = true;
}

static void lsp_enqueue(struct lsp_session *session, cy_bytes body)
{
    struct lsp_message *message = mem_alloc_zeroed(sizeof *message);
    if (!message) mem_exhausted();
    arena_init(&message->arena, 0);
    message->arena.exit_when_exhausted = true;
    builder_init(&message->text);
    message->root = lsp_json_read(&message->arena, body, &message->text);
    lsp_cancel(session, message->root);
    *session->last = message;
    session->last = &message->next;
    session->queue_count++;
}

static void lsp_message_free(struct lsp_message *message)
{
    arena_fini(&message->arena);
    builder_fini(&message->text);
    mem_free(message);
}

static void lsp_handle_first(struct lsp_session *session)
{
    struct lsp_message *message = session->first;
    session->first = message->next;
    if (!session->first) session->last = &session->first;
    session->queue_count--;
    session->handled_count++;
    lsp_handle(session, message);
    lsp_message_free(message);
}

/* -- the loop ------------------------------------------------------------------------------------------------------ */

/* Whole messages of the input, into the queue. */
static void lsp_split(struct lsp_session *session)
{
    size_t used = 0;
    while (session->queue_count < LIMIT_LSP_QUEUE && !session->broken) {
        cy_bytes rest = cy_bytes_skip(builder_view(&session->input), used), body;
        size_t frame_bytes;
        struct builder why;
        builder_init(&why);
        enum lsp_frame frame = rest.count ? lsp_frame_read(rest, &body, &frame_bytes, &why) : LSP_FRAME_MORE;
        if (frame == LSP_FRAME_WHOLE) {
            lsp_enqueue(session, body);
            used += frame_bytes;
        }
        if (frame == LSP_FRAME_BAD) {
            session->broken = true;
            fprintf(stderr, "%s: %.*s\n", session->server.options->name, CY_BYTES_ARG(builder_view(&why)));
            lsp_send_answer(&session->server, NULL, LSP_INVALID_REQUEST, builder_view(&why));
        }
        builder_fini(&why);
        if (frame != LSP_FRAME_WHOLE) break;
    }
    if (!used) return;
    memmove(session->input.data, session->input.data + used, session->input.count - used);
    session->input.count -= used;
}

static bool lsp_readable(void)
{
    struct pollfd descriptor = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&descriptor, 1, 0) > 0;
}

static void lsp_read(struct lsp_session *session)
{
    uint8_t *room = builder_reserve(&session->input, LSP_READ_BYTES);
    if (!room) mem_exhausted();
    ssize_t count = read(STDIN_FILENO, room, LSP_READ_BYTES);
    if (count > 0) session->input.count += (size_t)count;
    if (count == 0 || (count < 0 && errno != EINTR)) session->input_ended = true;
}

/* One step: read what is there, then handle a message, or compile, or wait for more. */
static void lsp_step(struct lsp_session *session)
{
    bool idle = session->queue_count == 0;
    bool room = session->queue_count < LIMIT_LSP_QUEUE && session->input.count <= LIMIT_LSP_MESSAGE_BYTES;
    bool more = room && !session->input_ended && !session->broken && lsp_readable();
    bool compile = session->server.publish_wanted && !session->server.shut_down;
    if (more) {
        lsp_read(session);
        lsp_split(session);
    } else if (!idle) {
        lsp_handle_first(session);
        lsp_split(session);
    }
    if (compile && ((idle && !more) || session->handled_count >= LIMIT_LSP_QUEUE)) {
        session->handled_count = 0;
        lsp_publish(&session->server);
    } else if (idle && !more && !session->input_ended && !session->broken) {
        lsp_read(session);
        lsp_split(session);
    }
}

static void lsp_session_fini(struct lsp_session *session)
{
    while (session->first) {
        struct lsp_message *message = session->first;
        session->first = message->next;
        lsp_message_free(message);
    }
    while (session->server.documents) lsp_document_close(&session->server, session->server.documents);
    builder_fini(&session->server.root);
    builder_fini(&session->input);
    map_fini(&session->server.published);
    arena_fini(&session->server.arena);
}

int cli_lsp(struct cli_options *options, int argc, char **argv)
{
    bool stdio = false; /* what clients say who can do otherwise; we cannot */
    const struct cli_flag flags[] = {{.name = "--stdio", .set_out = &stdio}};
    int count = cli_words(options, flags, CY_COUNT_OF(flags), false, argc, argv);
    if (count < 0) return EXIT_CODE_USAGE;
    if (count > 0) return cli_usage(options, options->korean ? "남는 인자" : "one word too many", argv[0]);
    struct lsp_session session = {.server.options = options};
    session.last = &session.first;
    builder_init(&session.input);
    builder_init(&session.server.root);
    map_init(&session.server.published, (hash_seed){0, 0});
    arena_init(&session.server.arena, 0);
    session.server.arena.exit_when_exhausted = true;
    while (!session.exit_asked && !cy_failed(session.server.output_err)) {
        bool over = session.input_ended || session.broken;
        if (over && session.queue_count == 0) break;
        lsp_step(&session);
    }
    bool good = session.exit_asked && session.server.shut_down;
    lsp_session_fini(&session);
    return good ? EXIT_CODE_OK : EXIT_CODE_PROGRAM;
}

#undef LSP_READ_BYTES
