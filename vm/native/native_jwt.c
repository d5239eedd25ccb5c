/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_jwt.c: jwt.verify: signed tokens (RFC 7519, RFC 7515 compact form, RFC 7518, RFC 8037).
 *
 * In:   a token from a stranger, a key and an allow-list of algorithms from the program. Out: its header and
 *       claims, or an error of kind "token" whose data.reason is one of a fixed set of words.
 * Order: form, header, algorithm, key, signature; the claims are not looked at before the signature is good.
 * Invariant: the algorithm must be in the program's list *and* fit the kind of its key, so a public key is never
 *       taken for a shared secret: nothing that looks like one is, and where a token may choose between both sorts of
 *       algorithm a str must be PEM. "none" is no algorithm here.
 * Not here: encrypted tokens, making tokens, fetching keys.
 */
#include "vm/base/encode.h"
#include "vm/base/limits.h"
#include "vm/native/json_value.h"
#include "vm/native/native_bodies.h"
#include "vm/native/option.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"
#include "vm/sys/clock.h"
#include "vm/sys/crypto.h"

#include <math.h>

enum {
    NATIVE_JWT_SECRET_BYTES_MIN = 32 /* RFC 7518 section 3.2 */,
    NATIVE_JWT_NUMBER_BYTES = 2048,
    NATIVE_JWT_TEXT_BYTES = 8192 /* of base64: no public key in use is longer */
};

enum native_jwt_algorithm {
    NATIVE_JWT_HS256,
    NATIVE_JWT_RS256,
    NATIVE_JWT_ES256,
    NATIVE_JWT_EDDSA,
    NATIVE_JWT_COUNT
};
static const struct {
    const char *name;
    enum crypto_key_kind kind; /* not looked at for HS256 */
} native_jwt_algorithms[NATIVE_JWT_COUNT] = {
    [NATIVE_JWT_HS256] = {"HS256", CRYPTO_KEY_RSA},
    [NATIVE_JWT_RS256] = {"RS256", CRYPTO_KEY_RSA},
    [NATIVE_JWT_ES256] = {"ES256", CRYPTO_KEY_P256},
    [NATIVE_JWT_EDDSA] = {"EdDSA", CRYPTO_KEY_ED25519},
};

enum {
    NATIVE_JWT_ALGORITHMS,
    NATIVE_JWT_AUDIENCE,
    NATIVE_JWT_ISSUER,
    NATIVE_JWT_LEEWAY,
    NATIVE_JWT_NOW,
    NATIVE_JWT_REQUIRE,
    NATIVE_JWT_OPTION_COUNT
};
static const struct option_row native_jwt_rows[NATIVE_JWT_OPTION_COUNT] = {
    [NATIVE_JWT_ALGORITHMS] = {.name = "algorithms", .kind = OPTION_LIST},
    [NATIVE_JWT_AUDIENCE] = {.name = "audience", .kind = OPTION_STR},
    [NATIVE_JWT_ISSUER] = {.name = "issuer", .kind = OPTION_STR},
    [NATIVE_JWT_LEEWAY] = {.name = "leeway_s", .kind = OPTION_INT, .min = 0, .max = 86400},
    [NATIVE_JWT_NOW] = {.name = "now_s", .kind = OPTION_INT, .min = 0, .max = (int64_t)1 << 40},
    [NATIVE_JWT_REQUIRE] = {.name = "require", .kind = OPTION_LIST},
};

struct native_jwt {
    struct native_call *call;
    cy_value options[NATIVE_JWT_OPTION_COUNT];
    cy_bytes signed_part; /* header.claims, as they are */
    cy_bytes header_part, claims_part, signature_part;
    uint32_t allowed; /* bits of enum native_jwt_algorithm */
    enum native_jwt_algorithm algorithm;
    cy_value header; /* map */
    cy_value claims; /* map */
};

/* -- failing ------------------------------------------------------------------------------------------------ */

static bool native_jwt_failed(struct native_jwt *jwt, cy_err err)
{
    native_fail(jwt->call, err, "jwt.verify: %s", cy_err_text(err, vm_korean(jwt->call->vm)));
    return false;
}

/* The token is refused: data {reason}. */
static bool native_jwt_refuse(struct native_jwt *jwt, const char *reason, const char *message)
{
    struct native_call *call = jwt->call;
    cy_value data = value_nil(), word;
    cy_err err = map_new(call->vm, 1, &data);
    if (!cy_failed(err)) err = string_new(call->vm, cy_bytes_from_text(reason), &word);
    if (!cy_failed(err)) err = map_set_text(call->vm, &data, CY_BYTES("reason"), word);
    if (cy_failed(err)) {
        value_unref(call->vm, data);
        return native_jwt_failed(jwt, err);
    }
    native_fail_data(call, CY_ERR(TOKEN), data, "jwt.verify: %s", vm_text(call->vm, message));
    return false;
}

/* The program's own arguments are wrong. */
static bool native_jwt_wrong(struct native_jwt *jwt, const char *message)
{
    native_fail(jwt->call, CY_ERR(VALUE), "jwt.verify: %s", vm_text(jwt->call->vm, message));
    return false;
}

/* -- form and header ---------------------------------------------------------------------------------------- */

static bool native_jwt_split(struct native_jwt *jwt, cy_bytes token)
{
    size_t first = cy_bytes_find(token, '.');
    cy_bytes rest = cy_bytes_skip(token, first + 1);
    size_t second = cy_bytes_find(rest, '.');
    jwt->header_part = cy_bytes_slice(token, 0, first);
    jwt->claims_part = cy_bytes_slice(rest, 0, second);
    jwt->signature_part = cy_bytes_skip(rest, second + 1);
    jwt->signed_part = cy_bytes_slice(token, 0, first + 1 + second);
    bool three = first < token.count && second < rest.count;
    if (three && cy_bytes_find(jwt->signature_part, '.') == jwt->signature_part.count) return true;
    return native_jwt_refuse(jwt, "form", "expected three parts with '.' between");
}

/* A part of base64 that holds a JSON map. */
static bool native_jwt_read_map(struct native_jwt *jwt, cy_bytes part, const char *message,
                                cy_value *owned_out)
{
    uint8_t text[LIMIT_JWT_BYTES];
    size_t count, offset;
    struct json_read_options options = {.duplicates = JSON_DUPLICATES_REFUSED};
    struct json_value_fault fault;
    if (!decode_base64(part, ENCODE_BASE64_URL, text, &count, &offset))
        return native_jwt_refuse(jwt, "form", message);
    cy_err err = json_value_read(jwt->call->vm, cy_bytes_of(text, count), &options, false, &fault, owned_out);
    if (cy_is(err, CY_ERR_BAD_FORMAT)) return native_jwt_refuse(jwt, "form", message);
    if (cy_failed(err)) return native_jwt_failed(jwt, err);
    if (owned_out->tag == TAG_MAP) return true;
    value_unref(jwt->call->vm, *owned_out);
    *owned_out = value_nil();
    return native_jwt_refuse(jwt, "form", message);
}
_Static_assert(LIMIT_JWT_BYTES / 4 * 3 + 3 <= LIMIT_JWT_BYTES, "any part decodes into an array of that size");

/* A member that is a str; false when it is absent or of another kind. */
static bool native_jwt_text(struct native_jwt *jwt, cy_value map, const char *name, cy_bytes *text_out)
{
    cy_value value;
    if (!map_get_text(jwt->call->vm, map, cy_bytes_from_text(name), &value) || value.tag != TAG_STR)
        return false;
    *text_out = string_bytes(value);
    return true;
}

static bool native_jwt_find_algorithm(cy_bytes name, enum native_jwt_algorithm *algorithm_out)
{
    for (size_t i = 0; i < NATIVE_JWT_COUNT; i++) {
        if (!cy_bytes_equal(name, cy_bytes_from_text(native_jwt_algorithms[i].name))) continue;
        *algorithm_out = (enum native_jwt_algorithm)i;
        return true;
    }
    return false;
}

/* The program's list as bits. Unknown names are the program's mistake, "none" too. */
static bool native_jwt_allowed(struct native_jwt *jwt, uint32_t *bits_out)
{
    cy_value list = jwt->options[NATIVE_JWT_ALGORITHMS];
    *bits_out = 0;
    if (list.tag != TAG_LIST || list_count(list) == 0)
        return native_jwt_wrong(
            jwt, "the option algorithms must list what is accepted: HS256, RS256, ES256, EdDSA");
    for (size_t i = 0; i < list_count(list); i++) {
        cy_value name = list_get(list, i);
        enum native_jwt_algorithm algorithm;
        if (name.tag != TAG_STR || !native_jwt_find_algorithm(string_bytes(name), &algorithm))
            return native_jwt_wrong(jwt, "algorithms are HS256, RS256, ES256 and EdDSA");
        *bits_out |= 1u << algorithm;
    }
    return true;
}

static bool native_jwt_header(struct native_jwt *jwt)
{
    cy_bytes name;
    cy_value extensions;
    if (!native_jwt_allowed(jwt, &jwt->allowed)) return false;
    if (!native_jwt_read_map(jwt, jwt->header_part, "the header is not base64 of a JSON map", &jwt->header))
        return false;
    if (!native_jwt_text(jwt, jwt->header, "alg", &name))
        return native_jwt_refuse(jwt, "form", "the header has no alg");
    if (map_get_text(jwt->call->vm, jwt->header, CY_BYTES("crit"), &extensions))
        return native_jwt_refuse(jwt, "form", "the header needs extensions that are not known here (crit)");
    if (!native_jwt_find_algorithm(name, &jwt->algorithm) || !(jwt->allowed >> jwt->algorithm & 1))
        return native_jwt_refuse(jwt, "algorithm", "the token's algorithm is not in the list");
    return true;
}

/* -- keys and signature ------------------------------------------------------------------------------------- */

/* A member of a JWK that is base64 of bytes. */
static bool native_jwt_number(struct native_jwt *jwt, cy_value jwk, const char *name, uint8_t *room,
                              cy_bytes *bytes_out)
{
    cy_bytes text;
    size_t count, offset;
    bool good = native_jwt_text(jwt, jwk, name, &text) &&
                decode_base64_count_max(text.count) <= NATIVE_JWT_NUMBER_BYTES &&
                decode_base64(text, ENCODE_BASE64_URL, room, &count, &offset);
    if (!good)
        return native_jwt_wrong(jwt, "the JWK lacks a member, or it is not base64 in the url alphabet");
    *bytes_out = cy_bytes_of(room, count);
    return true;
}

static bool native_jwt_is(struct native_jwt *jwt, cy_value map, const char *name, const char *wanted)
{
    cy_bytes text;
    return native_jwt_text(jwt, map, name, &text) && cy_bytes_equal(text, cy_bytes_from_text(wanted));
}

static bool native_jwt_key_made(struct native_jwt *jwt, cy_err err)
{
    if (!cy_failed(err)) return true;
    if (cy_is(err, CY_ERR_NO_MEMORY)) return native_jwt_failed(jwt, err);
    if (cy_is(err, CY_ERR_UNSUPPORTED))
        return native_jwt_wrong(jwt, "the key must be RSA of 2048 bits or more, P-256 or Ed25519");
    return native_jwt_wrong(jwt, "the key is no public key");
}

/* A public key of a JWK of type RSA, EC or OKP. */
static bool native_jwt_public_jwk(struct native_jwt *jwt, cy_value jwk, struct crypto_key **key_out)
{
    uint8_t first_room[NATIVE_JWT_NUMBER_BYTES], second_room[NATIVE_JWT_NUMBER_BYTES];
    cy_bytes first, second;
    if (native_jwt_is(jwt, jwk, "kty", "RSA")) {
        if (!native_jwt_number(jwt, jwk, "n", first_room, &first)) return false;
        if (!native_jwt_number(jwt, jwk, "e", second_room, &second)) return false;
        return native_jwt_key_made(jwt, crypto_key_from_rsa(first, second, key_out));
    }
    if (native_jwt_is(jwt, jwk, "kty", "EC") && native_jwt_is(jwt, jwk, "crv", "P-256")) {
        if (!native_jwt_number(jwt, jwk, "x", first_room, &first)) return false;
        if (!native_jwt_number(jwt, jwk, "y", second_room, &second)) return false;
        return native_jwt_key_made(jwt, crypto_key_from_p256(first, second, key_out));
    }
    if (native_jwt_is(jwt, jwk, "kty", "OKP") && native_jwt_is(jwt, jwk, "crv", "Ed25519")) {
        if (!native_jwt_number(jwt, jwk, "x", first_room, &first)) return false;
        return native_jwt_key_made(jwt, crypto_key_from_ed25519(first, key_out));
    }
    return native_jwt_wrong(jwt, "the JWK must be of type oct, RSA, EC (P-256) or OKP (Ed25519)");
}

/* A member that is there must be of its kind: "alg": 5 is no JWK without alg. */
static bool native_jwt_jwk_kinds(struct native_jwt *jwt, cy_value jwk)
{
    static const char *const texts[] = {"kty", "use", "alg", "kid"};
    cy_value value;
    for (size_t i = 0; i < CY_COUNT_OF(texts); i++)
        if (map_get_text(jwt->call->vm, jwk, cy_bytes_from_text(texts[i]), &value) && value.tag != TAG_STR)
            return native_jwt_wrong(jwt, "kty, use, alg and kid of a JWK are str");
    if (!map_get_text(jwt->call->vm, jwk, CY_BYTES("key_ops"), &value)) return true;
    for (size_t i = 0; value.tag == TAG_LIST && i < list_count(value); i++) {
        cy_value word = list_get(value, i);
        if (word.tag == TAG_STR && cy_bytes_equal(string_bytes(word), CY_BYTES("verify"))) return true;
    }
    return native_jwt_wrong(jwt, "the JWK is not for verifying (key_ops)");
}

/* What a JWK says about its own use must fit the token. */
static bool native_jwt_jwk_fits(struct native_jwt *jwt, cy_value jwk)
{
    cy_bytes text, kid;
    if (!native_jwt_jwk_kinds(jwt, jwk)) return false;
    if (native_jwt_text(jwt, jwk, "use", &text) && !cy_bytes_equal(text, CY_BYTES("sig")))
        return native_jwt_wrong(jwt, "the JWK is not for signatures (use)");
    if (native_jwt_text(jwt, jwk, "alg", &text) &&
        !cy_bytes_equal(text, cy_bytes_from_text(native_jwt_algorithms[jwt->algorithm].name)))
        return native_jwt_refuse(jwt, "algorithm", "the token's algorithm is not the key's");
    if (native_jwt_text(jwt, jwk, "kid", &text) && native_jwt_text(jwt, jwt->header, "kid", &kid) &&
        !cy_bytes_equal(text, kid))
        return native_jwt_refuse(jwt, "key", "the token is signed with another key (kid)");
    return true;
}

static bool native_jwt_good(struct native_jwt *jwt, bool good)
{
    return good || native_jwt_refuse(jwt, "signature", "the signature is wrong");
}

/* One DER SEQUENCE and nothing behind it: what keys and certificates are. */
static bool native_jwt_is_der(cy_bytes bytes)
{
    size_t length = 0, head = 2;
    if (bytes.count < 2 || bytes.data[0] != 0x30) return false;
    size_t length_bytes = bytes.data[1] & 0x80 ? bytes.data[1] & 0x7f : 0;
    if (length_bytes > 3 || bytes.count < head + length_bytes) return false;
    if (length_bytes == 0) length = bytes.data[1];
    for (size_t i = 0; i < length_bytes; i++) length = length << 8 | bytes.data[head++];
    return length == bytes.count - head;
}

/* Base64 of such, also in lines. */
static bool native_jwt_is_base64_der(cy_bytes text)
{
    uint8_t packed[NATIVE_JWT_TEXT_BYTES], bytes[NATIVE_JWT_TEXT_BYTES];
    size_t packed_count = 0, count, offset;
    for (size_t i = 0; i < text.count; i++) {
        if (memchr(" \t\r\n", text.data[i], 4)) continue;
        if (packed_count == sizeof packed) return false;
        packed[packed_count++] = text.data[i];
    }
    cy_bytes view = cy_bytes_of(packed, packed_count);
    for (int alphabet = 0; alphabet < 2; alphabet++)
        if (decode_base64(view, alphabet ? ENCODE_BASE64_URL : ENCODE_BASE64, bytes, &count, &offset) &&
            native_jwt_is_der(cy_bytes_of(bytes, count)))
            return true;
    return false;
}

/* Everybody knows a public key, so as a secret it protects nothing. */
static bool native_jwt_looks_public(cy_bytes secret)
{
    static const char *const words[] = {"-----BEGIN ", "---- BEGIN ", "\"kty\""};
    static const char *const starts[] = {"ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"};
    for (size_t i = 0; i < CY_COUNT_OF(words); i++)
        if (memmem(secret.data, secret.count, words[i], strlen(words[i]))) return true;
    for (size_t i = 0; i < CY_COUNT_OF(starts); i++)
        if (cy_bytes_start_with(secret, cy_bytes_from_text(starts[i]))) return true;
    return native_jwt_is_der(secret) || native_jwt_is_base64_der(secret);
}

static bool native_jwt_verify_secret(struct native_jwt *jwt, cy_bytes secret, cy_bytes signature)
{
    uint8_t wanted[CRYPTO_DIGEST_BYTES_MAX];
    if (jwt->algorithm != NATIVE_JWT_HS256)
        return native_jwt_refuse(jwt, "algorithm", "the token's algorithm does not fit the key");
    if (secret.count < NATIVE_JWT_SECRET_BYTES_MIN)
        return native_jwt_wrong(jwt, "a secret for HS256 must have 32 bytes or more");
    if (native_jwt_looks_public(secret))
        return native_jwt_wrong(jwt, "the secret for HS256 looks like a public key");
    cy_err err = crypto_hmac(CRYPTO_SHA256, secret, jwt->signed_part, wanted);
    if (cy_failed(err)) return native_jwt_failed(jwt, err);
    return native_jwt_good(jwt,
                           crypto_equal(signature, cy_bytes_of(wanted, crypto_digest_bytes(CRYPTO_SHA256))));
}

/* Takes the key. */
static bool native_jwt_verify_public(struct native_jwt *jwt, struct crypto_key *owned_key, cy_bytes signature)
{
    bool good = false, fits = jwt->algorithm != NATIVE_JWT_HS256 &&
                              native_jwt_algorithms[jwt->algorithm].kind == crypto_key_kind(owned_key);
    cy_err err = fits ? crypto_verify(owned_key, jwt->signed_part, signature, &good) : CY_OK;
    crypto_key_free(&owned_key);
    if (!fits) return native_jwt_refuse(jwt, "algorithm", "the token's algorithm does not fit the key");
    return cy_failed(err) ? native_jwt_failed(jwt, err) : native_jwt_good(jwt, good);
}

static bool native_jwt_verify_with(struct native_jwt *jwt, cy_value key, cy_bytes signature)
{
    struct crypto_key *public_key = NULL;
    uint8_t room[NATIVE_JWT_NUMBER_BYTES];
    cy_bytes secret;
    if (key.tag == TAG_STR) {
        cy_bytes text = string_bytes(key);
        bool pem = memmem(text.data, text.count, "-----BEGIN ", 11) != NULL;
        if (!pem && jwt->allowed != 1u << NATIVE_JWT_HS256 && jwt->allowed >> NATIVE_JWT_HS256 & 1)
            return native_jwt_wrong(
                jwt, "with HS256 beside other algorithms a key is PEM or a JWK, so that what it "
                     "is for is certain");
        if (!pem) return native_jwt_verify_secret(jwt, text, signature);
        if (!native_jwt_key_made(jwt, crypto_key_from_pem(text, &public_key))) return false;
        return native_jwt_verify_public(jwt, public_key, signature);
    }
    if (!native_jwt_jwk_fits(jwt, key)) return false;
    if (native_jwt_is(jwt, key, "kty", "oct")) {
        if (!native_jwt_number(jwt, key, "k", room, &secret)) return false;
        return native_jwt_verify_secret(jwt, secret, signature);
    }
    return native_jwt_public_jwk(jwt, key, &public_key) &&
           native_jwt_verify_public(jwt, public_key, signature);
}

static bool native_jwt_signature(struct native_jwt *jwt, cy_value key)
{
    uint8_t signature[LIMIT_JWT_BYTES];
    size_t count, offset;
    if (!decode_base64(jwt->signature_part, ENCODE_BASE64_URL, signature, &count, &offset))
        return native_jwt_refuse(jwt, "form", "the signature is not base64");
    return native_jwt_verify_with(jwt, key, cy_bytes_of(signature, count));
}

/* -- claims ------------------------------------------------------------------------------------------------- */

/* A claim that is seconds since 1970, perhaps with a fraction. False when the token was refused. */
static bool native_jwt_seconds(struct native_jwt *jwt, const char *name, double absent, double *seconds_out)
{
    cy_value value;
    *seconds_out = absent;
    if (!map_get_text(jwt->call->vm, jwt->claims, cy_bytes_from_text(name), &value)) return true;
    if (value.tag == TAG_INT) *seconds_out = (double)value.as.i;
    if (value.tag == TAG_FLOAT) *seconds_out = value.as.f;
    return value.tag == TAG_INT || value.tag == TAG_FLOAT ||
           native_jwt_refuse(jwt, "claims", "exp and nbf are numbers");
}

static bool native_jwt_times(struct native_jwt *jwt)
{
    const cy_value *options = jwt->options;
    double leeway = options[NATIVE_JWT_LEEWAY].tag == TAG_INT ? (double)options[NATIVE_JWT_LEEWAY].as.i : 0;
    double now = options[NATIVE_JWT_NOW].tag == TAG_INT ? (double)options[NATIVE_JWT_NOW].as.i
                                                        : (double)clock_wall_ms() / 1000;
    double expires, begins;
    if (!native_jwt_seconds(jwt, "exp", INFINITY, &expires)) return false;
    if (!native_jwt_seconds(jwt, "nbf", -INFINITY, &begins)) return false;
    if (!(now < expires + leeway)) return native_jwt_refuse(jwt, "expired", "the token has expired");
    if (!(now >= begins - leeway)) return native_jwt_refuse(jwt, "not_yet", "the token is not valid yet");
    return true;
}

static bool native_jwt_audience_has(cy_value audience, cy_bytes wanted)
{
    if (audience.tag == TAG_STR) return cy_bytes_equal(string_bytes(audience), wanted);
    if (audience.tag != TAG_LIST) return false;
    for (size_t i = 0; i < list_count(audience); i++) {
        cy_value one = list_get(audience, i);
        if (one.tag == TAG_STR && cy_bytes_equal(string_bytes(one), wanted)) return true;
    }
    return false;
}

/* RFC 7519 section 4.1.3: who is not named in a token for somebody must refuse it, so a token with aud needs the
 * option. */
static bool native_jwt_parties(struct native_jwt *jwt)
{
    cy_value claim, wanted = jwt->options[NATIVE_JWT_AUDIENCE];
    bool has_audience = map_get_text(jwt->call->vm, jwt->claims, CY_BYTES("aud"), &claim);
    bool fits = wanted.tag == TAG_STR ? has_audience && native_jwt_audience_has(claim, string_bytes(wanted))
                                      : !has_audience;
    if (!fits) return native_jwt_refuse(jwt, "audience", "the token is for somebody else (aud)");
    wanted = jwt->options[NATIVE_JWT_ISSUER];
    cy_bytes issuer;
    fits = wanted.tag != TAG_STR || (native_jwt_text(jwt, jwt->claims, "iss", &issuer) &&
                                     cy_bytes_equal(issuer, string_bytes(wanted)));
    return fits || native_jwt_refuse(jwt, "issuer", "the token is from somebody else (iss)");
}

static bool native_jwt_required(struct native_jwt *jwt)
{
    cy_value list = jwt->options[NATIVE_JWT_REQUIRE], claim;
    for (size_t i = 0; list.tag == TAG_LIST && i < list_count(list); i++) {
        cy_value name = list_get(list, i);
        if (name.tag != TAG_STR) return native_jwt_wrong(jwt, "require is a list of names of claims");
        if (!map_get_text(jwt->call->vm, jwt->claims, string_bytes(name), &claim))
            return native_jwt_refuse(jwt, "claims", "a claim that is required is not there");
    }
    return true;
}

/* {header, claims} */
static bool native_jwt_result(struct native_jwt *jwt)
{
    struct vm *vm = jwt->call->vm;
    cy_value result;
    cy_err err = map_new(vm, 2, &result);
    if (cy_failed(err)) return native_jwt_failed(jwt, err);
    err = map_set_text(vm, &result, CY_BYTES("header"), value_ref(jwt->header));
    if (!cy_failed(err)) err = map_set_text(vm, &result, CY_BYTES("claims"), value_ref(jwt->claims));
    if (!cy_failed(err)) {
        native_return(jwt->call, result);
        return true;
    }
    value_unref(vm, result);
    return native_jwt_failed(jwt, err);
}

enum native_outcome native_jwt_verify(struct native_call *call)
{
    struct native_jwt jwt = {.call = call, .header = value_nil(), .claims = value_nil()};
    cy_bytes token = string_bytes(call->args[0]);
    if (!option_read(call, 2, "jwt.verify", native_jwt_rows, NATIVE_JWT_OPTION_COUNT, jwt.options))
        return NATIVE_FAIL;
    if (token.count > LIMIT_JWT_BYTES)
        return native_fail(call, CY_ERR(LIMIT), "jwt.verify: a token of more than %d bytes (JWT_BYTES)",
                           LIMIT_JWT_BYTES);
    native_charge(call, 1000 + token.count / 10); /* a signature takes some 50 microseconds */
    bool good =
        native_jwt_split(&jwt, token) && native_jwt_header(&jwt) &&
        native_jwt_signature(&jwt, call->args[1]) &&
        native_jwt_read_map(&jwt, jwt.claims_part, "the claims are not base64 of a JSON map", &jwt.claims) &&
        native_jwt_times(&jwt) && native_jwt_parties(&jwt) && native_jwt_required(&jwt) &&
        native_jwt_result(&jwt);
    value_unref(call->vm, jwt.header);
    value_unref(call->vm, jwt.claims);
    return good ? NATIVE_DONE : NATIVE_FAIL;
}
