/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_proxy_header.c: the first bytes of a connection from somebody who may speak the PROXY protocol.
 *
 * Promise: a header that is complete stays the same whatever follows it; no beginning of it is refused, and none is
 *          taken for complete; what is refused has a reason. Its addresses written again, in both versions, are read
 *          as the same addresses.
 */
#include "tests/fuzz/target.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/net/proxy_protocol.h"

static void fuzz_proxy_header_again(const struct proxy_protocol *header, uint8_t version)
{
    struct builder text;
    struct proxy_protocol again;
    builder_init(&text);
    proxy_protocol_write(version, &header->source, &header->destination, &text);
    CHECK(!cy_failed(builder_error(&text)));
    CHECK(proxy_protocol_parse(builder_view(&text), &again) == PROXY_PROTOCOL_DONE);
    CHECK(again.used_bytes == text.count && again.has_addresses);
    /* Two IPv4 addresses in IPv6's clothes are written as what they are. */
    if (header->source.storage.ss_family == again.source.storage.ss_family) {
        CHECK(address_equal(&header->source, &again.source));
        CHECK(address_equal(&header->destination, &again.destination));
    }
    CHECK(address_port(&header->source) == address_port(&again.source));
    CHECK(address_port(&header->destination) == address_port(&again.destination));
    builder_fini(&text);
}

void fuzz_target_proxy_header(cy_bytes input)
{
    struct proxy_protocol header, part;
    enum proxy_protocol_step step = proxy_protocol_parse(input, &header);
    if (step == PROXY_PROTOCOL_BAD) CHECK(header.fault && header.fault[0]);
    if (step == PROXY_PROTOCOL_MORE) CHECK(input.count < LIMIT_PROXY_PROTOCOL_BYTES);
    if (step != PROXY_PROTOCOL_DONE) return;
    CHECK(header.used_bytes > 0 && header.used_bytes <= input.count);
    CHECK(header.used_bytes <= LIMIT_PROXY_PROTOCOL_BYTES);
    for (size_t count = 0; count < header.used_bytes; count++)
        CHECK(proxy_protocol_parse(cy_bytes_slice(input, 0, count), &part) == PROXY_PROTOCOL_MORE);
    CHECK(proxy_protocol_parse(cy_bytes_slice(input, 0, header.used_bytes), &part) == PROXY_PROTOCOL_DONE);
    CHECK(part.used_bytes == header.used_bytes && part.has_addresses == header.has_addresses);
    if (!header.has_addresses) return;
    CHECK(address_equal(&part.source, &header.source));
    CHECK(address_equal(&part.destination, &header.destination));
    for (uint8_t version = 1; version <= 2; version++) fuzz_proxy_header_again(&header, version);
}
