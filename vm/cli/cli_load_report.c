/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_load_report.c: what crownyc load tells at the end: lines for people, or one JSON object.
 *
 * In:   options and result of a run. Out: stdout.
 * Invariant: what can mislead is said beside the number: percentiles of a closed loop, a generator that was itself the
 *       limit, a rate that was not reached.
 */
#include "vm/base/json.h"
#include "vm/cli/cli_load.h"

#include <stdio.h>

#define CLI_LOAD_BUSY_PERCENT 90.0 /* of a CPU: the generator may have been what was measured */
#define CLI_LOAD_LATE_NS 1000000u  /* p99 of our own lateness */
#define CLI_LOAD_RATE_PART 0.99    /* of the rate that was asked for */

struct cli_load_numbers {
    double seconds, per_second, self_us, watched_us, self_percent, watched_percent;
};

static double cli_load_cpu_us(const struct cpu_usage *usage)
{
    return (double)(usage->user_us + usage->system_us);
}

static struct cli_load_numbers cli_load_compute(const struct load_result *result)
{
    struct cli_load_numbers numbers = {.seconds = (double)result->elapsed_ns / 1e9};
    double requests = (double)result->answered_count;
    if (numbers.seconds <= 0) return numbers;
    numbers.per_second = requests / numbers.seconds;
    numbers.self_percent = cli_load_cpu_us(&result->self) / numbers.seconds / 1e4;
    numbers.watched_percent = cli_load_cpu_us(&result->watched) / numbers.seconds / 1e4;
    if (requests > 0) {
        numbers.self_us = cli_load_cpu_us(&result->self) / requests;
        numbers.watched_us = cli_load_cpu_us(&result->watched) / requests;
    }
    return numbers;
}

/* The quantiles that are told, in parts per million. */
static const struct cli_load_quantile {
    const char *name;
    uint32_t parts_per_million;
} cli_load_quantiles[] = {{"p50", 500000}, {"p90", 900000}, {"p99", 990000}, {"p99.9", 999000}};

static const char *cli_load_version(const struct load_options *load)
{
    return load->protocol == &load_http2 ? "2" : load->http10 ? "1.0" : "1.1";
}

/* -- for people ------------------------------------------------------------------------------------------ */

static void cli_load_say_time(const char *name, uint64_t ns)
{
    if (ns < 1000000)
        printf("%s %.1f us", name, (double)ns / 1e3);
    else if (ns < 10000000000ull)
        printf("%s %.2f ms", name, (double)ns / 1e6);
    else
        printf("%s %.2f s", name, (double)ns / 1e9);
}

static void cli_load_say_times(const struct histogram *histogram)
{
    for (size_t i = 0; i < CY_COUNT_OF(cli_load_quantiles); i++) {
        cli_load_say_time(cli_load_quantiles[i].name,
                          histogram_quantile(histogram, cli_load_quantiles[i].parts_per_million));
        printf("  ");
    }
    cli_load_say_time("max", histogram->count ? histogram->largest : 0);
    printf("\n");
}

static void cli_load_say_kind(bool korean, const struct cli_load_plan *plan, const struct load_options *load)
{
    printf("%.*s", CY_BYTES_ARG(plan->url));
    if (plan->row_count > 1)
        printf(korean ? " (요청 %u가지)" : " (%u requests to choose from)", plan->row_count);
    printf(": HTTP/%s", cli_load_version(load));
    if (load->keeping == LOAD_NEW) printf(korean ? ", 요청마다 새 연결" : ", a new connection per request");
    printf(korean ? ", 연결 %u개" : ", %u connections", load->connections);
    if (load->streams > 1) printf(korean ? ", 연결마다 스트림 %u개" : " with %u streams each", load->streams);
    if (load->idle)
        printf(korean ? ", 열어 두기" : ", held open");
    else if (load->rate_per_s > 0)
        printf(korean ? ", 열린 고리, 초당 %.8g개" : ", open loop at %.8g/s", load->rate_per_s);
    else
        printf(korean ? ", 닫힌 고리" : ", closed loop");
    printf("\n");
}

static void cli_load_say_faults(bool korean, const struct load_result *result)
{
    printf(korean ? "실패       " : "failed     ");
    uint64_t count = result->measured_count - result->well_count;
    if (count == 0) {
        printf(korean ? "없음\n" : "none\n");
        return;
    }
    printf("%llu\n", (unsigned long long)count);
    for (unsigned i = 1; i < LOAD_FAULT_COUNT; i++)
        if (result->faults[i])
            printf("           %llu  %s\n", (unsigned long long)result->faults[i],
                   load_fault_text(i, korean));
}

static void cli_load_say_statuses(bool korean, const struct load_result *result)
{
    printf(korean ? "상태 코드 " : "status    ");
    for (unsigned status = 0; status < CY_COUNT_OF(result->statuses); status++)
        if (result->statuses[status])
            printf(" %u: %llu", status, (unsigned long long)result->statuses[status]);
    printf("\n");
}

static void cli_load_say_connections(bool korean, const struct load_options *load,
                                     const struct load_result *result)
{
    printf(korean ? "연결       %llu번 열림" : "opened     %llu connections",
           (unsigned long long)result->opened_count);
    if (result->goaway_count)
        printf(korean ? ", 그중 %llu개는 서버가 GOAWAY로 끝냄"
                      : ", %llu of them ended by the server (GOAWAY)",
               (unsigned long long)result->goaway_count);
    if (load->is_resumed)
        printf(korean ? "; TLS 핸드셰이크 %llu번 중 되살린 세션 %llu번"
                      : "; of %llu TLS handshakes %llu resumed a session",
               (unsigned long long)result->handshake_count, (unsigned long long)result->resumed_count);
    printf("\n");
}

static void cli_load_say_cpu(bool korean, const struct load_result *result,
                             const struct cli_load_numbers *numbers)
{
    printf(korean ? "CPU        보내는 쪽 요청당 %.2f us, %.0f%%"
                  : "CPU        generator %.2f us per request, %.0f %% busy",
           numbers->self_us, numbers->self_percent);
    if (result->has_watched) {
        double requests = result->answered_count ? (double)result->answered_count : 1;
        printf(korean ? "; 지켜본 프로세스 사용자 %.2f + 시스템 %.2f = 요청당 %.2f us, %.0f%%"
                      : "; watched: user %.2f + system %.2f = %.2f us per request, %.0f %% busy",
               (double)result->watched.user_us / requests, (double)result->watched.system_us / requests,
               numbers->watched_us, numbers->watched_percent);
    }
    printf("\n");
}

static void cli_load_say_doubts(bool korean, const struct load_options *load,
                                const struct load_result *result, const struct cli_load_numbers *numbers)
{
    if (load->rate_per_s <= 0 && !load->idle)
        printf(korean ? "알림: 닫힌 고리의 지연은 보낸 때부터 잰다: 서버가 멈추면 다음 요청도 늦게 보낸다 "
                        "(--rate)\n"
                      : "note: in a closed loop a server that stalls is sent less: its percentiles flatter "
                        "(--rate)\n");
    if (result->streams_allowed > 0 && result->streams_allowed < load->streams)
        printf(korean ? "알림: 서버는 연결마다 스트림 %u개까지 받는다: 나머지는 이쪽에서 기다린다\n"
                      : "note: the server allows %u streams on a connection: the others wait here\n",
               result->streams_allowed);
    if (numbers->self_percent >= CLI_LOAD_BUSY_PERCENT)
        printf(korean ? "주의: 보내는 쪽의 CPU가 찼다: 서버가 아니라 보내는 쪽을 쟀을 수 있다\n"
                      : "caution: the generator used its whole CPU: this may have measured it and not the "
                        "server\n");
    if (load->rate_per_s <= 0) return;
    if (numbers->per_second < load->rate_per_s * CLI_LOAD_RATE_PART)
        printf(korean ? "주의: 초당 %.8g개 중 %.8g개만 응답을 받았다\n"
                      : "caution: of %.8g requests per second only %.8g were answered\n",
               load->rate_per_s, numbers->per_second);
    if (histogram_quantile(&result->lag, 990000) >= CLI_LOAD_LATE_NS)
        printf(korean ? "주의: 보내는 쪽이 늦었다 (위의 늦음): 지연의 일부는 서버 탓이 아니다\n"
                      : "caution: the generator was late itself (above): a part of the latency is not the "
                        "server's\n");
}

static void cli_load_report_text(bool korean, const struct cli_load_plan *plan,
                                 const struct load_options *load, const struct load_result *result)
{
    struct cli_load_numbers numbers = cli_load_compute(result);
    cli_load_say_kind(korean, plan, load);
    printf(korean ? "응답       %llu개, %.2f초, 초당 %.1f개, 초당 %.2f MB\n"
                  : "answered   %llu in %.2f s: %.1f per second, %.2f MB per second\n",
           (unsigned long long)result->answered_count, numbers.seconds, numbers.per_second,
           numbers.seconds > 0 ? (double)result->received_bytes / 1e6 / numbers.seconds : 0);
    printf(korean ? "지연       " : "latency    ");
    cli_load_say_times(&result->latency);
    if (load->rate_per_s > 0) {
        printf(korean ? "늦음       " : "lateness   ");
        cli_load_say_times(&result->lag);
        printf(korean ? "기다림     빈 연결이 없던 요청 %llu개\n"
                      : "queued     %llu were due when no connection was free\n",
               (unsigned long long)result->queued_count);
    }
    cli_load_say_statuses(korean, result);
    cli_load_say_faults(korean, result);
    cli_load_say_connections(korean, load, result);
    cli_load_say_cpu(korean, result, &numbers);
    cli_load_say_doubts(korean, load, result, &numbers);
}

/* -- JSON ------------------------------------------------------------------------------------------------ */

static void cli_load_put_text(struct builder *out, const char *name, cy_bytes text)
{
    size_t bad;
    builder_printf(out, "\"%s\": ", name);
    if (!json_write_text(out, text, &bad)) builder_text(out, "null"); /* not UTF-8 */
    builder_text(out, ", ");
}

static void cli_load_put_times(struct builder *out, const char *name, const struct histogram *histogram)
{
    builder_printf(out, "\"%s_us\": {\"count\": %llu, \"mean\": %.3f", name,
                   (unsigned long long)histogram->count, (double)histogram_mean(histogram) / 1e3);
    for (size_t i = 0; i < CY_COUNT_OF(cli_load_quantiles); i++)
        builder_printf(out, ", \"%s\": %.3f", cli_load_quantiles[i].name,
                       (double)histogram_quantile(histogram, cli_load_quantiles[i].parts_per_million) / 1e3);
    builder_printf(out, ", \"max\": %.3f}, ", histogram->count ? (double)histogram->largest / 1e3 : 0.0);
}

static void cli_load_put_cpu(struct builder *out, const char *name, const struct cpu_usage *usage,
                             double per_request, double percent)
{
    builder_printf(
        out,
        "\"%s\": {\"user_us\": %llu, \"system_us\": %llu, \"us_per_request\": %.4f, \"busy_percent\": %.2f}",
        name, (unsigned long long)usage->user_us, (unsigned long long)usage->system_us, per_request, percent);
}

static void cli_load_report_json(const struct cli_load_plan *plan, const struct load_options *load,
                                 const struct load_result *result)
{
    struct cli_load_numbers numbers = cli_load_compute(result);
    struct builder out;
    builder_init(&out);
    builder_text(&out, "{");
    cli_load_put_text(&out, "url", plan->url);
    builder_printf(&out,
                   "\"requests_to_choose_from\": %u, \"http\": \"%s\", \"new_connections\": %s, "
                   "\"connections\": %u, \"streams\": %u, ",
                   plan->row_count, cli_load_version(load), load->keeping == LOAD_NEW ? "true" : "false",
                   load->connections, load->streams);
    builder_printf(&out, "\"loop\": \"%s\", \"rate_per_s\": %.9g, \"seconds\": %.6f, ",
                   load->idle             ? "idle"
                   : load->rate_per_s > 0 ? "open"
                                          : "closed",
                   load->rate_per_s, numbers.seconds);
    builder_printf(&out, "\"answered\": %llu, \"per_second\": %.3f, \"received_bytes\": %llu, ",
                   (unsigned long long)result->answered_count, numbers.per_second,
                   (unsigned long long)result->received_bytes);
    builder_printf(&out, "\"measured\": %llu, \"well\": %llu, \"queued\": %llu, \"opened\": %llu, ",
                   (unsigned long long)result->measured_count, (unsigned long long)result->well_count,
                   (unsigned long long)result->queued_count, (unsigned long long)result->opened_count);
    builder_printf(&out, "\"handshakes\": {\"full\": %llu, \"resumed\": %llu}, \"goaways\": %llu, ",
                   (unsigned long long)(result->handshake_count - result->resumed_count),
                   (unsigned long long)result->resumed_count, (unsigned long long)result->goaway_count);
    cli_load_put_times(&out, "latency", &result->latency);
    cli_load_put_times(&out, "lateness", &result->lag);
    builder_text(&out, "\"faults\": {");
    const char *comma = "";
    for (unsigned i = 1; i < LOAD_FAULT_COUNT; i++, comma = ", ")
        builder_printf(&out, "%s\"%s\": %llu", comma, load_fault_word(i),
                       (unsigned long long)result->faults[i]);
    builder_text(&out, "}, \"statuses\": {");
    comma = "";
    for (unsigned status = 0; status < CY_COUNT_OF(result->statuses); status++) {
        if (!result->statuses[status]) continue;
        builder_printf(&out, "%s\"%u\": %llu", comma, status, (unsigned long long)result->statuses[status]);
        comma = ", ";
    }
    builder_text(&out, "}, ");
    cli_load_put_cpu(&out, "generator", &result->self, numbers.self_us, numbers.self_percent);
    if (result->has_watched) {
        builder_text(&out, ", ");
        cli_load_put_cpu(&out, "watched", &result->watched, numbers.watched_us, numbers.watched_percent);
    }
    builder_text(&out, "}\n");
    cy_bytes text = builder_view(&out);
    fwrite(text.data, 1, text.count, stdout);
    builder_fini(&out);
}

void cli_load_report(const struct cli_options *options, const struct cli_load_plan *plan,
                     const struct load_options *load, const struct load_result *result)
{
    if (options->json)
        cli_load_report_json(plan, load, result);
    else
        cli_load_report_text(options->korean, plan, load, result);
    fflush(stdout);
}

#undef CLI_LOAD_BUSY_PERCENT
#undef CLI_LOAD_LATE_NS
#undef CLI_LOAD_RATE_PART
