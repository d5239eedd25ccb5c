/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_ffi.c: the module "ffi": C functions, through libffi.
 *
 * In:   a library's name, a function's name, its type as text. Out: what it returns.
 * Invariant: what is checked is checked (ranges of ints, kinds, NULs); what cannot be (the type itself, pointers) is
 *       the program's, and that is why it takes --allow ffi.
 * The call plan (ffi_cif) is made once, by ffi.fn.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

#include <dlfcn.h>
#include <ffi.h>
#include <limits.h>

enum native_ffi_kind {
    NATIVE_FFI_VOID,
    NATIVE_FFI_INT,
    NATIVE_FFI_LONG,
    NATIVE_FFI_FLOAT,
    NATIVE_FFI_DOUBLE,
    NATIVE_FFI_POINTER,
    NATIVE_FFI_STR,
    NATIVE_FFI_KINDS
};

static const struct {
    const char *word;
    ffi_type *type;
} native_ffi_kinds[NATIVE_FFI_KINDS] = {
    {"void", &ffi_type_void},   {"int", &ffi_type_sint},      {"long", &ffi_type_slong},
    {"float", &ffi_type_float}, {"double", &ffi_type_double}, {"pointer", &ffi_type_pointer},
    {"str", &ffi_type_pointer},
};

/* Counted: functions keep their library open. */
struct native_ffi_library {
    uint32_t refs;
    void *handle;
};
struct native_ffi_function {
    struct native_ffi_library *library;
    void (*code)(void);
    ffi_cif plan;
    ffi_type *types[LIMIT_FFI_PARAMS];
    uint8_t kinds[LIMIT_FFI_PARAMS];
    uint8_t result;
    uint32_t param_count;
};
union native_ffi_value {
    int i;
    long l;
    float f;
    double d;
    void *p;
    ffi_arg widened; /* libffi gives ints narrower than a register in one of these */
};

static void native_ffi_library_unref(struct native_ffi_library *library)
{
    if (--library->refs > 0) return;
    dlclose(library->handle);
    mem_free(library);
}
static void native_ffi_library_free(struct vm *vm, void *payload)
{
    (void)vm;
    native_ffi_library_unref(payload);
}
static void native_ffi_function_free(struct vm *vm, void *payload)
{
    struct native_ffi_function *function = payload;
    (void)vm;
    native_ffi_library_unref(function->library);
    mem_free(function);
}
static const struct opaque_type native_ffi_library_type = {"library", native_ffi_library_free, NULL};
static const struct opaque_type native_ffi_function_type = {"c_function", native_ffi_function_free, NULL};

enum native_outcome native_ffi_open(struct native_call *call)
{
    cy_bytes name = string_bytes(call->args[0]);
    cy_value result;
    if (memchr(name.data, 0, name.count))
        return native_fail(call, CY_ERR(VALUE), "ffi.open: the name holds a NUL");
    struct native_ffi_library *library = mem_alloc_zeroed(sizeof *library);
    if (!library) return native_fail_reason(call, CY_ERR(NO_MEMORY), "ffi.open");
    library->refs = 1;
    library->handle = dlopen(name.count ? (const char *)name.data : NULL, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) {
        const char *why = dlerror();
        mem_free(library);
        return native_fail(call, CY_ERR(NOT_FOUND), "ffi.open: %s", why ? why : "?");
    }
    cy_err err = opaque_new(call->vm, &native_ffi_library_type, library, sizeof *library, &result);
    return cy_failed(err) ? native_fail_reason(call, err, "ffi.open") : native_return(call, result);
}

/* -- types ----------------------------------------------------------------------------------------------- */

static void native_ffi_skip_spaces(cy_bytes *text)
{
    while (text->count > 0 && text->data[0] == ' ') *text = cy_bytes_skip(*text, 1);
}

static bool native_ffi_take(cy_bytes *text, uint8_t byte)
{
    native_ffi_skip_spaces(text);
    if (text->count == 0 || text->data[0] != byte) return false;
    *text = cy_bytes_skip(*text, 1);
    return true;
}

static bool native_ffi_take_kind(cy_bytes *text, uint8_t *kind_out)
{
    size_t count = 0;
    native_ffi_skip_spaces(text);
    while (count < text->count && text->data[count] >= 'a' && text->data[count] <= 'z') count++;
    cy_bytes word = cy_bytes_slice(*text, 0, count);
    *text = cy_bytes_skip(*text, count);
    for (uint8_t i = 0; i < NATIVE_FFI_KINDS; i++) {
        if (!cy_bytes_equal(word, cy_bytes_from_text(native_ffi_kinds[i].word))) continue;
        *kind_out = i;
        return true;
    }
    return false;
}

/* result "(" [kind {"," kind}] ")" ; "(void)" is "()". */
static bool native_ffi_parse(cy_bytes text, struct native_ffi_function *function)
{
    if (!native_ffi_take_kind(&text, &function->result) || !native_ffi_take(&text, '(')) return false;
    while (!native_ffi_take(&text, ')')) {
        uint8_t kind;
        if (function->param_count > 0 && !native_ffi_take(&text, ',')) return false;
        if (!native_ffi_take_kind(&text, &kind)) return false;
        if (kind == NATIVE_FFI_VOID) {
            if (function->param_count > 0 || !native_ffi_take(&text, ')')) return false;
            break;
        }
        if (function->param_count == LIMIT_FFI_PARAMS) return false;
        function->kinds[function->param_count] = kind;
        function->types[function->param_count++] = native_ffi_kinds[kind].type;
    }
    native_ffi_skip_spaces(&text);
    return text.count == 0;
}

enum native_outcome native_ffi_fn(struct native_call *call)
{
    struct native_ffi_library *library = opaque_payload(call->args[0], &native_ffi_library_type);
    cy_bytes name = string_bytes(call->args[1]), type = string_bytes(call->args[2]);
    cy_value result;
    if (!library)
        return native_fail(call, CY_ERR(TYPE), "ffi.fn: argument 1 must be a library of ffi.open, not %s",
                           value_kind_text(call->vm, call->args[0]));
    if (name.count == 0 || memchr(name.data, 0, name.count))
        return native_fail(call, CY_ERR(VALUE), "ffi.fn: the name is empty or holds a NUL");
    struct native_ffi_function *function = mem_alloc_zeroed(sizeof *function);
    if (!function) return native_fail_reason(call, CY_ERR(NO_MEMORY), "ffi.fn");
    if (!native_ffi_parse(type, function) ||
        ffi_prep_cif(&function->plan, FFI_DEFAULT_ABI, function->param_count,
                     native_ffi_kinds[function->result].type, function->types) != FFI_OK) {
        mem_free(function);
        return native_fail(
            call, CY_ERR(VALUE),
            "ffi.fn: \"%.*s\" is no type; an example: \"double(double, int)\", with void, int, long, float, "
            "double, pointer, str and at most FFI_PARAMS = %d parameters",
            CY_BYTES_ARG(cy_bytes_slice(type, 0, 256)), LIMIT_FFI_PARAMS);
    }
    void *code = dlsym(library->handle, (const char *)name.data);
    if (!code) {
        mem_free(function);
        return native_fail(call, CY_ERR(NOT_FOUND), "ffi.fn: the library has no \"%.*s\"",
                           CY_BYTES_ARG(name));
    }
    memcpy(&function->code, &code, sizeof code); /* POSIX promises that this is a function's address too */
    function->library = library;
    library->refs++;
    cy_err err = opaque_new(call->vm, &native_ffi_function_type, function, sizeof *function, &result);
    return cy_failed(err) ? native_fail_reason(call, err, "ffi.fn") : native_return(call, result);
}

/* -- calling --------------------------------------------------------------------------------------------- */

static bool native_ffi_put(uint8_t kind, cy_value value, union native_ffi_value *out)
{
    switch ((enum native_ffi_kind)kind) {
    case NATIVE_FFI_INT:
        if (value.tag != TAG_INT || value.as.i < INT_MIN || value.as.i > INT_MAX) return false;
        out->i = (int)value.as.i;
        return true;
    case NATIVE_FFI_LONG:
        if (value.tag != TAG_INT || value.as.i < LONG_MIN || value.as.i > LONG_MAX) return false;
        out->l = (long)value.as.i;
        return true;
    case NATIVE_FFI_FLOAT:
    case NATIVE_FFI_DOUBLE: {
        if (value.tag != TAG_INT && value.tag != TAG_FLOAT) return false;
        double number = value.tag == TAG_INT ? (double)value.as.i : value.as.f;
        if (kind == NATIVE_FFI_FLOAT)
            out->f = (float)number;
        else
            out->d = number;
        return true;
    }
    case NATIVE_FFI_POINTER:
        if (value.tag != TAG_INT && !value_is_nil(value)) return false;
        out->p = value_is_nil(value) ? NULL : (void *)(uintptr_t)value.as.i;
        return true;
    case NATIVE_FFI_STR:
        if (value_is_nil(value)) {
            out->p = NULL;
            return true;
        }
        if (value.tag != TAG_STR || memchr(string_bytes(value).data, 0, string_bytes(value).count))
            return false;
        out->p = (void *)(uintptr_t)string_bytes(value).data; /* const char *: it must not be written */
        return true;
    case NATIVE_FFI_VOID:
    case NATIVE_FFI_KINDS: break;
    }
    return false;
}

static enum native_outcome native_ffi_result(struct native_call *call, uint8_t kind,
                                             const union native_ffi_value *value)
{
    cy_value text;
    switch ((enum native_ffi_kind)kind) {
    case NATIVE_FFI_INT: return native_return(call, value_int((int)value->widened));
    case NATIVE_FFI_LONG: return native_return(call, value_int((long)value->widened));
    case NATIVE_FFI_FLOAT: return native_return(call, value_float(value->f));
    case NATIVE_FFI_DOUBLE: return native_return(call, value_float(value->d));
    case NATIVE_FFI_POINTER:
        return native_return(call, value->p ? value_int((int64_t)(uintptr_t)value->p) : value_nil());
    case NATIVE_FFI_STR:
        if (!value->p) return NATIVE_DONE;
        {
            cy_err err = string_new(call->vm, cy_bytes_from_text(value->p), &text);
            return cy_failed(err) ? native_fail_reason(call, err, "ffi.call") : native_return(call, text);
        }
    case NATIVE_FFI_VOID:
    case NATIVE_FFI_KINDS: break;
    }
    return NATIVE_DONE;
}

enum native_outcome native_ffi_call(struct native_call *call)
{
    struct native_ffi_function *function = opaque_payload(call->args[0], &native_ffi_function_type);
    union native_ffi_value values[LIMIT_FFI_PARAMS], result = {0};
    void *places[LIMIT_FFI_PARAMS];
    if (!function)
        return native_fail(call, CY_ERR(TYPE), "ffi.call: argument 1 must be a function of ffi.fn, not %s",
                           value_kind_text(call->vm, call->args[0]));
    if (call->arg_count - 1 != function->param_count)
        return native_fail(call, CY_ERR(CALL), "ffi.call: the function takes %u arguments, not %u",
                           function->param_count, call->arg_count - 1);
    for (uint32_t i = 0; i < function->param_count; i++) {
        places[i] = &values[i];
        if (native_ffi_put(function->kinds[i], call->args[i + 1], &values[i])) continue;
        return native_fail(call, CY_ERR(TYPE), "ffi.call: argument %u cannot be passed as %s: %s", i + 1,
                           native_ffi_kinds[function->kinds[i]].word,
                           value_kind_text(call->vm, call->args[i + 1]));
    }
    ffi_call(&function->plan, function->code, &result, places);
    native_charge(call, 1);
    return native_ffi_result(call, function->result, &result);
}
