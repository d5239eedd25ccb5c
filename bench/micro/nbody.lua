-- SPDX-License-Identifier: MIT
-- bench/micro/nbody.lua: floats in fields of records. n steps of the sun and four planets; the energy must stay what
-- it was. Prints the energy in units of 1e-9.

local sqrt = math.sqrt

local SOLAR_MASS = 39.47841760435743
local DAYS_PER_YEAR = 365.24

local function planet(x, y, z, vx, vy, vz, mass)
    return {x = x, y = y, z = z, vx = vx * DAYS_PER_YEAR, vy = vy * DAYS_PER_YEAR, vz = vz * DAYS_PER_YEAR,
        mass = mass * SOLAR_MASS}
end

local function solar_system()
    return {
        planet(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        planet(4.84143144246472090, -1.16032004402742839, -0.103622044471123109,
            0.00166007664274403694, 0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609),
        planet(8.34336671824457987, 4.12479856412430479, -0.403523417114321381,
            -0.00276742510726411, 0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812),
        planet(12.8943695621391310, -15.1111514016986312, -0.223307578892655734,
            0.00296460137564761618, 0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298),
        planet(15.3796971148509165, -25.9193146099879641, 0.179258772950371181,
            0.00268067772490389322, 0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451),
    }
end

-- The sun moves so that the whole system stays where it is.
local function with_momentum_zero(bodies)
    local px, py, pz = 0.0, 0.0, 0.0
    for _, body in ipairs(bodies) do
        px = px + body.vx * body.mass
        py = py + body.vy * body.mass
        pz = pz + body.vz * body.mass
    end
    local sun = bodies[1]
    sun.vx, sun.vy, sun.vz = -px / SOLAR_MASS, -py / SOLAR_MASS, -pz / SOLAR_MASS
    return bodies
end

local function simulate(bodies, steps, dt)
    local count = #bodies
    for _ = 1, steps do
        for i = 1, count do
            local a = bodies[i]
            local x, y, z, vx, vy, vz, mass = a.x, a.y, a.z, a.vx, a.vy, a.vz, a.mass
            for j = i + 1, count do
                local b = bodies[j]
                local dx, dy, dz = x - b.x, y - b.y, z - b.z
                local square = dx * dx + dy * dy + dz * dz
                local magnitude = dt / (sqrt(square) * square)
                local pull = b.mass * magnitude
                vx = vx - dx * pull
                vy = vy - dy * pull
                vz = vz - dz * pull
                local push = mass * magnitude
                b.vx = b.vx + dx * push
                b.vy = b.vy + dy * push
                b.vz = b.vz + dz * push
            end
            a.vx, a.vy, a.vz = vx, vy, vz
            a.x = x + dt * vx
            a.y = y + dt * vy
            a.z = z + dt * vz
        end
    end
    return bodies
end

local function energy(bodies)
    local sum = 0.0
    for i, a in ipairs(bodies) do
        sum = sum + 0.5 * a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz)
        for j = i + 1, #bodies do
            local b = bodies[j]
            local dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
            sum = sum - a.mass * b.mass / sqrt(dx * dx + dy * dy + dz * dz)
        end
    end
    return sum
end

local bodies = with_momentum_zero(solar_system())
local before = energy(bodies)
local after = energy(simulate(bodies, tonumber(arg[1]), 0.01))
assert(math.abs(after - before) <= 0.0001, "energy is not kept")
print(string.format("%d", -math.floor(-after * 1e9)))
