/* SPDX-License-Identifier: MIT
 *
 * vm/http/carrier.c: what every carrier of exchanges does in the same way (carrier.h).
 */
#include "vm/http/carrier.h"

#include "vm/base/check.h"
#include "vm/http/server_internal.h"

void carrier_set_timer(struct exchange_carrier *carrier, unsigned kind, uint32_t after_ms)
{
    carrier->timer_kind = (uint8_t)kind;
    carrier->timer_since_ms = loop_now_ms(carrier->server->options.loop);
    carrier->timer_after_ms = after_ms;
    loop_timer_set(carrier->server->options.loop, &carrier->timer, after_ms);
}

void carrier_write(struct exchange_carrier *carrier, size_t head_bytes, bool last)
{
    CHECK(!carrier->writing);
    DCHECK(carrier->send->part_count > 0);
    carrier->writing = true;
    if (carrier->exchange)
        for (uint32_t i = 0; i < carrier->send->part_count; i++)
            carrier->exchange->sent_bytes += carrier->send->parts[i].count;
    carrier->checked_bytes = 0;
    carrier_set_timer(carrier, CARRIER_TIMER_WRITE, carrier->server->options.body_idle_timeout_ms);
    carrier->type->write(carrier, head_bytes, last);
}
