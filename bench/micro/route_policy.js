// SPDX-License-Identifier: MIT
//
// bench/micro/route_policy.js: the gateway's decision (programs/gateway/routes.han) without the network. Cuts host
// and path out of a request's head, looks up the host among the services, walks the path's segments through the
// service's 10 prefixes, and edits two fields of the request. Arguments: decisions, services. The answer to each of
// the 1024 different requests is checked against a search through all prefixes.

'use strict';

const HEADS = 1024;
const PREFIXES = ['/api', '/api/v1', '/api/v2/users', '/static', '/static/img', '/admin', '/health', '/login',
    '/docs/guide', '/ws'];
const PATHS = ['/api/v1/items/42', '/api/v2/users/7', '/static/img/logo.png', '/', '/docs/guide/start', '/docs/other',
    '/index.html', '/admin', '/api/v3', '/login/now'];

const sites = new Map();
const notFound = {upstream: '', number: 0};

function hostOf(service) {
    return `service-${service}.example.org`;
}

function add(host, prefix, rule) {
    let site = sites.get(host);
    if (site === undefined) {
        site = {whole: null, prefixes: null};
        sites.set(host, site);
    }
    if (prefix === '') {
        site.whole = rule;
        return;
    }
    if (site.prefixes === null) site.prefixes = new Map();
    let border = prefix.indexOf('/', 1);
    while (border > 0) {
        const shorter = prefix.slice(0, border);
        if (!site.prefixes.has(shorter)) site.prefixes.set(shorter, null);
        border = prefix.indexOf('/', border + 1);
    }
    site.prefixes.set(prefix, rule);
}

function configure(services) {
    for (let service = 0; service < services; service++) {
        const host = hostOf(service);
        add(host, '', {upstream: 'http://10.0.0.1:8080', number: service * 11 + 1});
        PREFIXES.forEach((prefix, index) => {
            add(host, prefix, {upstream: `http://10.0.0.${index + 2}:8080`, number: service * 11 + index + 2});
        });
    }
}

// -- one decision

function byPath(site, path) {
    let best = site.whole;
    const prefixes = site.prefixes;
    if (prefixes === null) return best;
    let border = 0;
    while (border >= 0 && border < path.length) {
        border = path.indexOf('/', border + 1);
        const prefix = border >= 0 ? path.slice(0, border) : path;
        const found = prefixes.get(prefix);
        if (found === undefined) return best;
        if (found !== null) best = found;
    }
    return best;
}

function decide(request) {
    let rule = notFound;
    const site = sites.get(request.host);
    if (site !== undefined) rule = byPath(site, request.path);
    request.upstream = rule.upstream;
    request.rule = rule.number;
    return request;
}

function decideHead(head) {
    const host = head.bytes.slice(0, head.hostEnd), path = head.bytes.slice(head.hostEnd);
    return decide({host, path, upstream: null, rule: 0});
}

// -- what it is measured and checked with

function ruleBySearch(service, services, path) {
    if (service >= services) return 0;
    let best = service * 11 + 1, longest = 0;
    PREFIXES.forEach((prefix, index) => {
        const covers = path === prefix || path.startsWith(prefix + '/');
        if (covers && prefix.length > longest) {
            best = service * 11 + index + 2;
            longest = prefix.length;
        }
    });
    return best;
}

const decisions = Number(process.argv[2]), services = Number(process.argv[3]);
configure(services);
const heads = [];
for (let i = 0; i < HEADS; i++) {
    const service = i * 7919 % (services + Math.floor(services / 100) + 1); // one in a hundred is not there
    const host = hostOf(service), path = PATHS[i % PATHS.length];
    heads.push({bytes: host + path, hostEnd: host.length});
    if (decideHead(heads[i]).rule !== ruleBySearch(service, services, path)) throw new Error(host + path);
}
let sum = 0, at = 0;
for (let i = 0; i < decisions; i++) {
    sum += decideHead(heads[at]).rule;
    at++;
    if (at === HEADS) at = 0;
}
console.log(sum);
