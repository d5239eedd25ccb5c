// SPDX-License-Identifier: MIT
//
// bench/micro/sieve.js: an array of booleans. Primes up to 100,000 by Eratosthenes' sieve, n times over, each time
// with one number more; the last hundred are checked by division. Prints the sum of the primes and of their counts.

'use strict';

function sieve(limit) {
    const composite = [];
    for (let i = 0; i <= limit; i++) composite.push(false);
    for (let i = 2; i * i <= limit; i++) {
        if (!composite[i]) {
            for (let multiple = i * i; multiple <= limit; multiple += i) composite[multiple] = true;
        }
    }
    return composite;
}

function isPrime(n) {
    for (let divisor = 2; divisor * divisor <= n; divisor++) {
        if (n % divisor === 0) return false;
    }
    return true;
}

let sum = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    const limit = 100000 + round;
    const composite = sieve(limit);
    for (let i = 2; i <= limit; i++) {
        if (!composite[i]) sum += i + 1;
    }
    for (let i = limit - 100; i <= limit; i++) {
        if (composite[i] === isPrime(i)) throw new Error('sieve is wrong');
    }
}
console.log(sum);
