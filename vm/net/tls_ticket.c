/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_ticket.c: keys of session tickets, made of one seed that all workers share.
 *
 *   key of hour h = HMAC-SHA512(seed, "ticket" h), its name HMAC-SHA256(seed, "name" h)
 *
 * In:   a seed (made before the workers) and the wall clock. Out: what OpenSSL needs to seal and open a ticket.
 * A ticket is sealed with the key of this hour and opened with that of this hour or one of the two before. So a session
 * is resumed by any worker, also by one that was started again, without a word between them.
 * Not here: what binds a session to its policy (the session id context, tls_server.c).
 */
#include "vm/net/tls_internal.h"

#include "vm/base/limits.h"
#include "vm/sys/clock.h"
#include "vm/sys/crypto.h"
#include "vm/sys/random.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#define TLS_TICKET_KEYS 3

void tls_tickets_init(struct tls_tickets *tickets, const uint8_t *seed)
{
    memset(tickets, 0, sizeof *tickets);
    memcpy(tickets->seed, seed, TLS_SEED_BYTES);
    for (size_t i = 0; i < TLS_TICKET_KEYS; i++) tickets->keys[i].period = -1;
}

void tls_tickets_fini(struct tls_tickets *tickets) { OPENSSL_cleanse(tickets, sizeof *tickets); }

const struct tls_ticket_key *tls_tickets_key(struct tls_tickets *tickets, int64_t period)
{
    if (period < 0) return NULL;
    struct tls_ticket_key *key = &tickets->keys[period % TLS_TICKET_KEYS];
    if (key->period == period) return key;
    cy_bytes seed = cy_bytes_of(tickets->seed, sizeof tickets->seed);
    uint8_t text[14] = "ticket", out[CRYPTO_DIGEST_BYTES_MAX];
    for (size_t i = 0; i < 8; i++) text[6 + i] = (uint8_t)((uint64_t)period >> (8 * i));
    key->period = -1;
    if (cy_failed(crypto_hmac(CRYPTO_SHA512, seed, cy_bytes_of(text, sizeof text), out))) return NULL;
    memcpy(key->cipher, out, sizeof key->cipher);
    memcpy(key->digest, out + sizeof key->cipher, sizeof key->digest);
    memcpy(text, "name--", 6);
    if (cy_failed(crypto_hmac(CRYPTO_SHA256, seed, cy_bytes_of(text, sizeof text), out))) return NULL;
    memcpy(key->name, out, sizeof key->name);
    OPENSSL_cleanse(out, sizeof out);
    key->period = period;
    return key;
}

static bool tls_ticket_set_up(const struct tls_ticket_key *key, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                              EVP_MAC_CTX *mac, int sealing)
{
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->digest,
                                          sizeof key->digest),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, parameters) == 1 &&
           EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, sealing) == 1;
}

/* The newest key that a ticket of this name was sealed with. */
static const struct tls_ticket_key *tls_ticket_find(struct tls_tickets *tickets, int64_t now,
                                                    const unsigned char *name)
{
    for (int64_t age = 0; age < TLS_TICKET_KEYS; age++) {
        const struct tls_ticket_key *key = tls_tickets_key(tickets, now - age);
        if (key && memcmp(key->name, name, sizeof key->name) == 0) return key;
    }
    return NULL;
}

/* Sealing: 1 done, 0 no ticket, -1 failure. Opening: 1 good, 0 unknown (then a full handshake). */
static int tls_ticket_callback(SSL *ssl, unsigned char name[16], unsigned char iv[EVP_MAX_IV_LENGTH],
                               EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int sealing)
{
    struct tls_tickets *tickets = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    int64_t now = clock_wall_ms() / 1000 / LIMIT_TLS_TICKET_KEY_S;
    const struct tls_ticket_key *key;
    if (!tickets) return 0;
    if (!sealing) {
        key = tls_ticket_find(tickets, now, name);
        return key && tls_ticket_set_up(key, iv, cipher, mac, 0) ? 1 : 0;
    }
    key = tls_tickets_key(tickets, now);
    if (!key || cy_failed(random_bytes(iv, 16))) return 0;
    memcpy(name, key->name, sizeof key->name);
    return tls_ticket_set_up(key, iv, cipher, mac, 1) ? 1 : -1;
}

void tls_tickets_attach(struct tls_tickets *tickets, SSL_CTX *context)
{
    SSL_CTX_set_app_data(context, tickets);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, tls_ticket_callback);
    SSL_CTX_set_timeout(context, LIMIT_TLS_SESSION_S);
}

#undef TLS_TICKET_KEYS
