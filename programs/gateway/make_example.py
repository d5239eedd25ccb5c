#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# programs/gateway/make_example.py: writes gateway.yaml, the example with 300 services.
#
#     python3 programs/gateway/make_example.py > programs/gateway/gateway.yaml
#
# Out:  the same text every time. The root is a list whose items begin in column 1, so that a block can be appended.
# Domains end in .example (RFC 2606), addresses are of 10.0.0.0/8: nothing here is anybody's.

SERVICES_WANTED = 300

# What a company of some size runs, and how it calls it.
AREAS = [
    ("주문", "orders"), ("결제", "payments"), ("회원", "members"), ("상품", "catalog"),
    ("재고", "stock"), ("배송", "delivery"), ("검색", "search"), ("추천", "recommend"),
    ("쿠폰", "coupons"), ("정산", "settlement"), ("알림", "notify"), ("문서", "documents"),
    ("일정", "calendar"), ("지도", "maps"), ("사진", "photos"), ("고객센터", "support"),
    ("통계", "statistics"), ("인증", "login"), ("게시판", "board"), ("예약", "booking"),
]
KINDS = [
    ("웹", "www", 8080), ("관리", "admin", 8081), ("API", "api", 9000), ("모바일", "m", 8082),
    ("시험", "staging", 8180), ("내부", "internal", 9100), ("제휴", "partner", 9200), ("일본", "jp", 8083),
    ("영어", "en", 8084), ("정적", "static", 8000), ("웹훅", "hooks", 9300), ("보고서", "reports", 9400),
    ("실시간", "live", 9500), ("보관", "archive", 8085), ("상태", "status", 9600),
]


def address(area, kind, port):
    return f"http://10.{20 + area}.{kind}.10:{port}"


def path_routes(area, kind):
    return [(path, address(area, kind, port)) for path, port in (("/v1", 9001), ("/v2", 9002), ("/v2/upload", 9003))]


def service(area, kind):
    area_name, area_word = AREAS[area]
    kind_name, kind_word, port = KINDS[kind]
    # Every third has a Korean name, the rest English ones, as such files grow.
    name = f"{area_name} {kind_name}" if (area + kind) % 3 == 0 else f"{area_word}-{kind_word}"
    lines = [f"- name: {name}"]
    domain = f"{kind_word}.{area_word}.example"
    if kind_word == "www":
        lines.append(f"  domain: [{area_word}.example, {domain}]")
    elif kind_word == "live":
        lines.append(f"  domain: \"*.{domain}\"")
    else:
        lines.append(f"  domain: {domain}")
    lines.append(f"  upstream: {address(area, kind, port)}")
    if kind_word == "api":
        lines.append("  pathRoutes:")
        for path, upstream in path_routes(area, kind):
            lines += [f"  - path: {path}", f"    upstream: {upstream}"]
    return lines


def main():
    print("# gateway.yaml: an example with 300 services, written by programs/gateway/make_example.py.")
    print("# Append a service with `cat >>`: the list is last and its items begin in column 1 (docs/GATEWAY.md).")
    count = 0
    for area in range(len(AREAS)):
        print(f"\n# {AREAS[area][0]} ({AREAS[area][1]})")
        for kind in range(len(KINDS)):
            print("\n".join(service(area, kind)))
            count += 1
    assert count == SERVICES_WANTED, count


main()
