# SPDX-License-Identifier: MIT
#
# bench/micro/route_policy.py: the gateway's decision (programs/gateway/routes.han) without the network. Cuts host and
# path out of a request's head, looks up the host among the services, walks the path's segments through the service's
# 10 prefixes, and edits two fields of the request. Arguments: decisions, services. The answer to each of the 1024
# different requests is checked against a search through all prefixes.

import sys

HEADS = 1024
PREFIXES = ("/api", "/api/v1", "/api/v2/users", "/static", "/static/img", "/admin", "/health", "/login", "/docs/guide",
            "/ws")
PATHS = ("/api/v1/items/42", "/api/v2/users/7", "/static/img/logo.png", "/", "/docs/guide/start", "/docs/other",
         "/index.html", "/admin", "/api/v3", "/login/now")


class Site:
    __slots__ = ("whole", "prefixes")

    def __init__(self):
        self.whole = None
        self.prefixes = None


class Rule:
    __slots__ = ("upstream", "number")

    def __init__(self, upstream, number):
        self.upstream = upstream
        self.number = number


class Request:
    __slots__ = ("host", "path", "upstream", "rule")

    def __init__(self, host, path):
        self.host = host
        self.path = path
        self.upstream = None
        self.rule = 0


sites = {}
not_found = Rule("", 0)


def host_of(service):
    return f"service-{service}.example.org"


def add(host, prefix, rule):
    site = sites.setdefault(host, None) or Site()
    sites[host] = site
    if prefix == "":
        site.whole = rule
        return
    if site.prefixes is None:
        site.prefixes = {}
    border = prefix.find("/", 1)
    while border > 0:
        site.prefixes.setdefault(prefix[:border], False)
        border = prefix.find("/", border + 1)
    site.prefixes[prefix] = rule


def configure(services):
    for service in range(services):
        host = host_of(service)
        add(host, "", Rule("http://10.0.0.1:8080", service * 11 + 1))
        for index, prefix in enumerate(PREFIXES):
            add(host, prefix, Rule(f"http://10.0.0.{index + 2}:8080", service * 11 + index + 2))


# -- one decision

def by_path(site, path):
    best = site.whole
    prefixes = site.prefixes
    if prefixes is None:
        return best
    border = 0
    while 0 <= border < len(path):
        border = path.find("/", border + 1)
        prefix = path[:border] if border >= 0 else path
        found = prefixes.get(prefix)
        if found is None:
            return best
        if found:
            best = found
    return best


def decide(request):
    rule = not_found
    site = sites.get(request.host)
    if site is not None:
        rule = by_path(site, request.path)
    request.upstream = rule.upstream
    request.rule = rule.number
    return request


def decide_head(head):
    text, host_end = head
    return decide(Request(text[:host_end], text[host_end:]))


# -- what it is measured and checked with

def rule_by_search(service, services, path):
    if service >= services:
        return 0
    best, longest = service * 11 + 1, 0
    for index, prefix in enumerate(PREFIXES):
        covers = path == prefix or path.startswith(prefix + "/")
        if covers and len(prefix) > longest:
            best = service * 11 + index + 2
            longest = len(prefix)
    return best


def main(decisions, services):
    configure(services)
    heads = []
    for i in range(HEADS):
        service = i * 7919 % (services + services // 100 + 1)  # one in a hundred is not there
        host, path = host_of(service), PATHS[i % len(PATHS)]
        heads.append((host + path, len(host)))
        assert decide_head(heads[i]).rule == rule_by_search(service, services, path), host + path
    total = at = 0
    for _ in range(decisions):
        total += decide_head(heads[at]).rule
        at += 1
        if at == HEADS:
            at = 0
    print(total)


main(int(sys.argv[1]), int(sys.argv[2]))
