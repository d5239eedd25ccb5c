/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_jwt.c: a signed token from a stranger, and a key that came with it (a JWK that was fetched, say).
 *
 * In:   a byte that says which key and how the rest is meant: a token as it is; or three lines, header and claims as
 *       JSON and a signature, put together here and signed where the key is a secret; or a JWK and a token behind it.
 * Promise: a token is good, or refused with a reason; without a good signature it is never good, so no token of
 *          another than the holder of the secret is.
 */
#include "tests/fuzz/target.h"
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/encode.h"
#include "vm/native/json_value.h"
#include "vm/native/native.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"
#include "vm/sys/crypto.h"

#define FUZZ_JWT_SECRET "0123456789abcdef0123456789abcdef"
#define FUZZ_JWT_AS_IT_IS 0x10
#define FUZZ_JWT_KEY_GIVEN 0x20
#define FUZZ_JWT_SIGNED 0x40

#define FUZZ_JWT_EC_KEY                                                                        \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"," \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}"
/* The keys of RFC 7515 appendix A.2 and A.3 and of RFC 8037 appendix A.2. */
static const char *const fuzz_jwt_keys[] = {
    "\"" FUZZ_JWT_SECRET "\"",
    "{\"kty\":\"oct\",\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\",\"alg\":\"HS256\"}",
    FUZZ_JWT_EC_KEY,
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
};
static const char *const fuzz_jwt_options[] = {
    "{\"algorithms\":[\"HS256\"],\"now_s\":1796083200}",
    "{\"algorithms\":[\"HS256\",\"RS256\",\"ES256\",\"EdDSA\"],\"now_s\":1796083200,\"leeway_s\":60}",
    "{\"algorithms\":[\"ES256\",\"HS256\"],\"now_s\":1796083200,\"audience\":\"us\",\"issuer\":\"joe\"}",
    "{\"algorithms\":[\"EdDSA\",\"HS256\"],\"now_s\":1796083200,\"require\":[\"sub\",\"exp\"]}",
};

static cy_value fuzz_jwt_read(struct vm *vm, cy_bytes text, bool ours)
{
    struct json_read_options options = {0};
    struct json_value_fault fault;
    cy_value value = value_nil();
    cy_err err = json_value_read(vm, text, &options, false, &fault, &value);
    CHECK(!ours || !cy_failed(err));
    return cy_failed(err) ? value_nil() : value;
}

static void fuzz_jwt_part(struct builder *token, cy_bytes part)
{
    size_t room = encode_base64_count(part.count, ENCODE_BASE64_URL);
    if (!builder_reserve(token, room)) return;
    encode_base64(part, ENCODE_BASE64_URL, token->data + token->count);
    token->count += room;
}

static cy_bytes fuzz_jwt_line(cy_bytes *rest)
{
    size_t end = cy_bytes_find(*rest, '\n');
    cy_bytes line = cy_bytes_slice(*rest, 0, end);
    *rest = cy_bytes_skip(*rest, cy_min_size(end + 1, rest->count));
    return line;
}

static void fuzz_jwt_assemble(cy_bytes lines, bool is_signed, struct builder *token)
{
    uint8_t digest[CRYPTO_DIGEST_BYTES_MAX];
    fuzz_jwt_part(token, fuzz_jwt_line(&lines));
    builder_u8(token, '.');
    fuzz_jwt_part(token, fuzz_jwt_line(&lines));
    if (is_signed) {
        CHECK(!cy_failed(crypto_hmac(CRYPTO_SHA256, CY_BYTES(FUZZ_JWT_SECRET), builder_view(token), digest)));
        lines = cy_bytes_of(digest, crypto_digest_bytes(CRYPTO_SHA256));
    }
    builder_u8(token, '.');
    fuzz_jwt_part(token, lines);
}

static void fuzz_jwt_verify(struct vm *vm, cy_bytes token, cy_value key, cy_value options, bool may_be_good)
{
    cy_value args[3] = {value_nil(), key, options};
    if (cy_failed(string_new(vm, token, &args[0]))) return;
    struct native_call call = {
        .vm = vm, .args = args, .arg_count = 3, .result = value_nil(), .error = value_nil()};
    enum native_outcome outcome = native_table_full[NATIVE_jwt_verify](&call);
    CHECK(outcome == NATIVE_DONE || outcome == NATIVE_FAIL);
    CHECK((outcome == NATIVE_DONE) == (call.result.tag == TAG_MAP));
    CHECK((outcome == NATIVE_FAIL) == (call.error.tag != TAG_NIL));
    CHECK(outcome == NATIVE_FAIL || may_be_good);
    value_unref(vm, call.result);
    value_unref(vm, call.error);
    value_unref(vm, args[0]);
}

void fuzz_target_jwt(cy_bytes input)
{
    if (input.count < 1) return;
    uint8_t bits = input.data[0];
    bool as_it_is = bits & FUZZ_JWT_AS_IT_IS, is_signed = !as_it_is && (bits & FUZZ_JWT_SIGNED);
    bool key_given = bits & FUZZ_JWT_KEY_GIVEN;
    cy_bytes rest = cy_bytes_skip(input, 1);
    const struct vm_options vm_options = {
        .natives = native_table_full, .memory_bytes_max = 1 << 22, .seed = {1, 2}};
    struct vm *vm;
    struct builder token;
    CHECK(!cy_failed(vm_new(&vm_options, &vm)));
    builder_init(&token);
    cy_value options = fuzz_jwt_read(vm, cy_bytes_from_text(fuzz_jwt_options[bits >> 2 & 3]), true);
    cy_value key = key_given ? fuzz_jwt_read(vm, fuzz_jwt_line(&rest), false)
                             : fuzz_jwt_read(vm, cy_bytes_from_text(fuzz_jwt_keys[bits & 3]), true);
    if (as_it_is)
        builder_bytes(&token, rest);
    else
        fuzz_jwt_assemble(rest, is_signed, &token);
    if (key.tag == TAG_MAP || key.tag == TAG_STR)
        fuzz_jwt_verify(vm, builder_view(&token), key, options, is_signed || key_given);
    value_unref(vm, key);
    value_unref(vm, options);
    builder_fini(&token);
    vm_free(&vm);
}
