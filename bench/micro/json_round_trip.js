// SPDX-License-Identifier: MIT
//
// bench/micro/json_round_trip.js: reading and writing JSON. A document of 500 routes is read, written and read again, n
// times over; what comes back must be what was read. Lengths are in UTF-8, as in the other languages.

'use strict';

const assert = require('node:assert');

const ROUTE = String.raw`{"id": NUMBER, "name": "service-NUMBER", "domain": "service-NUMBER.example.org",
 "note": "줄\nline \"NUMBER\" \\ end",
 "enabled": true, "fallback": null, "weights": [1, 2.5, -3, NUMBER], "limits": {"requests": 100, "bytes": 1048576}}`;
const ROUTES = 500;

function document() {
    const routes = [];
    for (let i = 0; i < ROUTES; i++) routes.push(ROUTE.replaceAll('NUMBER', String(i)));
    return '{"version": 1, "routes": [' + routes.join(',\n') + ']}';
}

function weigh(read) {
    let sum = 0;
    for (const route of read.routes) {
        sum += route.id + route.weights[3] + Buffer.byteLength(route.note) + route.limits.requests;
    }
    return sum;
}

const input = document();
let sum = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    const read = JSON.parse(input);
    const again = JSON.parse(JSON.stringify(read));
    if (round === 0) assert.deepStrictEqual(again, read);
    sum += weigh(again);
}
console.log(sum);
