# SPDX-License-Identifier: MIT
#
# Makefile: builds crownyc, its tests and its papers. `make help` lists the goals.
#
# In:   sources found by folder, in layer order (docs/ARCHITECTURE.md); packages of .ci/packages.
# Out:  $(BUILD)/crownyc (release: one generated C file), $(BUILD)/debug (file by file), $(BUILD)/sanitize.
# Not here: installing packages by itself. A missing one is named with the line that installs it.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
PKG_CONFIG ?= pkg-config
JOBS ?= 2

# `make deps test` must install before anything looks for libraries, also under -j. So when deps stands beside other
# goals, it runs first and the rest runs in a make of its own.
GOALS_AFTER_DEPS := $(if $(filter deps,$(MAKECMDGOALS)),$(filter-out deps,$(MAKECMDGOALS)))
ifneq ($(GOALS_AFTER_DEPS),)

.PHONY: deps $(GOALS_AFTER_DEPS) goals-after-deps
$(GOALS_AFTER_DEPS): goals-after-deps
	@:
goals-after-deps: deps
	+@$(MAKE) --no-print-directory $(GOALS_AFTER_DEPS)
deps:
	@.ci/install-packages

else

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# -- what is built -------------------------------------------------------------------------------------------------

LAYERS_ALL := base code run sys net http rpc store native compiler
LAYERS ?= $(LAYERS_ALL)
LAYERS_CORE := base code run compiler
layer_folder = $(if $(filter compiler,$1),compiler,vm/$1)
layer_sources = $(sort $(wildcard $(call layer_folder,$1)/*.c))

# LAYERS are those whose unit tests are built. What they link with are these and whatever their sources and tests include,
# by any number of steps.
layers_seen = $(filter $(LAYERS_ALL),$1 \
    $(shell sed -nE 's,^#include "tests/support/loop.*,net,p;s,^#include "(vm/|tests/unit/)?([a-z]+)/.*,\2,p' \
    $(foreach layer,$1,$(wildcard $(call layer_folder,$(layer))/*.[ch] tests/unit/$(layer)/*.[ch])) /dev/null | sort -u))
layers_needed = $(if $(filter-out $1,$(call layers_seen,$1)),$(call layers_needed,$(sort $(call layers_seen,$1))),$1)
LAYERS_NEEDED := $(if $(filter-out $(LAYERS),$(LAYERS_ALL)),$(call layers_needed,$(LAYERS)),$(LAYERS))

SOURCES := $(foreach layer,$(filter $(LAYERS_NEEDED),$(LAYERS_ALL)),$(call layer_sources,$(layer)))
# Natives of group CORE lie in vm/native too: the files there that see base, code and run only. native.c names them all.
BEYOND_CORE := vm/(sys|net|http|rpc|store)/|vm/native/(runtime|generation|job|native_http|native_net|native_yaml|regex|native_regex)|<(yaml|openssl|pcre2|ffi)
SOURCES_CORE := $(foreach layer,$(LAYERS_CORE),$(call layer_sources,$(layer))) $(filter-out vm/native/native.c,\
    $(shell grep -LE 'include .?($(BEYOND_CORE))' $(call layer_sources,native) /dev/null | grep '\.c$$'))
# The command line sees every layer and no layer sees it; tests run it as a program.
SOURCES_COMMAND := $(sort $(wildcard vm/cli/*.c)) $(wildcard vm/main.c)
SOURCES_ALL := $(foreach layer,$(LAYERS_ALL),$(call layer_sources,$(layer))) $(SOURCES_COMMAND)
STDLIB := $(sort $(wildcard stdlib/*.han))
# Beside the tests of these: what the tests of the layers below share (http's use net's certificates).
TEST_SOURCES := $(sort $(foreach layer,$(LAYERS),$(wildcard tests/unit/$(layer)/*.c)) \
    $(filter-out %_test.c,$(foreach layer,$(LAYERS_NEEDED),$(wildcard tests/unit/$(layer)/*.c))) \
    $(if $(filter-out $(LAYERS),$(LAYERS_ALL)),,$(wildcard tests/limit/*.c)))
TESTS := $(filter %_test.c,$(TEST_SOURCES))
# The simulated loop and the loopback peers need vm/net.
TEST_SUPPORT := $(sort $(filter-out tests/support/core_main.c $(if $(filter net,$(LAYERS_NEEDED)),,tests/support/loop%),\
    $(wildcard tests/support/*.c)))

# One variable per library: the header that shows its use, its pkg-config name, its Debian package, and who includes it.
# A library that no source includes today is neither looked for nor linked.
LIBRARIES := utf8proc openssl cares nghttp2 yaml pcre2 ffi edit
utf8proc_header := utf8proc.h
utf8proc_module := libutf8proc
utf8proc_package := libutf8proc-dev
utf8proc_user := vm/base
openssl_header := openssl/
openssl_module := openssl
openssl_package := libssl-dev
openssl_user := vm/sys, vm/net
cares_header := ares.h
cares_module := libcares
cares_package := libc-ares-dev
cares_user := vm/net
nghttp2_header := nghttp2/nghttp2.h
nghttp2_module := libnghttp2
nghttp2_package := libnghttp2-dev
nghttp2_user := vm/http
yaml_header := yaml.h
yaml_module := yaml-0.1
yaml_package := libyaml-dev
yaml_user := vm/native
pcre2_header := pcre2.h
pcre2_module := libpcre2-8
pcre2_package := libpcre2-dev
pcre2_user := vm/native
ffi_header := ffi.h
ffi_module := libffi
ffi_package := libffi-dev
ffi_user := vm/native
edit_header := histedit.h
edit_module := libedit
edit_package := libedit-dev
edit_user := vm/cli

libraries_in = $(strip $(foreach library,$(LIBRARIES),$(if $(shell grep -lF '<$($(library)_header)' $1 /dev/null 2>/dev/null),$(library))))
LIBRARIES_USED := $(call libraries_in,$(SOURCES) $(SOURCES_COMMAND))
MODULES_USED := $(foreach library,$(LIBRARIES_USED),$($(library)_module))
pkg_cflags = $(if $1,$(shell $(PKG_CONFIG) --cflags $1 2>/dev/null))
pkg_libs = $(if $1,$(shell $(PKG_CONFIG) --libs $1 2>/dev/null))

# -- how it is compiled --------------------------------------------------------------------------------------------

IS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
# For computed goto: gcse and crossjumping fold the many dispatch jumps of the interpreter back into one.
FLAGS_RELEASE := -O2 $(if $(IS_CLANG),,-fno-gcse -fno-crossjumping)
FLAGS_DEBUG := -O0 -g -DCY_DEBUG
FLAGS_SANITIZE := -O1 -g -DCY_DEBUG -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all

ifdef FUZZ
OUT := $(BUILD)/fuzz
# Edges guide the fuzzer. Tracing every comparison beside them took a third of the time of a run.
FLAGS_MODE := $(subst -O1,-O2,$(FLAGS_SANITIZE)) -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp
SEPARATE := 1
else ifdef SANITIZE
OUT := $(BUILD)/sanitize
FLAGS_MODE := $(FLAGS_SANITIZE)
SEPARATE := 1
else ifdef DEBUG
OUT := $(BUILD)/debug
FLAGS_MODE := $(FLAGS_DEBUG)
SEPARATE := 1
else
OUT := $(BUILD)
FLAGS_MODE := $(FLAGS_RELEASE)
endif

# _GNU_SOURCE is empty so that a file which also defines it agrees with the command line.
CPPFLAGS_ALL = -I. -D_GNU_SOURCE= $(PKG_CFLAGS) $(CPPFLAGS)
CFLAGS_ALL = -std=gnu11 -Wall -Wextra $(if $(WERROR),-Werror) $(FLAGS_MODE) $(CFLAGS)
COMPILE = $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP
LINK = $(CC) $(CFLAGS_ALL) $(LDFLAGS)
PKG_CFLAGS := $(call pkg_cflags,$(MODULES_USED))
LIBS_ALL = $(call pkg_libs,$(MODULES_USED)) -lpthread -lm
LIBS_TEST = $(LIBS_ALL) $(call pkg_libs,check)

# One short line for each step; V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),@:,@echo '  $1')

OBJECTS_OF = $(patsubst %.c,$(OUT)/objects/%.o,$1)
OBJECTS := $(call OBJECTS_OF,$(SOURCES)) $(OUT)/objects/stdlib_embedded.o
OBJECTS_CORE := $(call OBJECTS_OF,$(SOURCES_CORE)) $(OUT)/objects/stdlib_embedded.o

# -- goals ---------------------------------------------------------------------------------------------------------

.PHONY: all help check-deps deps unit unit-binary test test-all test-poll sanitize valgrind core crownyc-core run format \
	format-check docs install clean FORCE

NAMES := hanseonc_high hanseonc_rpn crownyc-jit
HAS_MAIN := $(wildcard vm/main.c)
HAS_GATEWAY := $(wildcard programs/gateway/main.han)

all: check-deps $(if $(HAS_MAIN),$(OUT)/crownyc $(NAMES:%=$(OUT)/%) gateway,objects-only)

.PHONY: gateway objects-only
gateway: $(if $(HAS_GATEWAY),$(OUT)/gateway.toau)
	@$(if $(HAS_GATEWAY),:,echo "skipped: $(OUT)/gateway.toau (programs/gateway/main.han is not there)")
objects-only: $(OBJECTS)
	@echo "vm/main.c is not there: only objects were built"

help:
	@echo "make            build $(BUILD)/crownyc (release) and $(BUILD)/gateway.toau"
	@echo "make DEBUG=1    the same file by file, with assertions, into $(BUILD)/debug"
	@echo "make deps       install the Debian packages of .ci/packages"
	@echo "make run        build, then show the gateway in front of a small upstream"
	@echo "make test       the suite (under 5 minutes); make test-all adds the slow ones"
	@echo "make unit LAYERS='base code'   unit tests of some layers only"
	@echo "make test-poll  units, language, transcripts and system tests on the poll back end of the loop"
	@echo "make sanitize   the suite under AddressSanitizer and UBSan"
	@echo "make valgrind   unit tests, a part of the language tests and a gateway under valgrind"
	@echo "make fuzz       fuzz targets under libFuzzer for TIME=300 seconds, then damaged .toau files and RPN texts"
	@echo "make bench      the gateway beside nginx, HAProxy, H2O and Caddy; ROWS=small,8k ROUNDS=7 SECONDS=2"
	@echo "make bench-mixed  the gateway under mixed load, with reloads and killed workers, for HOLD=3600 seconds"
	@echo "make bench-micro  small programs beside Lua, LuaJIT, Node and Python; BENCH='--only pure' passes options"
	@echo "make format     clang-format over all C files"
	@echo "make docs       write docs/OPCODES.md and docs/STDLIB.md from the tables"
	@echo "make install    into PREFIX=$(PREFIX), below DESTDIR when set"
	@echo "make clean      remove $(BUILD)"
	@echo "variables: BUILD CC WERROR=1 DEBUG=1 SANITIZE=1 CFLAGS LDFLAGS JOBS V=1"

deps:
	@.ci/install-packages

# One line for each missing thing, then the line that installs them.
check-deps:
	@CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' .ci/check-packages $(foreach library,$(LIBRARIES_USED),\
	    '$($(library)_module)|$($(library)_package)|$($(library)_user)')
.PHONY: check-deps-test
check-deps-test: check-deps
	@CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' .ci/check-packages 'check|check|tests/unit' 'python3|python3|tests/run'

# -- rules ---------------------------------------------------------------------------------------------------------

# A file that changes exactly when the text in it does: objects depend on their flags and lists through these.
# $(call write_if_changed,FILE) reads the new text on standard input.
write_if_changed = mkdir -p $(dir $1) && cat > $1.new && if cmp -s $1.new $1; then rm -f $1.new; else mv $1.new $1; fi

$(OUT)/objects/flags: FORCE
	@printf '%s\n' '$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS)' | { $(call write_if_changed,$@); }

$(OUT)/objects/%.o: %.c $(OUT)/objects/flags | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $<)
	$(Q)$(COMPILE) -c $< -o $@

$(OUT)/objects/stdlib_embedded.o: $(OUT)/stdlib_embedded.c $(OUT)/objects/flags | check-deps
	$(call say,CC $<)
	$(Q)$(COMPILE) -c $< -o $@

# private: the flags file, a prerequisite, must not see it. Assertions tell Check where they stand through unit_main.c.
$(OUT)/objects/tests/%.o: private CPPFLAGS += $(call pkg_cflags,check) -D_mark_point=unit_mark_point

$(OUT)/tools/embed: stdlib/embed.c | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $<)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra $(if $(WERROR),-Werror) -O1 $< -o $@

$(OUT)/objects/stdlib.list: FORCE
	@echo '$(STDLIB)' | { $(call write_if_changed,$@); }
$(OUT)/stdlib_embedded.c: $(OUT)/tools/embed $(STDLIB) $(OUT)/objects/stdlib.list
	$(Q)$(OUT)/tools/embed $@ $(STDLIB)

# The release: every .c in one translation unit, in layer order. Its dependency file lists all that it includes.
$(OUT)/all.c: FORCE
	@{ echo '/* Written by the Makefile: do not edit. */'; \
	   for source in $(SOURCES_ALL); do echo "#include \"$$source\""; done; \
	   echo '#include "stdlib_embedded.c"'; } | { $(call write_if_changed,$@); }
$(OUT)/objects/all.o: $(OUT)/all.c $(OUT)/stdlib_embedded.c $(OUT)/objects/flags | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $< (every source in one unit))
	$(Q)$(COMPILE) -I$(OUT) -c $< -o $@

ifdef SEPARATE
$(OUT)/crownyc: $(OBJECTS) $(call OBJECTS_OF,$(SOURCES_COMMAND))
	$(call say,LINK $@)
	$(Q)$(LINK) $^ $(LIBS_ALL) -rdynamic -o $@
else
$(OUT)/crownyc: $(OUT)/objects/all.o
	$(call say,LINK $@)
	$(Q)$(LINK) $^ $(LIBS_ALL) -o $@
endif

$(NAMES:%=$(OUT)/%): $(OUT)/crownyc
	@ln -sf crownyc $@

$(OUT)/gateway.toau: $(OUT)/crownyc $(wildcard programs/gateway/*.han)
	$(call say,COMPILE $@)
	$(Q)$(OUT)/crownyc compile programs/gateway/main.han -o $@

# The core alone: proves that the language needs libc, libm and utf8proc and nothing else.
core crownyc-core: $(OUT)/crownyc-core
$(OUT)/crownyc-core: $(OBJECTS_CORE) $(OUT)/objects/tests/support/core_main.o
	$(call say,LINK $@)
	$(Q)$(LINK) $^ $(call pkg_libs,$(foreach l,$(call libraries_in,$(SOURCES_CORE)),$($(l)_module))) -lm -o $@

# -- tests ---------------------------------------------------------------------------------------------------------

# Commands that run whatever they are given within bounds: mutants of programs and texts, and programs without memory. They
# are built with sanitizers also for `make test`. All but fail_natives need the core only.
HARNESSES := $(OUT)/toau_mutate $(OUT)/rpn_mutate $(OUT)/fail_allocations
$(HARNESSES): $(OBJECTS_CORE) $(call OBJECTS_OF,tests/fuzz/toau_run.c)
$(OUT)/toau_mutate: $(call OBJECTS_OF,tests/fuzz/toau_mutate.c tests/fuzz/toau_mutate_main.c \
    $(filter-out %_test.c,$(wildcard tests/unit/code/program_*.c)))
$(OUT)/rpn_mutate: $(call OBJECTS_OF,tests/fuzz/rpn_mutate.c tests/fuzz/rpn_judge.c \
    $(filter-out %_test.c,$(wildcard tests/unit/code/program_*.c)))
$(OUT)/fail_allocations: $(call OBJECTS_OF,tests/fault/fail_allocations.c)
$(HARNESSES):
	$(call say,LINK $@)
	$(Q)$(LINK) $^ $(call pkg_libs,$(foreach l,$(call libraries_in,$(SOURCES_CORE)),$($(l)_module))) -lm -o $@
$(OUT)/fail_natives: $(OBJECTS) $(call OBJECTS_OF,tests/fault/fail_natives.c)
	$(call say,LINK $@)
	$(Q)$(LINK) $^ $(LIBS_ALL) -rdynamic -o $@
.PHONY: harnesses fuzz
harnesses: $(HARNESSES) $(OUT)/fail_natives

# The runner's table is written from the list of files: base/bytes_test.c defines unit_suite_base_bytes().
TEST_NAMES = $(patsubst tests/%_test.c,%,$(TESTS:tests/unit/%=tests/%))
$(OUT)/unit_suites.c: FORCE
	@{ echo '/* Written by the Makefile: do not edit. */'; echo '#include "tests/support/unit_main.h"'; \
	   for t in $(TEST_NAMES); do echo "Suite *unit_suite_$$(echo $$t | tr / _)(void);"; done; \
	   echo 'const struct unit_suite unit_suites[] = {'; \
	   for t in $(TEST_NAMES); do n=$$(echo $$t | tr / _); echo "    {\"$$n\", unit_suite_$$n},"; done; \
	   echo '    {NULL, NULL},'; echo '};'; } | { $(call write_if_changed,$@); }
$(OUT)/objects/tests/unit_suites.o: $(OUT)/unit_suites.c $(OUT)/objects/flags | check-deps-test
	@mkdir -p $(dir $@)
	$(call say,CC $<)
	$(Q)$(COMPILE) -c $< -o $@
OBJECTS_UNIT := $(OBJECTS) $(call OBJECTS_OF,$(TEST_SOURCES) $(TEST_SUPPORT)) $(OUT)/objects/tests/unit_suites.o
$(OUT)/objects/unit.list: FORCE
	@echo '$(OBJECTS_UNIT)' | { $(call write_if_changed,$@); }
$(OUT)/unit_tests: $(OBJECTS_UNIT) $(OUT)/objects/unit.list
	$(call say,LINK $@)
	$(Q)$(LINK) $(OBJECTS_UNIT) $(LIBS_TEST) -o $@

TEST_RUN = tests/run --jobs $(JOBS) --slowest 10
ifdef SEPARATE
unit-binary: $(OUT)/unit_tests
unit: unit-binary
	$(TEST_RUN) --build $(OUT) --only unit
else
unit-binary unit:
	+@$(MAKE) --no-print-directory DEBUG=1 $@
endif

.PHONY: test-binaries
test-binaries: all $(OUT)/unit_tests $(OUT)/crownyc-core $(OUT)/fuzz_replay $(OUT)/simulate bench-tools \
    $(OUT)/bench/start_up
# The suite runs on the debug build, and the language tests again on the release that users get.
test test-all: check-deps-test
	+@$(MAKE) --no-print-directory DEBUG=1 test-binaries
	+@$(MAKE) --no-print-directory all
	+@$(MAKE) --no-print-directory SANITIZE=1 harnesses
	@$(TEST_RUN) --build $(BUILD)/debug --release $(BUILD) --harnesses $(BUILD)/sanitize \
	    $(if $(filter test-all,$@),--all)
# Everything that opens sockets, on the back end that every system has.
test-poll: check-deps-test
	+@$(MAKE) --no-print-directory DEBUG=1 test-binaries
	@$(TEST_RUN) --build $(BUILD)/debug --io poll --only unit --only lang --only wire --only system
sanitize: check-deps-test
	+@$(MAKE) --no-print-directory SANITIZE=1 test-binaries harnesses
	@$(TEST_RUN) --build $(BUILD)/sanitize --sanitized
valgrind: check-deps-test
	+@$(MAKE) --no-print-directory DEBUG=1 test-binaries
	@$(TEST_RUN) --build $(BUILD)/debug --valgrind
# Fuzz targets (tests/fuzz/target.def): fuzz_replay gives them files, for the corpora in the tree; under libFuzzer, which
# comes with clang, fuzz_targets looks for new inputs.
OBJECTS_TARGETS := $(OBJECTS) $(call OBJECTS_OF,tests/fuzz/toau_run.c tests/fuzz/rpn_judge.c $(wildcard tests/fuzz/target*.c) \
    tests/support/loopback.c tests/support/loop_sim.c)
$(OUT)/fuzz_replay: $(OBJECTS_TARGETS) $(call OBJECTS_OF,tests/fuzz/fuzz_replay.c)
	$(call say,LINK $@)
	$(Q)$(LINK) $^ $(LIBS_ALL) -o $@
$(OUT)/fuzz_targets: $(OBJECTS_TARGETS) $(call OBJECTS_OF,tests/fuzz/fuzz_libfuzzer.c)
	$(call say,LINK $@)
	$(Q)$(LINK) -fsanitize=fuzzer $^ $(LIBS_ALL) -o $@
# Seeded schedules of the simulated network through server, proxy and client (tests/sim).
$(OUT)/simulate: $(OBJECTS) $(call OBJECTS_OF,$(sort $(wildcard tests/sim/*.c)) tests/support/loop_sim.c tests/support/http_model.c)
	$(call say,LINK $@)
	$(Q)$(LINK) $^ $(LIBS_ALL) -o $@
.PHONY: fuzz-targets
fuzz-targets: $(OUT)/fuzz_targets

# New inputs for TIME seconds, shared by the targets, then mutants of .toau files and RPN texts made with
# knowledge of the format.
TIME ?= 300
fuzz: check-deps-test
	+@$(MAKE) --no-print-directory DEBUG=1 all
	+@$(MAKE) --no-print-directory SANITIZE=1 harnesses
	+@$(MAKE) --no-print-directory FUZZ=1 CC=clang fuzz-targets
	@tests/fuzz/run_fuzz.py --build $(BUILD) --seconds $(TIME)
	@mkdir -p $(BUILD)/fuzz/mutants && cd $(BUILD)/fuzz/mutants && FUZZ_MS=$$(($(TIME) * 100)) \
	    BUILD=$(abspath $(BUILD))/debug CROWNYC_HARNESSES=$(abspath $(BUILD))/sanitize \
	    $(CURDIR)/tests/fuzz/toau_mutate_slow_test.py
	@cd $(BUILD)/fuzz/mutants && FUZZ_MS=$$(($(TIME) * 100)) \
	    BUILD=$(abspath $(BUILD))/debug CROWNYC_HARNESSES=$(abspath $(BUILD))/sanitize \
	    $(CURDIR)/tests/fuzz/rpn_mutate_slow_test.py

run: all
	@bench/demo.sh $(OUT)

# -- measuring -----------------------------------------------------------------------------------------------------

# Small programs in five languages; BENCH='--rounds 9 --only pure' passes options (bench/README.md).
BENCH ?=
BENCH_TOOLS := $(OUT)/bench/start_up $(OUT)/bench/empty_c $(OUT)/bench/empty_c_libraries
$(OUT)/bench/start_up: bench/micro/start_up.c
$(OUT)/bench/empty_c $(OUT)/bench/empty_c_libraries: bench/micro/empty.c
$(OUT)/bench/empty_c_libraries: private BENCH_LIBS = -Wl,--no-as-needed $(LIBS_ALL)
$(BENCH_TOOLS): | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $@)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra $(if $(WERROR),-Werror) -O2 -D_GNU_SOURCE= $< $(BENCH_LIBS) -o $@
.PHONY: bench-micro
bench-micro: all $(OUT)/crownyc-core $(BENCH_TOOLS)
	@bench/micro/run --crownyc $(OUT)/crownyc --tools $(OUT)/bench $(BENCH)

# The gateway beside nginx, HAProxy, H2O and Caddy (docs/BENCH.md): make bench ROWS=small,8k ROUNDS=7 SECONDS=2
ROWS ?= all
PEERS ?= all
ROUNDS ?= 7
SECONDS ?= 2
PROXY_TOOLS := $(patsubst %,$(OUT)/bench/%,upstream relay relay_uring spinner)
$(PROXY_TOOLS): $(OUT)/bench/%: bench/gateway/%.c | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $@)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra $(if $(WERROR),-Werror) -O2 -D_GNU_SOURCE= $< -o $@
.PHONY: bench bench-tools
bench-tools: $(PROXY_TOOLS)
bench: all bench-tools
	@bench/gateway/run --crownyc $(OUT)/crownyc --tools $(OUT)/bench --rows $(ROWS) --peers $(PEERS) --rounds $(ROUNDS) \
	    --seconds $(SECONDS) $(BENCH)

# The gateway under everything at once, with reloads and killed workers (docs/BENCH.md): make bench-mixed HOLD=3600
HOLD ?= 3600
.PHONY: bench-mixed
bench-mixed: all bench-tools
	@bench/gateway/mixed --crownyc $(OUT)/crownyc --tools $(OUT)/bench --seconds $(HOLD) $(BENCH)

# -- papers, layout, installation ----------------------------------------------------------------------------------

FORMATTED = $(wildcard vm/*.[ch] vm/*/*.[ch] compiler/*.[ch] stdlib/*.c docs/*.c docs/*/*.c tests/support/*.[ch] tests/unit/*/*.[ch] \
    tests/fuzz/*.[ch] tests/fault/*.[ch] tests/limit/*.[ch] tests/sim/*.[ch] bench/*/*.c)
format:
	clang-format -i $(FORMATTED)
format-check:
	clang-format --dry-run -Werror $(FORMATTED)

$(OUT)/tools/gen_opcodes: docs/gen_opcodes.c $(wildcard vm/code/*.def vm/code/*.h vm/base/*.h) | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $<)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra -I. -O1 $< -o $@
$(OUT)/tools/gen_stdlib: docs/gen_stdlib.c $(wildcard vm/code/*.def) | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $<)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra -I. -O1 $< -o $@
$(OUT)/tools/gen_grammar: docs/editors/gen_grammar.c compiler/token.def vm/code/kind.def | check-deps
	@mkdir -p $(dir $@)
	$(call say,CC $<)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra $(if $(WERROR),-Werror) -O1 -I. $< -o $@
GRAMMAR := docs/editors/vscode/syntaxes/hanseon.tmLanguage.json
docs: $(OUT)/tools/gen_opcodes $(OUT)/tools/gen_stdlib $(OUT)/tools/gen_grammar
	$(OUT)/tools/gen_grammar > $(GRAMMAR)
	$(OUT)/tools/gen_opcodes > docs/OPCODES.md
	$(OUT)/tools/gen_stdlib $(STDLIB) > docs/STDLIB.md
.PHONY: docs-check
docs-check: $(OUT)/tools/gen_opcodes $(OUT)/tools/gen_stdlib $(OUT)/tools/gen_grammar
	@$(OUT)/tools/gen_grammar | cmp - $(GRAMMAR) || { echo '$(GRAMMAR) is old: make docs'; exit 1; }
	@$(OUT)/tools/gen_opcodes | cmp - docs/OPCODES.md || { echo 'docs/OPCODES.md is old: make docs'; exit 1; }
	@$(OUT)/tools/gen_stdlib $(STDLIB) | cmp - docs/STDLIB.md || { echo 'docs/STDLIB.md is old: make docs'; exit 1; }

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/crownyc $(DESTDIR)$(PREFIX)/share/doc/crownyc
	install -m 755 $(OUT)/crownyc $(DESTDIR)$(PREFIX)/bin/crownyc
	for name in $(NAMES); do ln -sf crownyc $(DESTDIR)$(PREFIX)/bin/$$name; done
	if test -f $(OUT)/gateway.toau; then install -m 644 $(OUT)/gateway.toau $(DESTDIR)$(PREFIX)/share/crownyc/; fi
	if test -f programs/gateway/gateway.yaml; then \
	    install -m 644 programs/gateway/gateway.yaml $(DESTDIR)$(PREFIX)/share/doc/crownyc/; fi
	install -m 644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/crownyc/

clean:
	rm -rf $(BUILD)

FORCE:
-include $(shell test -d $(OUT)/objects && find $(OUT)/objects -name '*.d')

endif
