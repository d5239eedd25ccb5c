# SPDX-License-Identifier: MIT
#
# bench/micro/nbody.py: floats in fields of records. n steps of the sun and four planets; the energy must stay what it
# was. Prints the energy in units of 1e-9.

import math
import sys

SOLAR_MASS = 39.47841760435743
DAYS_PER_YEAR = 365.24


class Body:
    __slots__ = ("x", "y", "z", "vx", "vy", "vz", "mass")

    def __init__(self, x, y, z, vx, vy, vz, mass):
        self.x, self.y, self.z = x, y, z
        self.vx, self.vy, self.vz = vx * DAYS_PER_YEAR, vy * DAYS_PER_YEAR, vz * DAYS_PER_YEAR
        self.mass = mass * SOLAR_MASS


def solar_system():
    return [
        Body(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        Body(4.84143144246472090, -1.16032004402742839, -0.103622044471123109,
             0.00166007664274403694, 0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609),
        Body(8.34336671824457987, 4.12479856412430479, -0.403523417114321381,
             -0.00276742510726411, 0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812),
        Body(12.8943695621391310, -15.1111514016986312, -0.223307578892655734,
             0.00296460137564761618, 0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298),
        Body(15.3796971148509165, -25.9193146099879641, 0.179258772950371181,
             0.00268067772490389322, 0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451),
    ]


def with_momentum_zero(bodies):
    """The sun moves so that the whole system stays where it is."""
    px = py = pz = 0.0
    for body in bodies:
        px += body.vx * body.mass
        py += body.vy * body.mass
        pz += body.vz * body.mass
    sun = bodies[0]
    sun.vx, sun.vy, sun.vz = -px / SOLAR_MASS, -py / SOLAR_MASS, -pz / SOLAR_MASS
    return bodies


def simulate(bodies, steps, dt):
    sqrt = math.sqrt
    count = len(bodies)
    for _ in range(steps):
        for i in range(count):
            a = bodies[i]
            x, y, z, vx, vy, vz, mass = a.x, a.y, a.z, a.vx, a.vy, a.vz, a.mass
            for j in range(i + 1, count):
                b = bodies[j]
                dx, dy, dz = x - b.x, y - b.y, z - b.z
                square = dx * dx + dy * dy + dz * dz
                magnitude = dt / (sqrt(square) * square)
                pull = b.mass * magnitude
                vx -= dx * pull
                vy -= dy * pull
                vz -= dz * pull
                push = mass * magnitude
                b.vx += dx * push
                b.vy += dy * push
                b.vz += dz * push
            a.vx, a.vy, a.vz = vx, vy, vz
            a.x = x + dt * vx
            a.y = y + dt * vy
            a.z = z + dt * vz
    return bodies


def energy(bodies):
    total = 0.0
    for i, a in enumerate(bodies):
        total += 0.5 * a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz)
        for b in bodies[i + 1:]:
            dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
            total -= a.mass * b.mass / math.sqrt(dx * dx + dy * dy + dz * dz)
    return total


def main(steps):
    bodies = with_momentum_zero(solar_system())
    before = energy(bodies)
    after = energy(simulate(bodies, steps, 0.01))
    assert abs(after - before) <= 0.0001, "energy is not kept"
    print(int(after * 1e9))


main(int(sys.argv[1]))
