#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/rows_test.py: proves that every row of limits.def is used by the product, and that a test stands at it and
# one past it, or that the table below says why none does.
#
# In:   limits.def, the product's sources, the tests. The tests named here are run by their own runners.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tidy"))
from _tree import Report, code_only, product_sources, read, test_missing  # noqa: E402

ROW = re.compile(r"^LIMIT\((\w+),", re.M)

RUN, COMMAND = "tests/limit/run_test.c", "tests/limit/command_test.py"
LIBRARY = "tests/limit/library_test.py"
REGEX = "tests/unit/native/regex_test.c"
COMPILER, VERIFY = "tests/unit/compiler/compiler_test.c", "tests/unit/code/verify_test.c"
HEAD, BODY, VERDICT = (f"tests/unit/http/{name}_test.c" for name in ("h1_parse", "h1_body", "verdict"))
H2, H2_RECEIVER = "tests/unit/http/h2_flood_test.c", "tests/unit/http/h2_receiver_test.c"
H2_CLIENT, H2_TIMEOUT = "tests/unit/http/h2_client_test.c", "tests/unit/http/h2_timeout_test.c"
BENEATH, HELPER, OUTPUT = (f"tests/unit/sys/{name}_test.c" for name in ("beneath", "helper", "output"))
SHARED, LOG = "tests/unit/sys/shared_test.c", "tests/unit/base/log_test.c"
WORLD = "tests/limit/world_test.py"
LSP = "tests/limit/lsp_test.py"
OLD = "tests/unit/native/old_instances_test.c"
LOAD = "tests/unit/http/load_test.c"
YAML = "tests/unit/native/yaml_walk_test.c"
AT_AND_PAST = "test_limits_hold_at_their_value_and_one_past_it"

TESTED = {
    "PROXY_PROTOCOL_BYTES": ("tests/unit/net/proxy_protocol_test.c", "test_version_2_is_bounded"),
    "ACCESS_LOG_TARGET_BYTES": ("tests/unit/http/access_log_test.c", "test_texts_are_cut_at_their_limits"),
    "ACCESS_LOG_FIELD_BYTES": ("tests/unit/http/access_log_test.c", "test_texts_are_cut_at_their_limits"),
    "ACCESS_LOG_FLUSH_MS": ("tests/unit/http/access_log_test.c", "test_lines_are_gathered"),
    "PROXY_PROTOCOL_MS": ("tests/system/proxy_protocol_test.py", "test_a_header_that_never_ends"),
    "PROXY_PROTOCOL_PEERS": ("tests/system/proxy_protocol_test.py", "test_ranges_are_bounded"),
    "UPGRADE_IDLE_MS": ("tests/system/upgrade_test.py", "test_an_idle_client_is_let_go"),
    "SOURCE_BYTES": (COMMAND, "test_source_bytes"),
    "NESTING_DEPTH": ("tests/unit/compiler/parse_test.c", "test_nesting_is_bounded"),
    "TOAU_BYTES": ("tests/unit/code/toau_read_test.c", "test_a_file_past_the_limit_is_not_looked_at"),
    "RPN_BYTES": ("tests/unit/code/rpn_read_test.c", "test_a_text_past_the_limit_is_not_looked_at"),
    "FUNCTION_PARAMS": (COMPILER, "test_limits_at_and_past"),
    "FUNCTION_LOCALS": (COMPILER, "test_limits_at_and_past"),
    "FUNCTION_STACK": (VERIFY, "test_limits_stand_where_they_say"),
    "FUNCTION_CAPTURES": (COMMAND, "test_function_captures"),
    "FUNCTION_CODE_BYTES": ("tests/unit/code/verify_flow_test.c", "test_code_of_exactly_the_limit"),
    "PROGRAM_NAME_BYTES": (COMPILER, "test_limits_at_and_past"),
    "RECORD_FIELDS": (COMPILER, "test_limits_at_and_past"),
    "DEFER_DEPTH": (COMPILER, "test_limits_at_and_past"),
    "LSP_HEADER_BYTES": (LSP, "test_header_bytes"),
    "LSP_MESSAGE_BYTES": (LSP, "test_message_bytes"),
    "LSP_MESSAGE_VALUES": (LSP, "test_message_values"),
    "LSP_DOCUMENTS": (LSP, "test_documents"),
    "LSP_RENAME_FILES": (LSP, "test_rename_files"),
    "COMPILE_ERRORS": ("tests/unit/compiler/diag_test.c", "test_at_the_limit_all_are_shown_and_past_it_counted"),
    "CALL_DEPTH": (RUN, "test_call_depth"),
    "FIBER_STACK_BYTES": (RUN, "test_fiber_stack_bytes"),
    "VALUE_DEPTH": (RUN, "test_value_depth"),
    "KEY_NESTING": ("tests/unit/run/visited_test.c", "test_maps_as_keys_of_maps"),
    "FORMAT_BYTES": ("tests/unit/run/visited_test.c", "test_texts_are_bounded"),
    "WALK_STEPS": ("tests/unit/run/visited_test.c", "test_steps_are_bounded"),
    "TEXT_MARKS": ("tests/unit/native/native_text_test.c", "test_marks_are_bounded"),
    "NEAREST_PAIRS": ("tests/unit/native/native_text_test.c", "test_words_compared_are_bounded"),
    "STRING_BYTES": (RUN, "test_string_bytes_and_list_items"),
    "LIST_ITEMS": (RUN, "test_string_bytes_and_list_items"),
    "BUDGET_STEPS": (RUN, "test_budget_steps"),
    "CPU_BURST_MS": (RUN, "test_cpu_burst_ms"),
    "DEFER_ALLOWANCE_MS": (RUN, "test_defer_allowance_ms"),
    "VM_MEMORY_BYTES": (RUN, "test_vm_memory_bytes"),
    "KEY_STEPS": ("tests/unit/run/visited_test.c", "test_a_large_key_is_refused"),
    "TASK_MEMORY_BYTES": ("tests/unit/run/memory_test.c", "test_task_memory_bytes"),
    "TASK_RESULTS": ("tests/unit/run/task_test.c", "test_task_results"),
    "TASKS_CANCELLED": ("tests/unit/run/task_test.c", "test_tasks_cancelled"),
    "TASKS": (RUN, "test_tasks"),
    "HANDLES": (RUN, "test_handles"),
    "ERROR_PLACES": (RUN, "test_error_places"),
    "PROFILE_FRAMES": ("tests/unit/run/profile_test.c", "test_past_its_frames_weight_stays_outside"),
    "PROFILE_DEPTH": ("tests/unit/run/profile_test.c", "test_depth_at_and_past_the_limit"),
    "REPL_INPUTS": ("tests/system/repl_test.py", "test_inputs_at_and_past_the_limit"),
    "REPL_HISTORY": ("tests/system/repl_test.py", "test_history_is_bounded"),
    "LOG_LINE_BYTES": ("tests/unit/base/log_test.c", "test_long_line_is_cut_at_a_letter"),
    "HTTP_HEAD_BYTES": (HEAD, AT_AND_PAST),
    "HTTP_TARGET_BYTES": (HEAD, AT_AND_PAST),
    "HTTP_FIELDS": (HEAD, AT_AND_PAST),
    "HTTP_METHOD_BYTES": (HEAD, AT_AND_PAST),
    "HTTP_CHUNK_LINE_BYTES": (BODY, AT_AND_PAST),
    "HTTP_TRAILER_BYTES": (BODY, AT_AND_PAST),
    "HTTP_RESPOND_BODY_BYTES": (COMMAND, "test_respond_body_bytes"),
    "HTTP_VERDICT_FIELDS": (VERDICT, AT_AND_PAST),
    "HTTP_INTERIM_RESPONSES": (COMMAND, "test_interim_responses"),
    "HTTP_DRAIN_BYTES": (COMMAND, "test_drain_bytes"),
    "HTTP_SPARE": ("tests/unit/base/spare_test.c", "test_no_more_than_the_bound_are_kept"),
    "SPARE_TRIM_BLOCKS": ("tests/unit/base/spare_test.c", "test_trim_blocks_at_and_past_the_limit"),
    "SPARE_TRIM_BYTES": ("tests/unit/base/spare_test.c", "test_pages_of_a_burst_go_back"),
    "SPARE_TRIM_LARGE_BLOCKS": ("tests/unit/base/spare_test.c", "test_trim_blocks_at_and_past_the_limit"),
    "HTTP2_STREAMS": (H2, "test_streams_at_and_past_the_limit"),
    "HTTP2_STREAM_WINDOW_BYTES": (H2, "test_windows_at_and_past_the_limits"),
    "HTTP2_CONNECTION_WINDOW_BYTES": (H2, "test_windows_at_and_past_the_limits"),
    "HTTP2_UPSTREAM_WINDOW_BYTES": (H2_CLIENT, "test_the_connection_s_window_at_and_past_the_limit"),
    "HTTP2_DRAIN_MS": (H2_TIMEOUT, "test_a_client_that_does_not_hear_of_the_end"),
    "HTTP2_CONTINUATIONS": (H2, "test_continuations_at_and_past_the_limit"),
    "HTTP2_IDLE_FRAMES": (H2, "test_floods_end_in_goaway"),
    "HTTP2_STREAM_FRAMES": (H2_RECEIVER, "test_stream_frames_at_and_past_the_limit"),
    "HTTP2_UPDATE_BYTES": (H2_RECEIVER, "test_update_bytes_at_and_past_the_limit"),
    "HTTP2_RESETS": (H2, "test_floods_end_in_goaway"),
    "HTTP2_RESET_ANSWERS": (H2_RECEIVER, "test_resets_beside_answers"),
    "BUFFER_BYTES": ("tests/unit/net/buffer_test.c", "test_take_and_unref"),
    "BUFFER_BULK_BYTES": ("tests/unit/net/buffer_test.c", "test_sizes"),
    "BUFFERS_BULK": ("tests/unit/net/buffer_test.c", "test_bulk_buffers_at_and_past_the_limit"),
    "PIPES": ("tests/unit/net/loop_pipe_test.c", "test_pipes_at_and_past_the_limit"),
    "PIPES_FREE": ("tests/unit/net/loop_pipe_test.c", "test_pipes_at_and_past_the_limit"),
    "PIPE_BYTES": ("tests/unit/net/loop_pipe_test.c", "test_a_reader_that_stops_holds_one_pipe_until_the_end"),
    "LOOP_UNHURRIED": ("tests/unit/net/loop_cost_test.c", "test_unhurried_at_and_past_the_limit"),
    "LOOP_SENDING": ("tests/unit/net/loop_cost_test.c", "test_sends_that_wait_at_and_past_the_limit"),
    "WORKERS": (COMMAND, "test_workers"),
    "GENERATION_FILE_BYTES": (COMMAND, "test_configuration_file_bytes"),
    "OLD_INSTANCES": (OLD, "test_as_many_as_the_limit_stay"),
    "OLD_INSTANCE_GRACE_MS": (OLD, "test_past_the_limit_the_oldest_get_a_grace"),
    "LITERAL_UPSTREAMS": (COMMAND, "test_literal_upstreams"),
    "NAME_BYTES": ("tests/unit/http/uri_test.c", "test_a_host_name_may_be_as_long_as_the_limit"),
    "YAML_BYTES": (YAML, "test_bytes_are_bounded"),
    "YAML_PIECE_BYTES": (YAML, "test_what_one_event_reads_is_bounded"),
    "YAML_DEPTH": (YAML, "test_depth_is_bounded"),
    "YAML_NODES": (YAML, "test_nodes_are_bounded"),
    "PATH_BYTES": (BENEATH, "test_limits_of_a_path"),
    "PATH_DEPTH": (BENEATH, "test_limits_of_a_path"),
    "PATH_RULES": (BENEATH, "test_rules_are_bounded"),
    "HELPER_THREADS": (HELPER, "test_bounds_and_cancelling"),
    "HELPER_WAITING": ("tests/system/files_test.py", "test_pipes_that_do_not_answer_leave_threads_for_files"),
    "HELPER_JOBS": (HELPER, "test_bounds_and_cancelling"),
    "OUTPUT_RING_BYTES": (OUTPUT, "test_the_longest_piece"),
    "LOG_REPEAT_TEXTS": (LOG, "test_texts_remembered"),
    "LOG_FIELDS": (WORLD, "test_log_fields"),
    "PROCESS_OUTPUT_BYTES": (WORLD, "test_process_output_bytes"),
    "PROCESS_ARGUMENTS": (WORLD, "test_process_arguments"),
    "TIMEOUT_MS": (WORLD, "test_timeout_ms"),
    "INPUT_BYTES": ("tests/system/input_test.py", "test_the_limit"),
    "SHARED_COUNTERS": (WORLD, "test_shared_memory"),
    "SHARED_TABLES": (WORLD, "test_shared_memory"),
    "SHARED_ENTRIES": (WORLD, "test_shared_memory"),
    "SHARED_KEY_BYTES": (SHARED, "test_bounds"),
    "GENERATION_FILES": (WORLD, "test_generation_files"),
    "SERVE_LISTEN": (WORLD, "test_serve_listen"),
    "LABEL_BYTES": (WORLD, "test_label_bytes"),
    "FETCH_BODY_BYTES": (WORLD, "test_fetch_body_bytes"),
    "FFI_PARAMS": (WORLD, "test_ffi_params"),
    "PARSED_URL_BYTES": (LIBRARY, "test_url_limits"),
    "QUERY_PAIRS": (LIBRARY, "test_url_limits"),
    "REGEX_PATTERN_BYTES": (REGEX, "test_pattern_bytes_at_and_past_the_limit"),
    "REGEX_MATCH_STEPS": (REGEX, "test_every_bound_has_its_error"),
    "REGEX_DEPTH": (REGEX, "test_below_the_bounds_it_matches"),
    "REGEX_HEAP_KIB": (REGEX, "test_every_bound_has_its_error"),
    "REGEX_CALL_MS": (REGEX, "test_every_bound_has_its_error"),
    "REGEX_MATCH_US": (REGEX, "test_time_at_and_past_the_limit"),
    "REGEX_PIECE_US": (REGEX, "test_a_piece_ends_by_the_clock"),
    "REGEX_PIECE_STEPS": (REGEX, "test_steps_in_place"),
    "JWT_BYTES": (LIBRARY, "test_jwt_bytes"),
    "HASH_BYTES": (LIBRARY, "test_hash_bytes"),
    "RANDOM_BYTES": (LIBRARY, "test_random_bytes"),
    "TLS_CERTIFICATES": ("tests/unit/net/tls_policy_test.c",
                         "test_a_server_needs_certificates_and_client_certificates_an_authority"),
    "TLS_PEM_BYTES": ("tests/unit/net/tls_policy_test.c", "test_a_file_past_the_limit_is_not_looked_at"),
    "GENERATION_ROUNDS": ("tests/unit/net/master_test.c", "test_a_check_may_ask_for_more"),
    "LOAD_CONNECTIONS": (LOAD, AT_AND_PAST),
    "LOAD_ROWS": (LOAD, AT_AND_PAST),
    "LOAD_SLOTS": ("tests/unit/http/h2_load_test.c", AT_AND_PAST),
    "LOAD_RATE": (LOAD, AT_AND_PAST),
    "LOAD_LIST_BYTES": ("tests/system/load_test.py", "test_a_list_at_and_past_its_limit"),
    "JSON_NUMBER_BYTES": ("tests/unit/base/json_test.c", "test_number_at_and_past_the_limit"),
    "JSON_DEPTH": ("tests/unit/base/json_test.c", "test_depth_at_and_past_the_limit"),
    "JSON_BYTES": ("tests/unit/native/native_json_test.c", "test_bytes_at_and_past_the_limit"),
}

# A size of a step or of a cache: nothing is refused, so there is no "past" that could be told from "at". What is named
# proves that the step or cache works, whatever its size: (file, test, what it does), or why there is none.
PACE = {
    "PROFILE_STEPS": ("tests/unit/run/profile_test.c", "test_steps_are_the_same_on_every_run",
        "samples with periods of its own"),
    "HTTP_WRITE_SLICE_BYTES": ("tests/wire/verdicts/large.txt", "GET /large/3000000", "a body of many slices"),
    "HTTP_EVICT_PAUSE_MS": "how often is looked, not what is found: without it each newcomer would look at all clients",
    "HTTP_EVICT_BATCH": ("tests/system/slow_clients_test.py", "test_heads_that_do_not_end",
        "more clients than one batch: closed batch by batch"),
    "LSP_QUEUE": ("tests/system/lsp_test.py", "test_every_prefix_of_ten_programs",
        "sends hundreds of messages at once; they wait, none is refused"),
    "PIPE_BODY_BYTES": ("tests/unit/http/bulk_test.c", "test_bodies_arrive_and_what_follows_them_too",
        "bodies far above it, exchange_test.c on both sides of it"),
    "BUFFERS_FREE": ("tests/unit/net/buffer_test.c", "test_free_list_is_bounded", "bounds a pool by its argument"),
    "SPARE_TRIM_MS": ("tests/unit/net/loop_spare_test.c", "test_trimmed_each_interval_until_all_rest",
        "sees each trimming on a simulated clock"),
    "LOAD_OPENING": ("tests/unit/http/load_test.c", "test_opening_is_bounded", "the others wait"),
    "LOOP_ROUNDS": ("tests/unit/net/loop_cost_test.c", "test_busy_sockets_do_not_starve_timers", "a timer is heard"),
    "ACCEPT_BATCH": ("tests/unit/net/loop_connect_test.c", "test_accept_many", "accepts more than one batch"),
    "HTTP2_MEMORY_FREE_BYTES": ("tests/unit/http/h2_memory_test.c", "test_what_is_kept_is_bounded",
        "what does not fit goes back to the system"),
    "TLS_WRITE_WINDOW_BYTES": ("tests/unit/net/tls_stream_test.c", "test_a_slow_reader_costs_a_window",
        "and test_big_writes_are_few_sends"),
    "TLS_WARM": ("tests/unit/net/tls_stream_test.c", "test_only_the_last_at_work_keep_record_buffers",
        "idle connections give their buffers back"),
    "TLS_DEPTH": ("tests/unit/net/tls_policy_test.c", "test_depth", "default of an option"),
    "LISTEN_BACKLOG": "the kernel cuts it at somaxconn and says nothing",
}
# A time: a test that waited for it would prove that clocks go on. What is named goes through the same code with a time
# of its own, or waits for the event: (file, test, what it does), or why there is none.
TIME = {
    "HTTP_CONTINUE_WAIT_MS": ("tests/wire/expect_continue/we_say_it.txt", "100 Continue", "waits for the event"),
    "HTTP_TUNNEL_IDLE_MS": ("tests/unit/http/timeout_test.c", "test_a_tunnel_lasts_while_either_side_speaks",
        "default of an option that the test sets"),
    "HTTP_TUNNEL_HALF_MS": ("tests/unit/http/timeout_test.c", "test_a_tunnel_of_which_one_side_has_finished_waits_less",
        "on a simulated clock"),
    "HTTP_MIN_RATE_GRACE_MS": (
        "tests/unit/http/timeout_test.c", "test_a_slow_body_is_408_and_one_at_the_least_rate_is_not",
        "default of an option that the test sets"),
    "HTTP_RESERVE_PART": ("tests/system/slow_clients_test.py", "test_connections_that_say_nothing",
        "at 41 of 46 clients quiet ones are closed for who comes"),
    "HTTP_QUIET_MS": ("tests/unit/http/intake_test.c", "test_it_makes_room_as_others_do",
        "who came last is not closed for the next one before that"),
    "HTTP_OWING_MS": ("tests/unit/http/h2_room_test.c", "test_who_lets_us_wait_makes_room",
        "on a simulated clock; slow_clients_test.py fills a server with clients that owe their bodies"),
    "HTTP_HALF_CLOSE_MS": ("tests/unit/http/half_close_test.c",
        "test_a_client_that_leaves_with_a_fin_cancels_its_upstream", "default of an option that the test sets"),
    "HTTP_STOP_MS": ("tests/wire/upgrade/stop.txt", "stop_ms=500", "default of an option that the test sets"),
    "HTTP_LINGER_MS": ("tests/wire/early_response/answered_here.txt", "a long one closes it", "lingers"),
    "PIPES_PAUSE_MS": ("tests/unit/net/loop_pipe_test.c", "test_without_descriptors_it_is_a_buffer",
        "looks at what is tried within it, and past it"),
    "LOOP_UNHURRIED_MS": ("tests/unit/net/loop_cost_test.c", "test_an_unhurried_receive_is_registered_late",
        "looks at what is closed within it, and waits for its end"),
    "ACCEPT_PAUSE_MS": ("tests/unit/net/loop_connect_test.c", "test_accept_pauses_when_descriptors_run_out",
        "waits for the end of a pause"),
    "UPGRADE_READY_MS": ("tests/system/upgrade_test.py", "test_a_bad_binary_leaves_the_old_one",
        "a minute; the new binary of the test ends sooner"),
    "UPGRADE_BYTES": "LISTENERS rows of WORKERS lines each do not come near it",
    "ADMIN_CONNECTIONS": "the bound of every server (CONNECTIONS), with another number",
    "TLS_SESSION_S": "two hours; OpenSSL keeps it",
    "TLS_TICKET_KEY_S": ("tests/unit/net/tls_policy_test.c", "test_ticket_keys_change_by_the_hour",
        "asks for the keys of many hours"),
    "GENERATION_CHECK_MS": ("tests/unit/net/master_test.c", "test_a_check_that_never_ends_is_refused",
        "default of an option that the test sets"),
    "WORKER_DRAIN_MS": ("tests/unit/net/master_test.c", "test_stuck_worker_is_ended_after_the_drain_time",
        "default of an option that the test sets"),
    "WORKER_BACKOFF_MS": ("tests/unit/net/master_test.c", "test_worker_that_keeps_dying_is_started_with_pauses",
        "sees the pauses grow"),
    "CONNECT_TIMEOUT_MS": "default of an option",
    "DNS_TTL_FLOOR_MS": ("tests/unit/net/dns_test.c", "test_one_look_up_serves_all_and_is_remembered",
        "waits past it for the next look-up"),
    "DNS_TTL_CEILING_MS": "five minutes",
    "DNS_RETRY_MS": "expiry as with DNS_TTL_FLOOR_MS, another number",
    "DNS_TIMEOUT_MS": "c-ares keeps it",
    "LOAD_PAUSE_MS": ("tests/unit/http/load_test.c", "test_a_failure_is_followed_by_a_pause", "on a simulated clock"),
    "LOG_REPEAT_MS": ("tests/unit/base/log_test.c", "test_a_repeat_is_told_when_its_time_is_over",
        "moves the time of a line back"),
    "OUTPUT_FLUSH_MS": ("tests/system/output_test.py", "test_the_end_does_not_wait_for_ever",
        "ends a server whose output nobody reads"),
    "PROCESS_TIMEOUT_MS": ("tests/system/run_test.py", "test_errors", "default of an option that the test sets"),
    "NET_TIMEOUT_MS": ("tests/system/net_test.py", "test_timeout_and_default_bound",
        "default of an argument that the test gives"),
}
# Out of reach of a test that should end in seconds and leave the machine usable.
SIZE = {
    "HTTP_LINGER_BYTES": "only the connection is cut past it; the peer cannot tell that from HTTP_LINGER_MS",
    "HTTP_MIN_RATE": ("tests/unit/http/timeout_test.c", "test_a_slow_body_is_408_and_one_at_the_least_rate_is_not",
        "default of an option that the test sets"),
    "HTTP_RATE": ("tests/lang/world/http_terms.han", "min_rate must be int", "no client is as fast; ranges are named"),
    "HTTP_POOL_IDLE": ("tests/wire/upstream_death/reused_retry.txt", "A reused connection dies",
        "default of an option; the pool is used"),
    "CONNECTIONS": "65536 connections need more descriptors than a test may have; default of an option",
    "LISTENERS": "http.serve takes fewer addresses, and says how many",
    "GENERATION_BYTES": "2 GiB: a program and files at their own limits stay below it",
    "DNS_NAMES": "4096 names with a server that answers them: the oldest goes first, nothing is refused",
    "DNS_TRIES": "c-ares keeps it",
    "FOLDER_ENTRIES": ("tests/unit/sys/beneath_test.c", "test_files",
        "262144 files take a minute; bounds a list by its argument"),
    "TLS_UNANSWERED_BYTES": "OpenSSL answers one key update at a time, so no peer gets there: a second line",
    "DNS_ADDRESSES": "nothing is refused: the first 16 addresses of a name are tried",
}


# Past these nothing is said to anybody who could use the name: why.
SILENT = {
    "COMPILE_ERRORS": "the count of what is not shown is",
    "TASKS_CANCELLED": "waiting for an earlier one is an error closed",
    "BUDGET_STEPS": "the task goes on in its next turn",
    "DEFER_ALLOWANCE_MS": "the task has been told CPU_BURST_MS, or why else it was stopped",
    "ERROR_PLACES": "the count of what is left out is",
    "LOG_LINE_BYTES": "the line ends in ...",
    "LOG_REPEAT_TEXTS": "the line is told again",
    "OLD_INSTANCES": "the requests of the oldest are cancelled; OLD_INSTANCE_GRACE_MS later",
    "OLD_INSTANCE_GRACE_MS": "they are told that they were cancelled",
    "HELPER_THREADS": "jobs wait",
    "HELPER_JOBS": "error too_many of the call that had no room",
    "OUTPUT_RING_BYTES": "the count of what was dropped is",
    "REPL_HISTORY": "the oldest line goes first",
    "REGEX_MATCH_US": "the call has been told REGEX_CALL_MS",
    "REGEX_PIECE_US": "the search goes on in the task's next turn",
    "REGEX_PIECE_STEPS": "the match begins again where it can be paused",
    "HTTP_DRAIN_BYTES": "the connection is closed, and its peer gets no words",
    "HTTP2_STREAM_WINDOW_BYTES": "SETTINGS say it, and RST_STREAM or GOAWAY have codes, no words",
    "HTTP2_CONNECTION_WINDOW_BYTES": "as HTTP2_STREAM_WINDOW_BYTES",
    "HTTP2_UPSTREAM_WINDOW_BYTES": "a window: what it allows, WINDOW_UPDATE says",
    "HTTP2_DRAIN_MS": "a connection without requests ends: nobody is told why",
    "HTTP2_STREAM_FRAMES": "past it HTTP2_IDLE_FRAMES is used up, which the log names",
    "HTTP2_UPDATE_BYTES": "as HTTP2_STREAM_FRAMES",
    "HTTP2_RESET_ANSWERS": "past it HTTP2_RESETS is used up, which the log names",
    "BUFFER_BYTES": "the next buffer takes the rest",
    "ACCESS_LOG_TARGET_BYTES": "the line has less of the text",
    "ACCESS_LOG_FIELD_BYTES": "the line has less of the text",
    "ACCESS_LOG_FLUSH_MS": "a time until something happens",
    "PROXY_PROTOCOL_MS": "the log says that it took too long",
    "UPGRADE_IDLE_MS": "a connection ends between two requests",
    "BUFFERS_BULK": "small buffers do the same in more calls",
    "LOOP_UNHURRIED": "the next socket is registered at once",
    "LOOP_SENDING": "the next send is tried at once",
    "PIPES": "the body is copied instead",
    "HTTP_SPARE": "the next one is allocated",
    "SPARE_TRIM_BLOCKS": "the rest goes the next time",
    "SPARE_TRIM_BYTES": "pages that hold nothing stay until more has gone",
    "SPARE_TRIM_LARGE_BLOCKS": "the rest goes the next time",
    "PIPES_FREE": "a pipe is closed instead of kept",
    "PIPE_BYTES": "the next pipe takes the rest",
    "NAME_BYTES": "no such name can exist: it is not a name",
}


def unnamed(rows, texts):
    """Tested rows whose name no message of the product can hold."""
    said = "\n".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', "\n".join(texts)))
    names = set(re.findall(r"\b[A-Z][A-Z0-9_]*[A-Z]\b", said.replace("LIMIT_", "")))
    return ([f"{row}: no message names it" for row in rows if row not in names and row not in SILENT]
            + [f"{row}: named, so not silent" for row in SILENT if row in names and row in rows])


LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
REFUSAL = re.compile(r"CY_ERR(?:_DETAIL)?\((?:LIMIT|TOO_LARGE|TOO_MANY|DEPTH)\b[^)]*\),\s*(" + LITERALS.pattern + ")")
VALUE = r"%(?:\.\*)?(?:ll|z)?[du]|\{\d\}"


def valueless(values, texts):
    """Messages that name a row without its value, whichever way it is written; and refusals for a limit that name none.
    A message is a literal with a space; a number in it must be the row's."""
    complaints = []
    names = re.compile(r"\b(" + "|".join(sorted(values, key=len, reverse=True)) + r")\b")
    for path, text in texts.items():
        bare = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for literals in LITERALS.findall(bare):
            said = "".join(piece[1:-1] for piece in re.findall(r'"(?:[^"\\\n]|\\.)*"', literals))
            # What begins with -- is an option, shown before its range.
            for name in names.findall(said) if " " in said and not said.startswith("--") else ():
                written = re.search(name + r"(?::| =| ?\() ?(\d+)", said)
                if written and int(written.group(1)) != values[name]:
                    complaints.append(f"{path}: {said!r}: {name} is {values[name]}")
                elif not written and not re.search(VALUE, said):
                    complaints.append(f"{path}: {said!r} does not say the value of {name}")
        complaints += [f"{path}: {said} names no limit" for said in REFUSAL.findall(bare)
                       if " " in said and not names.search(said)]
    return complaints


def test_is_there(row, place):
    path, function = place
    complaints = [f"{row}: {complaint}" for complaint in test_missing(path, function)]
    if not complaints and not re.search(rf"\b{row}\b|\bLIMIT_{row}\b", read(pathlib.Path(path))):
        complaints = [f"{row}: {path} does not speak of it"]
    return complaints


def reason_holds(row, reason):
    """A reason is words, which name no test; or the test that goes through the same code, and what it does."""
    if isinstance(reason, str):
        return [f"{row}: {path}: which test of it?" for path in re.findall(r"tests/[\w/.]+", reason)]
    path, function, _why = reason
    return [f"{row}: {complaint}" for complaint in test_missing(path, function)]


def missing(rows, tables):
    complaints = []
    for row in rows:
        count = sum(row in table for table in tables)
        if count != 1:
            complaints.append(f"{row}: {'neither a test nor a reason' if count == 0 else 'listed twice'}")
    known = set(rows)
    complaints += [f"{row}: no such row" for table in tables for row in table if row not in known]
    return complaints


def unused(rows, texts):
    used = set()
    for path, text in texts.items():
        if path.endswith("limits.def"):
            continue
        used |= set(re.findall(r"\bLIMIT_(\w+)", code_only(text)))
    return [f"{row}: nothing uses it" for row in rows if row not in used]


def main():
    report = Report()
    rows = ROW.findall(read(pathlib.Path("vm/base/limits.def")))
    tables = (TESTED, PACE, TIME, SIZE)
    report.rule("every row is in one table", missing(rows, tables))
    for row, place in TESTED.items():
        report.rule(f"the test of {row}", test_is_there(row, place))
    for table in tables[1:]:
        for row, reason in table.items():
            report.rule(f"the reason of {row}", reason_holds(row, reason))
    report.rule("every row is used", unused(rows, product_sources(".c", ".h")))
    texts = [text for path, text in product_sources(".c", ".h", ".def").items() if not path.endswith("limits.def")]
    report.rule("messages name the limit", unnamed(TESTED, texts))
    values = {name: eval(value, {"INT32_MAX": 2**31 - 1})  # noqa: S307: our own table
              for name, value in re.findall(r"^LIMIT\((\w+),\s*([^,]+),", read(pathlib.Path("vm/base/limits.def")),
                                            re.M)}
    # h1_fault.def: what peers are told; a server may have been given less than the row.
    messages = {str(path): text for path, text in product_sources(".c", ".def").items()
                if not str(path).endswith(("limits.def", "native.def", "opcode.def", "explain.def", "h1_fault.def"))}
    report.rule("messages say the limit's value", valueless(values, messages))
    report.must_find("planted: a limit without its value", valueless(values, {"x.c": 'f("too deep (JSON_DEPTH)");'}))
    report.must_find("planted: an old value", valueless(values, {"x.c": 'f("too deep (JSON_DEPTH: 511)");'}))
    report.must_find("planted: a refusal without a limit",
                     valueless(values, {"x.c": 'fail(CY_ERR(LIMIT), "at most %d files");'}))
    report.must_find("planted: a limit that no message names", unnamed(["NO_SUCH_ROW"], texts))
    report.must_find("planted: a row without a test", missing(["A", "B"], ({"A": 1}, {})))
    report.must_find("planted: a row that went", missing(["A"], ({"A": 1, "B": 1},)))
    report.must_find("planted: a dead row", unused(["A", "B"], {"x.c": "int y = LIMIT_A; /* LIMIT_B */"}))
    report.must_find("planted: a test that is gone", test_is_there("CALL_DEPTH", (RUN, "test_no_such_thing")))
    report.must_find("planted: a reason whose test is gone",
                     reason_holds("PACE", ("tests/unit/net/buffer_test.c", "test_no_such_thing", "")))
    report.must_find("planted: a reason whose test does not run",
                     reason_holds("PACE", ("tests/unit/net/buffer_test.c", "buffer_test_suite", "")))
    report.must_find("planted: a reason whose file no longer has it",
                     reason_holds("TIME", ("tests/wire/upgrade/stop.txt", "stop_ms=501", "")))
    report.must_find("planted: a reason that names a file alone",
                     reason_holds("TIME", "tests/system/lsp_test.py waits"))
    report.end()


main()
