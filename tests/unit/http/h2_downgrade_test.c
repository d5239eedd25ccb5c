/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_downgrade_test.c: proves what becomes of messages between a client of HTTP/2 and a server of
 * HTTP/1: framing is made anew, no byte of a body or field can be taken for framing, hop-by-hop fields stay on their
 * hop, an answer that was cut off is never whole.
 */
#include "tests/unit/http/h2_relay.h"

#include <check.h>

/* -- requests -------------------------------------------------------------------------------------------- */

static const struct h2_down_request {
    const char *what, *head;
    const char *data, *trailer;  /* NULL: none */
    const char *line, *expected; /* the first line; what stands in it somewhere, and at its end */
    const char *end;
    const char *refused; /* what must not; lower case */
} h2_down_requests[] = {
    {"no body", ":method: GET\n:scheme: http\n:authority: a\n:path: /x?q=1\n", NULL, NULL,
     "GET /x?q=1 HTTP/1.1\r\n", "\r\nHost: a\r\n", "\r\n\r\n", "content-length"},
    {"no body, of a method that has one",
     ":method: POST\n:scheme: http\n:authority: a\n:path: /\ncontent-length: 0\n", NULL, NULL,
     "POST / HTTP/1.1\r\n", "\r\nContent-Length: 0\r\n", "\r\n\r\n", "chunked"},
    {"a body with its length", ":method: POST\n:scheme: http\n:authority: a\n:path: /\ncontent-length: 3\n",
     "abc", NULL, "POST / HTTP/1.1\r\n", "\r\nContent-Length: 3\r\n", "\r\n\r\nabc", "chunked"},
    {"a body without a length", ":method: POST\n:scheme: http\n:authority: a\n:path: /\n", "abc", NULL,
     "POST / HTTP/1.1\r\n", "\r\nTransfer-Encoding: chunked\r\n", "\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
     "content-length"},
    {"a body that looks like the next request", ":method: POST\n:scheme: http\n:authority: a\n:path: /\n",
     "0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n", NULL, "POST / HTTP/1.1\r\n", "\r\nTransfer-Encoding: chunked\r\n",
     "\r\n\r\n1b\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n\r\n0\r\n\r\n", "content-length"},
    {"a body of GET", ":method: GET\n:scheme: http\n:authority: a\n:path: /\n", "abc", NULL,
     "GET / HTTP/1.1\r\n", "\r\nTransfer-Encoding: chunked\r\n", "\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
     "content-length"},
    {"trailers", ":method: POST\n:scheme: http\n:authority: a\n:path: /\n", "abc", "x-t: 1\n",
     "POST / HTTP/1.1\r\n", "\r\nTransfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n",
     "content-length"},
    {"trailers that are none", ":method: POST\n:scheme: http\n:authority: a\n:path: /\n", "abc",
     "host: b\nexpect: 100-continue\nx-t: 1\n", "POST / HTTP/1.1\r\n", "\r\nTransfer-Encoding: chunked\r\n",
     "3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n", "host: b"},
    {"the path as it came", ":method: GET\n:scheme: http\n:authority: a\n:path: /a/%2e%2E/b//c?x=%0d%0a\n",
     NULL, NULL, "GET /a/%2e%2E/b//c?x=%0d%0a HTTP/1.1\r\n", "\r\nHost: a\r\n", "\r\n\r\n", "/base"},
    {"OPTIONS of the server", ":method: OPTIONS\n:scheme: http\n:authority: a\n:path: *\n", NULL, NULL,
     "OPTIONS * HTTP/1.1\r\n", "\r\nHost: a\r\n", "\r\n\r\n", "content-length"},
    {"cookies in pieces", ":method: GET\n:scheme: http\n:authority: a\n:path: /\ncookie: a=1\ncookie: b=2\n",
     NULL, NULL, "GET / HTTP/1.1\r\n", "\r\ncookie: a=1; b=2\r\n", "\r\n\r\n", "cookie: a=1\r"},
    {"claims of where it came from",
     ":method: GET\n:scheme: https\n:authority: a\n:path: /\nx-forwarded-for: 9.9.9.9\nforwarded: "
     "for=9.9.9.9\n",
     NULL, NULL, "GET / HTTP/1.1\r\n", "\r\nX-Forwarded-Proto: http\r\n", "\r\n\r\n", "9.9.9.9"},
    {"a wish for another protocol",
     ":method: GET\n:scheme: http\n:authority: a\n:path: /\nhttp2-settings: x\n", NULL, NULL,
     "GET / HTTP/1.1\r\n", "\r\nHost: a\r\n", "\r\n\r\n", "http2-settings"},
};

static bool h2_down_has_nocase(cy_bytes text, const char *lower)
{
    size_t count = strlen(lower);
    for (size_t i = 0; i + count <= text.count; i++)
        if (cy_bytes_equal_nocase(cy_bytes_slice(text, i, i + count), cy_bytes_from_text(lower))) return true;
    return false;
}

static bool h2_down_ends(cy_bytes text, const char *end)
{
    cy_bytes wanted = cy_bytes_from_text(end);
    return text.count >= wanted.count &&
           cy_bytes_equal(cy_bytes_skip(text, text.count - wanted.count), wanted);
}

START_TEST(test_requests_towards_http1)
{
    for (size_t i = 0; i < CY_COUNT_OF(h2_down_requests); i++) {
        const struct h2_down_request *row = &h2_down_requests[i];
        struct h2_relay relay;
        h2_relay_open(&relay, "http", "", false);
        h2_peer_head(&relay.peer, row->data ? 0 : PEER_END_STREAM, 1, row->head);
        if (row->data)
            h2_peer_frame(&relay.peer, PEER_DATA, row->trailer ? 0 : PEER_END_STREAM, 1,
                          cy_bytes_from_text(row->data));
        if (row->trailer) h2_peer_head(&relay.peer, PEER_END_STREAM, 1, row->trailer);
        struct h2_peer *far = h2_relay_far(&relay, 0);
        for (int turn = 0; !h2_down_ends(builder_view(&far->received), row->end); turn++) {
            ck_assert_msg(turn < 2000, "%s: %.*s", row->what, CY_BYTES_ARG(builder_view(&far->received)));
            h2_peer_turn(far);
        }
        cy_bytes seen = builder_view(&far->received);
        ck_assert_msg(cy_bytes_start_with(seen, cy_bytes_from_text(row->line)), "%s: %.*s", row->what,
                      CY_BYTES_ARG(seen));
        ck_assert_msg(h2_peer_has(seen, row->expected), "%s: %.*s", row->what, CY_BYTES_ARG(seen));
        ck_assert_msg(!h2_down_has_nocase(seen, row->refused), "%s: %.*s", row->what, CY_BYTES_ARG(seen));
        h2_relay_close(&relay);
    }
}
END_TEST

/* -- answers --------------------------------------------------------------------------------------------- */

#define H2_DOWN_GET ":method: GET\n:scheme: http\n:authority: a\n:path: /\n"
#define H2_DOWN_HEAD ":method: HEAD\n:scheme: http\n:authority: a\n:path: /\n"

static const struct h2_down_answer {
    const char *what, *head, *answer;
    bool closes;          /* the server, behind it */
    const char *expected; /* in the head */
    const char *refused;
    const char *body;    /* NULL: the head ends the stream */
    const char *trailer; /* NULL: none */
    bool is_cut;         /* RST_STREAM */
} h2_down_answers[] = {
    {"fields of the hop", H2_DOWN_GET,
     "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: "
     "timeout=5\r\nProxy-Connection: x\r\n"
     "X-End: 1\r\nContent-Length: 3\r\n\r\nabc",
     false, "\nx-end: 1\n", "hop", "abc", NULL, false},
    {"no field Connection", H2_DOWN_GET,
     "HTTP/1.1 200 OK\r\nConnection: close\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc", false,
     "\ncontent-length: 3\n", "connection", "abc", NULL, false},
    {"no field Upgrade", H2_DOWN_GET,
     "HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: TLS/1.0\r\nContent-Length: 0\r\n\r\n",
     false, ":status: 426\n", "upgrade", NULL, NULL, false},
    {"chunks and trailers", H2_DOWN_GET,
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\nContent-Length: "
     "9\r\n\r\n",
     false, ":status: 200\n", "transfer-encoding", "abc", "x-t: 1\n", false},
    {"until the end", H2_DOWN_GET, "HTTP/1.1 200 OK\r\n\r\nabc", true, ":status: 200\n", "content-length",
     "abc", NULL, false},
    {"HEAD", H2_DOWN_HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, "\ncontent-length: 5\n",
     "connection", NULL, NULL, false},
    {"204", H2_DOWN_GET, "HTTP/1.1 204 No Content\r\n\r\n", false, ":status: 204\n", "content-length", NULL,
     NULL, false},
    {"304", H2_DOWN_GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n", false,
     "\netag: \"x\"\n", "connection", NULL, NULL, false},
    {"an interim answer in front", H2_DOWN_GET,
     "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\nConnection: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", false,
     ":status: 103\nlink: </s>\n", "connection", NULL, NULL, false},
    {"101 that nobody asked for", H2_DOWN_GET,
     "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", false, ":status: 502\n",
     "upgrade", "502 Bad Gateway\n", NULL, false},
    {"a length that is not reached", H2_DOWN_GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", true,
     "\ncontent-length: 5\n", "connection", "abc", NULL, true},
    {"chunks without their end", H2_DOWN_GET,
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true, ":status: 200\n",
     "connection", "abc", NULL, true},
    {"length and chunks", H2_DOWN_GET,
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n", true,
     ":status: 502\n", "transfer-encoding", "502 Bad Gateway\n", NULL, false},
};

/* The frames behind the head. */
static void h2_down_expect(struct h2_peer *peer, const struct h2_down_answer *row)
{
    struct builder body;
    bool ended = false, cut = false;
    builder_init(&body);
    while (!ended && !cut) {
        struct h2_frame frame = h2_peer_wait(peer);
        if (frame.type == PEER_HEADERS && !row->body) { /* behind the interim one */
            ck_assert_msg(h2_peer_has(frame.payload, ":status: 204\n"), "%s", row->what);
        } else if (frame.type == PEER_HEADERS) {
            ck_assert_msg(row->trailer && cy_bytes_equal(frame.payload, cy_bytes_from_text(row->trailer)),
                          "%s: %.*s", row->what, CY_BYTES_ARG(frame.payload));
        }
        if (frame.type == PEER_DATA) builder_bytes(&body, frame.payload);
        cut = frame.type == PEER_RST;
        ended = !cut && (frame.flags & PEER_END_STREAM) != 0;
    }
    ck_assert_msg(cut == row->is_cut, "%s", row->what);
    ck_assert_msg(cy_bytes_equal(builder_view(&body), cy_bytes_from_text(row->body ? row->body : "")),
                  "%s: %.*s", row->what, CY_BYTES_ARG(builder_view(&body)));
    builder_fini(&body);
}

START_TEST(test_answers_from_http1)
{
    for (size_t i = 0; i < CY_COUNT_OF(h2_down_answers); i++) {
        const struct h2_down_answer *row = &h2_down_answers[i];
        struct h2_relay relay;
        h2_relay_open(&relay, "http", "", false);
        h2_peer_head(&relay.peer, PEER_END_STREAM, 1, row->head);
        struct h2_peer *far = h2_relay_far(&relay, 0);
        while (!h2_down_ends(builder_view(&far->received), "\r\n\r\n")) h2_peer_turn(far);
        h2_peer_bytes(far, cy_bytes_from_text(row->answer));
        while (far->pending.count > 0 || far->writing) h2_peer_turn(far);
        if (row->closes) stream_shutdown_write(far->stream);
        struct h2_frame frame = h2_peer_wait(&relay.peer);
        ck_assert_uint_eq(frame.type, PEER_HEADERS);
        ck_assert_msg(h2_peer_has(frame.payload, row->expected), "%s: %.*s", row->what,
                      CY_BYTES_ARG(frame.payload));
        ck_assert_msg(!h2_down_has_nocase(frame.payload, row->refused), "%s: %.*s", row->what,
                      CY_BYTES_ARG(frame.payload));
        if (!(frame.flags & PEER_END_STREAM))
            h2_down_expect(&relay.peer, row);
        else
            ck_assert_msg(!row->body && !row->is_cut, "%s", row->what);
        h2_relay_close(&relay);
    }
}
END_TEST

/* 100: from the server, to a client that waits for it; its body follows. */
START_TEST(test_expectations_towards_http1)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "http", "", false);
    h2_peer_head(
        &relay.peer, 0, 1,
        ":method: POST\n:scheme: http\n:authority: a\n:path: /\ncontent-length: 3\nexpect: 100-continue\n");
    struct h2_peer *far = h2_relay_far(&relay, 0);
    while (!h2_down_ends(builder_view(&far->received), "\r\n\r\n")) h2_peer_turn(far);
    h2_peer_bytes(far, CY_BYTES("HTTP/1.1 100 Continue\r\n\r\n"));
    ck_assert(cy_bytes_equal(h2_peer_wait(&relay.peer).payload, CY_BYTES(":status: 100\n")));
    h2_peer_frame(&relay.peer, PEER_DATA, PEER_END_STREAM, 1, CY_BYTES("abc"));
    while (!h2_down_ends(builder_view(&far->received), "\r\n\r\nabc")) h2_peer_turn(far);
    h2_peer_bytes(far, CY_BYTES("HTTP/1.1 204 No Content\r\n\r\n"));
    ck_assert(h2_peer_has(h2_peer_wait(&relay.peer).payload, ":status: 204\n"));
    h2_relay_close(&relay);
}
END_TEST

/* A client that resets its stream: the server's connection is cut off, not kept with half an exchange on it. */
START_TEST(test_a_reset_closes_the_connection_of_http1)
{
    struct h2_relay relay;
    h2_relay_open(&relay, "http", "", false);
    h2_peer_head(&relay.peer, 0, 1,
                 ":method: POST\n:scheme: http\n:authority: a\n:path: /\ncontent-length: 9\n");
    h2_peer_frame(&relay.peer, PEER_DATA, 0, 1, CY_BYTES("abc"));
    struct h2_peer *far = h2_relay_far(&relay, 0);
    while (!h2_down_ends(builder_view(&far->received), "\r\n\r\nabc")) h2_peer_turn(far);
    h2_peer_u32(&relay.peer, PEER_RST, 1, NGHTTP2_CANCEL);
    h2_peer_wait_end(far);
    ck_assert(h2_down_ends(builder_view(&far->received), "\r\n\r\nabc"));
    struct http_server_counters counters;
    http_server_read_counters(relay.server, &counters);
    ck_assert_uint_eq(counters.client_aborts, 1);
    h2_relay_close(&relay);
}
END_TEST

Suite *unit_suite_http_h2_downgrade(void);
Suite *unit_suite_http_h2_downgrade(void)
{
    Suite *suite = suite_create("http_h2_downgrade");
    TCase *cases = tcase_create("h2_downgrade");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, test_requests_towards_http1);
    tcase_add_test(cases, test_answers_from_http1);
    tcase_add_test(cases, test_expectations_towards_http1);
    tcase_add_test(cases, test_a_reset_closes_the_connection_of_http1);
    suite_add_tcase(suite, cases);
    return suite;
}
