// SPDX-License-Identifier: MIT
//
// bench/micro/nbody.js: floats in fields of records. n steps of the sun and four planets; the energy must stay what
// it was. Prints the energy in units of 1e-9.

'use strict';

const SOLAR_MASS = 39.47841760435743;
const DAYS_PER_YEAR = 365.24;

function planet(x, y, z, vx, vy, vz, mass) {
    return {x, y, z, vx: vx * DAYS_PER_YEAR, vy: vy * DAYS_PER_YEAR, vz: vz * DAYS_PER_YEAR, mass: mass * SOLAR_MASS};
}

function solarSystem() {
    return [
        planet(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        planet(4.84143144246472090, -1.16032004402742839, -0.103622044471123109,
            0.00166007664274403694, 0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609),
        planet(8.34336671824457987, 4.12479856412430479, -0.403523417114321381,
            -0.00276742510726411, 0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812),
        planet(12.8943695621391310, -15.1111514016986312, -0.223307578892655734,
            0.00296460137564761618, 0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298),
        planet(15.3796971148509165, -25.9193146099879641, 0.179258772950371181,
            0.00268067772490389322, 0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451),
    ];
}

// The sun moves so that the whole system stays where it is.
function withMomentumZero(bodies) {
    let px = 0.0, py = 0.0, pz = 0.0;
    for (const body of bodies) {
        px += body.vx * body.mass;
        py += body.vy * body.mass;
        pz += body.vz * body.mass;
    }
    bodies[0].vx = -px / SOLAR_MASS;
    bodies[0].vy = -py / SOLAR_MASS;
    bodies[0].vz = -pz / SOLAR_MASS;
    return bodies;
}

function simulate(bodies, steps, dt) {
    const count = bodies.length;
    for (let step = 0; step < steps; step++) {
        for (let i = 0; i < count; i++) {
            const a = bodies[i];
            const x = a.x, y = a.y, z = a.z, mass = a.mass;
            let vx = a.vx, vy = a.vy, vz = a.vz;
            for (let j = i + 1; j < count; j++) {
                const b = bodies[j];
                const dx = x - b.x, dy = y - b.y, dz = z - b.z;
                const square = dx * dx + dy * dy + dz * dz;
                const magnitude = dt / (Math.sqrt(square) * square);
                const pull = b.mass * magnitude;
                vx -= dx * pull;
                vy -= dy * pull;
                vz -= dz * pull;
                const push = mass * magnitude;
                b.vx += dx * push;
                b.vy += dy * push;
                b.vz += dz * push;
            }
            a.vx = vx;
            a.vy = vy;
            a.vz = vz;
            a.x = x + dt * vx;
            a.y = y + dt * vy;
            a.z = z + dt * vz;
        }
    }
    return bodies;
}

function energy(bodies) {
    let sum = 0.0;
    for (let i = 0; i < bodies.length; i++) {
        const a = bodies[i];
        sum += 0.5 * a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz);
        for (let j = i + 1; j < bodies.length; j++) {
            const b = bodies[j];
            const dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
            sum -= a.mass * b.mass / Math.sqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    return sum;
}

const bodies = withMomentumZero(solarSystem());
const before = energy(bodies);
const after = energy(simulate(bodies, Number(process.argv[2]), 0.01));
if (Math.abs(after - before) > 0.0001) throw new Error('energy is not kept');
console.log(Math.trunc(after * 1e9));
