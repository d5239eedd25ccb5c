// SPDX-License-Identifier: MIT
//
// bench/micro/fnv1a.js: bytes of a buffer and wrapping 64-bit arithmetic. The FNV-1a hash of 64 KiB, n times over;
// checked against the published hash of "foobar". A number is exact to 53 bits, so a hash is two halves: the prime is
// 2^40 + 0x1b3.

'use strict';

function fnv1a(bytes, start) {
    let high = 0xcbf29ce4, low = 0x84222325;
    for (let i = start; i < bytes.length; i++) {
        low = (low ^ bytes[i]) >>> 0;
        const product = low * 0x1b3;
        high = (high * 0x1b3 + Math.floor(product / 0x100000000) + ((low << 8) >>> 0)) % 0x100000000;
        low = product % 0x100000000;
    }
    return [high, low];
}

const foobar = fnv1a(Buffer.from('foobar'), 0);
if (foobar[0] !== 0x85944171 || foobar[1] !== 0xf73967e8) throw new Error('the hash is wrong');
const input = Buffer.from('The quick brown fox jumps over the lazy dog. 다람쥐 헌 쳇바퀴'.repeat(1024));
let sum = 0n;
const rounds = Number(process.argv[2]);
for (let i = 0; i < rounds; i++) {
    const [high, low] = fnv1a(input, i);
    sum ^= BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low)) >> 11n;
}
console.log(String(sum & 0xfffffffffffffn));
